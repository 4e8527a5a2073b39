"""What the plan and ``gpu_verify_devices`` say about the containers of a proof: engines, mode, GPUs, arguments."""

import re
from typing import Any, Dict, List, Optional

from ..containers import engine as engines


def engine_names(expect: Dict[str, Any]) -> List[str]:
    """Return the engines that have to run GPU containers."""
    return [str(name) for name in (expect.get("engines") or {}).get("names") or [engines.DOCKER]]


def mode_of(expect: Dict[str, Any]) -> Optional[str]:
    """Return the container runtime's mode, None where the plan names none."""
    mode = (expect.get("runtime") or expect.get("engines") or {}).get("mode")
    return str(mode) if mode else None


def pick(gpus: List[Dict[str, Any]], chosen: str) -> List[Dict[str, Any]]:
    """Return the GPUs that ``gpu_verify_devices`` names: all, or a list of indices and UUIDs."""
    words = device_words(chosen)
    if "all" in words:
        return list(gpus)
    return [gpu for gpu in gpus if str(gpu["index"]) in words or gpu["uuid"] in words]


def unknown(gpus: List[Dict[str, Any]], chosen: str) -> List[str]:
    """Return the words of ``gpu_verify_devices`` that no GPU answers to."""
    names = [str(gpu["index"]) for gpu in gpus] + [gpu["uuid"] for gpu in gpus]
    return [word for word in device_words(chosen) if word not in names and word != "all"]


def device_words(chosen: str) -> List[str]:
    """Return the words of ``gpu_verify_devices``."""
    return [word for word in re.split(r"[,\s]+", chosen) if word] or ["all"]


def run_args(expect: Dict[str, Any], chosen: str = "all", gpus: Optional[List[Dict[str, Any]]] = None) -> List[str]:
    """Return docker's arguments that give a container its GPUs: those of the plan, narrowed to the chosen devices."""
    runtime = expect.get("runtime") or {}
    given = runtime.get("args")
    return narrowed([str(word) for word in given] if given else default_args(mode_of(expect)), chosen, gpus)


def narrowed(args: List[str], chosen: str, gpus: Optional[List[Dict[str, Any]]] = None) -> List[str]:
    """Return arguments for all GPUs as those for the chosen devices.

    With ``gpus`` CDI devices are named by their numbers: not every specification names UUIDs too.
    """
    words = device_words(chosen)
    if "all" in words:
        return args
    numbers = [str(gpu["index"]) for gpu in pick(gpus, chosen)] if gpus else words
    found: List[str] = []
    for word in args:
        if word == "all" and found and found[-1] == "--gpus":
            found.append('"device=%s"' % ",".join(words))  # the quotes are docker's: its value is a CSV record
        elif word == "nvidia.com/gpu=all" and found and found[-1] == "--device":
            found.pop()
            for name in numbers:
                found += ["--device", "nvidia.com/gpu=" + name]
        elif word == "NVIDIA_VISIBLE_DEVICES=all":
            found.append("NVIDIA_VISIBLE_DEVICES=" + ",".join(words))
        else:
            found.append(word)
    return found


def default_args(mode: Optional[str]) -> List[str]:
    """Return the arguments of a mode for a plan that names none."""
    return ["--device", "nvidia.com/gpu=all"] if mode in ("cdi", "native") else ["--gpus", "all"]
