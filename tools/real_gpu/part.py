"""What the parts of a run have in common: their results directory, how they end, and whether there is a GPU."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.hardware import pci

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "GPU_READY_RESULTS"
"""Environment variable with the directory in which a part writes its files."""
NOT_RUN = 77
"""Exit status of a part that cannot run here, as automake's tests have it for "skipped"."""
SIGNS = ("/proc/driver/nvidia/version", "/dev/nvidiactl")
"""Of the loaded driver. A sandbox such as gVisor shows neither /proc/driver nor the PCI bus, but the device nodes."""


class NotRunError(Exception):
    """A part cannot run here. The text says why."""


class FailedError(Exception):
    """A part ran, and something is wrong. The text says what."""


def results() -> Path:
    return Path(os.environ[RESULTS])


def own_directory(name: str) -> Path:
    directory = results() / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def need_gpu(host: Host) -> None:
    """Raise NotRunError on a machine that has neither NVIDIA's kernel module nor a GPU on the PCI bus."""
    if not any(map(host.exists, SIGNS)) and not pci.gpus(pci.read_sysfs(host)):
        raise NotRunError(f"no NVIDIA GPU: neither {' nor '.join(SIGNS)} exists, and {pci.SYSFS} has no GPU of NVIDIA")


def run(main: Callable[[], str]) -> None:
    """Run a part and end the process; its last line is the message of the summary."""
    try:
        message, status = main(), 0
    except NotRunError as error:
        message, status = f"not run: {error}", NOT_RUN
    except FailedError as error:
        message, status = str(error), 1
    print(message, flush=True)
    sys.exit(status)
