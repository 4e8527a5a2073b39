"""The kernel's log of this boot as text: read from its device, else printed by a program."""

import re
from typing import Optional

from ..base.host import Host
from ..monitor import kmsg

PROGRAMS = (
    ["dmesg"],
    ["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--lines=20000", "--output", "short-monotonic"],
)
"""Where the device cannot be opened, as in most containers."""
STAMP = re.compile(r"^(?:<\d+>)?\[\s*(\d{1,12}\.\d{1,9})\]")


def read(host: Host, limit: float = 5.0) -> Optional[str]:
    """Return the log with a stamp before each message, None if nothing can read it; ``limit``: seconds per way."""
    handle = host.open_device(kmsg.KMSG)
    text = kmsg.read_text(handle, limit) if handle is not None else None
    host.close_device(handle)
    if text is not None:
        return text
    for argv in PROGRAMS:
        result = host.run(argv, timeout=limit)
        if result.rc == 0:
            return result.out
    return None


def seconds(line: str) -> float:
    """Return when a message was logged, in seconds since boot by the kernel's own clock; 0.0 without a stamp.

    That clock is compared with itself only: it is not corrected as the others are (dmesg(1), --ctime).
    """
    match = STAMP.match(line)
    return float(match.group(1)) if match else 0.0


def newest(text: str) -> float:
    """Return the time of the last message with a stamp, 0.0 where there is none."""
    return max([0.0] + [seconds(line) for line in text.splitlines()[-100:]])
