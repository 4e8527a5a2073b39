"""Every form of lspci output that people paste, and the kernel's own lists: which cards it shows.

Forms: plain, -n, -nn, -k, -v, -mm, -vmm and their mixtures, -D; lines filtered by grep, wrapped by a mailer, with host
names, list marks or IOMMU groups before the slot; kernel messages; the files of sysfs by path. Text that was filtered
proves no absence.
"""

import html
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import catalog, pci

SLOT = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{1,2}:[01][0-9a-fA-F]\.[0-7]"
CLASSES = {
    "0300": "VGA compatible controller",
    "0301": "XGA compatible controller",
    "0302": "3D controller",
    "0380": "Display controller",
    "0100": "SCSI storage controller",
    "0101": "IDE interface",
    "0104": "RAID bus controller",
    "0106": "SATA controller",
    "0107": "Serial Attached SCSI controller",
    "0108": "Non-Volatile memory controller",
    "0200": "Ethernet controller",
    "0207": "Infiniband controller",
    "0280": "Network controller",
    "0400": "Multimedia video controller",
    "0401": "Multimedia audio controller",
    "0403": "Audio device",
    "0480": "Multimedia controller",
    "0500": "RAM memory",
    "0580": "Memory controller",
    "0600": "Host bridge",
    "0601": "ISA bridge",
    "0604": "PCI bridge",
    "0680": "Bridge",
    "0700": "Serial controller",
    "0780": "Communication controller",
    "0880": "System peripheral",
    "0b40": "Co-processor",
    "0c00": "FireWire (IEEE 1394)",
    "0c03": "USB controller",
    "0c05": "SMBus",
    "0c80": "Serial bus controller",
    "1180": "Signal processing controller",
    "1200": "Processing accelerators",
}
NUMBERS = {name.lower(): number for number, name in CLASSES.items()}
NUMBERS["non-vga unclassified device"] = "0000"
CLASS = "|".join(map(re.escape, sorted(CLASSES.values(), key=len, reverse=True)))
HEAD = re.compile(r"(?<![\w.])(%s)([:,;)\]]+|(?=[\s\"'|]|$))[\s|\"']*?(?=\S|$)" % SLOT)
KNOWN = re.compile(r"[\s|\"']*(?:(?:%s)\b|(?:Class\s+)?\[?[0-9a-f]{4}\]?(?::|\"))" % CLASS, re.IGNORECASE)
SLOTLESS = re.compile(r"^(?:[^:]{0,40}[:.)\]]\s+|.*[\s\"'](?=VGA|3D))?\W*((?:%s)(?:\s+\[[0-9a-f]{4}\])?:\s.*)$" % CLASS)
COLONLESS = re.compile(r"^(%s)\s*(\[[0-9a-f]{4}\])?(?:\s*[|,;:]\s*|\s+)(.*)$" % CLASS)
JOINED = re.compile(
    r"[ \t]+(?=%s\s+(?:(?:%s)\b|\"|[0-9a-f]{4}:\s+[0-9a-f]{4}:)|"
    r"(?:Subsystem|Kernel driver in use|Kernel modules):\s|Flags:\s.*\blatency\b)" % (SLOT, CLASS)
)
COLOUR = re.compile(r"(?:\x1b|\^\[)\[[0-9;]*[A-Za-z]|\[\d\d;\d\dm\[K|\[m\[K")
HOST = re.compile(
    r"^\s*(?:(?:ok|changed|fatal|skipping): \[|\S+ \| (?:CHANGED|SUCCESS|FAILED)|-{4,}$|={2,}.*={2,}$|==> .* <==$)"
)
DETAIL = re.compile(
    r"^\W*(?:[\w.-]+:\s+)?(?:(?:Subsystem|DeviceName|Physical Slot|Flags|Capabilities|Control|Status|Latency|NUMA node|"
    r"IOMMU group|BIST|Bus|LnkCap2?|LnkSta2?|LnkCtl2?|DevCap2?|DevCtl2?|DevSta|I/O behind bridge|Memory behind bridge|"
    r"Prefetchable memory behind bridge|Region \d|Interrupt|Kernel driver in use|Kernel modules):|"
    r"Kernel driver in\b|Kernel modules|Memory at|I/O ports at|Expansion ROM|!!!|<access|pcilib:|lspci:)"
)
NUMERIC = re.compile(r"^(?:Class\s+)?([0-9a-f]{4}):\s+([0-9a-f]{4}):([0-9a-fx]{4})\b", re.IGNORECASE)
WORDS = re.compile(r"^([A-Z0-9][\w /,+.()&-]*?)\s*(?:\[([0-9a-f]{4})\])?:\s+(.*)$", re.IGNORECASE | re.DOTALL)
IDS = re.compile(r"\[([0-9a-fx]{4}):([0-9a-fx]{4})\]", re.IGNORECASE)
TAIL = re.compile(r"\s*\((?:rev\s+\w+|prog-if\b[^)]*)\).*$", re.IGNORECASE | re.DOTALL)
DUMP = re.compile(r"^\s*00: ((?:[0-9a-f]{2}\s+){15}[0-9a-f]{2})\s*$")
DUMPED_HEAD = re.compile(r"^\s*(%s) ([A-Z0-9][\w /,-]*): (?!.*\[[0-9a-f]{4}:)(.*?)( \(rev .*)?$" % SLOT)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
NUMBERED = re.compile(r"^(.*?)\s*\[([0-9a-f]{4})\]$", re.IGNORECASE)
RECORD = re.compile(
    r"(?:^|[\s\"'>|:-])(Slot|Class|Vendor|Device|SVendor|SDevice|Rev|ProgIf|Driver|Module|NUMANode|IOMMUGroup|PhySlot|DTNode)"
    r":(?:\s+(.*?))?\s*$"
)
DRIVER = re.compile(r"Kernel\s+driver\s+in\s+use:\s*(?!Kernel\b|Subsystem\b)([\w-]+)")
VERBOSE = re.compile(
    r"^\W*(?:[\w.-]+:\s+)?(?:(?:Flags|Control|Capabilities|Latency|Region \d):|Subsystem:(?!.*nvidia))",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines of the forms that tell the driver; a Subsystem line with NVIDIA's name may be all that grep left."""
DRIVERS = re.compile(r"Kernel\s+(?:driver\s+in\s+use|modules):")
OFF = re.compile(r"header\s+type\s+7f", re.IGNORECASE)
REV = re.compile(r"\(rev\s+ff\)", re.IGNORECASE)
KERNEL = re.compile(
    r"(%s):?\s+(?:found\s+)?\[?([0-9a-f]{4}):([0-9a-f]{4})\]?\s+(?:type\s+\w+\s+)?class[\s=:]+((?:0x)?[0-9a-f]{6})"
    r"|(%s)\W+(?:vendor\W+)?0x([0-9a-f]{4})\W+(?:device\W+)?0x([0-9a-f]{4})\W+(?:class\W+)?(0x[0-9a-f]{6})\b"
    % (SLOT, SLOT),
    re.IGNORECASE,
)
UEVENT = re.compile(r"\b(PCI_CLASS|PCI_ID|PCI_SLOT_NAME|DRIVER)=(\S+)")
SYSFS = re.compile(r"devices/(?:\S*/)?(%s)/(vendor|device|class|modalias)\s*:?\s*(\S+)" % SLOT, re.IGNORECASE)
MODALIAS = re.compile(r"pci:v0000(\w{4})d0000(\w{4})\S*?bc(\w\w)sc(\w\w)i(\w\w)", re.IGNORECASE)
UNKNOWN = re.compile(r"^(?:Unknown )?Device(?:\s+([0-9a-f]{4}))?$", re.IGNORECASE)
TEGRA = re.compile(r"^(0bf[01]|0e1[23cd]|0fa[ef]|10e[56]|1ad[0-2]|229[ace]|22d8|22e6|2b00|3400)$")
"""Functions of Jetson boards. Grace servers have root ports of NVIDIA's as well (22b1), and are no Jetsons."""
TEGRA_NAME = re.compile(r"\b(?:Tegra|Jetson|Orin|THOR)")
VENDORS = (
    "3DLabs",
    "AMD Pensando Systems",
    "Advanced Micro Devices, Inc. [AMD/ATI]",
    "Advanced Micro Devices, Inc. [AMD]",
    "Advanced Micro Devices [AMD] nee ATI",
    "Advanced Micro Devices [AMD]",
    "Amazon.com, Inc.",
    "ATI Technologies Inc",
    "ASPEED Technology, Inc.",
    "Broadcom Inc. and subsidiaries",
    "Chips and Technologies",
    "Cirrus Logic",
    "Diamond Multimedia Systems",
    "Gigabyte Technology Co., Ltd",
    "Google, Inc.",
    "Huawei Technologies Co., Ltd.",
    "InnoTek Systemberatung GmbH",
    "Intel Corporation",
    "Loongson Technology LLC",
    "Matrox Electronics Systems Ltd.",
    "Matrox Graphics, Inc.",
    "Microsoft Corporation",
    "Mitsubishi Electric",
    "Moore Threads Technology Co.,Ltd",
    "NVidia / SGS Thomson (Joint Venture)",
    "Number 9 Computer Company",
    "Parallels, Inc.",
    "Philips Semiconductors",
    "Red Hat, Inc.",
    "S3 Graphics Ltd.",
    "S3 Inc.",
    "Silicon Integrated Systems [SiS]",
    "Silicon Motion, Inc.",
    "Sapphire Technology Limited",
    "Technical Corp.",
    "Texas Instruments",
    "Trident Microsystems",
    "Tul Corporation / PowerColor",
    "Unisys Systems",
    "VIA Technologies, Inc.",
    "VMware",
    "XGI Technology Inc. (eXtreme Graphics Innovation)",
    "Zhaoxin",
)
FORM = (
    r"(?:Corporation|Corp|Incorporated|Inc|Ltd|Limited|GmbH|LLC|AG|S\.A|PLC|plc|Co|Technologies|Technology|Labs|Systems|"
    r"Semiconductors?|Microsystems|Instruments|Electronics|Interactive|Multimedia)\b\.?"
)
COMPANY = re.compile(
    r"^(\S.*?\b%s(?:,?\s*%s)*(?:\s\[[A-Za-z/ .&]+\](?=\s+\S))?)(?=\s|$)\s*(.*)$" % (FORM, FORM), re.DOTALL
)
NVIDIA_NAME = re.compile(r"^n?[Nn]?[Vv](?:idia|IDIA)(?:\s+Corporation|\s+Corp\.?)?(?=[\s:]|$)(?!\s*/):?\s*")


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
        vendor = (self.vendor or "").lower()
        return self.vendor_id == pci.NVIDIA if self.vendor_id else vendor.startswith("nvidia") and "/" not in vendor

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
    lines = with_dumps(clean(text))
    entries = read_kernel(lines) or read_files(lines) or read_records(lines) or read_lines(lines)
    return reading(mark_virtual(entries))


def with_dumps(lines: List[str]) -> List[str]:
    """Return lines whose heads carry the numbers that `lspci -x` shows as bytes of the configuration space."""
    found: List[str] = []
    head = None
    for line in lines:
        start = DUMPED_HEAD.match(line)
        head = len(found) if start else head
        dump = DUMP.match(line)
        if dump and head is not None:
            numbers = dump.group(1).split()
            shown = DUMPED_HEAD.match(found[head])
            if shown and numbers[0] != "ff":
                kind, vendor, device = (
                    "".join(numbers[place] for place in pair) for pair in ((11, 10), (1, 0), (3, 2))
                )
                found[head] = "%s %s [%s]: %s [%s:%s]%s" % (
                    shown.group(1), shown.group(2), kind, shown.group(3), vendor, device, shown.group(4) or "",
                )  # fmt: skip
            head = None
        found.append(line)
    return found


def clean(text: str) -> List[str]:
    """Return the lines without marks of encoding, terminal, Markdown and results, one head or detail in each."""
    text = re.sub(r"[\ufeff\x00\u200b`]|\*\*", "", html.unescape(COLOUR.sub("", text)))
    text = text.replace("\u00a0", " ").replace("\u201c", '"').replace("\u201d", '"')
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\\t", "\t")
    if re.search(r"(?:\\n|#012)\s*(?:\w+:\s+)?(?:%s|Slot:|Class:|Kernel driver|Subsystem:|$)" % SLOT, text):
        text = re.sub(r"\\n|#012", "\n", text)
    text = re.sub(
        r'(%s\s+)\\"(.*)' % SLOT, lambda match: match.group(1) + ('\\"' + match.group(2)).replace(r"\"", '"'), text
    )
    text = re.sub(r"['\"],\s+u?['\"](?=%s\s|\s|[A-Z][A-Za-z]+:|['\"])" % SLOT, "\n", text)
    lines = text.split("\n")
    cited = [line for line in lines if re.match(r"\s*>", line)]
    if 2 * len(cited) > sum(1 for line in lines if line.strip()):  # a mail: the mark stands before broken lines too
        lines = [re.sub(r"^\s*>+ ?", "", line) for line in lines]
    found: List[str] = []
    for line in lines:
        head = head_of(line)
        pieces = [line[: head[2]] + JOINED.sub("\n", line[head[2] :])] if head and KNOWN.match(head[1]) else [line]
        found += [piece.rstrip() for piece in pieces[0].split("\n")]
    return found


def head_of(line: str) -> Optional[Tuple[str, str, int]]:
    """Return slot, text behind it and place of the slot in a head line; one that a class follows comes first."""
    plain = None
    for match in HEAD.finditer(line):
        rest = line[match.end() :]
        if line[: match.start()][-1:] == '"' == line[match.end(1) :][:1]:
            rest = rest[1:]
        found = (match.group(1), rest.lstrip(" \t|"), match.start())
        if KNOWN.match(found[1]):
            return found
        if plain is None and not match.group(2) and line[: match.start()][-1:] != ":":
            plain = found
    return plain


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
    """Read kernel messages, ``pci 0000:06:00.0: [10de:15f8] type 00 class 0x030200``, and lists of sysfs's numbers."""
    found: Dict[str, Entry] = {}
    for match in KERNEL.finditer(re.sub(r"\n> ?", "\n", "\n".join(lines))):
        slot, vendor, device, raw = [value for value in match.groups() if value is not None]
        found[slot] = numbers_only(slot, vendor, device, "0x" + raw.lower().replace("0x", "", 1))
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
    return found or read_uevents(lines)


def read_uevents(lines: List[str]) -> List[Entry]:
    """Read uevent files of sysfs one after the other, as cat and udevadm print them."""
    found = []
    values: Dict[str, str] = {}
    for match in map(UEVENT.search, lines):
        if match:
            if match.group(1) in values:
                values = {}
            values[match.group(1)] = match.group(2)
            if all(key in values for key in ("PCI_CLASS", "PCI_ID", "PCI_SLOT_NAME")):
                vendor, _, device = values["PCI_ID"].lower().partition(":")
                raw = "0x" + values["PCI_CLASS"].lower().zfill(6)
                entry = numbers_only(values["PCI_SLOT_NAME"], vendor, device, raw)
                found.append(entry._replace(driver=values.get("DRIVER", "")))
                values = {}
    return found


def numbers_only(slot: str, vendor: str, device: str, raw: str) -> Entry:
    """Return a function of which only numbers are known; ``raw`` is the kernel's class, 0x030200."""
    # Old kernels print the class without its programming interface: 0x000300.
    number = raw[4:8] if raw[2:4] == "00" and raw[4:8] in CLASSES else raw[2:6].lower()
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
    last = None
    width = max(len(line.expandtabs()) for line in lines)
    for place, line in enumerate(lines):
        match = RECORD.search(line)
        if not match:
            value = records[-1].get(last or "", "") if records else ""
            if value and line.strip() and (value.count("[") != value.count("]") or wrapped_at(lines, place, width)):
                records[-1][str(last)] = value + " " + line.strip("\"', \t")
            continue
        key, text = match.group(1), (match.group(2) or "").strip("\"', ")
        last = key
        starts = re.match(r"^%s$" % SLOT, text) is not None
        if starts and key in ("Slot", "Device"):
            records.append({"Slot": text})
        elif key == "Class" and (not records or "Class" in records[-1]):
            records.append({"Class": text})
        elif records:
            records[-1].setdefault(key, text)
    records = [record for record in records if "Class" in record and ("Slot" in record or "Vendor" in record)]
    shown = any("Driver" in record or "Module" in record for record in records)
    return [of_record(record, shown) for record in records]


def of_record(record: Dict[str, str], shown: bool) -> Entry:
    """Return the function of one record."""
    entry = of_fields(record.get("Slot"), record.get("Class", ""), record.get("Vendor", ""), record.get("Device", ""))
    driver = record.get("Driver", "") if shown else None
    return entry._replace(driver=driver, off=record.get("Rev", "").lower() == "ff")


def of_fields(slot: Optional[str], kind: str, vendor: str, device: str) -> Entry:
    """Return a function from three fields, each a name, a number, or a name with its number in brackets."""
    class_name, class_id = split_number(kind)
    vendor_name, vendor_id = split_number(vendor)
    name, device_id = split_number(device)
    nobody = re.match(r"^Vendor(?:\s+([0-9a-f]{4}))?$", vendor_name or "")
    if nobody:
        vendor_name, vendor_id = "", vendor_id or nobody.group(1)
    bare = re.match(r"^Class(?:\s+([0-9a-f]{4}))?$", class_name or "")
    if bare:
        class_name, class_id = None, class_id or bare.group(1)
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

    def __init__(self, slot: Optional[str], head: str, origin: str) -> None:
        self.slot = slot
        self.head = head
        self.origin = origin
        self.details: List[str] = []

    def broken(self, line: str, wrapped: bool) -> bool:
        """Return whether a line that is no detail continues the head; ``wrapped``: its place speaks for it."""
        if self.details or not line.strip():
            return False
        head, piece = self.head, line.strip()
        if head.count("[") != head.count("]") or head.count('"') % 2 or head.count("(") != head.count(")"):
            return True
        if head.startswith('"'):
            return len(QUOTED.findall(head)) < 5 and piece[0] in '"-'
        if re.match(r"^(\[|\(rev|\(prog-if)", piece):
            return True
        match = WORDS.match(head)
        if match is None:
            return NUMERIC.match(head) is None
        if TAIL.search(head):
            return False
        text = NVIDIA_NAME.sub("", match.group(3)).strip()
        if text in ("", "Device") or (match.group(2) is not None and not IDS.search(match.group(3))):
            return True
        return wrapped and not IDS.search(head) and re.match(r"^\w", piece) is not None


def wrapped_at(lines: List[str], place: int, width: int) -> bool:
    """Return whether a program that wraps at the longest line's width would have broken the text before this line."""
    before, line = lines[place - 1].expandtabs(), lines[place].split()
    return bool(line) and len(before) >= 30 and len(before) + 1 + len(line[0]) > width


def read_lines(lines: List[str]) -> List[Entry]:
    """Read the forms with one head line a function."""
    stanzas: List[Stanza] = []
    host = 0
    width = max(len(line.expandtabs()) for line in lines)
    for place, line in enumerate(lines):
        host += bool(HOST.match(line))
        head = head_of(line)
        slotless = None if head or DETAIL.match(line) else SLOTLESS.match(line)
        if head and not re.search(r"(Subsystem|Kernel driver in use|Kernel modules):", line[: head[2]]):
            origin = re.match(r"^\W*([\w.-]+):\s", line[: head[2]])
            text = unquoted(line[: head[2]], head[1])
            stanzas.append(Stanza(head[0], text, "%d %s" % (host, origin.group(1) if origin else "")))
        elif slotless:
            stanzas.append(Stanza(None, slotless.group(1), ""))
        elif stanzas:
            current = stanzas[-1]
            wrapped = wrapped_at(lines, place, width)
            if not DETAIL.match(line) and current.broken(line, wrapped) or re.match(r"^\s*\((?:rev|prog-if)\b", line):
                current.head = (current.head + " " + line.strip()).strip()
            else:
                current.details.append(line)
    details = ["\n".join(stanza.details) for stanza in stanzas]
    shown = any(DRIVERS.search(text) for text in details)
    filtered = all("nvidia" in line.lower() for line in lines if line.strip())
    cut = any(line.strip() == "--" for line in lines)
    found: List[Tuple[str, Entry]] = []
    for stanza, text in zip(stanzas, details):  # noqa: B905 - Python 3.6 has no strict=
        proven = DRIVERS.search(text) if cut else shown or VERBOSE.search(text)
        entry = of_stanza(stanza, bool(proven) and not filtered)
        if entry is not None:
            add(found, stanza.origin, entry)
    return [entry for _, entry in found]


def unquoted(before: str, head: str) -> str:
    """Return a head without what follows the string that it is quoted in, as in source texts and in JSON."""
    if before.rstrip()[-1:] == '"' and not head.startswith(('"', "\\")):
        return head.partition('"')[0]
    return head


def add(found: List[Tuple[str, Entry]], origin: str, entry: Entry) -> None:
    """Add a function, or what a second listing of the same host tells of it."""
    for place, (before, old) in enumerate(found):
        if before == origin and entry.slot and full(old.slot) == full(entry.slot) and old.nvidia == entry.nvidia:
            known = {key: value for key, value in old._asdict().items() if value is not None}
            driver = old.driver or (old.driver if entry.driver is None else entry.driver)
            found[place] = (origin, entry._replace(**dict(known, off=old.off or entry.off, driver=driver)))
            return
    found.append((origin, entry))


def of_stanza(stanza: Stanza, shown: bool) -> Optional[Entry]:
    """Return the function of a stanza, None where the line only looked like one; ``shown``: with its driver."""
    head = re.sub(r"\s+", " ", stanza.head).strip()
    head = re.sub(r"\[(?=[0-9a-f: ]{10}\])([0-9a-f:]+) ([0-9a-f:]+)\]", r"[\1\2]", head)  # broken within the numbers
    details = "\n".join(stanza.details)
    entry = of_head(stanza.slot, head)
    if entry is None:
        return None
    driver = DRIVER.search(details)
    if driver:
        entry = entry._replace(driver=driver.group(1))
    elif shown and entry.driver is None:
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
        driver = re.match(r"^\s+([a-z][\w-]*)$", head[match.end() :])  # busybox lspci -k
        named = driver.group(1) if driver else None
        return Entry(slot, CLASSES.get(number, number), number, None, vendor, None, identity, None, named)
    match = WORDS.match(head) or COLONLESS.match(head)
    if match is None or len(match.group(1)) > 60:
        return None
    class_name, class_id = match.group(1).strip(), (match.group(2) or "").strip("[]").lower() or None
    bare = re.match(r"^Class(?:\s+([0-9a-f]{4}))?$", class_name)
    if bare:
        # Without a list of ids: "Class 0300: Device 10de:1b38".
        class_id = class_id or bare.group(1)
        class_name = CLASSES.get(class_id or "", class_name)
    rest = re.sub(r"(?<=[\s|])([0-9a-f]{4}:[0-9a-f]{4})$", r"[\1]", match.group(3)) if "|" in head else match.group(3)
    return of_words(slot, class_name, class_id, re.sub(r"\s*\|\s*", " ", rest))


def of_words(slot: Optional[str], class_name: str, class_id: Optional[str], rest: str) -> Entry:
    """Return a function from vendor, name and numbers in one text."""
    ids = list(IDS.finditer(rest))
    vendor_id = device_id = None
    if ids:
        vendor_id, device_id = (hexadecimal(part) for part in ids[0].groups())
        rest = rest[: ids[0].start()]
    # Long lines are cut by lspci itself: "... Mobile] [10...".
    rest = re.sub(r"\s*\[[0-9a-f:]*\.\.\.$", "", TAIL.sub("", rest).strip())
    vendor, name = split_vendor(rest)
    unknown = re.match(r"^(?:Unknown )?Device(?:\s+([0-9a-f]{4}))?(?::([0-9a-f]{4}))?$", rest, re.IGNORECASE)
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
        if text.startswith(vendor) and text[len(vendor) :][:1].strip() == "":
            return vendor, text[len(vendor) :].strip()
    company = COMPANY.match(text)
    if company:
        return company.group(1), company.group(2)
    first, _, rest = text.partition(" ")
    return first, rest
