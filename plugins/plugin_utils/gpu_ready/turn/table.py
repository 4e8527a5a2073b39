# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The phases of a host's turn, and what follows each of them: the one place that decides it.

A turn takes a host out of service, replaces its driver, verifies it and returns it to service. A failure before the
driver is touched leaves the host as it was; a later one restores the recorded driver.
"""

from __future__ import annotations

from typing import NamedTuple

from ....module_utils.gpu_ready.upgrade import model as journal

UPGRADE, ROLLBACK, DRAIN_ONLY, UNDRAIN_ONLY = "upgrade", "rollback", "drain", "undrain"
KINDS = (UPGRADE, ROLLBACK, DRAIN_ONLY, UNDRAIN_ONLY)
"""What a turn is for: the last two are the entry points of the role gpu_drain."""

OK, FAILED, TIMED_OUT, UNREACHABLE, TAKEN_OVER = "ok", "failed", "timed_out", "unreachable", "taken_over"
RESULTS = (OK, FAILED, TIMED_OUT, UNREACHABLE, TAKEN_OVER)
"""How a phase ends. ``taken_over``: another run has taken the host."""

LEASE, DRAIN, PLAN, SWITCH, VERIFY, RETURN, SOAK = "lease", "drain", "plan", "switch", "verify", "return", "soak"
LEAVE = "leave"
"""Return a host to service on which nothing was changed."""
DRAIN_BACK, PLAN_BACK, SWITCH_BACK, VERIFY_BACK = (
    "rollback drain",
    "rollback plan",
    "rollback switch",
    "rollback verify",
)
RESTORED, STUCK = "rollback end", "rollback failed"
DRAIN_ALONE, RETURN_ALONE = "drain alone", "undrain alone"

LEFT_OUT, LOST, TAKEN, UNTOUCHED, STILL_DRAINED, UPGRADED = (
    "left out", "lost", "taken over", "untouched", "still drained", "upgraded",
)  # fmt: skip
ROLLED_BACK, OUT_OF_SERVICE, DRAINED, UNDRAINED, REFUSED = (
    "rolled back", "out of service", "drained", "undrained", "refused",
)  # fmt: skip
ENDS = (
    LEFT_OUT, LOST, TAKEN, UNTOUCHED, STILL_DRAINED, UPGRADED, ROLLED_BACK, OUT_OF_SERVICE, DRAINED, UNDRAINED, REFUSED,
)  # fmt: skip
"""How a turn ends."""
KEEP_LEASE = (LOST, TAKEN, LEFT_OUT)
"""Ends after which this run has no lease to release."""

BEGIN = "begin"
"""What follows the lease, by the kind of the turn."""
UNDO = "undo"
"""What follows a failure: by whether the driver is touched, and whether this is a rollback."""
SERVED = "served"
"""What follows the return to service: the soak time, or the end."""


class Transitions(NamedTuple):
    """What follows a phase, by its result."""

    ok: str
    failed: str
    timed_out: str
    unreachable: str
    taken_over: str


def row(ok: str, failed: str, unreachable: str = LOST, taken_over: str = TAKEN) -> Transitions:
    """Return a row in which a module that does not answer in time is a failure: the host itself still answers."""
    return Transitions(ok, failed, failed, unreachable, taken_over)


ROWS: dict[str, Transitions] = {
    LEASE: row(BEGIN, LEFT_OUT, LEFT_OUT, LEFT_OUT),
    DRAIN: row(PLAN, UNDO),
    PLAN: row(SWITCH, UNDO),
    SWITCH: row(VERIFY, UNDO),
    VERIFY: row(RETURN, UNDO),
    # The driver is verified: there is nothing to undo.
    RETURN: row(SERVED, STILL_DRAINED),
    SOAK: row(UPGRADED, UNDO),
    LEAVE: row(UNTOUCHED, UNTOUCHED),
    DRAIN_BACK: row(PLAN_BACK, STUCK),
    PLAN_BACK: row(SWITCH_BACK, STUCK),
    SWITCH_BACK: row(VERIFY_BACK, STUCK),
    VERIFY_BACK: row(RESTORED, STUCK),
    RESTORED: row(ROLLED_BACK, STUCK),
    STUCK: row(OUT_OF_SERVICE, OUT_OF_SERVICE, OUT_OF_SERVICE),
    DRAIN_ALONE: row(DRAINED, REFUSED),
    RETURN_ALONE: row(UNDRAINED, REFUSED),
}
PHASES = tuple(ROWS)
FIRST = {UPGRADE: DRAIN, ROLLBACK: DRAIN, DRAIN_ONLY: DRAIN_ALONE, UNDRAIN_ONLY: RETURN_ALONE}

WRITES = {
    DRAIN: journal.DRAINING,
    SWITCH: journal.SWITCHING,
    RETURN: journal.VERIFIED,
    DRAIN_BACK: journal.GOING_BACK,
    RESTORED: journal.BACK,
    STUCK: journal.STUCK,
}
"""What the host's journal records where a phase begins."""
RECORDED = (VERIFY, SOAK, VERIFY_BACK)
"""Phases that no journal has, and the record of the rollout has for its timeline."""
CLOSES = {RETURN: journal.DONE, LEAVE: journal.UNTOUCHED}
"""What it records where a phase has succeeded."""


class Journal(NamedTuple):
    """What decides beside phase and result.

    ``touched``: the driver may be partly replaced, by this turn or an interrupted one. ``soak``: seconds of service
    after which the driver is verified again.
    """

    kind: str
    phase: str
    touched: bool
    soak: int


def next_action(turn: Journal, result: str) -> str:
    """Return the phase that follows, or one of ENDS."""
    following: str = getattr(ROWS[turn.phase], result)
    if following == BEGIN:
        return FIRST[turn.kind]
    if following == UNDO:
        if not turn.touched:
            return LEAVE
        return STUCK if turn.kind == ROLLBACK else DRAIN_BACK
    if following == SERVED and turn.soak:
        return SOAK
    if following in (SERVED, UPGRADED):
        return ROLLED_BACK if turn.kind == ROLLBACK else UPGRADED
    return following
