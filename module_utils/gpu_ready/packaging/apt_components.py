"""Components of the distribution's own package sources, added and removed."""

from typing import List, NamedTuple, Sequence

from .apt_sources import SourceEntry, distribution_entries, edit, is_main_entry, locations, nothing, parse_entries


class SourcesChange(NamedTuple):
    """A sources file before and after; ``entries`` is the number of the distribution's entries in it."""

    before: str
    after: str
    entries: int


def missing_names(present: List[str], names: List[str]) -> List[str]:
    return [name for name in names if name not in present]


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
