"""The distribution's own package sources, one-line and deb822."""

import re
from typing import List, NamedTuple, Optional, Sequence, Set, Tuple

from .apt_entries import is_true, parse_fields
from .locations import url_location

MAIN_FILE = "/etc/apt/sources.list"
DIRECTORY = "/etc/apt/sources.list.d"
# What distinguishes the archive of a Debian or Ubuntu release from other archives with the same suites and components,
# on any mirror: the name of its keyring, or the end of the path. Personal archives and the like have the path and the
# suites of Ubuntu's own.
ARCHIVE_SUITES = ("stable", "oldstable")
ARCHIVE_KEYRINGS = ("debian-archive", "ubuntu-archive")
ARCHIVE_PATH = r"/(debian[^/]*|ubuntu(-ports)?)/?$"
NO_ARCHIVE = r"//[^/]*(ppa\.launchpad|private-ppa\.|esm\.ubuntu\.com)"
ONE_LINE = (
    r"^(\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+)"
    r"(?P<rest>[^#\n]*?)(?P<tail>\s*(?:#.*)?)$"
)
BETWEEN_STANZAS = r"(\n[ \t]*\n+)"


class SourceEntry(NamedTuple):
    """One line or stanza of packages: where they come from, and whether apt reads it."""

    uris: List[str]
    suites: List[str]
    components: List[str]
    signed_by: str
    enabled: bool


def distribution_entries(entries: Sequence[SourceEntry], codename: str) -> List[SourceEntry]:
    """Return the entries of the distribution's own archive. Components may have entries apart from main's."""
    main = [entry for entry in entries if is_main_entry(entry, codename)]
    return [entry for entry in entries if entry.enabled and any(shares_suite(entry, one) for one in main)]


def shares_suite(one: SourceEntry, other: SourceEntry) -> bool:
    return bool(locations(one) & locations(other))


def locations(entry: SourceEntry) -> Set[Tuple[str, str]]:
    return {(url_location(uri), suite) for uri in entry.uris for suite in entry.suites}


def is_main_entry(entry: SourceEntry, codename: str) -> bool:
    """Return True if an entry is enabled and serves component main of the distribution's archive, from any mirror.

    Third parties also offer `bookworm main`; they differ in the path of the archive and in the key.
    """
    if not entry.enabled or "main" not in entry.components:
        return False
    if not any(re.split("[-/]", suite)[0] in (codename, *ARCHIVE_SUITES) for suite in entry.suites):
        return False
    if entry.signed_by and not entry.signed_by.startswith("-----"):
        return any(name in entry.signed_by for name in ARCHIVE_KEYRINGS)
    return any(re.search(ARCHIVE_PATH, uri) and not re.search(NO_ARCHIVE, uri) for uri in entry.uris)


def parse_entries(path: str, text: str) -> List[SourceEntry]:
    if path.endswith(".sources"):
        found = [entry_of_stanza(stanza) for stanza in re.split(BETWEEN_STANZAS, text)]
        return [entry for entry in found if entry]
    return [entry_of_line(match) for match in (re.match(ONE_LINE, line) for line in text.split("\n")) if match]


def entry_of_line(match: "re.Match[str]") -> SourceEntry:
    signed = re.search(r"(?i)signed-by=(\S+)", match.group("options") or "")
    signer = signed.group(1) if signed else ""
    return SourceEntry([match.group("uri")], [match.group("suite")], match.group("rest").split(), signer, True)


def entry_of_stanza(text: str) -> Optional[SourceEntry]:
    """Return the entry of a deb822 stanza, None for one that offers no packages."""
    known = parse_fields(text)
    if "deb" not in known.get("types", "").split():
        return None
    return SourceEntry(
        known.get("uris", "").split(),
        known.get("suites", "").split(),
        known.get("components", "").split(),
        known.get("signed-by", ""),
        is_true(known.get("enabled", "yes")),
    )
