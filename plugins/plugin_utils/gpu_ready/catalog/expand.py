"""Writes out what the files of the catalog abbreviate. Pure functions over their data."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from ....module_utils.gpu_ready.base import versions

LIKE = "like"
"""The key by which a row names others whose values it has."""


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with the keys of another one, also in the mappings that both have."""
    found = copy.deepcopy(dict(old))
    for key, value in new.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(found[key], value) if both else value
    return found


def with_bases(row: Mapping[str, Any], bases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a row with everything that the bases have which it is like, the later ones over the earlier ones."""
    own = dict(row)
    found: dict[str, Any] = {}
    names = own.pop(LIKE, [])
    for name in [names] if isinstance(names, str) else names:
        found = merged(found, with_bases(bases[name], bases))
    return merged(found, own)


def with_words(value: Any, words: Mapping[str, str]) -> Any:
    """Return data whose texts have these words in place of their names in braces; other names in braces stay."""
    if isinstance(value, Mapping):
        return {key: with_words(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [with_words(one, words) for one in value]
    for name, word in words.items() if isinstance(value, str) else ():
        value = value.replace("{%s}" % name, word)
    return value


def complete_distribution(key: str, data: Mapping[str, Any], bases: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the data of a distribution with what it inherits (bases.yml)."""
    found = with_bases(data, bases)
    words = {"key": key, "number": found["versions"][0], "codename": found.get("codename", "")}
    complete: dict[str, Any] = with_words(found, words)
    return complete


def complete_repositories(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of repositories.yml with what they inherit, and the fingerprints of their keys."""
    found = {}
    for name, row in data["repositories"].items():
        complete = with_bases(row, data["bases"])
        words = complete.pop("words", {})
        if "key" in complete:
            key = complete.pop("key")
            words, complete["fingerprint"] = {**words, "key": key}, data["keys"][key]
        found[name] = with_words(complete, words)
    return found


def unverified(source: dict[str, Any]) -> dict[str, Any]:
    """Return what no public source confirms of a driver source: by field the values of a list, or True."""
    confirmed: dict[str, dict[str, bool]] = {}
    for name, text in (source.get("verified") or {}).items():
        field, *values = name.split()
        confirmed.setdefault(field, {}).update(dict.fromkeys(values or [""], bool(text)))
    found: dict[str, Any] = {}
    for field, by_value in confirmed.items():
        listed = source.get(field) if field in ("branches", "toolkits") else None
        doubtful = [one for one in listed or [] if not by_value.get(str(one), by_value[""])]
        if doubtful or (listed is None and not by_value[""]):
            found[field] = doubtful or True
    return found


def with_lists(data: dict[str, Any], branches: dict[str, Any], toolkits: list[str]) -> dict[str, Any]:
    """Return a distribution whose driver sources list each branch and toolkit, instead of limits such as ``>=580``."""
    for source in data["driver_sources"].values():
        if "toolkits" in source:
            open_from(source, "toolkits_from", source["toolkits"])
            source["toolkits"] = [one for item in source["toolkits"] for one in toolkit_versions(item, toolkits)]
        for entry in (source, source.get("precompiled") or {}):
            listed = entry.get("branches")
            open_from(entry, "branches_from", listed or [])
            if isinstance(listed, dict):
                entry["branches"] = {
                    number: own for item, own in listed.items() for number in branch_numbers(item, branches)
                }
            elif listed:
                entry["branches"] = [number for item in listed for number in branch_numbers(item, branches)]
    return data


def open_from(entry: dict[str, Any], key: str, listed: Iterable[Any]) -> None:
    """Keep the limit of a list that has one without an end: it may have what the catalog does not know."""
    limits = [str(item).rpartition(">=")[2] for item in listed if ">=" in str(item)]
    if limits:
        entry[key] = limits[0]


def branch_numbers(item: int | str, branches: dict[str, Any]) -> list[int]:
    """Return the branches that an entry of a list means, by the rule in branches.yml."""
    if isinstance(item, int):
        return [item]
    archive, _, limits = item.rpartition(" ")
    carried = branches["archives"][archive] if archive else published_branches(branches)
    return [number for number in carried if versions.is_branch_within(number, limits)]


def toolkit_versions(item: str, known: list[str]) -> list[str]:
    """Return the toolkits that an entry of a list means: one, or all known ones from one on."""
    if not item.startswith(">="):
        return [item]
    return [one for one in known if versions.compare(one, item) >= 0]


def published_branches(branches: dict[str, Any]) -> list[int]:
    """Return the branches with a known point release, ascending."""
    return sorted(number for number, entry in branches["branches"].items() if "." in entry["newest"])


def expand_distribution(data: dict[str, Any], branches: dict[str, Any], toolkits: list[str]) -> dict[str, Any]:
    """Return a distribution without texts: of what no source confirms, and of absent flavours, the values stay.

    ``branches``: the data of branches.yml, ``toolkits``: the versions of cuda.yml, ascending.
    """
    data = with_lists(data, branches, toolkits)
    sources = data["driver_sources"]
    sources["runfile"] = branches["runfile"] | sources["runfile"]
    for source in data["driver_sources"].values():
        doubtful = unverified(source)
        source.pop("verified", None)
        if doubtful:
            source["unverified"] = doubtful
        for entry in (source, source.get("precompiled") or {}):
            reasons = (entry.pop("absent", None) or {}).items()
            limits = {flavour: list(why) for flavour, why in reasons if isinstance(why, dict)}
            if limits:
                entry["absent"] = limits
    return data


def expand_families(data: dict[str, Any], distros: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the families, with the code names of the distributions."""
    known = [one for one in distros if "codename" in one]
    own = {one["codename"]: f"{one['ids'][0]} {one['versions'][0]} ({one['codename']})" for one in known}
    return data | {"bases": data["bases"] | own}
