"""What the modules of packages and their sources answer, and those that remove what gpu-ready added."""

from typing import Dict, List, NamedTuple, Optional

from ..packaging.index_record import PackageIndex

Versions = Dict[str, Optional[str]]


class PackagesAnswer(NamedTuple):
    """``versions``: None in check mode. ``waits_for``: who works on the packages; then nothing was done."""

    changed: bool = False
    installed: Versions = {}
    removed: List[str] = []
    repaired: List[str] = []
    held: List[str] = []
    unheld: List[str] = []
    streams: Versions = {}
    versions: Optional[Versions] = None
    diff: Dict[str, str] = {}
    warnings: List[str] = []
    waits_for: str = ""


class PackageIndexAnswer(NamedTuple):
    offered: PackageIndex = PackageIndex()
    changed: bool = False


class RepositoryAnswer(NamedTuple):
    """``waits_for``: as of PackagesAnswer."""

    changed: bool = False
    paths: List[str] = []
    diff: List[Dict[str, str]] = []
    waits_for: str = ""


class RevertAnswer(NamedTuple):
    changed: bool = False
    packages: List[str] = []
    paths: List[str] = []
    diff: List[Dict[str, str]] = []
    warnings: List[str] = []


class UninstallAnswer(NamedTuple):
    changed: bool = False
    actions: List[str] = []
    stops: List[str] = []
    kept: List[str] = []
    held_by: Optional[str] = ""
    reboot_required: bool = False
    diff: Dict[str, str] = {}
