"""Selection of GPUs by ``gpu_verify_devices``, and the container arguments for them."""

import re
from typing import Iterable, List, Sequence

from .expectation import VerifyExpectation
from .nvml import NvmlGpu

ALL = "all"
ALL_GPUS = ["--gpus", "all"]
"""Docker's arguments where no plan says how its containers get the GPUs."""


def selectors(devices: str) -> List[str]:
    """Split ``gpu_verify_devices``: ``all``, or indices and UUIDs."""
    return [word for word in re.split(r"[,\s]+", devices) if word] or [ALL]


def select_gpus(gpus: Iterable[NvmlGpu], devices: str) -> List[NvmlGpu]:
    names = selectors(devices)
    return [gpu for gpu in gpus if ALL in names or str(gpu.index) in names or gpu.uuid in names]


def unknown_devices(gpus: Sequence[NvmlGpu], devices: str) -> List[str]:
    known = [str(gpu.index) for gpu in gpus] + [gpu.uuid for gpu in gpus] + [ALL]
    return [name for name in selectors(devices) if name not in known]


def docker_args(expect: VerifyExpectation, devices: str = ALL, gpus: Sequence[NvmlGpu] = ()) -> List[str]:
    """Return Docker's arguments by the plan, for the selected devices."""
    return select_devices(expect.runtime.args if expect.runtime else ALL_GPUS, devices, gpus)


def select_devices(args: List[str], devices: str, gpus: Sequence[NvmlGpu] = ()) -> List[str]:
    """Turn arguments for all GPUs into those for the selected devices.

    With ``gpus``, CDI devices are named by index: not every specification has UUIDs too.
    """
    names = selectors(devices)
    if ALL in names:
        return args
    indices = [str(gpu.index) for gpu in select_gpus(gpus, devices)] if gpus else names
    found: List[str] = []
    for word in args:
        if word == "all" and found and found[-1] == "--gpus":
            found.append('"device=%s"' % ",".join(names))  # docker parses the value as CSV, so it needs the quotes
        elif word == "nvidia.com/gpu=all" and found and found[-1] == "--device":
            found.pop()
            for name in indices:
                found += ["--device", "nvidia.com/gpu=" + name]
        elif word == "NVIDIA_VISIBLE_DEVICES=all":
            found.append("NVIDIA_VISIBLE_DEVICES=" + ",".join(names))
        else:
            found.append(word)
    return found
