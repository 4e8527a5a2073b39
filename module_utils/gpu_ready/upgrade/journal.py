"""The journal of a driver upgrade on the host's disk; plan/upgrade.py decides what is due.

It holds what a later run needs after an interruption: the previous driver, the phase, and since when the host is out of
service.
"""

from typing import Dict, Optional

from ..base import manifest, records
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..base.json_file import read_json_file, write_json_file
from .model import BACK, CLOSED, DONE, DRAINING, ENDS, GOING_BACK, STAGED, Fetched, RecordedDriver, UpgradeJournal

PATH = manifest.DIRECTORY + "/upgrade.json"
SCHEMA = 1


def read(host: Host, path: str = PATH) -> Optional[UpgradeJournal]:
    """The journal, None if there is none. GpuReadyError if it is damaged or of another schema.

    A damaged one must not be taken for a host that was never upgraded: it may be out of service.
    """
    value = read_json_file(host, path)
    return None if value is None else from_json(value, path)


def from_json(value: object, name: str = PATH) -> UpgradeJournal:
    """The journal in a JSON object. GpuReadyError for another schema or form."""
    fields = records.without_schema(value, SCHEMA, name)
    try:
        return records.from_json(UpgradeJournal, fields)
    except records.RecordError as error:
        raise GpuReadyError(
            "%s: it is damaged (%s). Check the host's driver, move the file away, then run again." % (name, error)
        ) from None


def to_json(journal: UpgradeJournal) -> Dict[str, object]:
    return dict(records.to_json(journal), schema=SCHEMA)


def is_open(host: Host, path: str = PATH) -> bool:
    """True while an upgrade is not done: packages that were downloaded for it and its rollback are still needed."""
    journal = read(host, path)
    return journal is not None and journal.phase != DONE


def write(journal: UpgradeJournal, path: str = PATH) -> None:
    write_json_file(path, to_json(journal))


def advance(
    journal: Optional[UpgradeJournal],
    phase: str,
    now: int,
    driver: Optional[RecordedDriver],
    target: str,
    reason: str,
    rollout: int = 0,
) -> UpgradeJournal:
    """The journal after a phase began. ``driver`` is installed, ``now`` is in seconds since 1970.

    The previous driver is recorded where a new upgrade begins, and kept by a run that resumes. The clock starts with
    the drain and is not restarted by a run that resumes. ``touched`` of a resumed drain is that of the run before.
    ``rollout``: the number of this rollout; 0 keeps the recorded one.
    """
    found = journal or UpgradeJournal(phase="")
    closed = not found.phase or found.phase in CLOSED
    begins = closed or found.phase == BACK
    touched = phase not in CLOSED
    if phase == DRAINING:
        touched = not closed and found.touched
    if phase in (STAGED, DRAINING) and begins and driver:
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


def record_fetched(journal: UpgradeJournal, target: str, now: int, alike: Dict[str, str]) -> UpgradeJournal:
    """The journal after everything was downloaded; ``alike``: what its modules are built from."""
    return journal._replace(fetched=Fetched(target, now, alike))
