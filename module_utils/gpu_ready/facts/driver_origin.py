"""Where an installed driver came from, as the host's package manager says; the control node reads the evidence.

It is asked for the packages with the driver's libraries only, and only where there are any: with one call of apt-cache,
or with one of rpm and the history that dnf or yum keeps in files. The call of apt-cache also says in which versions the
services beside the driver are offered.
"""

import hashlib
from typing import Dict, List, NamedTuple, Optional

from ..base import versions as version_numbers
from ..base.host import Host
from .model import PackageEvidence, VerifiedFacts, YumFacts
from .probes import Probes

RUNFILE, MIXED = "runfile", "mixed"


class CollectedOrigin(NamedTuple):
    """``kind``: "runfile", or "mixed" where packages and an installer are both there, else "" with ``evidence``.

    ``companions``: the offered versions of packages of services beside the driver, {} where nobody was asked.
    """

    kind: str = ""
    evidence: List[PackageEvidence] = []
    companions: Dict[str, List[str]] = {}


def collect(
    host: Host,
    probes: Probes,
    packages: Dict[str, str],
    runfile: Optional[str],
    yum: Optional[YumFacts],
    record: Optional[VerifiedFacts] = None,
    sources: Optional[Dict[str, str]] = None,
) -> CollectedOrigin:
    """Return the evidence of a driver; ``packages``: all of the driver, ``yum``: the sections of a host with RPMs.

    ``record``: the last verification, which asked already; its answer holds while the packages have the same versions
    and the host the same package sources (``sources``: their files).
    """
    if runfile:
        return CollectedOrigin(MIXED if probes.deciding_packages(packages) else RUNFILE)
    if not packages:
        return CollectedOrigin()
    versions = deciding_versions(probes, packages)
    same = record is not None and (record.origin_of, record.sources) == (versions, sources_digest(sources or {}))
    if record and same and any(one.places or one.vendor for one in record.evidence):
        return CollectedOrigin("", record.evidence, record.companions)
    if yum is not None:
        from . import rpm

        return CollectedOrigin("", rpm.origin_evidence(host, versions, yum))
    from . import apt

    names = companion_names(probes.companions, versions)
    policies = apt.ask_policy(host, {*versions, *names})
    return CollectedOrigin("", apt.origin_evidence(policies, versions), apt.offered_versions(policies, names))


def companion_names(patterns: List[str], packages: Dict[str, str]) -> List[str]:
    """Return the names of services beside a driver of these packages."""
    branches = {version_numbers.branch(version) for version in packages.values()}
    return sorted({one.format(branch=branch) for one in patterns for branch in branches})


def sources_digest(sources: Dict[str, str]) -> str:
    """Return a digest of the files with the host's package sources, "" where there are none."""
    text = "".join("%s\0%s\0" % item for item in sorted(sources.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16] if text else ""


def deciding_versions(probes: Probes, packages: Dict[str, str]) -> Dict[str, str]:
    """Return the packages that decide the origin with their versions: all of the driver where none of them does."""
    return {name: packages[name] for name in probes.deciding_packages(packages) or sorted(packages)}
