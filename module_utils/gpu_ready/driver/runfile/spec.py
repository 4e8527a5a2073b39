"""A requested .run driver, and the arguments of NVIDIA's installer by release.

Which options a release knows, and what silent mode answers by itself, is in the source of NVIDIA/nvidia-installer (tags
470.256.02 to 590.48.01).
"""

from typing import List, NamedTuple, Tuple

from ...base import versions
from ...base.errors import GpuReadyError
from ...system import nvrm_version

OPEN_MODULES = (515,)
RUNNING_DRIVER = (545, 23)
SKIP_LOAD = (550, 40)
MODULE_TYPE = (555, 42)
"""First releases with open modules, --allow-installation-with-running-driver, --skip-module-load and
--kernel-module-type. An installer ends with an error on an option that it does not know."""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
"""For installers, uninstallers and DKMS, which look for the system's and the administrators' programs."""


class RunfileError(GpuReadyError):
    """A .run installer cannot install or remove something."""


class DriverSpec(NamedTuple):
    """``kernels`` get the modules; the first one is what the installer itself builds for."""

    version: str
    flavour: str
    kernels: List[str]


def is_older(version: str, release: Tuple[int, ...]) -> bool:
    """Return True for "535.309.01" and (545, 23)."""
    return versions.parse(version) < release


def installer_options(spec: DriverSpec, running: str, directory: str) -> List[str]:
    """Return arguments of a silent run; ``running`` is the running kernel, ``directory`` holds temporary files.

    Where the release allows it, the module is not loaded and a driver in use is ignored: loading the driver is a step
    of its own. nouveau is ignored as well: our blacklist disables it from the next boot on.
    """
    options = ["--silent", "--tmpdir=" + directory, "--no-nouveau-check", "--dkms"]
    options += ["--no-opengl-files", "--no-install-libglvnd", "--no-install-compat32-libs"]
    if spec.kernels[0] != running:
        options.append("--kernel-name=" + spec.kernels[0])
    if not is_older(spec.version, MODULE_TYPE):
        options.append("--kernel-module-type=" + spec.flavour)
    elif not is_older(spec.version, OPEN_MODULES):
        part = "kernel-open" if spec.flavour == nvrm_version.OPEN else "kernel"
        options.append("--kernel-module-build-directory=" + part)
    if not is_older(spec.version, SKIP_LOAD):
        options.append("--skip-module-load")
    if not is_older(spec.version, RUNNING_DRIVER):
        options.append("--allow-installation-with-running-driver")
    return options
