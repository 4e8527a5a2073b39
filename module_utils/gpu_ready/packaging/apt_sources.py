"""The distribution's own package sources, one-line and deb822: components added and removed, every other byte kept."""

import re
from typing import Callable, List, NamedTuple, Sequence, Set, Tuple

from ..catalog import model as catalog
from .apt_entries import is_true, parse_fields
from .locations import url_location

MAIN_FILE = "/etc/apt/sources.list"
DIRECTORY = "/etc/apt/sources.list.d"


class SourcesChange(NamedTuple):
    """A sources file before and after; ``entries`` is the number of the distribution's entries in it."""

    before: str
    after: str
    entries: int


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


def enable_components(
    path: str, text: str, names: List[str], codename: str, others: Sequence[SourceEntry] = ()
) -> SourcesChange:
    """Add components to the distribution's own entries of a sources file; ``others``: the entries of other files.

    What an entry of the same archive and suite has already is not added: apt warns of it on every call.
    """
    enabled = []  # type: List[SourceEntry]
    own = distribution_entries([*parse_entries(path, text), *others], codename)

    def add(entry: SourceEntry) -> List[str]:
        if not is_main_entry(entry, codename):
            return []
        enabled.append(entry)
        offered = [one.components for one in own if locations(entry) <= locations(one)]
        chosen = missing_names([*entry.components, *[name for part in offered for name in part]], names)
        own.append(entry._replace(components=chosen))
        return chosen

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
