"""Changes of facts by their path: what a step changes, in the terms of the planners (facts/model.py)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.facts.model import Facts

SET, ADD, DROP = "set", "add", "drop"


class FactChange(NamedTuple):
    """``path``: names of fields, as "driver.loaded". ``how``: SET replaces the value; ADD and DROP change a collection.

    ADD has entries of a dictionary, or items of a sorted list; DROP has keys or items.
    """

    path: str
    how: str
    value: object


def set_to(path: str, value: object) -> FactChange:
    return FactChange(path, SET, value)


def add(path: str, value: Mapping[str, object] | Iterable[str]) -> FactChange:
    return FactChange(path, ADD, value if isinstance(value, Mapping) else list(value))


def drop(path: str, names: Iterable[str]) -> FactChange:
    return FactChange(path, DROP, list(names))


def apply_changes(facts: Facts, changes: Iterable[FactChange]) -> Facts:
    """Return the facts of a host after changes. Raises AttributeError for a path that facts do not have."""
    for change in changes:
        facts = _replace(facts, change.path.split("."), change)
    return facts


def _replace(record: Any, names: list[str], change: FactChange) -> Any:
    current = getattr(record, names[0])
    new = _replace(current, names[1:], change) if len(names) > 1 else _new_value(current, change)
    return record._replace(**{names[0]: new})


def _new_value(current: Any, change: FactChange) -> Any:
    value: Any = change.value
    if change.how == SET:
        return value
    if isinstance(current, dict):
        kept = {key: item for key, item in current.items() if change.how == ADD or key not in value}
        return {**kept, **value} if change.how == ADD else kept
    return sorted({*current, *value}) if change.how == ADD else [item for item in current if item not in value]
