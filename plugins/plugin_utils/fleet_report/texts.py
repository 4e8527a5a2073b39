"""Values of answers as what a report shows: plain texts of bounded length. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.gpu_ready.base.plain_text import plain_text
from ..gpu_ready.report.layout import one_line
from .model import Advice

REMEDY = "Remedy: "
LONGEST = 4000
"""Characters of one text: more than any honest message has. A build log is on the host."""
MOST = 200
"""Steps, checks or messages of one host that are kept: more than any honest host has."""


def text(value: object) -> str:
    """Return a value as text without control characters, not longer than what a person reads."""
    shown = plain_text(str(value)).strip() if value is not None else ""
    return shown if len(shown) <= LONGEST else shown[:LONGEST] + " ..."


def line(value: object) -> str:
    """Return a value as one line."""
    return text(one_line(value))


def advice(value: object) -> Advice:
    """Read a message: a record with a remedy, or a text that ends with one."""
    if isinstance(value, Mapping):
        return Advice(text(value.get("message")), text(value.get("remedy")), line(value.get("code")))
    message, found, remedy = text(value).partition(REMEDY)
    return Advice(message.strip(), remedy.strip()) if found else Advice(text(value))


def advice_text(one: Advice) -> str:
    """Return a message and its remedy as one line."""
    return one_line(f"{one.message} {REMEDY}{one.remedy}" if one.remedy else one.message)


def mapping(value: object) -> Mapping[Any, Any]:
    """Return the value if it is a mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Any]:
    """Return the entries of a list, or none."""
    return list(value)[:MOST] if isinstance(value, Sequence) and not isinstance(value, str) else []


def flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def number(value: object) -> int | None:
    """Return a time or duration in seconds; texts of digits are what a template of Ansible gives."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    found = str(value)
    return int(found) if found.isascii() and found.isdigit() and len(found) < 12 else None
