# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Names of variables: those that are read, and those that a host has and nobody reads.

Ansible ignores a variable that no task uses: a misspelt one, or one of another project. The names come from names.json,
which `make catalog` writes.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

SIMILAR = 0.88
"""Least similarity (difflib, 0 to 1) of a misspelt name: two letters in the wrong order, one missing or one too many in
a name of 12 or more. Variables of a site that only begin alike differ more."""
FILE = Path(__file__).resolve().with_name("names.json")


class Names(NamedTuple):
    """``known``: what gpu-ready reads. ``own``: what it sets itself. ``foreign``: message by name.

    ``settings``: what the planner reads. ``overridable``: what an upgrade sets for its own plan.
    ``rules``: of the others, the role, the default and what a value must be.
    """

    known: frozenset[str]
    own: frozenset[str]
    foreign: dict[str, str]
    prefixes: tuple[str, ...]
    settings: tuple[str, ...]
    overridable: frozenset[str]
    rules: dict[str, list[Any]]


def load_names() -> Names:
    """Read the generated names."""
    value = json.loads(FILE.read_text(encoding="utf-8"))
    prefixes = {"_".join(name.split("_")[:2]) for name in value["known"]} | {"cudnn"}
    return Names(
        frozenset(value["known"]),
        frozenset(value["own"]),
        value["foreign"],
        tuple(sorted(prefixes)),
        tuple(value["settings"]),
        frozenset(value["overridable"]),
        value["rules"],
    )


NAMES = load_names()


def unread_variables(variables: Iterable[str], names: Names = NAMES) -> list[str]:
    """Return one message for each variable that nobody reads; nothing about names that resemble none of gpu-ready."""
    unread = sorted(
        name
        for name in variables
        if name.startswith(names.prefixes) and name not in names.known and name not in names.own
    )
    return [message for name in unread for message in [_message(name, names)] if message]


def _message(name: str, names: Names) -> str:
    if name in names.foreign:
        return names.foreign[name]
    nearest = difflib.get_close_matches(name, names.known, 1, SIMILAR)
    return f"The variable {name} is not read by gpu-ready. Did you mean {nearest[0]}?" if nearest else ""
