"""Third-party repositories on a host with apt: its entries for one, its pins, contradictions between entries."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.facts.model import AptFacts, Facts
from ....module_utils.gpu_ready.packaging import apt_entries, apt_sources
from .model import PinRequest, Refusal, RepositoryRequest, ServingEntry
from .same_repository import is_same_repository


class ForeignPin(NamedTuple):
    """A pin of others, by the path of its file."""

    path: str
    priority: int


def find_entries(facts: Facts, repository: RepositoryRequest) -> list[ServingEntry]:
    """Return the entries of apt for a repository by the files that have one; a problem counts for all of a file."""
    suites = split_words(repository.suites)
    entries = [
        entry
        for entry in apt_entries.parse_sources(facts.apt.sources)
        if is_same_repository(entry.location, repository.id, repository.url)
        and ("/" if entry.suite == "./" else entry.suite) in suites
    ]
    binary = [entry for entry in entries if entry.serves_packages]
    offered = {(entry.suite, name) for entry in binary for name in entry.components or [""]}
    missing = [
        name
        for suite in suites
        for name in split_words(repository.components) or [""]
        if not {(suite, name), ("./", name)} & offered
    ]
    problem = "it does not offer %s" % (" ".join(filter(None, missing)) or "packages") if missing else ""
    return [
        ServingEntry(entry.path, entry.path, problem or signer_problem(facts.apt, entry, repository))
        for entry in entries
    ]


def signer_problem(apt: AptFacts, entry: apt_entries.AptEntry, repository: RepositoryRequest) -> str:
    """Return why an entry is not verified with the pinned key; "" if it is."""
    if entry.path == repository.list:
        return ""  # written with the pinned key; is_configured checks the keyring
    if entry.trusted:
        return "apt checks no signature of it (its option trusted)"
    signer = "its own key" if apt_entries.INLINE_KEY in entry.signed_by else entry.signed_by or "apt's common keyrings"
    keys = apt.signers.get(entry.signed_by, [])
    if repository.pinned_fingerprint in keys:
        return ""
    return "it is signed by %s (%s), which is not the pinned key %s" % (
        signer,
        ", ".join(keys) or "no key can be read there",
        repository.pinned_fingerprint,
    )


def split_words(value: str | Sequence[str]) -> list[str]:
    return value.split() if isinstance(value, str) else list(value)


def is_pinned(apt: AptFacts, pin: PinRequest) -> bool:
    """Return whether a preferences file exists, with this priority where its text is known.

    A pin of others for the same packages counts where its file is read first: apt takes the first that matches.
    """
    own = pin.path.rpartition("/")[2]
    text = apt.pins.get(own)
    if own in apt.preferences and (text is None or "Pin-Priority: %s\n" % pin.priority in text):
        return True
    return bool(find_earlier_pin(apt, pin))


def find_earlier_pin(apt: AptFacts, pin: PinRequest) -> ForeignPin | None:
    """Return the pin of others for the same packages in a file that apt reads before ours; None where there is none."""
    directory, _, own = pin.path.rpartition("/")
    for name in sorted(apt.preferences):
        read = name.rpartition(".")[1:] in (("", name), (".", "pref"))  # as apt_preferences(5) says
        for part in re.split(r"\n[ \t]*\n", apt.pins.get(name) or "") if read and name < own else []:
            fields = apt_entries.parse_fields(part)
            same = split_words(fields.get("package", "")) == split_words(pin.package)
            priority = fields.get("pin-priority", "")
            if same and split_words(fields.get("pin", "")) == split_words(pin.pin):
                return ForeignPin("%s/%s" % (directory, name), int(priority) if re.match(r"-?\d+$", priority) else 0)
    return None


def contradiction_refusals(facts: Facts) -> list[Refusal]:
    """Refuse a host whose apt reads no source because two entries contradict each other."""
    pair = apt_entries.find_contradiction(apt_entries.parse_sources(facts.apt.sources))
    if pair is None:
        return []
    own = [entry.path for entry in pair if entry.path.startswith(apt_sources.DIRECTORY + "/gpu-ready-")]
    what = "remove %s" % own[0] if own else "remove one of the two entries"
    return [
        Refusal(
            "package_sources_conflict",
            apt_entries.describe_contradiction(pair),
            what + ", check with `apt-get update`, then run again",
        )
    ]


def components_missing(facts: Facts, components: Sequence[str], codename: str) -> bool:
    """Return whether no source of the distribution's own archive names one of these components.

    Third parties' components of the same name are others. Where no source is known as the distribution's own, all of
    them count: a mirror may serve it under any path, and then no component can be added either.
    """
    entries = [entry for path, text in facts.apt.sources.items() for entry in apt_sources.parse_entries(path, text)]
    enabled = [entry for entry in entries if entry.enabled]
    own = apt_sources.distribution_entries(enabled, codename)
    offered = {name for entry in own or enabled for name in entry.components}
    return bool(set(components) - offered)
