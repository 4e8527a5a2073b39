"""Xid messages: the error reports of GPUs in the kernel's log."""

import re
from typing import Dict, List, NamedTuple, Optional

from . import messages_data

XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-9A-Fa-f])?\): (\d+)(?:,\s*(.*))?"
)
LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")

SERIOUS: Dict[int, str] = messages_data.XID_SERIOUS
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


class Meaning(NamedTuple):
    """What a number means: its group (program, memory, nvlink, lost, ...), its name and what helps."""

    group: str
    name: str
    remedy: str


def meaning(number: int) -> Meaning:
    """Return what an Xid means; a number that is newer than the catalog is said to be."""
    group, name = messages_data.XIDS.get(number, ("unknown", "an Xid that the catalog does not know"))
    remedy = messages_data.XID_GROUPS.get(group, "look the number up in NVIDIA's list of Xids")
    return Meaning(group, name, remedy)


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
