"""What the modules of container engines answer."""

from typing import Dict, List, NamedTuple, Optional


class CdiSpecAnswer(NamedTuple):
    changed: bool = False
    devices: List[str] = []
    diff: Dict[str, str] = {}


class ContainerdConfigAnswer(NamedTuple):
    changed: bool = False
    files: List[str] = []
    keys: List[str] = []
    diff: List[Dict[str, str]] = []


class DaemonJsonAnswer(NamedTuple):
    changed: bool = False
    keys: List[str] = []
    activation: Optional[str] = ""
    validated: Optional[bool] = False
    backup: Optional[str] = ""
    diff: Dict[str, str] = {}


class DriverVolumeAnswer(NamedTuple):
    changed: bool = False
    version: Optional[str] = ""
    files: List[str] = []
    diff: Dict[str, str] = {}
