"""Whether GPUs answer, without asking the driver: a driver with a lost GPU may not return from a call.

For that reason not even /proc/driver/nvidia/gpus/*/information is read: it takes the driver's locks and wakes the GPU
(nv_procfs_read_gpu_info, kernel-open/nvidia/nv-procfs.c). The directory itself is the kernel's.
"""

import re
import sys
from typing import List, Optional

from ..base import records
from ..base.host import Host
from ..base.json_file import parse_json
from ..check import xids
from ..check.model import Finding
from ..system import check_files, kernel_messages
from .model import BaseFacts, DriverFacts, HealthFacts

GPUS = "/proc/driver/nvidia/gpus"
NODE = re.compile(r"nvidia(\d{1,5}|ctl)$")
CHECK_LIMIT = 15.0
"""Seconds for the check, which gives itself five for NVML."""


def collect(host: Host, system: BaseFacts, driver: DriverFacts) -> Optional[HealthFacts]:
    """Return None where no driver is loaded that could have a GPU, or where it shows none."""
    if not driver.loaded or not system.served_gpus or not host.isdir(GPUS):
        return None
    text = kernel_messages.read(host)
    return HealthFacts(
        driven=host.listdir(GPUS),
        nodes=None if host.which("nvidia-modprobe") else [name for name in host.listdir("/dev") if NODE.match(name)],
        xids=None if text is None else xids.standing_xids(text),
        check=ask_check(host),
    )


def ask_check(host: Host) -> Optional[List[Finding]]:
    """Return what the installed check finds, which writes nothing; None without it, or where it gives no answer."""
    programs = [path for path in check_files.PROGRAMS if host.exists(path + "/__main__.py")]
    if not programs:
        return None
    python = sys.executable or "/usr/bin/python3"
    answer = host.run([python, "-E", "-s", "-B", programs[0], "--no-write", "--json"], timeout=CHECK_LIMIT)
    try:
        value = parse_json(answer.out)
        return [records.from_json(Finding, one) for one in value["rows"]]
    except (ValueError, KeyError, TypeError, records.RecordError):
        return None
