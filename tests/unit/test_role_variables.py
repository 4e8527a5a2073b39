"""What a role reads from outside is in an argument spec, and what an argument spec has is read."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pytest
from ansible.module_utils.common.yaml import yaml_load
from jinja2 import nodes

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if (path / "meta").is_dir())
PLAYBOOKS = [ROOT / "site.yml", *(ROOT / "playbooks").glob("*.yml")]
EXPRESSIONS = ("when", "until", "changed_when", "failed_when", "that", "var")
"""Keywords whose value is an expression without braces."""
ANSIBLE = {
    *("hostvars", "groups", "inventory_hostname", "inventory_hostname_short", "inventory_dir", "inventory_file"),
    *("role_path", "playbook_dir", "item", "omit", "lookup", "query", "now", "dict"),
}
"""Beside ansible_*: https://docs.ansible.com/ansible/latest/reference_appendices/special_variables.html, and functions."""
JINJA = jinja2.Environment()


class Use(NamedTuple):
    """A variable in a file. ``optional``: it has a default, for plays in which nobody sets it."""

    name: str
    file: str
    optional: bool


def options(role: str) -> set[str]:
    """Return the variables in the argument spec of a role."""
    specs = yaml_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text(encoding="utf-8"))
    return {name for entry in specs["argument_specs"].values() for name in entry.get("options") or {}}


DECLARED = {name for role in ROLES for name in options(role)}


def with_default(tree: nodes.Template) -> set[str]:
    """Return the names that are followed by `default`, also as the default of something else."""
    found: set[str] = set()
    for call in tree.find_all(nodes.Filter):
        if call.name == "default":
            inner = call.node
            followed = [inner, *inner.args] if isinstance(inner, nodes.Filter) and inner.name == "default" else [inner]
            found |= {node.name for node in followed if isinstance(node, nodes.Name)}
    return found


def names_in(text: str, file: str) -> Iterator[Use]:
    """Yield the variables that a template reads."""
    tree = JINJA.parse(text)
    names = list(tree.find_all(nodes.Name))
    own = {name.name for name in names if name.ctx != "load"}
    optional = with_default(tree)
    yield from (Use(name.name, file, name.name in optional) for name in names if name.name not in own)
    # hosts | map('extract', hostvars, 'gpu_upgrade_canaries')
    yield from (Use(text.value, file, True) for text in tree.find_all(nodes.Const) if text.value in DECLARED)


def used_in(value: Any, file: str, keyword: str = "") -> Iterator[Use]:
    """Yield the variables of every template in a file of YAML."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from used_in(str(key), file)
            yield from used_in(one, file, str(key))
    elif isinstance(value, list):
        for one in value:
            yield from used_in(one, file, keyword)
    elif isinstance(value, str):
        bare = keyword in EXPRESSIONS and "{{" not in value
        yield from names_in(f"{{{{ {value} }}}}" if bare else value, file)


def uses(paths: Iterable[Path]) -> set[Use]:
    """Return what files read."""
    found: set[Use] = set()
    for path in paths:
        text, file = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        found |= set(names_in(text, file) if path.suffix == ".j2" else used_in(yaml_load(text), file))
    return found


def set_in(value: Any) -> Iterator[str]:
    """Yield the variables that tasks set."""
    for one in value if isinstance(value, list) else []:
        yield from set_in(one)
    for key, one in value.items() if isinstance(value, dict) else []:
        if key in ("vars", "ansible.builtin.set_fact"):
            yield from one
        elif key in ("register", "loop_var"):
            yield one
        yield from set_in(one)


def files_of(role: str) -> list[Path]:
    """The files of a role that are templates, or have some."""
    return [path for kind in ("tasks", "vars", "defaults", "templates") for path in (ROOT / "roles" / role / kind).glob("*")]  # fmt: skip


@functools.cache
def known() -> set[str]:
    """Return what is neither a variable of a user nor a mistake: Ansible's, and what the project sets itself."""
    found = set(ANSIBLE)
    for path in [*PLAYBOOKS, *(path for role in ROLES for path in files_of(role) if path.suffix == ".yml")]:
        content = yaml_load(path.read_text(encoding="utf-8"))
        found |= {*set_in(content), *(content if path.parent.name == "vars" else ())}
    return found


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reads_its_own_options_and_has_a_default_for_those_of_others(role: str) -> None:
    """Nobody validates a variable that is in no argument spec, and another role's default is unknown without that role."""
    own, ours = options(role), known()
    outside = {
        use for use in uses(files_of(role)) if use.name not in own | ours and not use.name.startswith("ansible_")
    }
    assert sorted(use for use in outside if use.name not in DECLARED) == []
    assert sorted(use for use in outside if not use.optional) == []


def test_every_option_is_read() -> None:
    """In tasks of the role, in playbooks, by the action plugins of modules that plan, by steps, or in turns."""
    files = [
        *(ROOT / "plugins/plugin_utils/gpu_ready/execute").glob("*.py"),
        *(ROOT / "plugins/plugin_utils/gpu_ready/turn").glob("*.py"),
        ROOT / "plugins/action/gpu_turn.py",
        ROOT / "plugins/plugin_utils/variables/rollout.py",
    ]
    steps = "".join(path.read_text() for path in files)
    used = {
        use.name for role in ROLES for use in uses(path for path in files_of(role) if path.parent.name != "defaults")
    }
    planned = set(
        json.loads((ROOT / "plugins/plugin_utils/variables/names.json").read_text(encoding="utf-8"))["settings"]
    )
    left = DECLARED - used - {use.name for use in uses(PLAYBOOKS)} - planned
    assert sorted(name for name in left if f'"{name}"' not in steps) == []


@pytest.mark.parametrize(
    ("task", "found"),
    [
        ({"when": "a is defined and b.c"}, {("a", False), ("b", False)}),
        ({"loop": "{{ a | default([]) }}"}, {("a", True)}),
        ({"x": "{{ a.b | default(c) | default(omit) }}"}, {("a", False), ("c", True), ("omit", False)}),
        ({"x": "{% for a in b %}{{ a }}{% endfor %}", "debug": {"msg": "a"}}, {("b", False)}),
        ({"x": "{{ groups | map('extract', hostvars, 'gpu_upgrade_canaries') }}"}, {("groups", False), ("hostvars", False), ("gpu_upgrade_canaries", True)}),
    ],
)  # fmt: skip
def test_the_variables_of_a_template_are_found(task: dict[str, Any], found: set[tuple[str, bool]]) -> None:
    assert {(use.name, use.optional) for use in used_in(task, "f")} == found
