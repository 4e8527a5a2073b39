"""Xid messages: the error reports of GPUs in the kernel's log."""

import re
from typing import Dict, List, NamedTuple, Optional

from . import messages_data

XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(?:\.[0-9A-Fa-f])?\): (\d+)(?:,\s*(.*))?"
)
LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")

SERIOUS: Dict[int, str] = messages_data.XID_SERIOUS
"""Xids that fail a verification; the others are mostly the fault of a program."""


class Xid(NamedTuple):
    """One message: its number, the GPU's address without function (``0000:3b:00``) and the text after it."""

    number: int
    address: str
    text: str


def parse_xids(text: str) -> List[Xid]:
    """The messages of a kernel log since the driver was loaded last: loading it initialises every GPU."""
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
    """What an Xid means; a number that the catalog does not contain has a meaning of its own."""
    group, name = messages_data.XIDS.get(number, ("unknown", "an Xid that the catalog does not know"))
    remedy = messages_data.XID_GROUPS.get(group, "look the number up in NVIDIA's list of Xids")
    return Meaning(group, name, remedy)


def serious_xids(found: List[Xid]) -> List[Xid]:
    """Those that report a damaged or lost GPU."""
    return [xid for xid in found if xid.number in SERIOUS]


def count_xids(found: List[Xid]) -> Dict[str, int]:
    """How often each number came from each GPU, by ``number address``."""
    result: Dict[str, int] = {}
    for xid in found:
        key = "%d %s" % (xid.number, xid.address)
        result[key] = result.get(key, 0) + 1
    return result


def new_xids(found: List[Xid], known: Optional[Dict[str, int]] = None) -> List[Xid]:
    """Messages beyond the counts in ``known``."""
    left = dict(known or {})
    new = []
    for xid in found:
        key = "%d %s" % (xid.number, xid.address)
        if left.get(key, 0) > 0:
            left[key] -= 1
        else:
            new.append(xid)
    return new
