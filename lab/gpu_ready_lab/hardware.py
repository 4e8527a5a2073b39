"""The simulated hardware of a host: files for its kernel and for the mock NVML."""

import json
import uuid
from typing import Any

from . import pci_tree
from .fleet import Gpu, Host

NVML_ARCHITECTURE = {
    "kepler": 2, "maxwell": 3, "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9,
    "grace_hopper": 9, "blackwell": 10,
}  # fmt: skip
POWER_W = {
    "pascal": 250,
    "volta": 300,
    "turing": 70,
    "ampere": 400,
    "ada": 350,
    "hopper": 700,
    "grace_hopper": 700,
    "blackwell": 1000,
}
_NAMESPACE = uuid.UUID("4f2c7bb0-6d3e-5d0a-9c59-0b54a1f0c3de")


def gpu_uuid(fleet: str, host: Host, gpu: Gpu) -> str:
    """Return the UUID of a GPU: the same at every start of this fleet, and in all hosts with the GPUs of one state."""
    owner = f"state/{host.state}" if host.state else f"{fleet}/{host.name}"
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{owner}/{gpu.address}/{gpu.device}')}"


def _ordered(host: Host) -> list[Gpu]:
    """Return a host's GPUs as the driver numbers them: by PCI address."""
    return sorted(host.gpus, key=lambda gpu: gpu.address)


def kernel_description(fleet: str, host: Host) -> str:
    """Return /etc/gpu-ready-lab/host.json, which the simulated kernel reads."""
    irqs = {f.address: f.irq for f in pci_tree.functions(host)}
    gpus: list[dict[str, Any]] = [
        {
            "address": gpu.address,
            "device": gpu.device,
            "name": gpu.name,
            "architecture": gpu.architecture,
            "uuid": gpu_uuid(fleet, host, gpu),
            "minor": minor,
            "irq": irqs[gpu.address],
            "vbios": "90.00.00.00.01",
        }
        for minor, gpu in enumerate(_ordered(host))
    ]
    return json.dumps({"fleet": fleet, "host": host.name, "nouveau": host.nouveau, "gpus": gpus}, indent=1) + "\n"


def nvml_conf(fleet: str, host: Host) -> str:
    """Return /etc/gpu-ready-lab/nvml.conf, which becomes part of the mock NVML library."""
    lines: list[str] = []
    for minor, gpu in enumerate(_ordered(host)):
        power = POWER_W.get(gpu.architecture, 250) * 1000
        values: dict[str, object] = {
            "name": gpu.name,
            "uuid": gpu_uuid(fleet, host, gpu),
            "serial": f"16540{minor:08d}",
            "bus_id": gpu.address,
            "minor": minor,
            "numa": int(int(gpu.address[5:7], 16) >= 0x80),
            "pci_id": f"0x{gpu.device}",
            "pci_subsys": f"0x{gpu.subsystem}",
            "architecture": NVML_ARCHITECTURE.get(gpu.architecture, 2),
            "compute_cap": gpu.compute,
            "memory_mib": gpu.memory_mib,
            "ecc": 1,
            "temp": 31,
            "temp_shutdown": 95,
            "temp_slowdown": 92,
            "temp_gpu_max": 87,
            "power_mw": power // 10,
            "power_limit_mw": power,
            "power_max_mw": power,
            "power_min_mw": power // 2,
            "vbios": "90.00.00.00.01",
        }
        if host.nvswitches:
            fifth = gpu.architecture == "blackwell"
            values |= {"nvlinks": 18, "nvlink_mbps": 53125 if fifth else 26562, "nvswitch_links": 18}
            values |= {"nvlink_version": 5 if fifth else 4}
        lines.append(f"[gpu {minor}]")
        lines += [f"{key} = {value}" for key, value in values.items()]
    return "\n".join(lines) + "\n"
