"""Where an installed driver came from, as the host's package manager says.

It is asked for the packages with the driver's libraries only, and only where there are any: with one call of apt-cache,
or with one of rpm and the history that dnf or yum keeps in files.
"""

import re
from typing import Dict, List, Optional

from ..base.host import Host
from ..catalog import driver_packages
from ..catalog import model as catalog
from ..catalog.driver_packages import DriverOrigin, PackageEvidence, Place
from ..packaging import rpm_history, yum_repos
from .model import VerifiedFacts, YumFacts

RUNFILE, MIXED = "runfile", "mixed"
NO_DRIVER = DriverOrigin("")
VENDOR = "%{NAME}\\t%{VENDOR}\\t%{PACKAGER}\\n"
SOURCE_LINE = re.compile(r"^\s+-?\d+\s+(\S+:/\S*)\s+(?:([^/\s]\S*?)/(\S*)\s+)?")


def collect(
    host: Host,
    packages: Dict[str, str],
    runfile: Optional[str],
    distro: Optional[str],
    yum: Optional[YumFacts],
    record: Optional[VerifiedFacts] = None,
) -> DriverOrigin:
    """Return the origin of a driver; ``packages``: all of the driver, ``yum``: the sections of a host with RPMs.

    ``record``: the last verification, which asked already; its answer holds while the packages have the same versions.
    The publisher is "" without a driver, "runfile", or "mixed" where packages and an installer are both there.
    """
    if runfile:
        return DriverOrigin(MIXED if driver_packages.deciding_packages(packages) else RUNFILE)
    if not packages:
        return NO_DRIVER
    versions = deciding_versions(packages)
    if record and record.origin not in (None, driver_packages.UNKNOWN, RUNFILE, MIXED) and record.origin_of == versions:
        return DriverOrigin(str(record.origin), record.repository)
    found = rpm_evidence(host, versions, yum) if yum is not None else apt_evidence(host, versions)
    return driver_packages.find_origin(found, packages, catalog.distro(distro) if distro else None)


def deciding_versions(packages: Dict[str, str]) -> Dict[str, str]:
    """Return the packages that decide the origin with their versions: all of the driver where none of them does."""
    return {name: packages[name] for name in driver_packages.deciding_packages(packages) or sorted(packages)}


def apt_evidence(host: Host, versions: Dict[str, str]) -> List[PackageEvidence]:
    """Return the repositories that have the installed versions, by one call of apt-cache."""
    answer = host.run(["apt-cache", "policy"] + sorted(versions), timeout=60.0)
    places = parse_policy(answer.out)
    return [PackageEvidence(name, version, places.get(name, [])) for name, version in sorted(versions.items())]


def parse_policy(text: str) -> Dict[str, List[Place]]:
    """Parse `apt-cache policy NAME...`: the repositories that have the installed version (`***`) of each package.

    Below a version there is a line for each repository: priority, URL, "suite/component" (absent for a repository
    without suites), architecture, "Packages". The last one is dpkg's own database.
    """
    found: Dict[str, List[Place]] = {}
    name, installed = "", False
    for line in text.splitlines():
        if line and not line.startswith(" "):
            name, installed = line.rstrip(":").split(":")[0], False
        elif re.match(r" (\*\*\*|   ) \S+ -?\d+$", line):
            installed = line.startswith(" ***")
        elif installed:
            match = SOURCE_LINE.match(line)
            if match:
                found.setdefault(name, []).append(Place(match.group(1), match.group(2) or "", match.group(3) or ""))
    return found


def rpm_evidence(host: Host, versions: Dict[str, str], yum: YumFacts) -> List[PackageEvidence]:
    """Return vendor and packager by one call of rpm, and the sections that dnf or yum recorded."""
    answer = host.run(["rpm", "-q", "--qf", VENDOR] + sorted(versions), timeout=60.0)
    vendors = {}
    for line in answer.out.splitlines():
        words = line.split("\t")
        if len(words) == 3:
            vendors[words[0]] = " ".join(word for word in words[1:] if word != "(none)")
    sections = rpm_history.read_sections(host, sorted(versions))
    urls = {
        name: (values.get("baseurl") or values.get("mirrorlist") or values.get("metalink") or "").partition(" ")[0]
        for text in yum.sources.values()
        for name, values in yum_repos.parse_values(text).items()
    }
    return [
        PackageEvidence(
            name,
            version,
            [Place(urls.get(sections[name], ""), section=sections[name])] if name in sections else [],
            vendors.get(name, ""),
        )
        for name, version in sorted(versions.items())
    ]
