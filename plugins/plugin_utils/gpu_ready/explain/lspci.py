"""Parser of every form of lspci output that people paste.

Forms: plain, -n, -nn, -k, -v, -mm, -vmm and their mixtures, -D; lines filtered by grep, wrapped by a mailer, with host
names, list marks or IOMMU groups before the slot; kernel messages; the files of sysfs by path. Text that was filtered
does not show that something is absent.
"""

import html
import re

from ....module_utils.gpu_ready.hardware import pci
from . import pci_kernel, pci_tools
from . import pci_listing as pci_reading
from .pci_classes import CLASS, CLASSES, NVIDIA_NAME, SLOT, UNKNOWN, UNKNOWN_CLASS, split_vendor
from .pci_listing import PciEntry, PciListing

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
    r"^\W{0,60}(?:[\w.-]{1,253}:\s+)?"
    r"(?:(?:Subsystem|DeviceName|Physical Slot|Flags|Capabilities|Control|Status|Latency|NUMA node|"
    r"IOMMU group|BIST|Bus|LnkCap2?|LnkSta2?|LnkCtl2?|DevCap2?|DevCtl2?|DevSta|I/O behind bridge|Memory behind bridge|"
    r"Prefetchable memory behind bridge|Region \d|Interrupt|Kernel driver in use|Kernel modules):|"
    r"Kernel driver in\b|Kernel modules|Memory at|I/O ports at|Expansion ROM|!!!|<access|pcilib:|lspci:)"
)
NUMERIC = re.compile(r"^(?:Class\s+)?([0-9a-f]{4}):\s+([0-9a-f]{4}):([0-9a-fx]{4})\b", re.IGNORECASE)
WORDS = re.compile(r"^([A-Z0-9][\w /,+.()&-]*?)\s*(?:\[([0-9a-f]{4})\])?:\s+(.*)$", re.IGNORECASE | re.DOTALL)
IDS = re.compile(r"\[([0-9a-fx]{4}):([0-9a-fx]{4})\]", re.IGNORECASE)
TAIL = re.compile(r"(?<!\s)\s*\((?:rev\s+\w+|prog-if\b[^)]{0,80})\).*$", re.IGNORECASE | re.DOTALL)
DUMP = re.compile(r"^\s*00: ((?:[0-9a-f]{2}\s+){15}[0-9a-f]{2})\s*$")
DUMPED_HEAD = re.compile(r"^\s*(%s) ([A-Z0-9][\w /,-]*): (?!.*\[[0-9a-f]{4}:)(.*?)( \(rev .*)?$" % SLOT)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
NUMBERED = re.compile(r"^(.*?)\s*\[([0-9a-f]{4})\]$", re.IGNORECASE)
RECORD = re.compile(
    r"(?:^|[\s\"'>|:-])(Slot|Class|Vendor|Device|SVendor|SDevice|Rev|ProgIf|Driver|Module|NUMANode|IOMMUGroup|PhySlot|DTNode)"
    r":(?:\s+(.*?))?\s*$"
)
DRIVER = re.compile(r"Kernel\s+driver\s+in\s+use:\s*(?!Kernel\b|Subsystem\b)([\w-]+)")
TRAILING_DRIVER = re.compile(r"\s\[?[Dd]river(?: in use)?[:=]\s*([\w-]+)\]?$")
"""At the end of a line of scripts that group functions by IOMMU group."""
VERBOSE = re.compile(
    r"^\W{0,60}(?:[\w.-]{1,253}:\s+)?(?:(?:Flags|Control|Capabilities|Latency|Region \d):|Subsystem:(?!.*nvidia))",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines of the forms that show the driver; a Subsystem line with NVIDIA's name may be all that grep left."""
DRIVERS = re.compile(r"Kernel\s+(?:driver\s+in\s+use|modules):")
OFF = re.compile(r"header\s+type\s+7f", re.IGNORECASE)
REV = re.compile(r"\(rev\s+ff\)", re.IGNORECASE)


def parse_lspci(text: str) -> PciListing:
    """Parse any form, and the kernel's own lists."""
    lines = with_dumps(clean(text))
    return pci_reading.list_entries(
        pci_kernel.parse_kernel_listing(lines)
        or pci_tools.parse_tool_output(lines)
        or parse_records(lines)
        or parse_lines(lines)
    )


def with_dumps(lines: list[str]) -> list[str]:
    """Return lines whose heads carry the numbers that `lspci -x` shows as bytes of the configuration space."""
    found: list[str] = []
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


def clean(text: str) -> list[str]:
    """Return lines without marks of encoding, terminal, Markdown and results, one head or detail in each."""
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
    if 2 * len(cited) > sum(1 for line in lines if line.strip()):  # a mail: wrapped lines have the mark too
        lines = [re.sub(r"^\s*>+ ?", "", line) for line in lines]
    found: list[str] = []
    for line in lines:
        head = head_of(line)
        pieces = [line[: head[2]] + JOINED.sub("\n", line[head[2] :])] if head and KNOWN.match(head[1]) else [line]
        found += [piece.rstrip() for piece in pieces[0].split("\n")]
    return found


def head_of(line: str) -> tuple[str, str, int] | None:
    """Return the slot, text behind it and place of the slot in a head line; one that a class follows comes first."""
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


# --- records: lspci -vmm -----------------------------------------------------------------------------------------


def parse_records(lines: list[str]) -> list[PciEntry]:
    """Parse the record form, one ``Key:<tab>value`` per line; old lspci calls the slot ``Device``."""
    records: list[dict[str, str]] = []
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
    return [entry_of_record(record, shown) for record in records]


def entry_of_record(record: dict[str, str], shown: bool) -> PciEntry:
    """Return the function of one record."""
    entry = entry_of_fields(
        record.get("Slot"), record.get("Class", ""), record.get("Vendor", ""), record.get("Device", "")
    )
    driver = record.get("Driver", "") if shown else None
    return entry._replace(driver=driver, off=record.get("Rev", "").lower() == "ff")


def entry_of_fields(slot: str | None, kind: str, vendor: str, device: str) -> PciEntry:
    class_name, class_id = split_number(kind)
    vendor_name, vendor_id = split_number(vendor)
    name, device_id = split_number(device)
    nobody = re.match(r"^Vendor(?:\s+([0-9a-f]{4}))?$", vendor_name or "")
    if nobody:
        vendor_name, vendor_id = "", vendor_id or nobody.group(1)
    bare = UNKNOWN_CLASS.match(class_name or "")
    if bare:
        class_name, class_id = None, class_id or bare.group(1)
    unknown = UNKNOWN.match(name or "")
    if unknown and unknown.group(1) and device_id is None:
        device_id = unknown.group(1).lower()
    if class_name is None and class_id:
        class_name = CLASSES.get(class_id, class_id)
    return PciEntry(slot, class_name or "", class_id, None, vendor_id, vendor_name, device_id, name)


def split_number(text: str) -> tuple[str | None, str | None]:
    """Return the name and number of a field, None for what is missing."""
    text = re.sub(r"\s+", " ", text).strip()
    if re.match(r"^[0-9a-fA-F]{4}$", text):
        return None, text.lower()
    match = NUMBERED.match(text)
    return (match.group(1), match.group(2).lower()) if match else (text, None)


# --- lines: lspci, -n, -nn, -k, -v, -mm --------------------------------------------------------------------------


class Stanza:
    """A head line, pieces of it that were wrapped, and the detail lines below."""

    def __init__(self, slot: str | None, head: str, origin: str) -> None:
        self.slot = slot
        self.head = head
        self.origin = origin
        self.details: list[str] = []

    def is_broken(self, line: str, wrapped: bool) -> bool:
        """Return True if a line that is no detail continues the head; ``wrapped``: its position suggests it."""
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


def wrapped_at(lines: list[str], place: int, width: int) -> bool:
    """Return True if a program that wraps at the longest line's width would have broken the text before this line."""
    before, line = lines[place - 1].expandtabs(), lines[place].split()
    return bool(line) and len(before) >= 30 and len(before) + 1 + len(line[0]) > width


def parse_lines(lines: list[str]) -> list[PciEntry]:
    """Parse the forms with one head line per function."""
    stanzas: list[Stanza] = []
    host = 0
    width = max(len(line.expandtabs()) for line in lines)
    for place, line in enumerate(lines):
        host += bool(HOST.match(line))
        head = head_of(line)
        slotless = None if head or DETAIL.match(line) else SLOTLESS.match(line)
        if head and not re.search(r"(Subsystem|Kernel driver in use|Kernel modules):", line[: head[2]]):
            origin = re.match(r"^\W{0,60}([\w.-]{1,253}):\s", line[: head[2]])
            text = unquote(line[: head[2]], head[1])
            stanzas.append(Stanza(head[0], text, "%d %s" % (host, origin.group(1) if origin else "")))
        elif slotless:
            stanzas.append(Stanza(None, slotless.group(1), ""))
        elif stanzas:
            current = stanzas[-1]
            wrapped = wrapped_at(lines, place, width)
            if (
                not DETAIL.match(line)
                and current.is_broken(line, wrapped)
                or re.match(r"^\s*\((?:rev|prog-if)\b", line)
            ):
                current.head = (current.head + " " + line.strip()).strip()
            else:
                current.details.append(line)
    details = ["\n".join(stanza.details) for stanza in stanzas]
    shown = any(DRIVERS.search(text) for text in details)
    filtered = all("nvidia" in line.lower() for line in lines if line.strip())
    cut = any(line.strip() == "--" for line in lines)
    found: list[tuple[str, PciEntry]] = []
    for stanza, text in zip(stanzas, details):  # noqa: B905 - Python 3.6 has no strict=
        complete = DRIVERS.search(text) if cut else shown or VERBOSE.search(text)
        entry = entry_of_stanza(stanza, bool(complete) and not filtered)
        if entry is not None:
            add(found, stanza.origin, entry)
    return [entry for _, entry in found]


def unquote(before: str, head: str) -> str:
    """Return a head without what follows the string that it is quoted in, as in source texts and in JSON."""
    if before.rstrip()[-1:] == '"' and not head.startswith(('"', "\\")):
        return head.partition('"')[0]
    return head


def add(found: list[tuple[str, PciEntry]], origin: str, entry: PciEntry) -> None:
    """Add a function, or further values from a second listing of the same host."""
    for place, (before, old) in enumerate(found):
        if (
            before == origin
            and entry.slot
            and pci_reading.full_address(old.slot) == pci_reading.full_address(entry.slot)
            and old.nvidia == entry.nvidia
        ):
            known = {key: value for key, value in old._asdict().items() if value is not None}
            driver = old.driver or (old.driver if entry.driver is None else entry.driver)
            found[place] = (origin, entry._replace(**dict(known, off=old.off or entry.off, driver=driver)))
            return
    found.append((origin, entry))


def entry_of_stanza(stanza: Stanza, shown: bool) -> PciEntry | None:
    """Return None where the line only resembles a head line; ``shown``: the text shows drivers."""
    head = re.sub(r"\s+", " ", stanza.head).strip()
    head = re.sub(r"\[(?=[0-9a-f: ]{10}\])([0-9a-f:]+) ([0-9a-f:]+)\]", r"[\1\2]", head)  # broken within the numbers
    details = "\n".join(stanza.details)
    entry = entry_of_head(stanza.slot, head)
    if entry is None:
        return None
    driver = DRIVER.search(details) or TRAILING_DRIVER.search(head)
    if driver:
        entry = entry._replace(driver=driver.group(1))
    elif shown and entry.driver is None:
        entry = entry._replace(driver="")
    return entry._replace(off=bool(REV.search(head) or OFF.search(details) or re.search(r"\s-rff\b", head)))


def entry_of_head(slot: str | None, head: str) -> PciEntry | None:
    """Return the function of a head line without its slot."""
    if head.startswith('"') and len(QUOTED.findall(head)) >= 3:
        fields = [re.sub(r"\\(.)", r"\1", field) for field in QUOTED.findall(head)]
        return entry_of_fields(slot, fields[0], fields[1], fields[2])
    head = head.rstrip("\"', |")
    match = NUMERIC.match(head)
    if match:
        number, vendor, device = (part.lower() for part in match.groups())
        identity = device if re.match(r"^[0-9a-f]{4}$", device) else None
        driver = re.match(r"^\s+([a-z][\w-]*)$", head[match.end() :])  # busybox lspci -k
        named = driver.group(1) if driver else None
        return PciEntry(slot, CLASSES.get(number, number), number, None, vendor, None, identity, None, named)
    match = WORDS.match(head) or COLONLESS.match(head)
    if match is None or len(match.group(1)) > 60:
        return None
    class_name, class_id = match.group(1).strip(), (match.group(2) or "").strip("[]").lower() or None
    bare = UNKNOWN_CLASS.match(class_name)
    if bare:
        # Without a list of ids: "Class 0300: Device 10de:1b38".
        class_id = class_id or bare.group(1)
        class_name = CLASSES.get(class_id or "", class_name)
    rest = re.sub(r"(?<=[\s|])([0-9a-f]{4}:[0-9a-f]{4})$", r"[\1]", match.group(3)) if "|" in head else match.group(3)
    return entry_of_words(slot, class_name, class_id, re.sub(r"\s*\|\s*", " ", rest))


def entry_of_words(slot: str | None, class_name: str, class_id: str | None, rest: str) -> PciEntry:
    ids = list(IDS.finditer(rest))
    vendor_id = device_id = None
    if ids:
        vendor_id, device_id = (parse_hex(part) for part in ids[0].groups())
        rest = rest[: ids[0].start()]
    # Long lines are cut by lspci itself: "... Mobile] [10...".
    rest = re.sub(r"(?<!\s)\s*\[[0-9a-f:]*\.\.\.$", "", TAIL.sub("", rest).strip())
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
    return PciEntry(slot, class_name, class_id, None, vendor_id, vendor, device_id, name)


def parse_hex(text: str) -> str | None:
    """Return an id as small letters, None for a placeholder such as xxxx."""
    return text.lower() if re.match(r"^[0-9a-fA-F]{4}$", text) else None
