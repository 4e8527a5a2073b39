"""Where an installed driver came from, as the host's package manager says.

It is asked for the packages with the driver's libraries only, and only where there are any: with one call of apt-cache,
or with one of rpm and the history that dnf or yum keeps in files. The call of apt-cache also says in which versions the
services beside the driver are offered.
"""

import hashlib
from typing import Dict, List, Optional

from ..base import versions as version_numbers
from ..base.host import Host
from ..catalog import driver_packages
from ..catalog import model as catalog
from ..catalog.driver_packages import DriverOrigin
from .model import VerifiedFacts, YumFacts

RUNFILE, MIXED = "runfile", "mixed"
NO_DRIVER = DriverOrigin("")
COMPANIONS = ("persistenced", "fabricmanager", "imex")
"""Fields of a driver source with the packages of services beside the driver."""


def collect(
    host: Host,
    packages: Dict[str, str],
    runfile: Optional[str],
    distro: Optional[str],
    yum: Optional[YumFacts],
    record: Optional[VerifiedFacts] = None,
    sources: Optional[Dict[str, str]] = None,
) -> DriverOrigin:
    """Return the origin of a driver; ``packages``: all of the driver, ``yum``: the sections of a host with RPMs.

    ``record``: the last verification, which asked already; its answer holds while the packages have the same versions
    and the host the same package sources (``sources``: their files). The publisher is "" without a driver, "runfile",
    or "mixed" where packages and an installer are both there.
    """
    if runfile:
        return DriverOrigin(MIXED if driver_packages.deciding_packages(packages) else RUNFILE)
    if not packages:
        return NO_DRIVER
    versions = deciding_versions(packages)
    same = record is not None and (record.origin_of, record.sources) == (versions, sources_digest(sources or {}))
    if record and same and record.origin not in (None, driver_packages.UNKNOWN, RUNFILE, MIXED):
        return DriverOrigin(str(record.origin), record.repository, record.companions)
    data = catalog.distro(distro) if distro else None
    companions: Dict[str, List[str]] = {}
    if yum is not None:
        from . import rpm

        found = rpm.origin_evidence(host, versions, yum)
    else:
        from . import apt

        names = companion_names(data, versions)
        policies = apt.ask_policy(host, {*versions, *names})
        found = apt.origin_evidence(policies, versions)
        companions = apt.offered_versions(policies, names)
    return driver_packages.find_origin(found, packages, data)._replace(companions=companions)


def companion_names(data: Optional[catalog.Distribution], packages: Dict[str, str]) -> List[str]:
    """Return the names that any source of a distribution has for the services beside a driver of these packages."""
    branches = {version_numbers.branch(version) for version in packages.values()}
    found = set()
    for entry in (data["driver_sources"] if data else {}).values():
        for name in [entry.get(field) for field in COMPANIONS]:
            patterns = list(name.values()) if isinstance(name, dict) else [name] if name else []
            found |= {one.format(branch=branch) for one in patterns for branch in branches}
    return sorted(found)


def sources_digest(sources: Dict[str, str]) -> str:
    """Return a digest of the files with the host's package sources, "" where there are none."""
    text = "".join("%s\0%s\0" % item for item in sorted(sources.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16] if text else ""


def deciding_versions(packages: Dict[str, str]) -> Dict[str, str]:
    """Return the packages that decide the origin with their versions: all of the driver where none of them does."""
    return {name: packages[name] for name in driver_packages.deciding_packages(packages) or sorted(packages)}
