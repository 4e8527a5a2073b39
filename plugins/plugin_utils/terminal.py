# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The operator's terminal: how wide it is, and how a table reaches it with every callback plugin."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

from ansible import constants as C
from ansible.utils.display import Display

WITHOUT = 150
"""Columns of the lines of a table where there is no terminal: in a log or a CI job."""
LEAST = 40
GOOD = ("ready", "ok", "upgraded", "rolled back")
WAITING = ("planned", "due", "drift", "upgrading", "paused", "unfinished", "not reached")
PLAIN = ("no gpu", "current", "excluded", "left out")
"""States of hosts in the tables; all others are failures."""
MORE = re.compile(r" and \d+ more$")
"""What follows the name in a row of many hosts (layout.names_text)."""
MACHINES = ("json", "jsonl")
"""Callback plugins (ansible.posix) whose output on stdout a program reads."""
measured: list[int] = []
"""The columns of the terminal, once they are known."""


def measure() -> None:
    """Find out how wide the terminal is, in Ansible's own process at the begin of each play.

    Workers are detached from it (ansible-core since 2.19, executor/process/worker.py: _detach) and inherit the number.
    """
    measured[:] = [shutil.get_terminal_size((WITHOUT, 0)).columns]


def columns(asked: int = 0) -> int:
    """Return how wide a table may be; ``asked``: by the operator, 0 for the terminal's own width."""
    if not (asked or measured):
        measure()
    return max(asked or measured[0], LEAST)


def show(text: str, states: Mapping[str, str] | None = None) -> None:
    """Print text for people as it is: in results each callback plugin would print it in another way, or not at all.

    ``states``: by host, whose row of a table gets the colour of its state. It is the method of the class, which reaches
    Ansible's own process from workers too (utils/display.py: _proxy).
    """
    callback = str(C.config.get_config_value("DEFAULT_STDOUT_CALLBACK")).rpartition(".")[2]
    for colour, lines in coloured(f"\n{text}\n", states or {}):
        Display.display(Display(), lines, color=colour, stderr=callback in MACHINES)


def coloured(text: str, states: Mapping[str, str]) -> list[tuple[str | None, str]]:
    """Return the lines of a text in groups of one colour: a row of a table begins with a host and two blanks."""
    found: list[tuple[str | None, list[str]]] = []
    for line in text.split("\n"):
        host, gap, _ = line.partition("  ")
        state = states.get(MORE.sub("", host), "") if gap else ""
        colour = colour_of(state) if state else None
        if found and found[-1][0] == colour:
            found[-1][1].append(line)
        else:
            found.append((colour, [line]))
    return [(colour, "\n".join(lines)) for colour, lines in found]


def colour_of(state: str) -> str | None:
    """Return the colour of a state; none for what asks for nothing."""
    if state in GOOD:
        return str(C.COLOR_OK)
    return str(C.COLOR_CHANGED) if state in WAITING else None if state in PLAIN else str(C.COLOR_ERROR)
