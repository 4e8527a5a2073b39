"""Where an installed driver came from, as the host's package manager says.

It is asked for the packages with the driver's libraries only, and only where there are any: with one call of apt-cache,
or with one of rpm and the history that dnf or yum keeps in files.
"""

from typing import Dict, Optional

from ..base.host import Host
from ..catalog import driver_packages
from ..catalog import model as catalog
from ..catalog.driver_packages import DriverOrigin
from .model import VerifiedFacts, YumFacts

RUNFILE, MIXED = "runfile", "mixed"
NO_DRIVER = DriverOrigin("")


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
    if yum is not None:
        from . import rpm

        found = rpm.origin_evidence(host, versions, yum)
    else:
        from . import apt

        found = apt.origin_evidence(host, versions)
    return driver_packages.find_origin(found, packages, catalog.distro(distro) if distro else None)


def deciding_versions(packages: Dict[str, str]) -> Dict[str, str]:
    """Return the packages that decide the origin with their versions: all of the driver where none of them does."""
    return {name: packages[name] for name in driver_packages.deciding_packages(packages) or sorted(packages)}
