"""Validation of the public variables: one pass finds every wrong value.

The rules are declared in catalog/variables/*.yml. A message names the variable, its value and what it must be.
"""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..base import validation
from ..catalog import settings as declared
from ..catalog.settings import Settings

TRUE = ("true", "yes", "on", "1", "y", "t")
FALSE = ("false", "no", "off", "0", "n", "f")
VALIDATORS: Dict[str, Callable[[Any], str]] = {
    "text": validation.text_fault,
    "name": validation.name_fault,
    "location": validation.location_fault,
    "mirror": validation.base_fault,
    "fingerprint": validation.fingerprint_fault,
}
"""Each returns what is wrong with a value, "" if nothing is. Validators of a mapping check its values."""


class Rule(NamedTuple):
    """What the value of a variable must be; ``requirement`` is ``pattern`` in words."""

    type: str
    choices: List[str]
    pattern: str
    requirement: str
    validator: str


class ParsedSettings(NamedTuple):
    """Settings with the default in place of each wrong value, and a message for each wrong value."""

    settings: Settings
    errors: List[str]


def rule_for(name: str) -> Rule:
    return Rule(*declared.RULES[name])


def parse_settings(given: Dict[str, Any]) -> ParsedSettings:
    """Convert variables as YAML and the command line give them; None or absent is the default."""
    values: Dict[str, Any] = {}
    errors = ["%s is not a variable of gpu-ready" % name for name in sorted(set(given) - set(declared.RULES))]
    for name, default in sorted(declared.DEFAULTS.items()):
        value = given.get(name)
        values[name], fault = convert(rule_for(name), default if value is None else value)
        if fault:
            errors.append("%s is %s, but %s" % (name, validation.format_value(value), fault))
            values[name], _ = convert(rule_for(name), default)
    settings = Settings(**values)
    return ParsedSettings(settings, errors + contradictions(settings))


def convert(rule: Rule, value: Any) -> Tuple[Any, Optional[str]]:
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
    if isinstance(value, (dict, list, bool)):
        return None, "must be text"
    text = str(value).strip()
    if rule.type == "int":
        return (int(text), None) if matches(rule, text) else (None, "must be %s" % rule.requirement)
    if rule.choices and text not in rule.choices:
        empty = ", or empty" if "" in rule.choices else ""
        return None, "must be one of %s%s" % (", ".join(filter(None, rule.choices)), empty)
    if text and rule.pattern and not matches(rule, text):
        return None, "must be %s" % rule.requirement
    return text, (VALIDATORS[rule.validator](text) if text else "") or None


def matches(rule: Rule, text: str) -> bool:
    """True if the pattern of a rule matches a whole text; only ASCII digits and letters count."""
    return len(text) <= validation.LONGEST and re.fullmatch(rule.pattern, text, re.ASCII) is not None


def list_fault(rule: Rule, items: Optional[List[str]]) -> Optional[str]:
    if rule.choices:
        valid = items is not None and set(items) <= set(rule.choices)
        return None if valid else "must be a list with any of %s" % ", ".join(rule.choices)
    valid = items is not None and all(matches(rule, item) for item in items)
    return None if valid else "must be a list of %s" % rule.requirement


def dict_fault(rule: Rule, value: Dict[Any, Any]) -> Optional[str]:
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


def to_bool(value: Any) -> Tuple[Any, Optional[str]]:
    """Convert a boolean of YAML or of the command line (-e name=false)."""
    text = str(value).strip().lower()
    if isinstance(value, bool) or text in TRUE + FALSE:
        return text in TRUE, None
    return None, "must be true or false"


def to_list(value: Any) -> Optional[List[str]]:
    """Convert a list, or text with commas, to a list of texts; None for anything else."""
    if isinstance(value, (list, tuple)):
        return None if any(isinstance(item, (dict, list)) for item in value) else [str(item) for item in value]
    if isinstance(value, dict) or value is None:
        return None
    return [item.strip() for item in str(value).split(",") if item.strip()]


def contradictions(settings: Settings) -> List[str]:
    given = settings.nvidia_driver_module_parameters
    twice = [name for name in given if "NVreg_" + name in given]
    if twice:
        return ["nvidia_driver_module_parameters has %s twice: with and without NVreg_" % twice[0]]
    branch, version = settings.nvidia_driver_branch, settings.nvidia_driver_version
    if branch not in ("", "auto") and version and version.split(".")[0] != branch:
        text = "nvidia_driver_version is %r, but nvidia_driver_branch is %r: set only one of them, or two that match"
        return [text % (version, branch)]
    return []
