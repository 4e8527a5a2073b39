"""The kernel's log of this boot as text: read from its device, else printed by a program."""

from typing import Optional

from ..base.host import Host
from ..check import kmsg

PROGRAMS = (
    ["dmesg"],
    ["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--lines=20000", "--output", "short-monotonic"],
)
"""Where the device cannot be opened, as in most containers."""


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
