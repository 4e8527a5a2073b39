# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What the turn of a host works with: its state between two tasks, and the calls that happen elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ..execute.model import SHORT, Answer, Caller, Execution
from . import table

STEP, NOTE, PROBLEM, PLAN, WAIT = "step", "note", "problem", "plan", "wait"
"""Kinds of events: what begins, what to know, what went wrong, a line of the plan that is carried out next, and the
process of another package manager for which a step waits."""


class Unreachable(Exception):
    """The host does not answer; the text says why."""


class Elsewhere(NamedTuple):
    """What a task of Ansible does between two parts of a turn: in another place than the host, or in many steps.

    ``tasks``: the file of the role gpu_drain. A scheduler is asked on ``host`` with ``module``; a task file of the
    operator is at ``path``. ``throttle``: how many hosts at a time, 0 for all.
    """

    tasks: str
    host: str = ""
    module: str = ""
    arguments: Mapping[str, Any] = {}
    check: bool = False
    throttle: int = 0
    seconds: int = 0
    path: str = ""
    action: str = ""


class Turn(NamedTuple):
    """The state of a turn, which Ansible keeps between two tasks.

    ``piece``: the part of the phase that comes next. ``reason``: what failed first, ``also``: what failed after it.
    ``drained``: all drain hooks succeeded. ``recorded``: the host's journal of drains. ``loaded``: of the driver
    that was verified, its version. ``seconds``: out of service. ``closed``: the journal records the end.
    """

    kind: str = table.UPGRADE
    phase: str = table.LEASE
    piece: int = 0
    touched: bool = False
    drained: bool = False
    way: str = "none"
    reason: str = ""
    also: str = ""
    loaded: str = ""
    seconds: int | None = None
    restored: str = ""
    closed: bool = False
    recorded: Mapping[str, Any] = {}
    verification: Mapping[str, Any] = {}
    began: int = 0


class TurnSettings(NamedTuple):
    """The operator's variables that a turn needs, and what was decided about the host beforehand.

    ``hooks``: names of drain hooks and absolute paths of task files, in order. ``drains``: gpu_upgrade_drain as it was
    given. ``planned``: the status of the upgrade in the plan of the rollout.
    """

    hooks: tuple[str, ...]
    drains: tuple[str, ...]
    drain_timeout: int
    soak: int
    planned: Mapping[str, Any]
    rollout: int
    unverified: bool


class LeasedHost(Caller, Protocol):
    """A host that one run at a time changes. Every call raises StepFailed or Unreachable."""

    @property
    def lease(self) -> Mapping[str, Any]:
        """How this run takes the lease: the arguments of gpu_lease."""

    def run(self, module: str, arguments: Mapping[str, Any], seconds: int = SHORT, check: bool = False) -> Answer:
        """Return the answer of a module, by its full name."""

    def show(self, kind: str, phase: str, text: str) -> None:
        """Show an event."""


class TurnHost(LeasedHost, Protocol):
    """A host in its turn."""

    settings: TurnSettings
    todo: Mapping[str, Any]
    """The steps of the plan that was made last."""
    driver: Execution
    """What came of the steps of the driver."""

    def record(self, phase: str) -> None:
        """Record in the rollout what the journal of the host is about to record."""

    def node(self, hook: str) -> dict[str, Any]:
        """Return what the variables of this run say of a scheduler's node: the entry of the host's journal."""


class PieceResult(NamedTuple):
    """What a part of a phase leads to; ``elsewhere``: what happens before the next part."""

    turn: Turn
    elsewhere: Elsewhere | None = None


Piece = Callable[[Turn, TurnHost, Answer], PieceResult]
"""A part of a phase; the answer comes from the call elsewhere before it, and is empty without one."""
