"""What the modules of the driver answer."""

from typing import Dict, List, NamedTuple, Optional


class KernelModuleAnswer(NamedTuple):
    changed: bool = False
    loaded_version: Optional[str] = ""
    modules: List[str] = []
    held_by: Optional[str] = ""
    reboot_required: bool = False
    services: List[str] = []
    diff: Dict[str, str] = {}
    warnings: List[str] = []


class DkmsAnswer(NamedTuple):
    changed: bool = False
    damaged: List[str] = []
    modules: List[str] = []


class DriverRunfileAnswer(NamedTuple):
    changed: bool = False
    version: Optional[str] = ""
    missing: List[str] = []
    needs_file: bool = False
    removed: List[str] = []
    diff: Dict[str, str] = {}


class NvidiaDetectAnswer(NamedTuple):
    changed: bool = False
    packages: List[str] = []
    devices: List[str] = []
