"""Xids and SXids of the kernel's log that still stand."""

import re
from typing import Dict, List, Tuple

from . import kmsg
from .model import XidFacts

MOST = 256
"""Xids that are kept, one for each number and GPU."""
RECOVERY = 154
STAMP = re.compile(r"^(?:<\d+>)?\[\s*(\d{1,12}\.\d{1,9})\]")
FATAL = re.compile(r"^,\s*(?:Fatal\b|Severity 1\b)", re.IGNORECASE)
"""Of an SXid (NVSWITCH_PRINT_SXID of the driver's sources)."""
NONFATAL = re.compile(r"\bNon-?fatal\b", re.IGNORECASE)
"""Of Xids 144 to 150, which NVLink 5 reports."""


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
                one = XidFacts(number, address, seconds(line), action, switch)
                key = (switch, number, address)
                if key in found or len(found) < MOST:
                    found[key] = one
    return sorted(found.values(), key=lambda one: one.time)


def seconds(line: str) -> float:
    """Return when a message was logged, in seconds since boot by the kernel's own clock; 0.0 without a stamp.

    That clock is compared with itself only: it is not corrected as the others are (dmesg(1), --ctime).
    """
    match = STAMP.match(line)
    return float(match.group(1)) if match else 0.0


def newest(text: str) -> float:
    """Return the time of the last message with a stamp, 0.0 where there is none."""
    return max([0.0] + [seconds(line) for line in text.splitlines()[-100:]])
