# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The turn of a host: phase by phase until it ends, or until something happens elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..execute.model import Answer, StepFailed
from . import table
from .model import PROBLEM, STEP, PieceResult, Turn, TurnHost, Unreachable
from .phases import pieces_of, release_lease

RESUME = "run the same command again"
LOOK = (
    "The host is out of service. Inspect it with: nvidia-smi; dkms status; cat /proc/driver/nvidia/version; dmesg | "
    "grep -i nvrm; cat /var/lib/gpu-ready/upgrade.json; gpu-explain. Then run the same command again, or site.yml for "
    "this host."
)


def carry_out(turn: Turn, host: TurnHost, answer: Answer | None = None) -> PieceResult:
    """Carry out a turn; ``answer``: of the call elsewhere for which the last part of it ended."""
    while turn.phase not in table.ENDS:
        result = table.OK
        try:
            if answer and answer.get("failure"):
                raise StepFailed({**answer, "msg": answer["failure"]})
            for piece in pieces_of(turn.phase, host)[turn.piece :]:
                if turn.piece == 0:
                    host.show(STEP, turn.phase, "")
                    if turn.phase in table.RECORDED:
                        host.record(turn.phase)
                given, answer = answer or {}, None
                turn, elsewhere = piece(turn, host, given)
                turn = turn._replace(piece=turn.piece + 1)
                if elsewhere:
                    return PieceResult(turn, elsewhere)
        except StepFailed as error:
            result = result_of(error.result)
            turn = note_failure(turn, host, error.result)
        except Unreachable as error:
            result = table.UNREACHABLE
            turn = note_failure(turn, host, {"msg": str(error)})
        answer = None
        following = table.next_action(table.Journal(turn.kind, turn.phase, turn.touched, host.settings.soak), result)
        turn = turn._replace(phase=following, piece=0)
    if turn.phase not in table.KEEP_LEASE:
        release_lease(host)
    return PieceResult(turn)


def result_of(failure: Mapping[str, Any]) -> str:
    """Return the result of a phase that has failed."""
    if failure.get("another_run"):
        return table.TAKEN_OVER
    return table.TIMED_OUT if failure.get("timed_out") else table.FAILED


def note_failure(turn: Turn, host: TurnHost, failure: Mapping[str, Any]) -> Turn:
    """Return the turn with a failure, and show it."""
    where = failure.get("step") or ("" if turn.kind in (table.DRAIN_ONLY, table.UNDRAIN_ONLY) else turn.phase)
    text = f"{where}: {failure['msg']}" if where else str(failure["msg"])
    host.show(PROBLEM, turn.phase, text)
    return turn._replace(also=text) if turn.reason else turn._replace(reason=text)


def end_result(turn: Turn, name: str, planned: Mapping[str, Any], drains: bool) -> dict[str, Any]:
    """Return the result of a turn that has ended, for the report; ``drains``: hooks drained the host."""
    state, reason = describe_end(turn, drains)
    to = turn.loaded if turn.phase == table.UPGRADED and turn.loaded else planned.get("to")
    return {
        "host": name,
        "state": state,
        "from": planned.get("from"),
        "to": to,
        "way": turn.way,
        "seconds_unavailable": 0 if turn.phase == table.LEFT_OUT else turn.seconds if turn.closed else None,
        "reason": reason,
    }


def describe_end(turn: Turn, drains: bool) -> tuple[str, str]:
    """Return the state of a host after its turn, and why it is in that."""
    why, back = turn.reason, turn.kind == table.ROLLBACK
    if turn.phase == table.UPGRADED or (turn.phase == table.ROLLED_BACK and back):
        return ("rolled_back" if back else "upgraded"), "active and verified"
    if turn.phase == table.ROLLED_BACK:
        stays = "drained" if drains else "on it"
        return "rolled_back", (
            f"{why} -- The driver {turn.restored} was restored and verified. The host stays {stays} until this command"
            " upgrades it, to this or another driver."
        )
    if turn.phase == table.LEFT_OUT:
        return "left_out", f"Nothing was changed. {why}"
    also = f" {turn.also}." if turn.also else ""
    texts = {
        table.LOST: f"{why} --{also} The host does not answer any more, and its upgrade is unfinished. Check that it "
        f"is up and accepts ssh, then {RESUME} to resume.",
        table.TAKEN: f"{why} --{also} This run changed nothing more on the host, which may still be drained, and its "
        f"upgrade is unfinished. Once the other run has ended, {RESUME}.",
        table.UNTOUCHED: f"{why} --{also} Nothing was changed on the host"
        + ("." if turn.closed else f", which may still be drained: repair the cause, then {RESUME}."),
        table.STILL_DRAINED: f"The new driver is active and verified, but the host is still drained: {why}. Repair "
        f"that, then {RESUME}.",
        table.OUT_OF_SERVICE: f"{why} -- "
        + ("THIS WAS THE ROLLBACK" if back else f"THE ROLLBACK FAILED TOO: {turn.also}")
        + f". {LOOK}",
        table.REFUSED: why,
    }
    return "failed", texts[turn.phase]
