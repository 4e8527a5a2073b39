"""Parameters of the steps of the roles kernel_headers and nvidia_driver."""

from typing import NamedTuple

from .....module_utils.gpu_ready.verify.expectation import DriverTarget
from ..model import PackageTarget


class HeadersParams(NamedTuple):
    """Packages that a module build needs; ``optional`` ones are installed where a repository has them."""

    packages: list[str]
    optional: list[str]
    kernel: str


class NextKernelParams(NamedTuple):
    """The kernel to build the module for."""

    kernel: str


class ModprobeParams(NamedTuple):
    """A file of modprobe.d ("": none), and the command that rebuilds the initial RAM disk."""

    path: str
    content: str
    rebuild: list[str] | None = None


class DriverInstallParams(NamedTuple):
    """Packages of a driver. ``remove`` are removed first, ``allow_remove`` may be removed by the package manager.

    ``optional``: installed ones that get the driver's version where a source has it. ``unhold``: also pins.
    ``runfile``: uninstaller to run before. ``rebuild``: the kernel to build the module for.
    """

    packages: list[PackageTarget]
    pin_packages: list[str]
    pin_remove: list[str]
    streams: dict[str, str]
    remove: list[str]
    allow_remove: list[str]
    unhold: list[str]
    runfile: str | None
    rebuild: NextKernelParams | None
    expect: DriverTarget
    optional: list[PackageTarget] = []


class DetectParams(NamedTuple):
    """The detector's package, the packages of which it must name one, and the GPUs for messages."""

    packages: list[str]
    expect: list[str]
    gpus: list[str]


class RemovePackagesParams(NamedTuple):
    """Packages to remove, and the ones among them whose hold is released first."""

    packages: list[str]
    unhold: list[str]


class RunfileParams(NamedTuple):
    """NVIDIA's installer. ``source`` is a URL or a path on the control node; ``uninstall`` a path on the host."""

    version: str | None
    source: str
    sha256: str
    sha256_url: str
    flavour: str
    kernels: list[str]
    uninstall: str | None


class ActivateParams(NamedTuple):
    """``action``: load, reload or reboot. ``fallback``: what to do where a reload fails.

    ``later``: units that a later step starts. ``force``: reload also the installed module, for its parameters.
    ``kubelet``: its unit, where pods that hold the GPUs are restarted for a reload; "" where none is.
    """

    action: str
    modules: list[str]
    fallback: str | None
    later: list[str]
    why: str
    force: bool = False
    kubelet: str = ""


class HoldParams(NamedTuple):
    """Packages to hold, and the packages of the tools that the package manager needs for it."""

    packages: list[str]
    tools: list[str]


class UmadParams(NamedTuple):
    """Modules to load now and at each boot: their file of modules-load.d, and packages that may contain them."""

    modules: list[str]
    path: str
    content: str
    packages: list[str]


class ServiceParams(NamedTuple):
    """A service of the driver: its packages, those to hold, its unit, and whether it is started.

    ``remove``: the same service under the name that another branch gives it.
    """

    packages: list[PackageTarget]
    hold: list[str]
    service: str
    start: bool = True
    remove: list[str] = []
