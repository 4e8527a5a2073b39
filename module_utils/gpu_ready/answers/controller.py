"""What the modules answer that run on the control node only."""

from typing import Dict, List, NamedTuple, Optional


class AuditReportAnswer(NamedTuple):
    text: str
    counts: Dict[str, int]
    bad: Dict[str, str]
    path: Optional[str]
    changed: bool = False


class PythonAnswer(NamedTuple):
    """``interpreter`` and ``install`` are None before a host printed something."""

    find: str
    interpreter: Optional[str]
    install: Optional[str]
    changed: bool = False


class ReportAnswer(NamedTuple):
    """The action plugin of the module makes it. ``table``: None where it prints none."""

    counts: Dict[str, int]
    bad: Dict[str, str]
    next: str
    paths: List[str]
    table: Optional[str] = None
    changed: bool = False


class UpgradeFleetAnswer(NamedTuple):
    """``outcomes`` and ``bad`` are of a rollout that has ended, the others of one that begins."""

    table: str
    due: Optional[List[str]] = None
    serial: Optional[List[int]] = None
    current: Optional[List[str]] = None
    kept: Optional[Dict[str, str]] = None
    done: Optional[List[str]] = None
    refused: Optional[Dict[str, str]] = None
    rollout: Optional[int] = None
    resumed: Optional[bool] = None
    budget: Optional[int] = None
    roll: Optional[List[str]] = None
    sizes: Optional[List[int]] = None
    watch: Optional[List[str]] = None
    reasons: Optional[Dict[str, str]] = None
    outcomes: Optional[Dict[str, object]] = None
    bad: Optional[List[str]] = None
    changed: bool = False
