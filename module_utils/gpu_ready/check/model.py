"""The records of a health check: what was read of a host, what is expected of it, rows and verdict.

Levels and actions are those of NVIDIA's Health Validation (docs.nvidia.com/health-validation/reference/verdict-schema).
"""

from typing import Dict, List, NamedTuple, Optional

PASS, INFO, UNKNOWN, WARNING, CRITICAL = "PASS", "INFO", "UNKNOWN", "WARNING", "CRITICAL"
LEVELS = (PASS, INFO, UNKNOWN, WARNING, CRITICAL)
"""From good to bad. What is known to be bad outranks what is not known."""
EXIT_STATUS = {PASS: 0, INFO: 0, WARNING: 1, CRITICAL: 2, UNKNOWN: 3}
"""As monitoring plugins have them (monitoring-plugins.org/doc/guidelines.html, plugin return codes). Health Validation
has another scheme in its command: 0 also for WARNING, 1 for CRITICAL and UNKNOWN."""
DRAIN, RESET_GPU, RESTART_OS, SERVICE = "drain", "reset_gpu", "restart_os", "service_required"
ACTIONS = ("", DRAIN, RESET_GPU, RESTART_OS, SERVICE)
"""From none to the last resort; each includes the drain. The worst one of all rows is the host's."""


class GpuIdentity(NamedTuple):
    """A GPU as the last verification found it; None: this GPU or driver has no such value.

    ``address``: as sysfs writes it. ``memory``: bytes. ``pcie_generation``: the greatest of link and slot, because an
    idle GPU lowers the present one. ``nvlinks``: active ones. ``fabric``: it was registered in an NVLink fabric.
    """

    address: str
    uuid: str = ""
    serial: Optional[str] = None
    vbios: Optional[str] = None
    memory: Optional[int] = None
    pcie_width: Optional[int] = None
    pcie_generation: Optional[int] = None
    nvlinks: int = 0
    ecc: Optional[int] = None
    mig: Optional[int] = None
    fabric: bool = False


class XidFacts(NamedTuple):
    """The last Xid with this number of a GPU. ``time``: in seconds since boot, by the kernel's log.

    ``action``: what an Xid 154 requires. ``switch``: a fatal SXid of an NVSwitch.
    """

    number: int
    address: str
    time: float
    action: Optional[int] = None
    switch: bool = False


class Expected(NamedTuple):
    """The record of the last verification (facts.model.VerifiedFacts), as far as health is compared with it."""

    ok: bool = False
    boot_id: Optional[str] = None
    driver: Optional[str] = None
    gpus: List[Optional[str]] = []
    addresses: List[str] = []
    logged: float = 0.0
    persistent: Optional[int] = None
    hardware: List[GpuIdentity] = []
    reasons: List[str] = []


class GpuReading(NamedTuple):
    """A GPU that answered; the fields of GpuIdentity as they are now, and its condition.

    ``recovery``: NVML's recovery action. ``remap_pending``, ``remap_failed``: of rows of memory. ``clock_reasons``:
    bits of nvml.h. ``fabric``: of nvlink.read_fabric.
    """

    identity: GpuIdentity
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    temperature: Optional[int] = None
    clock_reasons: Optional[int] = None
    persistence: Optional[int] = None
    ecc_uncorrected: Optional[int] = None
    remap_pending: bool = False
    remap_failed: bool = False
    recovery: Optional[int] = None
    fabric_state: Optional[int] = None
    fabric_problems: List[str] = []


class NvmlReading(NamedTuple):
    """What NVML answered. ``error``: why it did not.

    ``silent``: it did not return in time, ``stuck``: nor can it be ended. ``lost``: texts of NVML by index, of GPUs
    that answer with an error.
    """

    gpus: List[GpuReading] = []
    error: str = ""
    silent: bool = False
    stuck: bool = False
    lost: Dict[str, str] = {}


class Readings(NamedTuple):
    """A host now. None: not asked, or not readable.

    ``served``: PCI addresses of the GPUs that the host drives itself; ``present``: of all. ``silent``: those whose PCI
    configuration reads as ones. ``loaded``: version of the module. ``libraries``: versions of the driver's libraries.
    ``driven``: GPUs in /proc/driver/nvidia/gpus. ``nodes``: device nodes, None where nvidia-modprobe creates them.
    """

    boot_id: Optional[str] = None
    served: List[str] = []
    present: List[str] = []
    silent: List[str] = []
    loaded: Optional[str] = None
    libraries: List[str] = []
    driven: Optional[List[str]] = None
    nodes: Optional[List[str]] = None
    xids: Optional[List[XidFacts]] = None
    nvml: Optional[NvmlReading] = None


class XidRule(NamedTuple):
    """What an Xid, or an action that Xid 154 requires, means by the catalog."""

    level: str
    action: str
    name: str
    remedy: str
    lost: bool = False


class Rules(NamedTuple):
    """``xids`` and ``recovery`` (what Xid 154 requires) by number as text, because JSON has no others as keys.

    ``switch``: of a fatal SXid. ``off``: names of checks that are switched off. ``limits``: by name.
    """

    xids: Dict[str, XidRule] = {}
    recovery: Dict[str, XidRule] = {}
    switch: XidRule = XidRule(CRITICAL, RESET_GPU, "fatal error of an NVSwitch", "reset all GPUs and NVSwitches")
    off: List[str] = []
    limits: Dict[str, int] = {}


class Finding(NamedTuple):
    """What a check found. ``address``: of a GPU, "" for the host. ``lost``: the GPU needs a reboot to return.

    ``renews``: the finding makes the record of the last verification invalid.
    """

    name: str
    level: str
    message: str
    remedy: str = ""
    action: str = ""
    address: str = ""
    evidence: str = ""
    lost: bool = False
    renews: bool = False


class HealthVerdict(NamedTuple):
    """``rows``: everything that is not as it should be, the worst first."""

    level: str
    action: str
    rows: List[Finding]

    @property
    def status(self) -> int:
        return EXIT_STATUS[self.level]

    def line(self) -> str:
        """Return the verdict in one line, as monitoring systems show it."""
        shown = [one for one in self.rows if one.level == self.level] if self.level != PASS else []
        text = shown[0].message if shown else "GPUs are healthy"
        more = " (and %d more)" % (len(shown) - 1) if len(shown) > 1 else ""
        action = " Action: %s." % self.action if self.action else ""
        return "%s: %s%s.%s" % (self.level, text, more, action)


class CheckInfo(NamedTuple):
    """A check as documents describe it. ``limit``: name of its limit with the value where nobody sets one."""

    about: str
    evidence: str
    limit: Optional[int] = None
