"""Records of a rollout over many hosts."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base.errors import GpuReadyError

CURRENT, DUE, REFUSED, UNASKED = "current", "due", "refused", "unasked"
BACK, DONE = "back", "done"


class FleetError(GpuReadyError):
    """A variable of a rollout has a wrong value."""


class AnswerError(GpuReadyError):
    """A host answered what gpu_node_plan does not."""


class HostUpgrade(NamedTuple):
    """What an upgrade would do with a host.

    ``state``: current, due, refused, unasked (refused without facts), or "" for a host without an answer.
    ``opened``: its last upgrade is unfinished. ``phase``, ``reached`` and ``rollout`` come from its journal;
    ``rollback``: the journal names a driver to roll back to.
    ``drained``: an earlier run left it so. ``failure``: why there is no answer.
    """

    state: str = ""
    opened: bool = False
    from_: str | None = None
    to: str | None = None
    way: str | None = None
    why: str = ""
    refusal: str = ""
    installed: str | None = None
    rollback: bool = False
    drained: bool = False
    phase: str = ""
    reached: str = ""
    rollout: int = 0
    failure: str = ""

    @property
    def is_finished(self) -> bool:
        """An earlier run of this rollout upgraded the host."""
        return self.phase == DONE and self.has_same_target

    @property
    def has_same_target(self) -> bool:
        """The journal names the driver that is requested now, which may be a branch only."""
        return (self.reached + ".").startswith("%s." % self.to)


class RolloutRequest(NamedTuple):
    """The operator's variables. ``batches``: numbers or shares. ``backwards``: roll back one rollout.

    ``max_failures``: a number, or a share of the rollout such as ``10%``. ``rollout``: the one to roll back, 0 for the
    last.
    """

    groups: Mapping[str, list[str]] = {}
    canaries: Sequence[str] = ()
    first: Sequence[str] = ()
    exclude: Sequence[str] = ()
    batches: Sequence[object] = ("100%",)
    backwards: bool = False
    max_failures: object = 0
    rollout: int = 0


class Rollout(NamedTuple):
    """``due``: hosts to upgrade, in order. ``serial``: sizes of their batches. ``done``: current ones of this rollout.

    ``kept`` and ``refused``: reasons by host; kept ones are current, because a rollback does not concern them.
    ``rollout``: its id, the seconds since 1970 at which it began. ``budget``: the number of hosts that may fail.
    ``resumed``: an earlier run began it.
    """

    due: list[str]
    serial: list[int]
    current: list[str]
    kept: dict[str, str]
    done: list[str]
    refused: dict[str, str]
    excluded: list[str]
    rollout: int
    budget: int
    resumed: bool


class Lineup(NamedTuple):
    """Hosts in order, sizes of the batches, and the names among them that stand for the control node."""

    roll: list[str]
    sizes: list[int]
    watch: list[str]


class HostResult(NamedTuple):
    """``state``: upgraded, rolled_back, current, failed, left_out, excluded or not_reached."""

    host: str
    state: str
    from_: str | None = None
    to: str | None = None
    way: str = "none"
    seconds_unavailable: int | None = None
    reason: str = ""


def format_date(rollout: int) -> str:
    """Return when a rollout began, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(rollout))
