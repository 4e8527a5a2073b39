"""The messages and Xids of the catalog (catalog/messages.yml and xids.yml), programs and their status words.

They are read once, by the process that imports this first, and only for what explains failures.
"""

from typing import Any

from .files import read


def nvlink_rows(rows: list[list[Any]]) -> dict[int, dict[str, list[Any]]]:
    """Return by Xid and unit: statuses and reasons (None: any), action, inquiry; the sources are for people."""
    found: dict[int, dict[str, list[Any]]] = {}
    for xid, units, statuses, reasons, action, inquiry, _source in rows:
        row = [None if statuses == "any" else statuses, None if reasons == "any" else reasons, action, inquiry]
        for unit in units.split("/"):
            found.setdefault(xid, {}).setdefault(unit, []).append(row)
    return found


_xids = read("xids.yml")

PROGRAMS: dict[str, dict[str, Any]] = read("programs.yml")
STATUS_WORDS: dict[str, Any] = read("status_words.yml")
MESSAGES: dict[str, list[dict[str, Any]]] = read("messages.yml")
XID_CLASSES: dict[str, dict[str, str]] = _xids["classes"]
XIDS: dict[int, list[str]] = _xids["xids"]
SXIDS: dict[int, str] = _xids["sxids"]
RECOVERY_ACTIONS: dict[int, dict[str, str]] = {row["number"]: row for row in _xids["recovery_actions"]}
NVLINK: dict[str, Any] = {**_xids["nvlink"], "rows": nvlink_rows(_xids["nvlink"]["rows"])}
