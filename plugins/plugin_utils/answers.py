# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What is used of an answer of a host: the fields of a record, each with a value that its annotation allows.

The records are in module_utils/gpu_ready/answers. A value of another type is refused; what the record does not
name is dropped, at every depth. Texts are cut, lists and mappings bounded, whatever the record says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..module_utils.gpu_ready.answers import (
    cluster,
    containers,
    cuda,
    drain,
    driver,
    node,
    packages,
    system,
    upgrade,
    verify,
)
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..module_utils.gpu_ready.base.records import Content, Message
from .answer_bounds import WrongAnswer, check_bounds, fields_of, fit, fit_record
from .gpu_ready.answers import audit, plan
from .gpu_ready.answers import verify as verdicts

GROUPS = (audit, cluster, containers, cuda, drain, driver, node, packages, plan, system, upgrade, verdicts, verify)
MOST_WARNINGS = 10
"""Warnings, and deprecations, of one answer that are shown: honest ones have one or two."""


class Difference(NamedTuple):
    """What --diff shows of one file."""

    before: Content | dict[str, object] | None = None
    after: Content | dict[str, object] | None = None
    before_header: str | None = None
    after_header: str | None = None
    prepared: Content = ""


class Deprecation(NamedTuple):
    """The fields that every version of Ansible can print: others end the task."""

    msg: str
    version: str | None


class Shown(NamedTuple):
    """What any module may answer besides, most of it for Ansible to print: control characters in it are replaced."""

    changed: bool = False
    failed: bool = False
    msg: Message = ""
    warnings: list[str] = []
    deprecations: list[Deprecation] = []
    exception: Message | None = None
    diff: Difference | list[Difference] = []
    module_stdout: Message = ""
    module_stderr: Message = ""
    stdout: Message = ""
    stderr: Message = ""
    rc: int | None = None
    another_run: bool = False
    last_step_running: bool = False


class Event(NamedTuple):
    """The texts of a warning, a deprecation or an exception."""

    msg: Message
    formatted_traceback: Message | None = None


class Serialized(NamedTuple):
    """A warning, a deprecation or an exception as core 2.19 and newer serialize it.

    See ansible/module_utils/_internal/_messages.py. Only its texts are used: Ansible makes no object of an answer.
    """

    event: Event
    version: str | None = None


def record_of(module: str) -> Any:
    """Return the record of a module's answer by its name: CdiSpecAnswer for gpu_cdi_spec."""
    name = "".join(part.capitalize() for part in module.split("_")[1:]) + "Answer"
    return [getattr(group, name) for group in GROUPS if hasattr(group, name)][0]


def accept(record: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the values of an answer that this record or Shown names. Raises WrongAnswer."""
    try:
        return accepted_values(record, answer)
    except RecursionError:
        raise WrongAnswer("too many lists in each other") from None


def accepted_values(record: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """Like :func:`accept`; may exceed the limit of recursion."""
    shown = {name: clean(without_records(name, value)) for name, value in named(answer, Shown) if value is not None}
    kept = {name: answer.get(name, False) for name in ("changed", "failed")} | shown
    check_bounds(kept)
    kept = fit(Shown, kept, "")
    if kept["failed"] and "exception" in kept:
        kept.setdefault("msg", kept["exception"].strip().rpartition("\n")[2].strip())
    unset = {name for name, field in fields_of(record).items() if field.unset and answer.get(name) is None}
    values = {name: value for name, value in named(answer, record) if name not in unset | set(Shown._fields)}
    check_bounds(values)
    return {**kept, **fit_record(record, values, "", needed=not kept["failed"])}


def named(answer: dict[str, Any], record: Any) -> list[tuple[str, Any]]:
    """Return the values that a record names, with their names."""
    return [(name, answer[name]) for name in fields_of(record) if name in answer]


def without_records(name: str, value: Any) -> Any:
    """Return what Ansible prints, with texts in the place of its own records, and not more than a person reads."""
    if name == "warnings" and isinstance(value, list):
        texts = [event_of(name, one)["msg"] if is_record(one) else one for one in value[:MOST_WARNINGS]]
        more = len(value) - len(texts)
        return [*texts, f"{more} more warnings of one host are not shown"] if more else texts
    if name == "deprecations" and isinstance(value, list):
        return [deprecation(one) for one in value[:MOST_WARNINGS]]
    if name == "exception" and is_record(value):
        event = event_of(name, value)
        return event.get("formatted_traceback") or event["msg"]
    return value


def is_record(value: Any) -> bool:
    """Return whether a value is one of Ansible's own records."""
    return isinstance(value, dict) and "event" in value


def event_of(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the texts of a record of Ansible."""
    event: dict[str, Any] = fit(Serialized, record, name)["event"]
    return event


def deprecation(value: Any) -> Any:
    """Return the fields of Deprecation in a deprecation, whichever form it has."""
    if not isinstance(value, dict):
        return value
    text = event_of("deprecations", value)["msg"] if is_record(value) else value.get("msg")
    return {"msg": text, "version": value.get("version")}


def clean(value: Any, plain: Callable[[str], str] = plain_text) -> Any:
    """Return a value with a question mark for each control character, also in keys."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): clean(one, plain) for key, one in value.items()}
    return [clean(one, plain) for one in value] if isinstance(value, list) else value
