"""Writes out what the files of the catalog abbreviate. Pure functions over their data."""

import copy
import re
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


Rule = Mapping[str, Any]
"""An entry of a list of branches or toolkits (bases.yml says what each key means)."""
RULE_KEYS = {"from", "to", "except", "of"}


def unverified(source: dict[str, Any]) -> dict[str, Any]:
    """Return what no public source confirms of a driver source: by field the values of a list, or True."""
    confirmed: dict[str, dict[str, bool]] = {}
    for name, text in (source.get("verified") or {}).items():
        field, *values = name.split()
        confirmed.setdefault(field, {}).update(dict.fromkeys(values or [""], bool(text)))
    found: dict[str, Any] = {}
    for field, by_value in confirmed.items():
        listed = source.get(field) if field in ("branches", "toolkits") else None
        doubtful = [one for one in listed or [] if not is_confirmed(str(one), by_value)]
        if doubtful or (listed is None and not by_value.get("", True)):
            found[field] = doubtful or True
    return found


def is_confirmed(value: str, by_value: Mapping[str, bool]) -> bool:
    """Return whether a source confirms a value: by its name, by a range ("13.1-13.5") with it, else by the field."""
    if value in by_value:
        return by_value[value]
    for name, confirmed in by_value.items():
        first, dash, last = name.partition("-")
        if dash and is_within(value, {"from": first, "to": last}):
            return confirmed
    return by_value.get("", True)


def with_lists(data: dict[str, Any], branches: dict[str, Any], toolkits: list[str]) -> dict[str, Any]:
    """Return a distribution whose driver sources list each branch and toolkit, instead of rules.

    A rule without an end may have what the catalog does not know: ``branches_from`` or ``toolkits_from`` stays of it.
    """
    archives = branches.get("archives", {})
    for source in data["driver_sources"].values():
        for entry in (source, source.get("precompiled") or {}):
            for field, known in (("branches", published_branches(branches)), ("toolkits", toolkits)):
                listed = entry.get(field)
                if listed is None:
                    continue
                entry[field] = [value for one in listed for value in listed_values(one, known, archives)]
                rules = [one for one in listed if isinstance(one, Mapping)]
                without_end = [str(rule["from"]) for rule in rules if "to" not in rule]
                if without_end:
                    entry[field + "_from"] = without_end[0]
    return data


def listed_values(one: Any, known: list[Any], archives: Mapping[str, list[Any]]) -> list[Any]:
    """Return the values of an entry of a list: itself, or those that a rule means of the known ones, or of an archive.

    Raises ValueError for an entry that is neither.
    """
    if isinstance(one, type(known[0])) and re.fullmatch(r"[\d.]+", str(one)):
        return [one]
    if not isinstance(one, Mapping) or "from" not in one or not set(one) <= RULE_KEYS:
        raise ValueError("%r is neither like %r nor a rule such as {from: %s}" % (one, known[0], known[-1]))
    carried = archives[one["of"]] if "of" in one else known
    return [value for value in carried if is_within(value, one) and value not in one.get("except", [])]


def is_within(value: Any, rule: Rule) -> bool:
    """Return True if a branch or a version is not before `from`, and not after `to` where the rule has one."""
    after = versions.compare(str(value), str(rule["from"])) >= 0
    return after and ("to" not in rule or versions.compare(str(value), str(rule["to"])) <= 0)


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
