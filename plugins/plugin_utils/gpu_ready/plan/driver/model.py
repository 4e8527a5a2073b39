"""Parameters of the steps of the roles kernel_headers and nvidia_driver."""

from typing import Dict, List, NamedTuple, Optional

from .....module_utils.gpu_ready.verify.expectation import DriverTarget
from ..model import PackageTarget


class HeadersParams(NamedTuple):
    """Packages that a module build needs; ``optional`` ones are installed where a repository has them."""

    packages: List[str]
    optional: List[str]
    kernel: str


class NextKernelParams(NamedTuple):
    """The kernel to build the module for."""

    kernel: str


class ModprobeParams(NamedTuple):
    """A file of modprobe.d ("": none), and the command that rebuilds the initial RAM disk."""

    path: str
    content: str
    rebuild: Optional[List[str]] = None


class DriverInstallParams(NamedTuple):
    """Packages of a driver. ``remove`` are removed first, ``allow_remove`` may be removed by the package manager.

    ``runfile``: uninstaller to run before. ``rebuild``: the kernel to build the module for.
    """

    packages: List[PackageTarget]
    pin_packages: List[str]
    pin_remove: List[str]
    streams: Dict[str, str]
    remove: List[str]
    allow_remove: List[str]
    unhold: List[str]
    runfile: Optional[str]
    rebuild: Optional[NextKernelParams]
    expect: DriverTarget


class DetectParams(NamedTuple):
    """The detector's package, the packages of which it must name one, and the GPUs for messages."""

    packages: List[str]
    expect: List[str]
    gpus: List[str]


class RemovePackagesParams(NamedTuple):
    """Packages to remove, and the ones among them whose hold is released first."""

    packages: List[str]
    unhold: List[str]


class RunfileParams(NamedTuple):
    """NVIDIA's installer. ``source`` is a URL or a path on the control node; ``uninstall`` a path on the host."""

    version: Optional[str]
    source: str
    sha256: str
    sha256_url: str
    flavour: str
    kernels: List[str]
    uninstall: Optional[str]


class ActivateParams(NamedTuple):
    """``action``: load, reload or reboot. ``fallback``: what to do where a reload fails.

    ``later``: units that a later step starts. ``force``: reload also the installed module, for its parameters.
    ``kubelet``: its unit, where pods that hold the GPUs are restarted for a reload; "" where none is.
    """

    action: str
    modules: List[str]
    fallback: Optional[str]
    later: List[str]
    why: str
    force: bool = False
    kubelet: str = ""


class HoldParams(NamedTuple):
    """Packages to hold, and the packages of the tools that the package manager needs for it."""

    packages: List[str]
    tools: List[str]


class UmadParams(NamedTuple):
    """Modules to load now and at each boot: their file of modules-load.d, and packages that may contain them."""

    modules: List[str]
    path: str
    content: str
    packages: List[str]


class ServiceParams(NamedTuple):
    """A service of the driver: its packages, those to hold, its unit, and whether it is started.

    ``remove``: the same service under the name that another branch gives it.
    """

    packages: List[PackageTarget]
    hold: List[str]
    service: str
    start: bool = True
    remove: List[str] = []
