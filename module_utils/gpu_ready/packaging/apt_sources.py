"""The distribution's own package sources, one-line and deb822: components added and removed, every other byte kept."""

import re
from typing import Callable, Dict, List, NamedTuple

from ..catalog import model as catalog


class SourcesChange(NamedTuple):
    """A sources file before and after; ``entries`` is the number of the distribution's entries in it."""

    before: str
    after: str
    entries: int


def is_distribution_entry(entry: "SourceEntry", codename: str) -> bool:
    """True if an entry is enabled and of the distribution's own archive, whichever mirror serves it.

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


def missing_names(present: List[str], names: List[str]) -> List[str]:
    return [name for name in names if name not in present]


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
    """Change the components of entries of a one-line file."""
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


def parse_fields(stanza: str) -> Dict[str, str]:
    """Fields of a deb822 stanza by their lower-case names, continuation lines joined."""
    found = {}  # type: Dict[str, str]
    name = ""
    for line in stanza.split("\n"):
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t"):
            if name:
                found[name] += "\n" + line.strip()
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            found[name] = value.strip()
    return found


COMPONENTS = re.compile(r"(?im)^components:[^\n]*(?:\n[ \t#][^\n]*)*")


def edit_deb822(text: str, add: Choose, remove: Choose) -> str:
    """Change the components of stanzas of a deb822 file."""
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
            known.get("enabled", "yes").lower() not in ("no", "false", "0"),
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
    """Choose no component."""
    return []


def enable_components(path: str, text: str, names: List[str], codename: str) -> SourcesChange:
    """Add components to the distribution's own entries of a sources file."""
    enabled = []  # type: List[SourceEntry]

    def add(entry: SourceEntry) -> List[str]:
        if not is_distribution_entry(entry, codename):
            return []
        enabled.append(entry)
        return missing_names(entry.components, names)

    after = edit(path, text, add, nothing)
    return SourcesChange(text, after, len(enabled))


def parse_entries(path: str, text: str) -> List[SourceEntry]:
    found = []  # type: List[SourceEntry]

    def note(entry: SourceEntry) -> List[str]:
        found.append(entry)
        return []

    edit(path, text, note, nothing)
    return found


def disable_components(path: str, text: str, before: str, names: List[str], codename: str) -> str:
    """Remove what :func:`enable_components` added to ``before``, and nothing that others wrote since.

    An entry is identified by its URIs and suites; by its suites alone where no entry has these URIs (another mirror).
    """
    enabled = enable_components(path, before, names, codename).after
    if text == enabled:
        return before
    pairs = zip(parse_entries(path, before), parse_entries(path, enabled))  # noqa: B905 - strict= is younger than the hosts' Python
    added = [(was.uris, was.suites, missing_names(was.components, now.components)) for was, now in pairs]
    existing = [(entry.uris, entry.suites) for entry in parse_entries(path, text)]

    def remove(entry: SourceEntry) -> List[str]:
        known = [names for uris, suites, names in added if (uris, suites) == (entry.uris, entry.suites)]
        moved = [names for uris, suites, names in added if suites == entry.suites and (uris, suites) not in existing]
        return (known or moved or [[]])[0]

    return edit(path, text, nothing, remove)
