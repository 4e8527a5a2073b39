"""What a listing shows of PCI functions, whatever its form: NVIDIA's GPUs, virtual ones among them, and what else."""

import re
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.hardware import pci
from ..catalog import model as catalog
from .pci_classes import CLASSES, NUMBERS, UNKNOWN

TEGRA = re.compile(r"^(0bf[01]|0e1[23cd]|0fa[ef]|10e[56]|1ad[0-2]|229[ace]|22d8|22e6|2b00|3400)$")
"""Functions of Jetson boards. Grace servers have root ports of NVIDIA's as well (22b1), and are no Jetsons."""
TEGRA_NAME = re.compile(r"\b(?:Tegra|Jetson|Orin|THOR)")


class PciEntry(NamedTuple):
    """One function as the text shows it; None for what it does not show."""

    slot: str | None
    class_name: str
    class_id: str | None
    class_raw: str | None
    vendor_id: str | None
    vendor: str | None
    device_id: str | None
    name: str | None
    driver: str | None = None
    off: bool = False
    vf: bool = False

    @property
    def nvidia(self) -> bool:
        """True if the vendor is NVIDIA, by number where there is one."""
        vendor = (self.vendor or "").lower()
        return self.vendor_id == pci.NVIDIA if self.vendor_id else vendor.startswith("nvidia") and "/" not in vendor

    @property
    def class_number(self) -> str | None:
        """Class as a number, by its name where the text shows none; None where the name is unknown too."""
        return self.class_id or NUMBERS.get(self.class_name.lower())

    @property
    def display(self) -> bool:
        """True if the class is display, by number where there is one."""
        return (self.class_number or "")[:2] == "03"

    @property
    def what(self) -> str:
        """Kind of an NVIDIA function, such as "gpu" or "nvlink_bridge"."""
        return pci.classify_function(self.class_number, self.class_name, self.name or "", self.device_id)


class PciListing(NamedTuple):
    """What a text shows. ``unnamed``: GPUs whose device id is neither in the text nor, by name, in the catalog."""

    entries: list[PciEntry]
    functions: list[pci.Function]
    unnamed: list[PciEntry]

    @property
    def gpus(self) -> list[PciEntry]:
        """NVIDIA's display functions, virtual ones among them."""
        return [entry for entry in self.entries if entry.nvidia and entry.display]

    def as_dict(self) -> dict[str, Any]:
        others = [entry for entry in self.entries if entry.nvidia and not entry.display]
        found: dict[str, Any] = {
            "nvidia_gpus": [gpu_row(entry) for entry in self.gpus],
            "nvidia_other": [
                {
                    "slot": entry.slot,
                    "class_name": entry.class_name,
                    "device_id": entry.device_id,
                    "name": entry.name,
                    "what": entry.what,
                }
                for entry in others
            ],
            "other_display": [
                {
                    "slot": entry.slot,
                    "vendor": entry.vendor,
                    "name": UNKNOWN.sub("Device", entry.name or "") or entry.name,
                }
                for entry in self.entries
                if entry.display and not entry.nvidia
            ],
        }
        if any(entry.vf for entry in self.gpus):
            found["physical_gpus"] = sum(not entry.vf for entry in self.gpus)
        if any(
            TEGRA.match(entry.device_id or "") or TEGRA_NAME.search(entry.name or "")
            for entry in self.entries
            if entry.nvidia
        ):
            found["tegra"] = True
        return found


def gpu_row(entry: PciEntry) -> dict[str, Any]:
    """Return a GPU as plain values; what the form does not show is left out."""
    row: dict[str, Any] = {
        "slot": entry.slot,
        "class_name": entry.class_name,
        "class_id": entry.class_id,
        "device_id": entry.device_id,
        "name": entry.name,
    }
    if entry.class_raw:
        row["class_raw"] = entry.class_raw
    if entry.driver is not None:
        row["driver_in_use"] = entry.driver
    if entry.off:
        row["powered_off"] = True
    if entry.vf:
        row["sriov_vf"] = True
    return row


def list_entries(shown: list[PciEntry]) -> PciListing:
    """Return a listing with functions for the planner. A GPU without its number is looked up by name."""
    entries = mark_virtual(shown)
    functions: list[pci.Function] = []
    unnamed: list[PciEntry] = []
    for entry in entries:
        number = entry.class_number
        vendor = pci.NVIDIA if entry.nvidia else entry.vendor_id
        device = entry.device_id or (find_device_by_name(entry.name) if entry.nvidia and entry.display else None)
        if vendor and number and device:
            found = pci.Function(
                full_address(entry.slot), vendor, device, number, None, None, entry.driver or None, entry.vf
            )
            functions.append(found)
        elif entry.nvidia and entry.display:
            unnamed.append(entry)
    return PciListing(entries, functions, unnamed)


def list_sysfs_functions(functions: list[pci.Function]) -> PciListing:
    """Reading of functions that were read from sysfs."""
    entries = []
    for function in functions:
        entry = entry_from_numbers(function.address, function.vendor, function.device, "0x%s00" % function.class_id)
        entries.append(entry._replace(driver=function.driver or "", vf=function.vf))
    return list_entries(entries)


def entry_from_numbers(slot: str, vendor: str, device: str, raw: str) -> PciEntry:
    # Old kernels print the class without its programming interface: 0x000300.
    number = raw[4:8] if raw[2:4] == "00" and raw[4:8] in CLASSES else raw[2:6].lower()
    return PciEntry(slot, CLASSES.get(number, number), number, raw, vendor.lower(), None, device.lower(), None)


def full_address(slot: str | None) -> str:
    """Return a slot with its domain, "" where the text has none."""
    return "" if slot is None else slot.lower() if slot.count(":") == 2 else "0000:" + slot.lower()


def find_device_by_name(name: str | None) -> str | None:
    """Return the device id of a card by the marketing name in brackets, None unless exactly one verdict fits."""
    before, closed, behind = (name or "").rpartition("]")
    marketing = before.rpartition("]")[2].partition("[")[2] if closed and not behind.strip() else ""
    names = [normalize_name(part) for part in marketing.split("/")] if marketing else []
    fitting = [gpu for gpu in catalog.gpus().values() if normalize_name(gpu.name) in names]
    verdicts = {(gpu.architecture, gpu.last_branch, gpu.first_branch, gpu.flavours) for gpu in fitting}
    return fitting[0].device_id if len(verdicts) == 1 else None


def normalize_name(text: str) -> str:
    """Return a name without blanks, dashes and case."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def mark_virtual(entries: list[PciEntry]) -> list[PciEntry]:
    """Mark SR-IOV virtual functions: a display function above .0, and its like in higher device numbers of that bus."""
    buses = {bus(entry) for entry in entries if entry.nvidia and entry.display and is_above_zero(entry)}
    return [
        entry._replace(vf=True)
        if entry.nvidia
        and entry.display
        and (is_above_zero(entry) or (bus(entry) in buses and not str(entry.slot).endswith(":00.0")))
        else entry
        for entry in entries
    ]


def is_above_zero(entry: PciEntry) -> bool:
    """Return True if a function's number is not 0."""
    return entry.slot is not None and not entry.slot.endswith(".0")


def bus(entry: PciEntry) -> str | None:
    return entry.slot.rpartition(":")[0] if entry.slot else None
