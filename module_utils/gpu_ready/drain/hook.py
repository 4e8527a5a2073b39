"""What the drain hooks share: who owns a drain, bounded waits in several calls, and the steps of a module."""

import time
from typing import Callable, Dict, NamedTuple

from .journal import DrainError

SHORTEST = 15.0
"""Seconds after which one call of a waiting module returns, so that the playbook can report progress."""
MOST_CALLS = 60
POLL = 5.0
RAISE_TIMEOUT = "end what is awaited, or raise gpu_upgrade_drain_timeout"
RAISE_OR_REPAIR = "see that it answers, or raise gpu_upgrade_drain_timeout"
DRAIN, WAIT, UNDRAIN = "drain", "wait", "undrain"
OUTCOMES = {DRAIN: "", UNDRAIN: "The host stays drained. "}
Values = Dict[str, object]
"""Return values of a module."""


class Away(DrainError):
    """The scheduler does not answer, which may pass; the message is what is awaited."""


class DrainDecision(NamedTuple):
    """``act``: change the node. ``owned``: gpu-ready drained it, or will. ``kept``: why the node stays as it is."""

    act: bool
    owned: bool
    kept: str = ""


class WaitState(NamedTuple):
    """``waiting``: what is awaited, "" if ``done``. ``deadline``: seconds since 1970."""

    done: bool
    waiting: str
    deadline: float
    remaining: int


class NodeHook:
    """A scheduler's node. With ``check`` nothing is changed."""

    def drain(self, reason: str, recorded: bool, check: bool) -> DrainDecision:
        """``recorded``: the journal of the host lists the drain. DrainError if refused, Away without an answer."""
        raise NotImplementedError

    def pending_work(self) -> str:
        """Return what still runs on the node, "" for nothing."""
        raise NotImplementedError

    def undrain(self, reason: str, check: bool, deadline: float) -> Values:
        raise NotImplementedError


def run_action(hook: NodeHook, action: str, params: Dict[str, object], check: bool) -> Values:
    """Return values for one of DRAIN, WAIT and UNDRAIN with the options ``reason, recorded, timeout, deadline``."""
    timeout, deadline = int(str(params["timeout"])), float(str(params["deadline"]))
    if action == WAIT:
        return wait_values(hook.pending_work, timeout, deadline, check)
    values: Values = {"changed": False, "owned": False, "kept": ""}

    def act() -> str:
        try:
            if action == UNDRAIN:
                values.update(hook.undrain(str(params["reason"]), check, deadline))
            else:
                decision = hook.drain(str(params["reason"]), bool(params["recorded"]), check)
                values.update(changed=decision.act, owned=decision.owned, kept=decision.kept)
        except Away as error:
            return str(error)
        return ""

    awaited = state_values(wait(act, timeout, deadline, remedy=RAISE_OR_REPAIR, outcome=OUTCOMES[action]))
    return dict(awaited, **values)  # an undrain may wait itself, for the node


def call_duration(timeout: int, deadline: float, now: float = 0.0) -> int:
    """Return seconds that one call may wait; ``timeout`` and ``deadline`` as in :func:`wait`."""
    moment = now or time.time()
    left = (deadline or moment + timeout) - moment
    return max(int(min(left, max(SHORTEST, timeout / float(MOST_CALLS)))), 1)


def wait(
    pending: Callable[[], str],
    timeout: int,
    deadline: float = 0.0,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    remedy: str = RAISE_TIMEOUT,
    outcome: str = "The host stays drained. ",
) -> WaitState:
    """Poll ``pending`` until it returns "" or the time of one call is over.

    ``timeout``: seconds of the whole wait. ``deadline``: its end, 0 for a wait that begins now. After the deadline a
    DrainError with ``outcome`` and ``remedy``.
    """
    begin = now()
    end = deadline or begin + timeout
    until = begin + call_duration(timeout, end, begin)
    while True:
        waiting = pending()
        moment = now()
        if waiting and moment >= end:
            raise DrainError(
                "drain: after %d s it still waits for %s. %s%s%s, then run again."
                % (timeout, waiting, outcome, remedy[0].upper(), remedy[1:])
            )
        if not waiting or moment >= until:
            return WaitState(not waiting, waiting, end, max(int(end - moment), 0))
        sleep(max(min(POLL, until - moment), 0.1))


def wait_values(pending: Callable[[], str], timeout: int, deadline: float, check: bool) -> Values:
    """Return values of a module that waits; in check mode it does not wait."""
    if check:
        return {"changed": False, "done": True, "waiting": "", "deadline": 0.0, "remaining_s": timeout}
    return dict(state_values(wait(pending, timeout, deadline)), changed=False)


def state_values(state: WaitState) -> Values:
    return {"done": state.done, "waiting": state.waiting, "deadline": state.deadline, "remaining_s": state.remaining}


def one_line(*texts: str) -> str:
    """Return the first text that is not empty, on one line, its last 600 characters."""
    return " ".join(next((text for text in texts if text.strip()), "").split())[-600:] or "no output"
