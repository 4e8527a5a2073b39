"""What the modules of files, services and the lease answer."""

from typing import Dict, List, NamedTuple, Optional

from ..base.records import Word

Diff = List[Dict[str, str]]


class FilesAnswer(NamedTuple):
    changed: bool = False
    paths: List[str] = []
    rebuilt: bool = False
    diff: Diff = []


class MonitoringAnswer(NamedTuple):
    changed: bool = False
    paths: List[str] = []
    diff: Diff = []
    warnings: List[str] = []


class ServiceAnswer(NamedTuple):
    changed: bool = False
    diff: Diff = []


class ServiceFailureAnswer(NamedTuple):
    """The module always fails."""

    changed: bool = False


class LeaseAnswer(NamedTuple):
    """``before``: None unless the lease was taken."""

    changed: bool = False
    held_by: str = ""
    before: Optional[Word] = None
