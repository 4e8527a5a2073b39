# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What a value of an answer may be: bounds of every value, and the values that the annotation of a record allows."""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Sized
from typing import Any, NamedTuple

from ..module_utils.gpu_ready.base.records import Content, Message, Word

TEXT = 2**20
"""Maximum number of characters of one text."""
VALUES = 1_000_000
"""Maximum number of values and keys in an answer; the facts of a host with 3,000 packages have about 50,000."""
DEPTH = 32
"""Maximum number of lists and mappings in each other."""
NUMBER = 2**64
"""Maximum absolute value of a number; NVML and the kernel have counters of 64 bits, and -1 in them for "unknown"."""
ENTRIES = 10_000
"""Maximum number of entries of a list or a mapping in a named field: paths, packages."""
MOST_RECORDS = 2000
"""Maximum number of entries of a list of records, which people read: steps, checks, processes."""
LINE_BREAK = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
"""What ends a line for str.splitlines()."""
CUT = " ..."
SERIALIZED = "__ansible_"
"""How the keys begin by which Ansible makes objects of JSON."""


class WrongAnswer(Exception):
    """An answer that no module of gpu-ready gives; the text names the field and what is wrong with it."""


class Limit(NamedTuple):
    """Characters after which a text is cut. Without ``lines`` it is one line: line breaks become blanks.

    A second line of what is one by contract could look like a line of another host.
    """

    most: int
    lines: bool = False

    def fit(self, text: str) -> str:
        """Return the text, cut."""
        fitting = text if self.lines else LINE_BREAK.sub(" ", text)
        return fitting if len(fitting) <= self.most else fitting[: self.most - len(CUT)] + CUT


LINE, LINES = Limit(4096), Limit(20_000, lines=True)
"""A reason, command or path (PATH_MAX of Linux); what a program printed."""
LIMITS: dict[Any, Limit] = {str: LINE, Word: Limit(200), Message: LINES, Content: Limit(TEXT, lines=True)}
"""By the annotation of the field."""


def check_bounds(answer: dict[str, Any]) -> None:
    """Raise WrongAnswer for a value that is no JSON, too long, too large or too deep."""
    level: list[Any] = [answer]
    number = 0
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            check_value(value)
            if isinstance(value, dict):
                below += value
                below += value.values()
            elif isinstance(value, list):
                below += value
        number += len(below)
        if number > VALUES:
            raise WrongAnswer(f"more than {VALUES} values")
        level = below
    if level:
        raise WrongAnswer(f"more than {DEPTH} lists in each other")


def check_value(value: Any) -> None:
    """Raise WrongAnswer for a single value that is no JSON, too long or too large."""
    if isinstance(value, str):
        if len(value) > TEXT:
            raise WrongAnswer(f"a text of {len(value)} characters")
    elif isinstance(value, (int, float)):
        if not math.isfinite(value) or abs(value) > NUMBER:
            raise WrongAnswer("a number that is too large")
    elif isinstance(value, dict):
        if any(key.startswith(SERIALIZED) for key in value):
            raise WrongAnswer("a value in Ansible's own serialization")
    elif value is not None and not isinstance(value, list):
        raise WrongAnswer(f"a value of type {type(value).__name__}")


class Field(NamedTuple):
    """The annotation of a field. ``unset``: it is None by default, and an answer leaves it out then."""

    hint: Any
    needed: bool
    unset: bool


@functools.cache
def fields_of(record: Any) -> dict[str, Field]:
    """Return the fields of a record by their names in JSON."""
    defaults = record._field_defaults
    return {
        name.rstrip("_"): Field(hint, name not in defaults, defaults.get(name, False) is None)
        for name, hint in typing.get_type_hints(record).items()
    }


def fit(hint: Any, value: Any, where: str) -> Any:
    """Return a value with the texts as its annotation has them; ``where`` names its field. Raises WrongAnswer."""
    limit = LIMITS.get(hint)
    if limit:
        check_type(str, value, where)
        return limit.fit(value)
    if hint is object:
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        fitting = [one for one in inner if isinstance(value, type_of(one))]
        return fit((fitting or inner)[0], value, where)
    check_type(type_of(hint), value, where)
    if origin is list:
        check_number(value, MOST_RECORDS if hasattr(inner[0], "_fields") else ENTRIES, where)
        return [fit(inner[0], one, f"{where}[]") for one in value]
    if origin is dict:
        check_keys(value, where)
        check_number(value, ENTRIES, where)
        return {LINE.fit(key): fit(inner[1], one, f"{where}.*") for key, one in value.items()}
    return fit_record(hint, value, where) if hasattr(hint, "_fields") else value


def type_of(hint: Any) -> type:
    """Return the type of JSON that an annotation describes."""
    if hint in LIMITS:
        return str
    return dict if hasattr(hint, "_fields") else typing.get_origin(hint) or hint


def fit_record(record: Any, value: dict[Any, Any], where: str, needed: bool = True) -> dict[str, Any]:
    """Return the fields of a record; without ``needed`` any may be missing. Raises WrongAnswer."""
    check_keys(value, where)
    fitting = {}
    for name, field in fields_of(record).items():
        place = f"{where}.{name}".lstrip(".")
        if name not in value:
            if field.needed and needed:
                raise WrongAnswer(f"no field {place}")
        else:
            fitting[name] = fit(field.hint, value[name], place)
    return fitting


def check_keys(value: dict[Any, Any], where: str) -> None:
    """Raise WrongAnswer for a key that is no text."""
    for key in value:
        check_type(str, key, f"a key of {where or 'the answer'}")


def check_number(value: Sized, most: int, where: str) -> None:
    """Raise WrongAnswer if a list or a mapping has more entries."""
    if len(value) > most:
        raise WrongAnswer(f"field {where}: {len(value)} entries, at most {most}")


def check_type(expected: type, value: Any, where: str) -> None:
    """Raise WrongAnswer unless a value has a type of JSON; an integer is a float too, and a bool is no number."""
    numbers: dict[type, tuple[type, ...]] = {float: (int, float), int: (int,)}
    fits = isinstance(value, numbers.get(expected, (expected,)))
    if not fits or (expected in numbers and isinstance(value, bool)):
        raise WrongAnswer(f"field {where}: {type(value).__name__} in place of {expected.__name__}")
