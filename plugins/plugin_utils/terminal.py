# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The operator's terminal: how wide it is, and how a table reaches it with every callback plugin."""

from __future__ import annotations

import shutil

from ansible import constants as C
from ansible.utils.display import Display

WITHOUT = 150
"""Columns of the lines of a table where there is no terminal: in a log or a CI job."""
LEAST = 40
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


def show(text: str) -> None:
    """Print text for people as it is: in results each callback plugin would print it in another way, or not at all.

    The method of the class: it reaches Ansible's own process from workers too (utils/display.py: _proxy).
    """
    callback = str(C.config.get_config_value("DEFAULT_STDOUT_CALLBACK")).rpartition(".")[2]
    Display.display(Display(), f"\n{text}\n", stderr=callback in MACHINES)
