"""An upgrade that has not come to its end, as the plan and the audit of a host name it: by the journal on the host."""

import time
from typing import NamedTuple

from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.upgrade.model import BACK, CLOSED, DRAINING, GOING_BACK, STUCK, SWITCHING, VERIFIED

CODE = "upgrade_not_finished"
DOING = {
    DRAINING: "draining the host",
    SWITCHING: "replacing the driver",
    VERIFIED: "returning the host to service",
    GOING_BACK: "rolling back",
}
"""What its run does, or did when it was interrupted: the journal is the same."""
REMEDY = (
    "wait for its run; if that was interrupted, resume it with upgrade_drivers.yml or undo it with rollback_drivers.yml"
)
RETRY = "run upgrade_drivers.yml again, or rollback_drivers.yml for the whole rollout"
RESTORED = "the upgrade %s failed and the driver before was restored%s; the host waits for an upgrade that succeeds"
FAILED = "the upgrade %s failed, and so did its rollback%s"


class OpenUpgrade(NamedTuple):
    """``interrupted``: its run works at this moment, or was interrupted. ``phase``: of the journal."""

    phase: str
    interrupted: bool
    message: str
    remedy: str


def open_upgrade(facts: Facts) -> OpenUpgrade | None:
    """Return the upgrade of a host that is not finished, None if there is none."""
    journal = facts.upgrade
    if journal is None or journal.phase in CLOSED:
        return None
    old = journal.from_.version if journal.from_ else "?"
    change = "%s -> %s" % (old, journal.to or "?")
    rollout = " (rollout %d)" % journal.rollout if journal.rollout else ""
    if journal.phase in (BACK, STUCK):
        text = (RESTORED if journal.phase == BACK else FAILED) % (change, rollout)
        return OpenUpgrade(journal.phase, False, text, RETRY)
    doing = DOING.get(journal.phase, journal.phase)
    text = "the upgrade %s is not finished: %s since %s%s" % (change, doing, format_time(journal.time), rollout)
    return OpenUpgrade(journal.phase, True, text, REMEDY)


def format_time(seconds: int) -> str:
    """Return a time of the host's clock in UTC; as a number if it is none that a calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return str(seconds)
