"""Where the driver's libraries are, on the host and in containers."""

from typing import Tuple

MULTIARCH = {"x86_64": "/usr/lib/x86_64-linux-gnu", "aarch64": "/usr/lib/aarch64-linux-gnu"}
"""Library directory of the Debian family by architecture (uname -m)."""
RPM_DIRECTORY = "/usr/lib64"
OUTSIDE_DIRECTORY = "/usr/local/nvidia/lib64"
"""Where a driver from outside is mounted, with ../bin: NVIDIA's CUDA images have it in LD_LIBRARY_PATH. On a host with
a kernel of its own, what is left there is of no driver that runs."""


def multiarch_directory(architecture: str) -> str:
    return MULTIARCH.get(architecture, MULTIARCH["x86_64"])


def library_directories(architecture: str) -> Tuple[str, ...]:
    """Return where packages and .run installers put the 64-bit libraries of the driver."""
    multiarch = multiarch_directory(architecture)
    # Debian: nvidia/current is a link of update-alternatives, nvidia/ holds the libraries of legacy branches. ELRepo's
    # legacy branches have theirs in /usr/lib64/nvidia (nvidia-x11-drv-390xx.spec of EL 7).
    directories = (multiarch, multiarch + "/nvidia/current", multiarch + "/nvidia")
    return (*directories, RPM_DIRECTORY, RPM_DIRECTORY + "/nvidia", "/usr/local/lib")
