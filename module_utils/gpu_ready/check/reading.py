"""Reads a host for a health check: files, the kernel's log, NVML in a process of its own. Changes nothing."""

import json
import os
import re
from typing import Any, Dict, Optional

from . import kmsg, node, pci, xids
from .model import Expected, GpuIdentity, GpuReading, NvmlReading, Readings

DRIVEN = "/proc/driver/nvidia/gpus"
"""The directory itself is the kernel's; files below it take the driver's locks and wake the GPU
(nv_procfs_read_gpu_info, kernel-open/nvidia/nv-procfs.c)."""
NODE = re.compile(r"nvidia(\d{1,5}|ctl)$")
MODPROBE = ("/usr/bin/nvidia-modprobe", "/usr/sbin/nvidia-modprobe", "/usr/local/bin/nvidia-modprobe")
REGISTERED = 3


def read(answer: Optional[Dict[str, Any]], log: Optional[str], root: str = "") -> Readings:
    """Return a host now. ``answer``: of worker.Worker; ``log``: text of the kernel's log, None if not readable."""
    gpus = pci.read_gpus(root)
    loaded = node.read_text(root + "/sys/module/nvidia/version") or None
    created = any(os.path.exists(root + path) for path in MODPROBE)
    return Readings(
        boot_id=node.read_text(root + "/proc/sys/kernel/random/boot_id") or None,
        served=gpus.served,
        present=gpus.present,
        silent=gpus.silent,
        loaded=loaded,
        libraries=sorted(node.library_versions(root)),
        driven=pci.list_directory(root + DRIVEN) if os.path.isdir(root + DRIVEN) else None,
        nodes=None if created else [name for name in pci.list_directory(root + "/dev") if NODE.match(name)],
        xids=None if log is None else xids.standing_xids(log),
        nvml=None if answer is None else read_answer(answer),
    )


def read_log(path: str = kmsg.KMSG) -> Optional[str]:
    """Return the kernel's log; None where it cannot be read: it is root's where kernel.dmesg_restrict is set."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return kmsg.read_text(handle)
    finally:
        os.close(handle)


def read_answer(answer: Dict[str, Any]) -> NvmlReading:
    """Return what the process that asked NVML answered, as a record."""
    gpus = answer.get("gpus", [])
    return NvmlReading(
        gpus=[read_gpu(gpu) for gpu in gpus if not gpu["error"]],
        error=str(answer.get("error", "")),
        silent=bool(answer.get("silent")),
        stuck=bool(answer.get("stuck")),
        lost={str(gpu["index"]): str(gpu["error_text"]) for gpu in gpus if gpu["error"]},
    )


def read_gpu(gpu: Dict[str, Any]) -> GpuReading:
    fabric = gpu["fabric"] or {}
    remapped = gpu["remapped"] or [0, 0, 0, 0]
    identity = GpuIdentity(
        address=gpu["pci"] or "",
        uuid=gpu["uuid"],
        serial=gpu["serial"] or None,
        vbios=gpu["vbios"] or None,
        memory=gpu["memory_total"],
        pcie_width=gpu["pcie_width"],
        pcie_generation=gpu["pcie_generation_max"],
        nvlinks=sum(gpu["links"]),
        ecc=gpu["ecc"],
        mig=gpu["mig"],
        fabric=fabric.get("state") == REGISTERED,
    )
    return GpuReading(
        identity,
        index=gpu["index"],
        temperature=gpu["temperature_celsius"],
        clock_reasons=gpu["clock_reasons"],
        persistence=gpu["persistence"],
        ecc_uncorrected=gpu["ecc_volatile"],
        remap_pending=bool(remapped[2]),
        remap_failed=bool(remapped[3]),
        recovery=gpu["recovery_action"],
        fabric_state=fabric.get("state"),
        fabric_problems=sorted(name for name, there in fabric.get("problems", {}).items() if there),
    )


def read_expected(record: Dict[str, Any]) -> Optional[Expected]:
    """Return the record of the last verification; None where there is none, or it cannot be read.

    Another user than root may read it, and a damaged one is as good as none.
    """
    if not record:
        return None
    try:
        hardware = [GpuIdentity(**one) for one in record.get("hardware", [])]
        values = {name: record[name] for name in Expected._fields if name in record and name != "hardware"}
        known = Expected(hardware=hardware, **values)
        return known._replace(logged=float(known.logged), addresses=list(known.addresses), gpus=list(known.gpus))
    except (TypeError, ValueError):
        return None


def read_settings(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
