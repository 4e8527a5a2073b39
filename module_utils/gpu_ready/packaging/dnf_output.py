"""What dnf 4, dnf5 and yum 3 print, as values: transactions, their sizes, what is on offer. Pure functions."""

import re
from typing import Dict, List, Optional, Tuple

from . import rpm
from .manager import Installed, Simulation

COMING = (
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
GOING = (
    "Removing",
    "Removing dependent packages",
    "Removing for dependencies",
    "Removing unused dependencies",
    "Removing depended packages",
)
FRESH = tuple(name for name in COMING if name.startswith("Installing"))
UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def parse_table(text: str) -> List[Tuple[str, str, str, str]]:
    """Read the table of a transaction: (section, name, architecture, version); a replaced package as "Replacing".

    A value that is too long for its column stands alone on a line, and the rest of its row on the next.
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
    """Return a version without the epoch 0, as rpm leaves it out."""
    return version[2:] if version.startswith("0:") else version


def parse_simulation(text: str, before: Dict[str, Installed]) -> Simulation:
    """Read what dnf or yum would do, from its table; ``before`` is what is installed.

    A new version beside an installed one of the same name (kernel-devel) is new under its full name.
    """
    install = {}  # type: Dict[str, Tuple[Optional[str], str]]
    remove, replaced = [], []
    for section, name, arch, version in parse_table(text):
        if section in FRESH:
            known = name in before or name in install
            install["%s-%s.%s" % (name, version.rpartition(":")[2], arch) if known else name] = (None, version)
        elif section in COMING:
            install[name] = (before[name].version if name in before else "", version)
        elif section in GOING and name not in remove:
            remove.append(name)
        elif section == "Replacing":
            replaced.append(name)
    remove += [name for name in replaced if name not in install and name not in remove]
    fetch, unpacked = parse_sizes(text)
    return Simulation(install, remove, fetch, unpacked)


def parse_sizes(text: str) -> Tuple[int, int]:
    """Return the bytes to fetch and the bytes more on the disk afterwards that a simulation tells."""
    fetch = re.search(r"Total download size: ([\d.]+) ?(\w?)", text) or re.search(
        r"Need to download ([\d.]+) (\w)", text
    )
    unpacked = re.search(r"(?m)^Installed size: ([\d.]+) ?(\w?)", text) or re.search(
        r"After this operation, ([\d.]+) (\w)\w* extra", text
    )
    return size_of(fetch), size_of(unpacked)


def size_of(match: "Optional[re.Match[str]]") -> int:
    """Return a size in bytes from its number and the first letter of its unit."""
    return int(float(match.group(1)) * UNITS.get(match.group(2).lower(), 1)) if match else 0


def parse_list(text: str) -> Dict[str, List[str]]:
    """Read `dnf list --showduplicates`: the versions by name, newest first.

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
    """Return offers also under full names, so that a wish for one version of kernel-devel finds itself.

    ``names`` are those that were asked for: a kernel's release ends with its architecture, and so may they.
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
    """Read `dnf repoquery --requires` or `yum deplist`: the lowest version that is asked for, by package."""
    lines = [re.match(r"\s*(?:dependency: )?([\w.+-]+) >= (\S+)\s*$", line) for line in text.splitlines()]
    return {line.group(1): re.sub(r"^0:", "", line.group(2)) for line in lines if line}
