"""What the modules of CUDA and cuDNN answer."""

from typing import Dict, List, NamedTuple, Optional

Versions = Dict[str, Optional[str]]


class CudaRunfileAnswer(NamedTuple):
    changed: bool = False
    missing: List[str] = []
    needs: List[str] = []
    releases: Versions = {}
    diff: Dict[str, str] = {}


class CudaToolkitAbsentAnswer(NamedTuple):
    changed: bool = False
    removed: List[str] = []
    diff: Dict[str, str] = {}


class CudaToolkitDefaultAnswer(NamedTuple):
    changed: bool = False
    target: Optional[str] = ""
    kept_by: Optional[str] = ""
    diff: Dict[str, str] = {}


class CudnnArchiveAnswer(NamedTuple):
    changed: bool = False
    versions: Versions = {}
    removed: List[str] = []
    diff: Dict[str, str] = {}
