"""What the modules answer that run on the control node only."""

from typing import Dict, List, NamedTuple, Optional


class PythonAnswer(NamedTuple):
    """``interpreter`` and ``install`` are None before a host printed something."""

    find: str
    interpreter: Optional[str]
    install: Optional[str]
    changed: bool = False


class ReportAnswer(NamedTuple):
    """The action plugin of the module makes it."""

    counts: Dict[str, int]
    bad: Dict[str, str]
    paths: List[str]
    changed: bool = False


class UpgradeFleetAnswer(NamedTuple):
    """Each value that ``do`` makes; library/gpu_upgrade_fleet.py says which those are."""

    due: Optional[List[str]] = None
    results: Optional[Dict[str, object]] = None
    refused: Optional[Dict[str, str]] = None
    stop: Optional[str] = None
    serial: Optional[List[int]] = None
    rollout: Optional[int] = None
    undoes: Optional[int] = None
    resumed: Optional[bool] = None
    budget: Optional[int] = None
    record: Optional[str] = None
    canaries: Optional[List[str]] = None
    canary_passed: Optional[bool] = None
    batches: Optional[List[str]] = None
    pauses: Optional[bool] = None
    roll: Optional[List[str]] = None
    sizes: Optional[List[int]] = None
    watch: Optional[List[str]] = None
    kind: Optional[str] = None
    outcomes: Optional[Dict[str, object]] = None
    bad: Optional[List[str]] = None
    changed: bool = False
