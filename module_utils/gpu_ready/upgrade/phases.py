"""The steps of a journal from phase to phase; only upgrades take them, facts and plan read the journal."""

from typing import Optional

from ..base.files import write_json_file
from .journal import PATH, to_json
from .model import BACK, CLOSED, DRAINING, ENDS, GOING_BACK, STAGED, Fetched, RecordedDriver, UpgradeJournal


def advance(
    journal: Optional[UpgradeJournal],
    phase: str,
    now: int,
    driver: Optional[RecordedDriver],
    target: str,
    reason: str,
    rollout: int = 0,
) -> UpgradeJournal:
    """Return the journal after a phase began. ``driver`` is installed, ``now`` is in seconds since 1970.

    The previous driver is recorded where a host's new upgrade begins, which is its drain, and kept by a run that
    resumes. A host that is only prepared keeps the previous driver of its last upgrade: the rollout may never reach
    it, and then a rollback restores that driver. The clock starts with the drain and is not restarted by a run that
    resumes. ``touched`` of a resumed drain keeps its value.
    ``rollout``: the number of this rollout; 0 keeps the recorded one.
    """
    found = journal or UpgradeJournal(phase="")
    closed = not found.phase or found.phase in CLOSED
    begins = closed or found.phase == BACK
    touched = phase not in CLOSED
    if phase == DRAINING:
        touched = not closed and found.touched
    if begins and driver and (phase == DRAINING or (phase == STAGED and not found.from_)):
        found = found._replace(from_=driver)
    if phase == DRAINING and (begins or not found.since):
        found = found._replace(since=now, seconds=None)
    if phase == GOING_BACK and found.seconds is not None:
        # It was in service in between, and the second verification failed: the seconds of both times count.
        found = found._replace(since=now - found.seconds, seconds=None)
    if phase in ENDS and found.since and found.seconds is None:
        found = found._replace(seconds=max(now - found.since, 0))
    return found._replace(
        phase=phase,
        time=now,
        reason=reason,
        touched=touched,
        to=target or found.to,
        rollout=rollout or found.rollout,
    )


def record_fetched(journal: UpgradeJournal, target: str, now: int) -> UpgradeJournal:
    """Return the journal after everything was downloaded."""
    return journal._replace(fetched=Fetched(target, now))


def write(journal: UpgradeJournal, path: str = PATH) -> None:
    write_json_file(path, to_json(journal))
