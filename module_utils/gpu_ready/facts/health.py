"""Whether GPUs answer, without asking the driver: a driver with a lost GPU may not return from a call.

For that reason not even /proc/driver/nvidia/gpus/*/information is read: it takes the driver's locks and wakes the GPU
(nv_procfs_read_gpu_info, kernel-open/nvidia/nv-procfs.c). The directory itself is the kernel's.
"""

import re
from typing import Dict, List, Optional, Tuple

from ..base.host import Host
from ..monitor import kmsg
from ..system import kernel_messages
from .model import BaseFacts, DriverFacts, HealthFacts, XidFacts

GPUS = "/proc/driver/nvidia/gpus"
NODE = re.compile(r"nvidia(\d{1,5}|ctl)$")
MOST = 256
"""Xids that are kept, one for each number and GPU."""
RECOVERY = 154
FATAL = re.compile(r"^,\s*(?:Fatal\b|Severity 1\b)", re.IGNORECASE)
"""Of an SXid (NVSWITCH_PRINT_SXID of the driver's sources)."""
NONFATAL = re.compile(r"\bNon-?fatal\b", re.IGNORECASE)
"""Of Xids 144 to 150, which NVLink 5 reports."""


def collect(host: Host, system: BaseFacts, driver: DriverFacts) -> Optional[HealthFacts]:
    """Return None where no driver is loaded that could have a GPU, or where it shows none."""
    if not driver.loaded or not system.served_gpus or not host.isdir(GPUS):
        return None
    text = kernel_messages.read(host)
    return HealthFacts(
        driven=host.listdir(GPUS),
        nodes=None if host.which("nvidia-modprobe") else [name for name in host.listdir("/dev") if NODE.match(name)],
        xids=None if text is None else standing_xids(text),
    )


def standing_xids(text: str) -> List[XidFacts]:
    """Return the Xids of a log that neither a start of the driver nor a reset of the GPU has ended.

    The driver does not log a reset, but that it requires no action any more (Xid 154).
    """
    found: Dict[Tuple[bool, int, str], XidFacts] = {}
    for line in text.splitlines():
        if kmsg.LOADED in line:
            found = {}
        for match in kmsg.XID.finditer(line):
            number, address, words = int(match.group(3)), kmsg.place(match.group(2)), line[match.end() :]
            switch = match.group(1) != "Xid"
            required = kmsg.ACTION.search(words) if number == RECOVERY else None
            action = int(required.group(1), 16) if required else None
            if action == 0:
                found = {key: one for key, one in found.items() if one.address != address}
            elif (FATAL.match(words) is not None) if switch else not NONFATAL.search(words):
                one = XidFacts(number, address, kernel_messages.seconds(line), action, switch)
                key = (switch, number, address)
                if key in found or len(found) < MOST:
                    found[key] = one
    return sorted(found.values(), key=lambda one: one.time)
