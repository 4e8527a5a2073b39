"""PCI functions in the output of other tools than lspci: lshw, hwinfo, udevadm and ubuntu-drivers."""

import re

from .pci_classes import SLOT
from .pci_kernel import MODALIAS
from .pci_listing import PciEntry, entry_from_numbers

LSHW = re.compile(r"^\s*\*-(\w+)(?::\d+)?")
"""`lshw`, B.02.12 to B.02.20: one node per device; ``-numeric`` adds the ids in brackets."""
HWINFO = re.compile(r"^\s*\d+: (?:PCI|\w+) \S+ (\d{4}) (.*?)(?: \(\w+\))?$")
"""`hwinfo`, 21 to 23: the head of a device, with its class."""
FIELD = re.compile(r"^\s*([A-Za-z][\w #]{0,60}?)\s{0,40}: (.*\S)")
BRACKETED = re.compile(r"(?<!\s)\s*\[(?:([0-9a-f]{4}):)?([0-9a-f]{4})\]$", re.IGNORECASE)
HEX = re.compile(r'0x([0-9a-f]{4})(?: "(.*)")?', re.IGNORECASE)
UBUNTU = re.compile(r"^== (\S+) ==")
UEVENT = re.compile(
    r"\b(PCI_CLASS|PCI_ID|PCI_SLOT_NAME|DRIVER|ID_MODEL_FROM_DATABASE|ID_PCI_SUBCLASS_FROM_DATABASE)=(.*\S)"
)


def parse_tool_output(lines: list[str]) -> list[PciEntry]:
    """Parse whichever tool's output the lines are, [] for none."""
    return parse_lshw(lines) or parse_hwinfo(lines) or parse_uevents(lines) or parse_ubuntu_drivers(lines)


def parse_lshw(lines: list[str]) -> list[PciEntry]:
    """Parse the display devices of `lshw`; other nodes end one."""
    devices: list[dict[str, str]] = []
    current: dict[str, str] | None = None
    for line in lines:
        node = LSHW.match(line)
        if node:
            current = {} if node.group(1) in ("display", "generic") else None
            devices += [current] if current is not None else []
        field = FIELD.match(line)
        if current is not None and field:
            current.setdefault(field.group(1), field.group(2))
    found = []
    for device in devices:
        bus = re.match(r"pci@(%s)$" % SLOT, device.get("bus info", ""))
        if not bus or "controller" not in device.get("description", ""):
            continue
        vendor, vendor_id = without_ids(device.get("vendor", ""))
        name, device_id = without_ids(device.get("product", ""))
        driver = re.search(r"\bdriver=(\S+)", device.get("configuration", ""))
        found.append(
            PciEntry(
                bus.group(1), device["description"], None, None, vendor_id, vendor, device_id, name,
                driver.group(1) if driver else "",
            )
        )  # fmt: skip
    return found


def without_ids(text: str) -> tuple[str, str | None]:
    """Return a name, and the last of the ids in brackets behind it."""
    ids = BRACKETED.search(text)
    return (text[: ids.start()], ids.group(2).lower()) if ids else (text, None)


def parse_hwinfo(lines: list[str]) -> list[PciEntry]:
    """Parse the PCI devices of `hwinfo`."""
    devices: list[dict[str, str]] = []
    for line in lines:
        head = HWINFO.match(line.rstrip())
        if head:
            devices.append({"class": head.group(1), "name": head.group(2)})
        field = FIELD.match(line)
        if devices and field and not head:
            devices[-1].setdefault(field.group(1), field.group(2))
    found = []
    for device in devices:
        vendor, model = HEX.search(device.get("Vendor", "")), HEX.search(device.get("Device", ""))
        if "SysFS BusID" in device and vendor and model:
            driver = device.get("Driver", "").strip('"').split('"')[0]
            identity = (vendor.group(1).lower(), vendor.group(2), model.group(1).lower(), model.group(2) or "Device")
            found.append(PciEntry(device["SysFS BusID"], device["name"], device["class"], None, *identity, driver))
    return found


def parse_ubuntu_drivers(lines: list[str]) -> list[PciEntry]:
    """Parse `ubuntu-drivers devices`, and modaliases without a path. The driver in use is not shown."""
    found: list[PciEntry] = []
    slot: str | None = None
    for line in lines:
        head, alias, field = UBUNTU.match(line), MODALIAS.search(line), FIELD.match(line)
        if head:
            last = head.group(1).rpartition("/")[2]
            slot = last if re.match(r"%s$" % SLOT, last) else None
        elif alias:
            vendor, device = alias.group(1), alias.group(2)
            entry = entry_from_numbers(slot or "", vendor, device, "0x" + "".join(alias.groups()[2:]).lower())
            found.append(entry._replace(slot=slot))
            slot = None
        elif found and field and field.group(1) == "vendor":
            found[-1] = found[-1]._replace(vendor=field.group(2))
        elif found and field and field.group(1) == "model":
            found[-1] = found[-1]._replace(name=field.group(2))
    return found


def parse_uevents(lines: list[str]) -> list[PciEntry]:
    """Parse `udevadm info`, and uevent files of sysfs one after the other."""
    records: list[dict[str, str]] = [{}]
    for line in lines:
        match = UEVENT.search(line)
        if not line.strip() or (match and match.group(1) in records[-1]):
            records.append({})
        if match:
            records[-1][match.group(1)] = match.group(2).strip("'\"")
    found = []
    for values in records:
        if all(key in values for key in ("PCI_CLASS", "PCI_ID", "PCI_SLOT_NAME")):
            vendor, _, device = values["PCI_ID"].lower().partition(":")
            raw = "0x" + values["PCI_CLASS"].lower().zfill(6)
            entry = entry_from_numbers(values["PCI_SLOT_NAME"], vendor, device, raw)
            named = values.get("ID_MODEL_FROM_DATABASE")
            found.append(entry._replace(driver=values.get("DRIVER", ""), name=named or entry.name))
    return found
