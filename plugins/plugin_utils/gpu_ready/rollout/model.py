"""Records of a rollout over many hosts."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base.errors import GpuReadyError
from ....module_utils.gpu_ready.upgrade.model import CLOSED

CURRENT, DUE, REFUSED, UNASKED = "current", "due", "refused", "unasked"
BACK = "back"


class FleetError(GpuReadyError):
    """A variable of a rollout has a wrong value."""


class AnswerError(GpuReadyError):
    """A host answered what gpu_node_plan does not."""


class HostUpgrade(NamedTuple):
    """What an upgrade would do with a host.

    ``state``: current, due, refused, unasked (refused without facts), or "" for a host without an answer.
    ``opened``: its last upgrade is unfinished. ``phase``, ``reached`` and ``rollout`` come from its journal;
    ``rollback``: the journal names a driver to roll back to.
    ``drained``: an earlier run left it so. ``failure``: why there is no answer. ``warnings``: those of its plan.
    ``download``: bytes of the packages, 0 where that is not known.
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
    warnings: Sequence[str] = ()
    download: int = 0
    loaded: str | None = None

    @property
    def is_unfinished(self) -> bool:
        """The journal is in a phase in which the host is out of service, or may be."""
        return self.phase not in ("", *CLOSED)


class RolloutRequest(NamedTuple):
    """The operator's variables. ``batches``: numbers or shares. ``backwards``: roll back one rollout.

    ``max_failures``: a number, or a share of the hosts of this run such as ``10%``. ``rollout``: the one to resume or
    to roll back, 0 for the one that the records say. ``pause_after``: "canary", or "".
    """

    groups: Mapping[str, list[str]] = {}
    canaries: Sequence[str] = ()
    first: Sequence[str] = ()
    exclude: Sequence[str] = ()
    batches: Sequence[object] = ("100%",)
    backwards: bool = False
    max_failures: object = 0
    rollout: int = 0
    pause_after: str = ""


class Rollout(NamedTuple):
    """``due``: hosts to upgrade, in order. ``serial``: sizes of their batches. ``done``: current ones of this rollout.

    ``kept`` and ``refused``: reasons by host; kept ones are current, because a rollback does not concern them.
    ``rollout``: its id, the seconds since 1970 at which it began; ``undoes``: the id of the one that it rolls back.
    ``budget``: the number of hosts that may fail. ``resumed``: an earlier run began it. ``canaries``: hosts that the
    operator chose; ``canary_passed``: an earlier run upgraded one of them. ``pauses``: after the first batch.
    ``replaced``: the drivers that a rollback replaces.
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
    undoes: int = 0
    canaries: Sequence[str] = ()
    canary_passed: bool = False
    pauses: bool = False
    replaced: Sequence[str] = ()


class Lineup(NamedTuple):
    """Hosts in order, sizes of the batches, and the names among them that stand for the control node.

    ``paused``: hosts that wait for the next run.
    """

    roll: list[str]
    sizes: list[int]
    watch: list[str]
    paused: list[str] = []


class HostResult(NamedTuple):
    """``state``: one of fold.STATES."""

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
