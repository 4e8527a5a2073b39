"""Everything that a verification collected on a host, for verdict.py to judge."""

from typing import Dict, List, NamedTuple, Optional

from ..diagnostics.message_table import Explanation
from ..diagnostics.xid import Xid
from ..facts.model import Facts
from .compute import ComputeResult
from .devices import ALL
from .expectation import VerifyExpectation
from .frameworks import FrameworkResult
from .nvml import NvmlResult


class FabricManager(NamedTuple):
    """``state``: as systemctl reports it, None if it is not installed."""

    state: Optional[str] = None
    version: Optional[str] = None


class Evidence(NamedTuple):
    """Dictionaries are by engine (docker, podman, containerd); an engine without a container has no entry.

    ``devices``: gpu_verify_devices. ``compute`` and ``mig``: of the host. ``requirements``: variables of the image.
    ``xids``: serious ones that are new; None if the kernel's log cannot be read. ``kernel``: that log's message
    about the driver's last start. ``persistence``: mode by UUID of the GPU; None where nobody says.
    ``cuda``: version of the libcuda of the loaded driver's branch.
    """

    facts: Facts
    expect: VerifyExpectation
    nvml: NvmlResult
    smi: Optional[str] = None
    devices: str = ALL
    fabric_manager: FabricManager = FabricManager()
    xids: Optional[List[Xid]] = None
    kernel: Optional[Explanation] = None
    compute: Optional[ComputeResult] = None
    mig: List[str] = []
    containers: Dict[str, NvmlResult] = {}
    container_compute: Dict[str, ComputeResult] = {}
    requirements: Dict[str, Dict[str, str]] = {}
    framework: Optional[FrameworkResult] = None
    persistence: Optional[Dict[str, str]] = None
    cuda: Optional[str] = None
