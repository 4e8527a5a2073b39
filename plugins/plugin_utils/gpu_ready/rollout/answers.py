"""What hosts answered to the plan of a rollout: an answer of another form refuses that host."""

import json
import time
from collections.abc import Mapping

from ....module_utils.gpu_ready.upgrade.model import PHASES
from ..report import layout
from .model import CURRENT, DUE, REFUSED, UNASKED, AnswerError, HostUpgrade

LONGEST_VALUE = 60
"""Characters of a wrong value that are shown."""
DAY = 24 * 3600
"""Seconds by which the clock of another control node may be ahead."""
DAMAGED = (
    "/var/lib/gpu-ready/upgrade.json: %s. Remedy: check the host's driver, move the file away, then run again; or "
    "leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
OTHER_FORM = (
    "The answer of the host has another form: %s. Remedy: check the host's Python and its clock, then run again."
)


def read_host(answer: object, failure: object = None, now: int | None = None) -> HostUpgrade:
    """Read the value ``upgrade`` of gpu_node_plan; ``failure``: why a host has none. ``now``: seconds since 1970.

    A host whose answer has another form is refused by its own ``failure``; it never stops the others.
    """
    if answer is None or answer == {}:
        return HostUpgrade(failure=layout.one_line(failure))
    try:
        return _parse_host(answer, int(time.time()) if now is None else now)
    except AnswerError as error:
        return HostUpgrade(failure=str(error))


def _parse_host(answer: object, now: int) -> HostUpgrade:
    found = _mapping(answer, "upgrade")
    journal, installed = _mapping(found.get("journal"), "journal"), _mapping(found.get("installed"), "installed")
    state = _text(found, "state")
    if state not in (CURRENT, DUE, REFUSED, UNASKED):
        raise AnswerError(OTHER_FORM % ("state is %s" % format_wrong_value(found.get("state"))))
    if not isinstance(found.get("opened"), bool):
        raise AnswerError(OTHER_FORM % ("opened is %s" % format_wrong_value(found.get("opened"))))
    phase = _text(journal, "phase") or ""
    if phase not in ("", *PHASES):
        raise AnswerError(DAMAGED % ("the phase %s is unknown" % format_wrong_value(phase)))
    return HostUpgrade(
        state,
        found["opened"] is True,
        _text(found, "from"),
        _text(found, "to"),
        _text(found, "way"),
        _text(found, "why") or "",
        _text(found, "refusal") or "",
        _text(installed, "version"),
        bool(_mapping(found.get("back"), "back")),
        found.get("drained") is True,
        phase,
        _text(journal, "to") or "",
        _rollout(journal.get("rollout", 0), now),
        download=_size(found.get("download", 0)),
        loaded=_text(found, "loaded"),
    )


def _size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise AnswerError(OTHER_FORM % ("download is %s" % format_wrong_value(value)))
    return value


def _rollout(value: object, now: int) -> int:
    """Return the id of a rollout; 0 for upgrades outside of a rollout."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise AnswerError(DAMAGED % ("its rollout is %s, not a time in seconds" % format_wrong_value(value)))
    if value > now + DAY:
        raise AnswerError(DAMAGED % ("its rollout %s begins in the future" % format_wrong_value(value)))
    return value


def _mapping(value: object, name: str) -> dict[str, object]:
    if value is not None and not isinstance(value, dict):
        raise AnswerError(OTHER_FORM % ("%s is %s" % (name, format_wrong_value(value))))
    return value or {}


def _text(found: Mapping[str, object], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise AnswerError(OTHER_FORM % ("%s is %s" % (name, format_wrong_value(value))))
    return None if value is None else layout.one_line(value)


def format_wrong_value(value: object) -> str:
    """Return a wrong value for a message, short."""
    return layout.one_line(json.dumps(value, default=str) if value is not None else "missing")[:LONGEST_VALUE]
