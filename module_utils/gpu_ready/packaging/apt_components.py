"""Components added to the distribution's own apt sources and removed again, with every other byte kept."""

import re
from typing import Callable, List, NamedTuple, Sequence

from .apt_sources import (
    BETWEEN_STANZAS,
    ONE_LINE,
    SourceEntry,
    distribution_entries,
    entry_of_line,
    entry_of_stanza,
    is_main_entry,
    locations,
    parse_entries,
)


class SourcesChange(NamedTuple):
    """A sources file before and after; ``entries`` is the number of the distribution's entries in it."""

    before: str
    after: str
    entries: int


def missing_names(present: List[str], names: List[str]) -> List[str]:
    return [name for name in names if name not in present]


Choose = Callable[[SourceEntry], List[str]]
"""For an entry, the components to add or to remove."""


def edit_one_line(text: str, add: Choose, remove: Choose) -> str:
    lines = []
    for line in text.split("\n"):
        match = re.match(ONE_LINE, line)
        if match:
            entry = entry_of_line(match)
            rest = " ".join([without(match.group("rest"), remove(entry))] + add(entry))
            line = match.group(1) + rest + match.group("tail")
        lines.append(line)
    return "\n".join(lines)


def without(text: str, names: List[str]) -> str:
    for name in names:
        word = re.escape(name)
        text = re.sub(r"\n[ \t]+%s[ \t]*(?=\n|$)|(?<![ \t])[ \t]+%s(?=\s|$)" % (word, word), "", text, count=1)
    return text


COMPONENTS = re.compile(r"(?im)^components:[^\n]*(?:\n[ \t#][^\n]*)*")


def edit_deb822(text: str, add: Choose, remove: Choose) -> str:
    parts = re.split(BETWEEN_STANZAS, text)
    for index in range(0, len(parts), 2):
        entry = entry_of_stanza(parts[index])
        if entry is None:
            continue
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
