"""Every form of lspci output that people paste, and the kernel's own lists: which cards it shows.

Forms: plain, -n, -nn, -k, -v, -mm, -vmm and their mixtures, -D; lines filtered by grep, wrapped by a mailer, with host
names, list marks or IOMMU groups before the slot; kernel messages; the files of sysfs by path. Text that was filtered
proves no absence.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import catalog, pci

SLOT = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{1,2}:[01][0-9a-fA-F]\.[0-7]"
CLASSES = {
    "0300": "VGA compatible controller",
    "0301": "XGA compatible controller",
    "0302": "3D controller",
    "0380": "Display controller",
    "0101": "IDE interface",
    "0106": "SATA controller",
    "0200": "Ethernet controller",
    "0207": "Infiniband controller",
    "0280": "Network controller",
    "0401": "Multimedia audio controller",
    "0403": "Audio device",
    "0500": "RAM memory",
    "0580": "Memory controller",
    "0600": "Host bridge",
    "0601": "ISA bridge",
    "0604": "PCI bridge",
    "0680": "Bridge",
    "0b40": "Co-processor",
    "0c03": "USB controller",
    "0c05": "SMBus",
    "0c80": "Serial bus controller",
}
NUMBERS = {name.lower(): number for number, name in CLASSES.items()}
NUMBERS["non-vga unclassified device"] = "0000"
HEAD = re.compile(r"(?<![\w:.])(%s)(?=[\s\"|]|$)[\s|]*(.*)$" % SLOT)
SLOTLESS = re.compile(r"^\W*((?:%s)(?:\s+\[[0-9a-f]{4}\])?:\s.*)$" % "|".join(map(re.escape, CLASSES.values())))
DETAIL = re.compile(
    r"^\W*(?:[\w.-]+:\s+)?(?:Subsystem|DeviceName|Physical Slot|Kernel driver in|Kernel modules|Flags|Memory at|"
    r"I/O ports at|Expansion ROM|Capabilities|Control|Status|Latency|Interrupt|Region \d|NUMA node|IOMMU group|BIST|"
    r"!!!|Memory behind|I/O behind|Prefetchable|Bus:|LnkCap|LnkSta|DevCap|DevCtl|DevSta|LnkCtl|<access)"
)
NUMERIC = re.compile(r"^(?:Class\s+)?([0-9a-f]{4}):\s+([0-9a-f]{4}):([0-9a-fx]{4})\b", re.IGNORECASE)
WORDS = re.compile(r"^([A-Z0-9][\w /,+.()&-]*?)\s*(?:\[([0-9a-f]{4})\])?:\s+(.*)$", re.IGNORECASE | re.DOTALL)
IDS = re.compile(r"\[([0-9a-fx]{4}):([0-9a-fx]{4})\]", re.IGNORECASE)
TAIL = re.compile(r"\s*\((?:rev\s+\w+|prog-if\b[^)]*)\).*$", re.IGNORECASE | re.DOTALL)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
NUMBERED = re.compile(r"^(.*?)\s*\[([0-9a-f]{4})\]$", re.IGNORECASE)
RECORD = re.compile(
    r"(?:^|[\s\"'>|:-])(Slot|Class|Vendor|Device|SVendor|SDevice|Rev|ProgIf|Driver|Module|NUMANode|IOMMUGroup|PhySlot|DTNode)"
    r":(?:\s+(.*?))?\s*$"
)
DRIVER = re.compile(r"Kernel\s+driver\s+in\s+use:\s*([\w-]+)")
DRIVERS = re.compile(r"Kernel\s+(?:driver\s+in\s+use|modules):")
OFF = re.compile(r"header\s+type\s+7f", re.IGNORECASE)
REV = re.compile(r"\(rev\s+ff\)", re.IGNORECASE)
KERNEL = re.compile(
    r"(%s):?\s+\[([0-9a-f]{4}):([0-9a-f]{4})\]\s+type\s+\w+\s+class\s+(0x[0-9a-f]{6})" % SLOT, re.IGNORECASE
)
SYSFS = re.compile(r"devices/(?:\S*/)?(%s)/(vendor|device|class|modalias)\s*:?\s*(\S+)" % SLOT, re.IGNORECASE)
MODALIAS = re.compile(r"pci:v0000(\w{4})d0000(\w{4})\S*?bc(\w\w)sc(\w\w)i(\w\w)", re.IGNORECASE)
UNKNOWN = re.compile(r"^Device(?:\s+([0-9a-f]{4}))?$", re.IGNORECASE)
VENDORS = (
    "Advanced Micro Devices, Inc. [AMD/ATI]",
    "Advanced Micro Devices, Inc. [AMD]",
    "Advanced Micro Devices [AMD] nee ATI",
    "Advanced Micro Devices [AMD]",
    "Amazon.com, Inc.",
    "ATI Technologies Inc",
    "ASPEED Technology, Inc.",
    "Cirrus Logic",
    "Google, Inc.",
    "Huawei Technologies Co., Ltd.",
    "InnoTek Systemberatung GmbH",
    "Intel Corporation",
    "Loongson Technology LLC",
    "Matrox Electronics Systems Ltd.",
    "Matrox Graphics, Inc.",
    "Microsoft Corporation",
    "Moore Threads Technology Co.,Ltd",
    "Parallels, Inc.",
    "Red Hat, Inc.",
    "S3 Graphics Ltd.",
    "S3 Inc.",
    "Silicon Integrated Systems [SiS]",
    "Silicon Motion, Inc.",
    "Technical Corp.",
    "VIA Technologies, Inc.",
    "VMware",
    "XGI Technology Inc. (eXtreme Graphics Innovation)",
    "Zhaoxin",
)
COMPANY = re.compile(
    r"^(.*?\b(?:Corporation|Corp\.?|Incorporated|Inc\.?|Ltd\.?|Limited|GmbH|LLC|AG|S\.A\.|Technologies|Technology|Labs)"
    r"(?:\s*\[[^\]]*\])?)(?=\s|$)\s*(.*)$",
    re.DOTALL,
)
NVIDIA_NAME = re.compile(
    r"^n[Vv]idia(?:\s+Corporation|\s+Corp\.?)?(?=\s|$)\s*|^NVIDIA(?:\s+Corporation|\s+Corp\.?)?(?=\s|$)\s*"
)


class Entry(NamedTuple):
    """One function as the text shows it; None for what it does not show."""

    slot: Optional[str]
    class_name: str
    class_id: Optional[str]
    class_raw: Optional[str]
    vendor_id: Optional[str]
    vendor: Optional[str]
    device_id: Optional[str]
    name: Optional[str]
    driver: Optional[str] = None
    off: bool = False
    vf: bool = False

    @property
    def nvidia(self) -> bool:
        """Return whether the vendor is NVIDIA, by number where there is one."""
        return self.vendor_id == pci.NVIDIA if self.vendor_id else (self.vendor or "").lower().startswith("nvidia")

    @property
    def display(self) -> bool:
        """Return whether the class is display, by number where there is one."""
        number = self.class_id or NUMBERS.get(self.class_name.lower(), "")
        return number[:2] == "03"

    @property
    def what(self) -> str:
        """Return in a word what an NVIDIA function is."""
        number = self.class_id or NUMBERS.get(self.class_name.lower())
        return pci.what_of(number, self.class_name, self.name or "", self.device_id)


class Reading(NamedTuple):
    """What a text shows. ``unnamed``: GPUs whose device id neither the text nor the catalog tells."""

    entries: List[Entry]
    functions: List[pci.Function]
    unnamed: List[Entry]

    @property
    def gpus(self) -> List[Entry]:
        """Return NVIDIA's display functions, virtual ones among them."""
        return [entry for entry in self.entries if entry.nvidia and entry.display]

    def as_dict(self) -> Dict[str, Any]:
        """Return the reading as plain values."""
        others = [entry for entry in self.entries if entry.nvidia and not entry.display]
        found: Dict[str, Any] = {
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
                {"slot": entry.slot, "vendor": entry.vendor, "name": entry.name}
                for entry in self.entries
                if entry.display and not entry.nvidia
            ],
        }
        if any(entry.vf for entry in self.gpus):
            found["physical_gpus"] = sum(not entry.vf for entry in self.gpus)
        if any(entry.what == "tegra_root_port" for entry in others):
            found["tegra"] = True
        return found


def gpu_row(entry: Entry) -> Dict[str, Any]:
    """Return a GPU as plain values; what the form does not show is left out."""
    row: Dict[str, Any] = {
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


def read(text: str) -> Reading:
    """Read any form."""
    lines = clean(text)
    entries = read_kernel(lines) or read_files(lines) or read_records(lines) or read_lines(lines)
    return reading(mark_virtual(entries))


def clean(text: str) -> List[str]:
    """Return the lines without marks of encoding, Markdown and line ends."""
    text = text.replace("\ufeff", "").replace("\x00", "").replace("\u00a0", " ").replace("**", "").replace("`", "")
    text = re.sub(r"\\n|#012", "\n", text) if re.search(r"(?:\\n|#012)\s*%s" % SLOT, text) else text
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text.replace("\r\n", "\n").replace("\r", "\n"))
    return [line.rstrip() for line in text.split("\n")]


def reading(entries: List[Entry]) -> Reading:
    """Return a reading with the functions as the planner takes them; a card without its number is sought by name."""
    functions: List[pci.Function] = []
    unnamed: List[Entry] = []
    for entry in entries:
        number = entry.class_id or NUMBERS.get(entry.class_name.lower())
        vendor = pci.NVIDIA if entry.nvidia else entry.vendor_id
        device = entry.device_id or (by_name(entry.name) if entry.nvidia and entry.display else None)
        if vendor and number and device:
            found = pci.Function(full(entry.slot), vendor, device, number, None, None, entry.driver or None, entry.vf)
            functions.append(found)
        elif entry.nvidia and entry.display:
            unnamed.append(entry)
    return Reading(entries, functions, unnamed)


def full(slot: Optional[str]) -> str:
    """Return a slot with its domain, "" where the text has none."""
    return "" if slot is None else slot.lower() if slot.count(":") == 2 else "0000:" + slot.lower()


def by_name(name: Optional[str]) -> Optional[str]:
    """Return the device id of a card by the marketing name in brackets, None unless exactly one verdict fits."""
    match = re.search(r"\[([^\]]+)\]\s*$", name or "")
    wanted = [letters(part) for part in match.group(1).split("/")] if match else []
    fitting = [gpu for gpu in catalog.gpus().values() if letters(gpu.name) in wanted]
    verdicts = {(gpu.architecture, gpu.last_branch, gpu.first_branch, gpu.flavours) for gpu in fitting}
    return fitting[0].device_id if len(verdicts) == 1 else None


def letters(text: str) -> str:
    """Return a name without blanks, dashes and case."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def mark_virtual(entries: List[Entry]) -> List[Entry]:
    """Mark SR-IOV virtual functions: a display function above .0, and its like in higher device numbers of that bus."""
    buses = {bus(entry) for entry in entries if entry.nvidia and entry.display and above_zero(entry)}
    return [
        entry._replace(vf=True)
        if entry.nvidia
        and entry.display
        and (above_zero(entry) or (bus(entry) in buses and not str(entry.slot).endswith(":00.0")))
        else entry
        for entry in entries
    ]


def above_zero(entry: Entry) -> bool:
    """Return whether a function's number is not 0."""
    return entry.slot is not None and not entry.slot.endswith(".0")


def bus(entry: Entry) -> Optional[str]:
    """Return domain and bus of a slot."""
    return entry.slot.rpartition(":")[0] if entry.slot else None


# --- numbers of the kernel ---------------------------------------------------------------------------------------


def read_kernel(lines: List[str]) -> List[Entry]:
    """Read kernel messages: ``pci 0000:06:00.0: [10de:15f8] type 00 class 0x030200``."""
    found: Dict[str, Entry] = {}
    for line in lines:
        match = KERNEL.search(line)
        if match:
            slot, vendor, device, raw = match.groups()
            found[slot] = numbers_only(slot, vendor, device, raw)
    return list(found.values())


def read_files(lines: List[str]) -> List[Entry]:
    """Read sysfs files with their paths, as ``grep -r . /sys/bus/pci/devices`` prints them."""
    values: Dict[str, Dict[str, str]] = {}
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
            found.append(numbers_only(slot, files["vendor"][-4:], files["device"][-4:], raw))
    return found


def numbers_only(slot: str, vendor: str, device: str, raw: str) -> Entry:
    """Return a function of which only numbers are known; ``raw`` is the kernel's class, 0x030200."""
    number = raw[2:6].lower()
    return Entry(slot, CLASSES.get(number, number), number, raw, vendor.lower(), None, device.lower(), None)


def of_sysfs(functions: List[pci.Function]) -> Reading:
    """Return the reading of functions that were read from sysfs."""
    entries = []
    for function in functions:
        entry = numbers_only(function.address, function.vendor, function.device, "0x%s00" % function.class_id)
        entries.append(entry._replace(driver=function.driver or "", vf=function.vf))
    return reading(mark_virtual(entries))


# --- records: lspci -vmm -----------------------------------------------------------------------------------------


def read_records(lines: List[str]) -> List[Entry]:
    """Read the record form: one ``Key:<tab>value`` a line; old lspci calls the slot ``Device``."""
    records: List[Dict[str, str]] = []
    for line in lines:
        match = RECORD.search(line)
        if not match:
            continue
        key, text = match.group(1), (match.group(2) or "").strip("\"', ")
        starts = re.match(r"^%s$" % SLOT, text) is not None
        if starts and key in ("Slot", "Device"):
            records.append({"Slot": text})
        elif records:
            records[-1].setdefault(key, text)
    records = [record for record in records if "Class" in record]
    shown = any("Driver" in record or "Module" in record for record in records)
    return [of_record(record, shown) for record in records]


def of_record(record: Dict[str, str], shown: bool) -> Entry:
    """Return the function of one record."""
    entry = of_fields(record["Slot"], record.get("Class", ""), record.get("Vendor", ""), record.get("Device", ""))
    driver = record.get("Driver", "") if shown else None
    return entry._replace(driver=driver, off=record.get("Rev", "").lower() == "ff")


def of_fields(slot: Optional[str], kind: str, vendor: str, device: str) -> Entry:
    """Return a function from three fields, each a name, a number, or a name with its number in brackets."""
    class_name, class_id = split_number(kind)
    vendor_name, vendor_id = split_number(vendor)
    name, device_id = split_number(device)
    unknown = UNKNOWN.match(name or "")
    if unknown and unknown.group(1) and device_id is None:
        device_id = unknown.group(1).lower()
    if class_name is None and class_id:
        class_name = CLASSES.get(class_id, class_id)
    return Entry(slot, class_name or "", class_id, None, vendor_id, vendor_name, device_id, name)


def split_number(text: str) -> Tuple[Optional[str], Optional[str]]:
    """Return name and number of a field, None for what is not there."""
    text = re.sub(r"\s+", " ", text).strip()
    if re.match(r"^[0-9a-fA-F]{4}$", text):
        return None, text.lower()
    match = NUMBERED.match(text)
    return (match.group(1), match.group(2).lower()) if match else (text, None)


# --- lines: lspci, -n, -nn, -k, -v, -mm --------------------------------------------------------------------------


class Stanza:
    """A head line, pieces of it that were wrapped, and the detail lines below."""

    def __init__(self, slot: Optional[str], head: str) -> None:
        self.slot = slot
        self.head = head
        self.details: List[str] = []

    def broken(self, line: str) -> bool:
        """Return whether a line that is no detail continues the head."""
        if self.details or not line.strip():
            return False
        head, piece = self.head, line.strip()
        if head.count("[") != head.count("]") or head.count('"') % 2 or head.count("(") != head.count(")"):
            return True
        if re.match(r"^(\[|\(rev|\(prog-if)", piece):
            return True
        match = WORDS.match(head)
        if match is None:
            return NUMERIC.match(head) is None and not head.startswith('"')
        text = NVIDIA_NAME.sub("", match.group(3)).strip()
        return text in ("", "Device") or (match.group(2) is not None and not IDS.search(match.group(3)))


def read_lines(lines: List[str]) -> List[Entry]:
    """Read the forms with one head line a function."""
    stanzas: List[Stanza] = []
    for line in lines:
        head = HEAD.search(line)
        slotless = None if head else SLOTLESS.match(line)
        if head and not re.search(r"(Subsystem|Kernel driver in use|Kernel modules):", line[: head.start()]):
            stanzas.append(Stanza(head.group(1), head.group(2)))
        elif slotless:
            stanzas.append(Stanza(None, slotless.group(1)))
        elif stanzas:
            current = stanzas[-1]
            if not DETAIL.match(line) and current.broken(line) or re.match(r"^\s*\((?:rev|prog-if)\b", line):
                current.head = (current.head + " " + line.strip()).strip()
            else:
                current.details.append(line)
    shown = any(DRIVERS.search("\n".join(stanza.details)) for stanza in stanzas)
    filtered = all("nvidia" in line.lower() for line in lines if line.strip())
    found = [of_stanza(stanza, shown, filtered) for stanza in stanzas]
    return [entry for entry in found if entry is not None]


def of_stanza(stanza: Stanza, shown: bool, filtered: bool) -> Optional[Entry]:
    """Return the function of a stanza, None where the line only looked like one."""
    head = re.sub(r"\s+", " ", stanza.head).strip()
    details = "\n".join(stanza.details)
    entry = of_head(stanza.slot, head)
    if entry is None:
        return None
    driver = DRIVER.search(details)
    if driver:
        entry = entry._replace(driver=driver.group(1))
    elif shown and not filtered:
        entry = entry._replace(driver="")
    return entry._replace(off=bool(REV.search(head) or OFF.search(details) or re.search(r"\s-rff\b", head)))


def of_head(slot: Optional[str], head: str) -> Optional[Entry]:
    """Return the function of a head line without its slot."""
    if head.startswith('"') and len(QUOTED.findall(head)) >= 3:
        fields = [re.sub(r"\\(.)", r"\1", field) for field in QUOTED.findall(head)]
        return of_fields(slot, fields[0], fields[1], fields[2])
    head = head.rstrip("\"', |")
    match = NUMERIC.match(head)
    if match:
        number, vendor, device = (part.lower() for part in match.groups())
        identity = device if re.match(r"^[0-9a-f]{4}$", device) else None
        return Entry(slot, CLASSES.get(number, number), number, None, vendor, None, identity, None)
    match = WORDS.match(head)
    if match is None or len(match.group(1)) > 60:
        return None
    class_id = match.group(2).lower() if match.group(2) else None
    return of_words(slot, match.group(1).strip(), class_id, match.group(3))


def of_words(slot: Optional[str], class_name: str, class_id: Optional[str], rest: str) -> Entry:
    """Return a function from vendor, name and numbers in one text."""
    ids = list(IDS.finditer(rest))
    vendor_id = device_id = None
    if ids:
        vendor_id, device_id = (hexadecimal(part) for part in ids[-1].groups())
        rest = rest[: ids[-1].start()]
    rest = TAIL.sub("", rest).strip()
    vendor, name = split_vendor(rest)
    unknown = re.match(r"^Device(?:\s+([0-9a-f]{4}))?(?::([0-9a-f]{4}))?$", rest, re.IGNORECASE)
    if unknown:
        # pciutils knows not even the vendor: "Device 1234:1111", "Device [1234:1111]".
        vendor, name = ("NVIDIA Corporation" if vendor_id == pci.NVIDIA else ""), "Device"
        vendor_id = vendor_id or (unknown.group(1) or "").lower() or None
        device_id = device_id or (unknown.group(2) or "").lower() or None
    else:
        number = UNKNOWN.match(name)
        if number and number.group(1) and device_id is None:
            device_id = number.group(1).lower()
    return Entry(slot, class_name, class_id, None, vendor_id, vendor, device_id, name)


def hexadecimal(text: str) -> Optional[str]:
    """Return an id as small letters, None for a placeholder such as xxxx."""
    return text.lower() if re.match(r"^[0-9a-fA-F]{4}$", text) else None


def split_vendor(text: str) -> Tuple[str, str]:
    """Return vendor and name; the list of ids does not mark where one ends."""
    match = NVIDIA_NAME.match(text)
    if match:
        return text[: match.end()].strip(), text[match.end() :]
    for vendor in VENDORS:
        if text.startswith(vendor):
            return vendor, text[len(vendor) :].strip()
    company = COMPANY.match(text)
    if company and company.group(2):
        return company.group(1), company.group(2)
    first, _, rest = text.partition(" ")
    return first, rest
