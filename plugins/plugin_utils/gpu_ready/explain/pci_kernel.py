"""The kernel's own lists of PCI functions, as people paste them: its messages, and sysfs's files by path."""

import re

from .pci_classes import SLOT
from .pci_listing import PciEntry, entry_from_numbers

MESSAGE = re.compile(
    r"(%s):?\s+(?:found\s+)?\[?([0-9a-f]{4}):([0-9a-f]{4})\]?\s+(?:type\s+\w+\s+)?class[\s=:]+((?:0x)?[0-9a-f]{6})"
    r"|(%s)\W+(?:vendor\W+)?0x([0-9a-f]{4})\W+(?:device\W+)?0x([0-9a-f]{4})\W+(?:class\W+)?(0x[0-9a-f]{6})\b"
    % (SLOT, SLOT),
    re.IGNORECASE,
)
SYSFS = re.compile(r"devices/(?:\S{0,200}/)?(%s)/(vendor|device|class|modalias)\s*:?\s*(\S+)" % SLOT, re.IGNORECASE)
MODALIAS = re.compile(r"pci:v0000(\w{4})d0000(\w{4})\S{0,40}?bc(\w\w)sc(\w\w)i(\w\w)", re.IGNORECASE)


def parse_kernel_listing(lines: list[str]) -> list[PciEntry]:
    """Parse whichever list the lines hold, [] where they hold none."""
    return parse_messages(lines) or parse_sysfs_files(lines)


def parse_messages(lines: list[str]) -> list[PciEntry]:
    """Parse kernel messages, ``pci 0000:06:00.0: [10de:15f8] type 00 class 0x030200``, and lists of sysfs's numbers."""
    found: dict[str, PciEntry] = {}
    for match in MESSAGE.finditer(re.sub(r"\n> ?", "\n", "\n".join(lines))):
        slot, vendor, device, raw = [value for value in match.groups() if value is not None]
        found[slot] = entry_from_numbers(slot, vendor, device, "0x" + raw.lower().replace("0x", "", 1))
    return list(found.values())


def parse_sysfs_files(lines: list[str]) -> list[PciEntry]:
    """Parse sysfs files with their paths, as ``grep -r . /sys/bus/pci/devices`` prints them."""
    values: dict[str, dict[str, str]] = {}
    for line in lines:
        match = SYSFS.search(line)
        if match:
            values.setdefault(match.group(1), {})[match.group(2).lower()] = match.group(3)
    found = []
    for slot, files in values.items():
        alias = MODALIAS.match(files.get("modalias", ""))
        if alias:
            files = {"vendor": alias.group(1), "device": alias.group(2), "class": "".join(alias.groups()[2:])}
        if all(re.match(r"^(0x)?[0-9a-fA-F]{4,6}$", files.get(key, "")) for key in ("vendor", "device", "class")):
            raw = "0x" + files["class"].lower().replace("0x", "").zfill(6)
            found.append(entry_from_numbers(slot, files["vendor"][-4:], files["device"][-4:], raw))
    return found
