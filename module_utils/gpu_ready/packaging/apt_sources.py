"""The distribution's own package sources, one-line and deb822: their entries, and edits that keep every other byte."""

import re
from typing import Callable, List, NamedTuple, Sequence, Set, Tuple

from ..catalog import model as catalog
from .apt_entries import is_true, parse_fields
from .locations import url_location

MAIN_FILE = "/etc/apt/sources.list"
DIRECTORY = "/etc/apt/sources.list.d"


def distribution_entries(entries: Sequence["SourceEntry"], codename: str) -> List["SourceEntry"]:
    """The entries of the distribution's own archive; components may be in entries of their own beside that of main."""
    main = [entry for entry in entries if is_main_entry(entry, codename)]
    return [entry for entry in entries if entry.enabled and any(shares_suite(entry, one) for one in main)]


def shares_suite(one: "SourceEntry", other: "SourceEntry") -> bool:
    return bool(locations(one) & locations(other))


def locations(entry: "SourceEntry") -> Set[Tuple[str, str]]:
    return {(url_location(uri), suite) for uri in entry.uris for suite in entry.suites}


def is_main_entry(entry: "SourceEntry", codename: str) -> bool:
    """True if an entry is enabled and of the component main of the distribution's archive, whichever mirror serves it.

    Third parties also offer `bookworm main`; they differ in the path of the archive and in the key.
    """
    known = catalog.families()["archive"]
    if not entry.enabled or "main" not in entry.components:
        return False
    if not any(re.split("[-/]", suite)[0] in [codename] + known["suites"] for suite in entry.suites):
        return False
    if entry.signed_by and not entry.signed_by.startswith("-----"):
        return any(name in entry.signed_by for name in known["keyrings"])
    return any(re.search(known["path"], uri) and not re.search(known["not"], uri) for uri in entry.uris)


ONE_LINE = re.compile(
    r"^(\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+)"
    r"(?P<rest>[^#\n]*?)(?P<tail>\s*(?:#.*)?)$"
)


class SourceEntry(NamedTuple):
    """One line or stanza of packages: where they come from, and whether apt reads it."""

    uris: List[str]
    suites: List[str]
    components: List[str]
    signed_by: str
    enabled: bool


Choose = Callable[[SourceEntry], List[str]]
"""For an entry, the components to add or to remove."""


def edit_one_line(text: str, add: Choose, remove: Choose) -> str:
    lines = []
    for line in text.split("\n"):
        match = ONE_LINE.match(line)
        if match:
            rest = match.group("rest")
            signed = re.search(r"signed-by=(\S+)", match.group("options") or "", re.IGNORECASE)
            signer = signed.group(1) if signed else ""
            entry = SourceEntry([match.group("uri")], [match.group("suite")], rest.split(), signer, True)
            rest = " ".join([without(rest, remove(entry))] + add(entry))
            line = match.group(1) + rest + match.group("tail")
        lines.append(line)
    return "\n".join(lines)


def without(text: str, names: List[str]) -> str:
    for name in names:
        word = re.escape(name)
        text = re.sub(r"\n[ \t]+%s[ \t]*(?=\n|$)|[ \t]+%s(?=\s|$)" % (word, word), "", text, count=1)
    return text


COMPONENTS = re.compile(r"(?im)^components:[^\n]*(?:\n[ \t#][^\n]*)*")


def edit_deb822(text: str, add: Choose, remove: Choose) -> str:
    parts = re.split(r"(\n[ \t]*\n+)", text)
    for index in range(0, len(parts), 2):
        known = parse_fields(parts[index])
        if "deb" not in known.get("types", "").split():
            continue
        entry = SourceEntry(
            known.get("uris", "").split(),
            known.get("suites", "").split(),
            known.get("components", "").split(),
            known.get("signed-by", ""),
            is_true(known.get("enabled", "yes")),
        )
        removed, added = remove(entry), add(entry)
        parts[index] = COMPONENTS.sub(
            lambda match, removed=removed: without(match.group(0), removed), parts[index], count=1
        )
        if added:
            parts[index] = re.sub(
                r"(?im)^(components:[^\n]*?)[ \t]*$",
                lambda match, added=added: match.group(1) + " " + " ".join(added),
                parts[index],
                count=1,
            )
    return "".join(parts)


def edit(path: str, text: str, add: Choose, remove: Choose) -> str:
    return (edit_deb822 if path.endswith(".sources") else edit_one_line)(text, add, remove)


def nothing(_: SourceEntry) -> List[str]:
    return []


def parse_entries(path: str, text: str) -> List[SourceEntry]:
    found = []  # type: List[SourceEntry]

    def note(entry: SourceEntry) -> List[str]:
        found.append(entry)
        return []

    edit(path, text, note, nothing)
    return found
