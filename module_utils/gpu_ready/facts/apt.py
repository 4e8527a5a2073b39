"""Facts of a host with dpkg: packages, and the sources, pins and keys of apt."""

import re
from typing import Dict, Iterable, List, NamedTuple

from ..base.host import Host
from ..packaging import apt_entries, locks, openpgp
from ..packaging.dpkg_status import STATUS, parse_dpkg_status
from ..packaging.locations import split_list
from .model import AptFacts, PackageEvidence, PackageFacts, Place

DPKG_JOURNAL = "/var/lib/dpkg/updates"
APT = "/etc/apt"
PREFERENCES = APT + "/preferences"
SOURCE_LINE = re.compile(r"^\s+-?\d+\s+(\S+:/\S*)\s+(?:([^/\s]\S*?)/(\S*)\s+)?")


class PackagePlaces(NamedTuple):
    """What apt says of a package: the installed version, and the repositories that have each version."""

    installed: str = ""
    places: Dict[str, List[Place]] = {}


def dpkg_packages(host: Host) -> PackageFacts:
    """Collect the packages of dpkg from its own files: dpkg-query costs more than all other facts.

    An interrupted dpkg leaves its newest records in a journal beside the status file. While there is one, apt refuses
    to work. A running dpkg has the same journal and the same states, but holds its lock.
    """
    in_progress = locks.describe_holder(host, locks.held_locks(host, locks.DPKG_LOCKS))
    journal = sorted(name for name in host.listdir(DPKG_JOURNAL) if name.isdigit())
    texts = [host.read(STATUS)] + [host.read("%s/%s" % (DPKG_JOURNAL, name)) for name in journal]
    packages = parse_dpkg_status("\n\n".join(text or "" for text in texts))
    broken = sorted({one.name for one in packages if one.is_incomplete}) or (["dpkg"] if journal else [])
    return PackageFacts(
        installed={one.name: one.version for one in packages if one.state == "installed"},
        held=sorted({one.name for one in packages if one.selection == "hold"}),
        broken=[] if in_progress else broken,
        in_progress=in_progress,
    )


def apt_facts(host: Host) -> AptFacts:
    lists = [APT + "/sources.list"] + ["%s/sources.list.d/%s" % (APT, n) for n in host.listdir(APT + "/sources.list.d")]
    preferences = host.listdir(APT + "/preferences.d")
    main = host.read(PREFERENCES)
    texts = {path: host.read(path) for path in lists if path.endswith((".list", ".sources"))}
    sources = {path: text for path, text in texts.items() if text is not None}
    return AptFacts(
        sources=sources,
        preferences=preferences,
        pins=dict(
            {name: host.read(APT + "/preferences.d/" + name) for name in preferences},
            **({PREFERENCES: main} if main is not None else {}),
        ),
        keyrings=host.listdir(APT + "/keyrings"),
        signers=apt_signers(host, sources),
    )


def apt_signers(host: Host, sources: Dict[str, str]) -> Dict[str, List[str]]:
    """Collect the keys that may sign the entries, by the text of their Signed-By."""
    signers = {entry.signed_by: entry for entry in apt_entries.parse_sources(sources)}
    return {signer: signer_fingerprints(host, entry) for signer, entry in signers.items()}


def signer_fingerprints(host: Host, entry: apt_entries.AptEntry) -> List[str]:
    if apt_entries.INLINE_KEY in entry.signed_by:
        return openpgp.list_fingerprints(entry.signed_by.replace("\n.\n", "\n\n").encode("utf-8"))
    paths = entry.keyrings
    if not entry.signed_by:
        paths = [APT + "/trusted.gpg"] + [
            "%s/trusted.gpg.d/%s" % (APT, n) for n in host.listdir(APT + "/trusted.gpg.d")
        ]
    found = [one for path in paths for one in openpgp.list_fingerprints(host.read_bytes(path) or b"")]
    return found + [one.rstrip("!").upper() for one in split_list(entry.signed_by) if one[:1] != "/"]


def ask_policy(host: Host, names: Iterable[str]) -> Dict[str, PackagePlaces]:
    return parse_policy(host.run(["apt-cache", "policy"] + sorted(names), timeout=60.0).out)


def origin_evidence(policies: Dict[str, PackagePlaces], versions: Dict[str, str]) -> List[PackageEvidence]:
    """Return the repositories that have the installed version of each package."""
    known = {name: policies.get(name, PackagePlaces()) for name in versions}
    return [
        PackageEvidence(name, versions[name], one.places.get(one.installed, [])) for name, one in sorted(known.items())
    ]


def offered_versions(policies: Dict[str, PackagePlaces], names: Iterable[str]) -> Dict[str, List[str]]:
    """Return the versions that repositories have, by package: [] for one that no list names."""
    known = {name: policies.get(name, PackagePlaces()).places for name in names}
    return {name: [version for version, places in found.items() if places] for name, found in known.items()}


def parse_policy(text: str) -> Dict[str, PackagePlaces]:
    """Parse `apt-cache policy NAME...`: the repositories by version, and the installed version (`***`).

    Below a version there is a line for each repository: priority, URL, "suite/component" (absent for a repository
    without suites), architecture, "Packages". The last one is dpkg's own database. Behind the priority of a version
    that comes in phases apt 2.1.16 and later print "(phased 10%)".
    """
    found: Dict[str, PackagePlaces] = {}
    name = version = ""
    for line in text.splitlines():
        head = re.match(r" (\*\*\*|   ) (\S+) -?\d+(?: \(|$)", line)
        if line and not line.startswith(" "):
            name, version = line.rstrip(":"), ""
            found[name] = PackagePlaces("", {})
        elif name and head:
            version = head.group(2)
            found[name].places[version] = []
            if head.group(1) == "***":
                found[name] = found[name]._replace(installed=version)
        elif version:
            match = SOURCE_LINE.match(line)
            if match:
                place = Place(match.group(1), match.group(2) or "", match.group(3) or "")
                found[name].places[version].append(place)
    return found
