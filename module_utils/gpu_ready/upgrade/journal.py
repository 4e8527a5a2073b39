"""The journal of a driver upgrade on the host's disk; plan/upgrade.py decides what is due.

It holds what a later run needs after an interruption: the previous driver, the phase, and since when the host is out of
service.
"""

from typing import Dict, Optional

from ..base import manifest, records
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..base.json_file import read_json_file
from .model import DONE, UpgradeJournal

PATH = manifest.DIRECTORY + "/upgrade.json"
SCHEMA = 1


def read(host: Host, path: str = PATH) -> Optional[UpgradeJournal]:
    """Return the journal, None if there is none. GpuReadyError if it is damaged or of another schema.

    A damaged one must not be taken for a host that was never upgraded: it may be out of service.
    """
    value = read_json_file(host, path)
    return None if value is None else from_json(value, path)


def from_json(value: object, name: str = PATH) -> UpgradeJournal:
    """Return the journal in a JSON object. GpuReadyError for another schema or form."""
    fields = records.without_schema(value, SCHEMA, name) if isinstance(value, dict) else value
    try:
        return records.from_json(UpgradeJournal, fields)
    except records.RecordError as error:
        raise GpuReadyError(
            "%s: it is damaged (%s). Check the host's driver, move the file away, then run again." % (name, error)
        ) from None


def to_json(journal: UpgradeJournal) -> Dict[str, object]:
    return dict(records.to_json(journal), schema=SCHEMA)


def is_open(host: Host, path: str = PATH) -> bool:
    """Return True while an upgrade is not done.

    Packages that were downloaded for it and its rollback are still needed.
    """
    journal = read(host, path)
    return journal is not None and journal.phase != DONE
