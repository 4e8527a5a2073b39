"""os-release(5) read. Which family and which system of the catalog that is, the control node knows."""

import re
from typing import Dict, List

from ..base.host import Host
from .model import OsRelease

PATHS = ("/etc/os-release", "/usr/lib/os-release")

LINE = re.compile(r"^(?:[>|*-]\s+)?(?:[\w./-]+:\s*)?(?:export\s+)?([A-Z][A-Z0-9_]*)=(.*)$")
QUOTED = re.compile(r'^"([A-Z][A-Z0-9_]*=.*)",?$')
ESCAPE = re.compile(r"\\(.)")


def read_text(host: Host) -> str:
    """Return the text of a host's os-release, "" where it has none."""
    return next((text for text in map(host.read, PATHS) if text), "")


def parse_values(text: str) -> Dict[str, str]:
    """Return the values of an os-release file: any quotes, escapes, comments and line ends; the last of a key wins."""
    values: Dict[str, str] = {}
    for line in split_lines(text):
        match = LINE.match(line)
        if match:
            values[match.group(1)] = unquote(match.group(2))
    return values


def parse_release(values: Dict[str, str]) -> OsRelease:
    """Return the record of the values, without family and base."""
    version = values.get("VERSION_ID")
    major = (version or "").split(".")[0]
    return OsRelease(
        values.get("ID"),
        version,
        major if re.match(r"^[0-9]+$", major) else None,
        values.get("ID_LIKE", "").split(),
        "other",
        values.get("VERSION_CODENAME"),
        values.get("VARIANT_ID"),
        None,
        values.get("PRETTY_NAME") or values.get("NAME"),
        values.get("PLATFORM_ID"),
    )


def split_lines(text: str) -> List[str]:
    """Return lines of a file, also of a file inside the JSON text of a result."""
    text = text.replace("\ufeff", "").replace("\x00", "").replace("\u200b", "")
    if re.search(r"\\n[A-Z][A-Z0-9_]*=", text):
        text = re.sub(r'^.*?"(?=[A-Z][A-Z0-9_]*=)', "", text).replace("\\n", "\n").replace('\\"', '"')
    found = []
    for line in text.splitlines():
        line = line.strip().strip("`").strip()
        match = QUOTED.match(line)
        found.append(ESCAPE.sub(r"\1", match.group(1)) if match else line)
    return found


def unquote(text: str) -> str:
    """Return a value as a shell would: quoted up to its quote, else up to the first blank."""
    text = text.strip()
    if text[:1] == "'":
        return text[1:].partition("'")[0]
    if text[:1] == '"':
        match = re.match(r'"((?:[^"\\]|\\.)*)', text)
        return ESCAPE.sub(r"\1", match.group(1)) if match else ""
    return ESCAPE.sub(r"\1", (text.split() or [""])[0])
