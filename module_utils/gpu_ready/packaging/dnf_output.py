"""Parsers of what dnf 4, dnf5 and yum 3 print: transactions, their sizes, offered versions. Pure functions."""

import re
from typing import Dict, List, Optional, Tuple

from . import rpm
from .manager import Installed, Simulation

INSTALLED_SECTIONS = (
    "Installing",
    "Installing dependencies",
    "Installing for dependencies",
    "Installing weak dependencies",
    "Installing group/module packages",
    "Upgrading",
    "Updating",
    "Updating for dependencies",
    "Downgrading",
    "Reinstalling",
)
REMOVED_SECTIONS = (
    "Removing",
    "Removing dependent packages",
    "Removing for dependencies",
    "Removing unused dependencies",
    "Removing depended packages",
)
NEW_SECTIONS = tuple(name for name in INSTALLED_SECTIONS if name.startswith("Installing"))
UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def parse_table(text: str) -> List[Tuple[str, str, str, str]]:
    """Parse the table of a transaction: (section, name, architecture, version); a replaced package as "Replacing".

    A value that is too long for its column has a line of its own; the rest of its row is on the next.
    """
    found = []
    section, words = "", []  # type: str, List[str]
    for line in text.splitlines():
        head = re.match(r"([A-Z(][^\s:].*?):\s*$", line)
        if head or line.startswith("Transaction Summary"):
            section, words = head.group(1) if head else "", []
            continue
        if not line.startswith(" ") or not line.strip():
            words = []
            continue
        parts = line.split()
        if parts[0] == "replacing" and len(parts) > 2 and not words:
            name, _, arch = parts[1].rpartition(".")
            row = (parts[1], parts[2], parts[3]) if len(parts) > 4 else (name, arch, parts[2])
            found.append(("Replacing", row[0], row[1], without_zero(row[2])))
            continue
        words += parts
        if len(words) >= 5:
            found.append((section, words[0], words[1], without_zero(words[2])))
            words = []
    return found


def without_zero(version: str) -> str:
    """Without the epoch 0, which rpm leaves out."""
    return version[2:] if version.startswith("0:") else version


def parse_simulation(text: str, before: Dict[str, Installed]) -> Simulation:
    """Parse what dnf or yum would do; ``before`` are the installed packages.

    A new version beside an installed one of the same name (kernel-devel) is new under its full name.
    """
    install = {}  # type: Dict[str, Tuple[Optional[str], str]]
    remove, replaced = [], []
    for section, name, arch, version in parse_table(text):
        if section in NEW_SECTIONS:
            known = name in before or name in install
            install["%s-%s.%s" % (name, version.rpartition(":")[2], arch) if known else name] = (None, version)
        elif section in INSTALLED_SECTIONS:
            install[name] = (before[name].version if name in before else "", version)
        elif section in REMOVED_SECTIONS and name not in remove:
            remove.append(name)
        elif section == "Replacing":
            replaced.append(name)
    remove += [name for name in replaced if name not in install and name not in remove]
    fetch, unpacked = parse_sizes(text)
    return Simulation(install, remove, fetch, unpacked)


def parse_sizes(text: str) -> Tuple[int, int]:
    """Return bytes to fetch, and additional bytes on the disk afterwards."""
    fetch = re.search(r"Total download size: ([\d.]+) ?(\w?)", text) or re.search(
        r"Need to download ([\d.]+) (\w)", text
    )
    unpacked = re.search(r"(?m)^Installed size: ([\d.]+) ?(\w?)", text) or re.search(
        r"After this operation, ([\d.]+) (\w)\w* extra", text
    )
    return parse_size(fetch), parse_size(unpacked)


def parse_size(match: "Optional[re.Match[str]]") -> int:
    return int(float(match.group(1)) * UNITS.get(match.group(2).lower(), 1)) if match else 0


def parse_list(text: str) -> Dict[str, List[str]]:
    """Parse `dnf list --showduplicates`: the versions by name, newest first.

    A long name pushes the rest of its row to the next line.
    """
    found = {}  # type: Dict[str, List[str]]
    words = []  # type: List[str]
    for line in text.splitlines():
        if re.match(r"\S.* [Pp]ackages$", line) or not line.strip():
            words = []
            continue
        words += line.split()
        if len(words) >= 3:
            name, _, arch = words[0].rpartition(".")
            version = without_zero(words[1])
            if name and arch and version not in found.setdefault(name, []):
                found[name].append(version)
            words = []
    for name, versions in found.items():
        found[name] = sorted(versions, key=rpm.order, reverse=True)
    return found


def parse_offers(listed: Dict[str, List[str]], names: List[str]) -> Dict[str, List[str]]:
    """Return offers also under full names, under which one version of kernel-devel is requested.

    ``names`` are the requested ones: a kernel's release ends with its architecture, and so may they.
    """
    found = dict(listed)
    for name, versions in listed.items():
        for version in versions:
            found.setdefault("%s-%s" % (name, version.rpartition(":")[2]), [version])
    for name in names:
        plain = re.sub(r"\.(?:x86_64|aarch64|noarch)$", "", name)
        if plain in found:
            found.setdefault(name, found[plain])
    return found


def parse_lowest_versions(text: str) -> Dict[str, str]:
    """Parse `dnf repoquery --requires` or `yum deplist`: the lowest required version, by package."""
    lines = [re.match(r"\s*(?:dependency: )?([\w.+-]+) >= (\S+)\s*$", line) for line in text.splitlines()]
    return {line.group(1): re.sub(r"^0:", "", line.group(2)) for line in lines if line}
