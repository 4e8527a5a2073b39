"""Reads the kernel's log from /dev/kmsg (Documentation/ABI/testing/dev-kmsg of Linux) without waiting for messages.

Each read returns one record, "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;MESSAGE". Xids in it: krcReportXid of the driver.
"""

import errno
import os
import re
import time
from typing import List, Optional, Tuple

KMSG = "/dev/kmsg"
MOST_RECORDS = 100000
"""Records of one pass; a log that is written faster than it is read does not hold up the reader."""
XID = re.compile(r"(?:^|[^A-Za-z])(S?Xid) \((?:PCI:)?\s?([0-9A-Fa-f:.]{7,20})[^)]{0,40}\):\s*(\d{1,6})(?!\d)")
ACTION = re.compile(r"recovery action changed from 0x\w+ \(.{1,40}?\) to 0x([0-9a-f]+) \((.{1,40}?)\)", re.IGNORECASE)
"""What Xid 154 says: number and name of the action that the GPU requires from now on."""
LOADED = "NVRM: loading NVIDIA UNIX"
"""The driver was loaded, which initializes every GPU."""


def read_record(handle: int) -> Optional[bytes]:
    """Return the next record, None where none is left yet, b"" at the end of what is no device. Raises OSError.

    EPIPE: records were overwritten, the next read has the oldest left.
    """
    while True:
        try:
            return os.read(handle, 8192)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise


def split_record(record: bytes) -> Optional[Tuple[int, int, str]]:
    """Return the sequence number, microseconds since boot and message of a record; None for what is none."""
    head, _, message = record.decode("utf-8", "replace").partition(";")
    fields = head.split(",")
    if len(fields) < 3 or not (fields[1] + fields[2]).isdigit():
        return None
    return int(fields[1]), int(fields[2]), message.split("\n")[0]


def read_text(handle: int, limit: float = 2.0) -> Optional[str]:
    """Return what is in the log now, as dmesg prints it; None where nothing can be read.

    Takes ``limit`` seconds at most.
    """
    end = time.monotonic() + limit
    lines: List[str] = []
    while len(lines) < MOST_RECORDS and time.monotonic() < end:
        try:
            record = read_record(handle)
        except OSError:
            break
        if not record:
            break
        found = split_record(record)
        if found:
            lines.append("[%12.6f] %s" % (found[1] / 1e6, found[2]))
    return "\n".join(lines) or None


def place(address: str) -> str:
    """Return a PCI address of a message as sysfs has it: with a domain of four digits and a function."""
    parts = (address if address.count(":") > 1 else "0000:" + address).lower().split(":")
    try:
        domain = "%04x" % int(parts[0], 16)
    except ValueError:
        domain = parts[0]
    rest = ":".join(parts[1:])
    return "%s:%s" % (domain, rest if "." in rest else rest + ".0")
