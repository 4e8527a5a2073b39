"""Xid messages: the error reports of GPUs in the kernel's log."""

import re
from typing import Dict, List, NamedTuple, Optional

XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-9A-Fa-f])?\): (\d+)(?:,\s*(.*))?"
)
LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")

SERIOUS: Dict[int, str] = {
    48: "double-bit memory error",
    63: "memory page or row remapping",
    64: "memory page or row remapping failed",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "high rate of single-bit memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "the GPU's firmware does not answer",
    120: "the GPU's firmware stopped",
    140: "unrecovered memory error",
}
"""Xids that a GPU is not handed out with; the others are mostly a program's own fault."""


class Xid(NamedTuple):
    """One message: its number, the GPU's address without function (``0000:3b:00``) and the text behind."""

    number: int
    address: str
    text: str


def read(text: str) -> List[Xid]:
    """Return the messages of a kernel log since the driver was loaded last: a fresh load starts every GPU anew."""
    found: List[Xid] = []
    for line in text.splitlines():
        if LOADED.search(line):
            found = []
        match = XID.search(line)
        if match:
            domain, rest = match.group(1).split(":", 1)
            address = "%04x:%s" % (int(domain, 16), rest.lower())
            found.append(Xid(int(match.group(2)), address, (match.group(3) or "").strip()))
    return found


def serious(found: List[Xid]) -> List[Xid]:
    """Return those that speak of a damaged or lost GPU."""
    return [xid for xid in found if xid.number in SERIOUS]


def counts(found: List[Xid]) -> Dict[str, int]:
    """Return how often each number came from each GPU, by ``number address``."""
    result: Dict[str, int] = {}
    for xid in found:
        key = "%d %s" % (xid.number, xid.address)
        result[key] = result.get(key, 0) + 1
    return result


def fresh(found: List[Xid], known: Optional[Dict[str, int]] = None) -> List[Xid]:
    """Return the messages that ``known`` counts do not cover yet."""
    left = dict(known or {})
    new = []
    for xid in found:
        key = "%d %s" % (xid.number, xid.address)
        if left.get(key, 0) > 0:
            left[key] -= 1
        else:
            new.append(xid)
    return new
