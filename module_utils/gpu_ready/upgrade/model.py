"""The journal of a driver upgrade as records; journal.py reads and writes it."""

from typing import List, NamedTuple, Optional

from ..base.records import Word

STAGED, DRAINING, SWITCHING, VERIFIED, DONE = "staged", "draining", "switching", "verified", "done"
GOING_BACK, BACK, STUCK, UNTOUCHED = "going_back", "back", "stuck", "untouched"
PHASES = (STAGED, DRAINING, SWITCHING, VERIFIED, DONE, GOING_BACK, BACK, STUCK, UNTOUCHED)
CLOSED = (STAGED, DONE, UNTOUCHED)
"""Phases in which a host is in service. In all others the upgrade or its rollback is unfinished."""
ENDS = (DONE, BACK, UNTOUCHED)
"""Phases that end the time out of service."""


class RecordedDriver(NamedTuple):
    """A driver in the terms in which it can be requested again.

    ``packages``: as ``name=version``; an installer has none.
    """

    version: Word
    branch: Word
    flavour: Optional[str]
    source: str
    kernel_modules: str
    packages: List[str] = []


class Fetched(NamedTuple):
    """What was downloaded beforehand: for which driver and when."""

    to: str
    time: int


class UpgradeJournal(NamedTuple):
    """The last or current upgrade of a host.

    ``from_`` is the driver to roll back to. ``since``: when the host went out of service, ``seconds``: for how long it
    was. ``touched``: the driver may be partly replaced. ``rollout`` is 0 outside of a rollout.
    """

    phase: Word
    time: int = 0
    reason: str = ""
    touched: bool = True
    from_: Optional[RecordedDriver] = None
    to: Optional[str] = None
    since: Optional[int] = None
    seconds: Optional[int] = None
    rollout: int = 0
    fetched: Optional[Fetched] = None
