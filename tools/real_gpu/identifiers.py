"""Replace what identifies a machine in the outputs of its programs, the same value by the same one in all texts.

Replaced: UUIDs, 32-digit ids (machine-id, boot ids), serial numbers and what else a label calls an identifier, MAC and
IPv4 addresses, host names, names of users in paths. PCI addresses, models, versions and process numbers stay. A person
reads the difference before a text is committed.
"""

import re
from collections.abc import Iterable, Mapping

UUID = re.compile(r"(?<![\w-])((?:GPU|MIG|MIG-GPU)-)?([0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})(?![\w-])")
ID = re.compile(r"(?<!\w)[0-9a-f]{32}(?!\w)")
MAC = re.compile(r"(?<![\w:])[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}(?![\w:])")
PART = r"(?:0|[1-9]\d{0,2})"
ADDRESS = re.compile(rf"(?<![\w.]){PART}(?:\.{PART}){{3}}(?![\w.])")
"""IPv4. A version of four numbers has the same form; one with a leading zero (96.00.99.00) does not match."""
USER = re.compile(r"(?<=/home/)[^/\s:]+")
WORDS = r"(?:serial(?:[ _]?number)?|pdi|guid|eid)"
LABELLED = re.compile(rf"(?i)^[^\n:<>]*\b{WORDS}[ \t]*:[ \t]*(\S+)[ \t]*$", re.MULTILINE)
"""A line `LABEL : VALUE`, as `nvidia-smi -q` and the driver's messages in the kernel log have it."""
ELEMENT = re.compile(r"<\w*(?:serial|pdi|guid|eid)\w*>\s*([^<\s]+)\s*</", re.IGNORECASE)
VALUE = re.compile(r"(?=.*\d)[\w-]{6,}")
"""What can be such a value: `N/A`, `0` and `[Unknown Error]` are none."""
NOT_IDENTIFYING = {"localhost", "localhost.localdomain"}


class Numbers:
    """Gives each value a number, in the order of their first appearance."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def of(self, value: str) -> int:
        return self.known.setdefault(value.lower(), len(self.known) + 1)


def replace_identifiers(texts: Mapping[str, str], host_names: Iterable[str]) -> dict[str, str]:
    """The texts by name with all identifiers replaced."""
    uuids, ids, macs, addresses, serials = (Numbers() for _ in range(5))
    labelled = {
        value
        for text in texts.values()
        for pattern in (LABELLED, ELEMENT)
        for value in pattern.findall(text)
        if VALUE.fullmatch(value) and not UUID.fullmatch(value) and value.strip("0x")
    }
    names = sorted((name for name in host_names if len(name) > 2 and name not in NOT_IDENTIFYING), key=len)

    def replace(text: str) -> str:
        text = UUID.sub(lambda found: (found[1] or "") + replaced_uuid(found[2], uuids), text)
        text = ID.sub(lambda found: f"{ids.of(found[0]):032x}" if found[0].strip("0") else found[0], text)
        for value in sorted(labelled, key=len, reverse=True):
            text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", replaced_serial(value, serials), text)
        text = MAC.sub(lambda found: f"02:00:00:00:00:{macs.of(found[0]):02x}", text)
        text = ADDRESS.sub(lambda found: replaced_address(found[0], addresses), text)
        for name in reversed(names):
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "host", text, flags=re.IGNORECASE)
        return USER.sub("user", text)

    return {name: replace(text) for name, text in texts.items()}


def replaced_uuid(value: str, numbers: Numbers) -> str:
    """The UUID of zeros (no NVLink fabric) is none."""
    return f"00000000-0000-0000-0000-{numbers.of(value):012x}" if value.strip("0-") else value


def replaced_serial(value: str, numbers: Numbers) -> str:
    """A number of the same form."""
    number = numbers.of(value)
    return f"0x{number:0{len(value) - 2}x}" if value.startswith("0x") else f"{number:0{len(value)}d}"


def replaced_address(value: str, numbers: Numbers) -> str:
    """An address of the range for documentation (RFC 5737); addresses of the machine itself stay."""
    parts = [int(part) for part in value.split(".")]
    if max(parts) > 255 or parts[0] in (0, 127, 255):
        return value
    return f"192.0.2.{numbers.of(value) % 256}"
