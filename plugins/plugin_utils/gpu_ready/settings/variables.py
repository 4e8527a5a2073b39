"""Validation of the public variables: one pass finds every wrong value.

The rules are declared in catalog/variables/*.yml. A message names the variable, its value and what it must be.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import validation
from ....module_utils.gpu_ready.base.nearest import CHOICE, nearest
from ..catalog import overlay
from ..catalog import settings as declared
from ..catalog.settings import Settings
from ..plan import nested_options
from ..plan.model import Refusal

TRUE = ("true", "yes", "on", "1", "y", "t")
FALSE = ("false", "no", "off", "0", "n", "f")
VALIDATORS: dict[str, Callable[[Any], str]] = {
    "text": validation.text_fault,
    "name": validation.name_fault,
    "location": validation.location_fault,
    "mirror": validation.base_fault,
    "fingerprint": validation.fingerprint_fault,
}
"""Each returns what is wrong with a value, "" if nothing is. Validators of a mapping check its values."""


PROFILES: dict[str, dict[str, Any]] = {"containers": {"cuda_toolkit_source": "none", "cudnn_source": "none"}}
"""What a value of gpu_ready_profile says in place of other variables."""


class Rule(NamedTuple):
    """What a value must be. ``pattern``: of an int its range (1..9999). ``requirement``: the same in words."""

    type: str
    choices: list[str]
    pattern: str
    requirement: str
    validator: str
    example: Any = None


class ParsedSettings(NamedTuple):
    """Settings with the default in place of each wrong value, and a refusal for each wrong value."""

    settings: Settings
    refusals: list[Refusal]

    @property
    def errors(self) -> list[str]:
        return [refusal.message for refusal in self.refusals]


def rule_for(name: str) -> Rule:
    return Rule(*declared.RULES[name])


def parse_settings(given: Mapping[str, Any]) -> ParsedSettings:
    """Convert variables as YAML and the command line give them; None or absent is the default."""
    values: dict[str, Any] = {}
    refusals = [unknown_variable(name) for name in sorted(set(given) - set(declared.RULES))]
    for name, default in sorted(declared.DEFAULTS.items()):
        value = given.get(name)
        values[name], refusal = judge(name, rule_for(name), default, default if value is None else value)
        if refusal:
            refusals.append(refusal)
            values[name], _ = convert(rule_for(name), default)
    settings = Settings(**values)._replace(**PROFILES.get(values["gpu_ready_profile"], {}))
    return ParsedSettings(settings, refusals + nested_options.refusals(settings) + contradictions(settings))


def settings_for_plan(given: Mapping[str, Any]) -> ParsedSettings:
    """Convert variables as :func:`parse_settings` does, and make the catalog of this process the one of these settings.

    A file of the operator that cannot be used is a refusal.
    """
    parsed = parse_settings(given)
    try:
        overlay.use(parsed.settings.gpu_ready_catalog_overlay)
    except overlay.OverlayError as error:
        wrong = Refusal("catalog_overlay_wrong", "gpu_ready_catalog_overlay: %s" % error, error.remedy)
        return parsed._replace(refusals=[*parsed.refusals, wrong])
    return parsed


def wrong_values(rules: Mapping[str, Sequence[Any]], given: Mapping[str, Any]) -> list[Refusal]:
    """Return a refusal for each wrong value of other variables; ``rules``: default and fields of Rule by name."""
    found = []
    for name, (default, *fields) in sorted(rules.items()):
        if given.get(name) is not None:
            _, refusal = judge(name, Rule(*fields), default, given[name])
            found += [refusal] if refusal else []
    return found


def unknown_variable(name: str) -> Refusal:
    guess = nearest(name, declared.RULES)
    remedy = "use %s" % guess if guess else "leave it out here (docs/variables.md has all variables)"
    return Refusal("unknown_variable", "%s is no variable on which a plan depends" % name, remedy)


def judge(name: str, rule: Rule, default: Any, value: Any) -> tuple[Any, Refusal | None]:
    """Return a value as the planner takes it, and the refusal of a wrong one."""
    converted, fault = convert(rule, value)
    if not fault:
        return converted, None
    guesses = [nearest(str(one), rule.choices, CHOICE) for one in to_list(value) or () if str(one) not in rule.choices]
    guess = guesses[0] if guesses and rule.choices else None
    message = "%s is %s, but %s" % (name, validation.format_value(value), fault)
    if guess:
        return converted, Refusal(
            "wrong_type", "%s (did you mean %s?)" % (message, guess), "write %s in its place" % guess
        )
    return converted, Refusal("wrong_type", message, remedy_for(name, rule, default, fault))


def remedy_for(name: str, rule: Rule, default: Any, fault: str) -> str:
    """Return what to do about a wrong value: a right one, or to leave the variable out."""
    example = default if rule.example is None else rule.example
    if rule.type == "bool":
        return "set %s to true or false" % name
    if example in ("", [], {}) or "{{" in str(example):
        right = fault.partition("must be ")[2]
        return "write %s, or leave %s out" % (right, name) if right else "leave %s out" % name
    return "set it as in %s: %s" % (name, format_example(example))


def format_example(value: Any) -> str:
    """Return an example as YAML in one line."""
    if isinstance(value, list):
        return "[%s]" % ", ".join(format_example(one) for one in value)
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (key, format_example(one)) for key, one in value.items())
    if isinstance(value, bool):
        return str(value).lower()
    return '"%s"' % value if isinstance(value, str) and value[:1].isdigit() else str(value)


def convert(rule: Rule, value: Any) -> tuple[Any, str | None]:
    if rule.type == "bool":
        return to_bool(value)
    if rule.type == "dict":
        return (dict(value), dict_fault(rule, value)) if isinstance(value, dict) else (None, "must be a mapping")
    if rule.type == "list":
        items = to_list(value)
        return items, list_fault(rule, items)
    if rule.type == "devices":
        items = to_list(value)
        words = None if items is None else [word for item in items for word in item.split() or [""]]
        if words is None or [word for word in words if not matches(rule, word)]:
            return None, "must be %s" % rule.requirement
        return (value if value in ("all", "") else items), None
    if rule.type == "raw":
        return value, raw_fault(rule, value)
    if rule.type == "int":
        return to_int(rule, value)
    if isinstance(value, (dict, list, bool)):
        return None, "must be text"
    text = str(value).strip()
    if rule.choices and text not in rule.choices:
        empty = ", or empty" if "" in rule.choices else ""
        return None, "must be one of %s%s" % (", ".join(filter(None, rule.choices)), empty)
    if text and rule.pattern and not matches(rule, text):
        return None, "must be %s" % rule.requirement
    return text, (VALIDATORS[rule.validator](text) if text else "") or None


def to_int(rule: Rule, value: Any) -> tuple[Any, str | None]:
    """Convert a number of YAML or of the command line, within the range of its rule."""
    least, most = rule.pattern.split("..")
    text = str(value).strip()
    number = None if isinstance(value, bool) or not re.match(r"-?[0-9]{1,15}$", text) else int(text)
    if number is None or not int(least) <= number <= int(most):
        return None, "must be %s" % rule.requirement
    return number, None


def raw_fault(rule: Rule, value: Any) -> str | None:
    """Return what is wrong with one text or number, or a list of these; None if nothing is."""
    items = value if isinstance(value, (list, tuple)) else [value]
    texts = [str(item).strip() for item in items if not isinstance(item, (dict, list, tuple, bool))]
    if len(texts) != len(items) or any(validation.text_fault(text) for text in texts):
        return "must be %s" % (rule.requirement or "text, or a list of texts")
    valid = not rule.pattern or all(text == "" or matches(rule, text) for text in texts)
    return None if valid else "must be %s" % rule.requirement


def matches(rule: Rule, text: str) -> bool:
    """Return True if the pattern of a rule matches a whole text; only ASCII digits and letters count."""
    return len(text) <= validation.LONGEST and re.fullmatch(rule.pattern, text, re.ASCII) is not None


def list_fault(rule: Rule, items: list[str] | None) -> str | None:
    if rule.choices:
        valid = items is not None and set(items) <= set(rule.choices)
        return None if valid else "must be a list with any of %s" % ", ".join(rule.choices)
    if not rule.pattern:
        valid = items is not None and not any(validation.text_fault(item) for item in items)
        return None if valid else "must be a list of texts"
    valid = items is not None and all(matches(rule, item) for item in items)
    return None if valid else "must be a list of %s" % rule.requirement


def dict_fault(rule: Rule, value: dict[Any, Any]) -> str | None:
    """Return what is wrong with a name in a mapping, or with a value that has a validator; None if nothing is."""
    if rule.pattern and not all(matches(rule, "%s=%s" % item) for item in value.items()):
        return "must be a mapping of %s" % rule.requirement
    for name, entry in value.items():
        fault = validation.text_fault(str(name))
        if not fault and rule.validator != "text":
            fault = VALIDATORS[rule.validator](entry)
        if fault:
            return "%s in it %s" % (validation.format_value(name), fault)
    return None


def to_bool(value: Any) -> tuple[Any, str | None]:
    """Convert a boolean of YAML or of the command line (-e name=false)."""
    text = str(value).strip().lower()
    if isinstance(value, bool) or text in TRUE + FALSE:
        return text in TRUE, None
    return None, "must be true or false"


def to_list(value: Any) -> list[str] | None:
    """Convert a list, or text with commas, to a list of texts; None for anything else."""
    if isinstance(value, (list, tuple)):
        return None if any(isinstance(item, (dict, list)) for item in value) else [str(item) for item in value]
    if isinstance(value, dict) or value is None:
        return None
    return [item.strip() for item in str(value).split(",") if item.strip()]


def contradictions(settings: Settings) -> list[Refusal]:
    given = settings.nvidia_driver_module_parameters
    twice = [name for name in given if "NVreg_" + name in given]
    if twice:
        text = "nvidia_driver_module_parameters has %s twice: with and without NVreg_" % twice[0]
        return [Refusal("wrong_type", text, "remove one of them")]
    branch, version = settings.nvidia_driver_branch, settings.nvidia_driver_version
    if branch not in ("", "auto") and version and version.split(".")[0] != branch:
        text = "nvidia_driver_version is %r, but nvidia_driver_branch is %r" % (version, branch)
        return [Refusal("wrong_type", text, "set only one of them, or two that match")]
    return []
