"""The public variables as they are declared in catalog/variables/*.yml, one file per task of a user.

A declaration has these keys:

role           the role whose default and argument spec it is
type           str, bool, int, path, list, dict, raw, or devices ("all" or a list)
elements       type of the entries of a list
default        the value without any setting
description    one or two short lines of text for an operator; `code` in backticks
example        a value for the documentation
choices        the possible values: a list, or a mapping from each value to what it means
choices_from   distributions: the choices are the files of catalog/distros, and empty
pattern        regular expression for the whole text, or for each entry of a list
range          the least and the greatest value of an int
must_be        what the text or the number must be, for the message about a wrong one
check          validator in lifecycle/variables.py: text (default), name, location, mirror, fingerprint
setting        the planner reads it: `state` is part of the desired state, `policy` says how to get there
overridable    an upgrade may override it for its own plan
"""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
TYPES = {
    "str": "str",
    "path": "str",
    "bool": "bool",
    "int": "int",
    "list": "list[str]",
    "dict": "dict[str, Any]",
    "devices": "str | list[str]",
    "raw": "Any",
}
"""Each type and its annotation."""
ANSIBLE_TYPES = {"devices": "raw"}
CHECKS = ("text", "name", "location", "mirror", "fingerprint")


class DeclarationError(Exception):
    """A declaration in catalog/variables is wrong."""


@dataclasses.dataclass(frozen=True)
class Declaration:
    """One public variable; the fields are described at the top of this module."""

    name: str
    role: str
    type: str
    default: Any
    description: str
    elements: str = ""
    example: Any = None
    choices: dict[str, str] = dataclasses.field(default_factory=dict)
    pattern: str = ""
    range: list[int] = dataclasses.field(default_factory=list)
    must_be: str = ""
    check: str = "text"
    setting: str = ""
    overridable: bool = False

    @property
    def rule(self) -> list[Any]:
        """The default, and what a value must be: the fields of Rule in lifecycle/variables.py."""
        pattern, must_be = self.pattern, self.must_be
        if self.range:
            pattern = "{}..{}".format(*self.range)
            must_be = "{} from {} to {}".format(must_be or "a number", *self.range)
        example = [] if self.example is None else [self.example]
        return [self.default, self.type, list(self.choices), pattern, must_be, self.check, *example]

    @property
    def ansible_type(self) -> str:
        """The type in an argument spec."""
        return ANSIBLE_TYPES.get(self.type, self.type)


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of a user, and the variables that concern it."""

    title: str
    introduction: str
    variables: list[Declaration]


def load_tasks(root: Path = ROOT) -> list[Task]:
    """Read catalog/variables/*.yml in the order of their positions; DeclarationError for a wrong one."""
    files = [yaml_load(path.read_text(encoding="utf-8")) for path in (root / "catalog/variables").glob("*.yml")]
    files.sort(key=lambda data: int(data["position"]))
    distributions = sorted(path.stem for path in (root / "catalog/distros").glob("*.yml"))
    tasks = [
        Task(
            data["title"],
            data["introduction"],
            [parse_declaration(name, entry, distributions) for name, entry in data["variables"].items()],
        )
        for data in files
    ]
    names = [variable.name for variable in all_variables(tasks)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DeclarationError(f"declared twice: {', '.join(twice)}")
    return tasks


def all_variables(tasks: list[Task]) -> Iterator[Declaration]:
    """Yield the variables of all tasks."""
    for task in tasks:
        yield from task.variables


def parse_declaration(name: str, entry: dict[str, Any], distributions: list[str]) -> Declaration:
    """Read one declaration; DeclarationError names what is wrong with it."""
    fields = dict(entry)
    choices = fields.pop("choices", {})
    origin = fields.pop("choices_from", None)
    if origin is not None:
        if origin != "distributions":
            raise DeclarationError(f"{name}: choices_from: {origin} is unknown. Use: distributions.")
        choices = ["", *distributions]
    fields["choices"] = choices if isinstance(choices, dict) else dict.fromkeys(choices, "")
    for key in ("description", "must_be"):
        if key in fields:
            fields[key] = " ".join(str(fields[key]).split())
    try:
        variable = Declaration(name=name, **fields)
    except TypeError as error:
        raise DeclarationError(f"{name}: {error}") from error
    for fault in faults(variable):
        raise DeclarationError(f"{name}: {fault}")
    return variable


def faults(variable: Declaration) -> Iterator[str]:
    """Yield what is wrong with a declaration."""
    if variable.type not in TYPES:
        yield f"type {variable.type} is unknown. Use one of {', '.join(TYPES)}."
    if variable.check not in CHECKS:
        yield f"check {variable.check} is unknown. Use one of {', '.join(CHECKS)}."
    if variable.setting not in ("", "state", "policy"):
        yield f"setting {variable.setting} is unknown. Use state or policy."
    if variable.overridable and not variable.setting:
        yield "overridable without setting."
    if (variable.type == "list") != bool(variable.elements):
        yield "elements belongs to the type list, and to no other."
    if (variable.type == "int") != bool(variable.range):
        yield "range belongs to the type int, and to no other."
    if variable.range and not variable.range[0] <= variable.default <= variable.range[1]:
        yield f"default {variable.default!r} is not in its range."
    if not variable.range and bool(variable.pattern) != bool(variable.must_be):
        yield "pattern and must_be belong together."
    re.compile(variable.pattern)
    if [choice for choice in variable.choices if not isinstance(choice, str)]:
        yield "a choice is no text. Quote it."
    entries = variable.default if isinstance(variable.default, list) else [variable.default]
    if variable.choices and [entry for entry in entries if entry not in variable.choices]:
        yield f"default {variable.default!r} is none of its choices."
    if not variable.description.endswith("."):
        yield "description does not end with a full stop."
