"""The point release to which an installed driver is moved within its branch: an upgrade takes the newest offered one.

site.yml keeps an installed driver of the branch, whichever release it is.
"""

import re

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts
from .....module_utils.gpu_ready.upgrade.model import CLOSED
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import RUNFILE, Pair
from ...catalog.model import Distribution
from ..index_versions import common_versions
from ..model import DriverChoice, Notice
from . import steps as driver_steps
from .candidates import DriverRequest, has_kernel_packages

NEWEST = "newest"
VERSION = re.compile(r"\d{2,4}(\.\d+){1,2}\Z")


def release_in_progress(facts: Facts) -> str:
    """Return the release to which an unfinished upgrade of the host moves it, "" where there is none."""
    journal = facts.upgrade
    if journal is None or journal.phase in CLOSED or not journal.to or not VERSION.match(journal.to):
        return ""
    return journal.to


def only_offered(facts: Facts, driver: DriverChoice) -> str:
    """Return branch and flavour of a driver that no list of the catalog has ("620-open"), "" of any other."""
    if not facts.base.distro or driver.kind is None or driver.source == RUNFILE or driver.satisfied or driver.exact:
        return ""
    data, profile = catalog.distro(facts.base.distro), driver.profile or driver_sources.PROFILES[0]
    pair = (driver.branch, driver.flavour)
    listed = driver_sources.branch_flavours(data, driver.source, driver.kind, profile)
    return "" if pair in listed or driver.branch is None else "%d-%s" % (driver.branch, driver.flavour)


def offered_pair(release: str) -> Pair | None:
    """Return what only_offered has returned, None for any other release."""
    branch, _, flavour = release.partition("-")
    return (int(branch), flavour) if branch.isdigit() and flavour in driver_sources.FLAVOURS else None


def names_to_ask(facts: Facts, driver: DriverChoice | None, release: str) -> list[str]:
    """Return the packages whose newest versions decide, [] where a version is requested or nothing can be moved."""
    if release != NEWEST or driver is None or driver.version or not can_move(facts, driver):
        return []
    return [] if driver.source == RUNFILE else [*moved_packages(facts, driver), *pin_patterns(facts, driver)]


def can_move(facts: Facts, driver: DriverChoice) -> bool:
    """Return True for an installed driver of a known source whose modules do not come with the kernel."""
    known = facts.base.distro and driver.source in driver_sources.source_names(catalog.distro(facts.base.distro))
    return bool(known and driver.satisfied and not driver.exact and not has_kernel_packages(facts))


def moved_packages(facts: Facts, driver: DriverChoice) -> list[str]:
    """Return the installed packages of the driver that have its version, without those that are named after it.

    Another release has other ones of these (nvidia-firmware-580-580.95.05).
    """
    disk = facts.driver.on_disk
    pins = driver_steps.installed_pins(facts, catalog.distro(facts.base.distro or ""))
    return sorted(
        name
        for name, version in facts.driver.packages.items()
        if disk and versions.upstream(version) == disk.version and name not in pins and str(disk.version) not in name
    )


def pin_patterns(facts: Facts, driver: DriverChoice) -> list[str]:
    data: Distribution = catalog.distro(facts.base.distro or "")
    pinning = driver_sources.source_entry(data, driver.source, driver.kind or driver_sources.DKMS).get("pinning")
    return [pinning.format(branch="*")] if pinning else []


def release_to_request(facts: Facts, request: DriverRequest, driver: DriverChoice | None, release: str) -> str:
    """Return the version to which the installed driver is moved, "" where it stays.

    ``release``: "" to keep it, NEWEST, or the version that an earlier plan of the same upgrade chose.
    """
    disk = facts.driver.on_disk
    if not release or driver is None or disk is None or request.version or request.packages:
        return ""
    if not can_move(facts, driver):
        return ""
    if offered_pair(release):
        return ""
    version = (release_in_progress(facts) or newest_release(facts, driver)) if release == NEWEST else release
    same = versions.branch(version) == driver.branch if version else False
    return version if same and versions.compare(version, disk.version) > 0 else ""


def newest_release(facts: Facts, driver: DriverChoice) -> str:
    """Return the newest release of the branch that the driver's source has, "" where that is not known."""
    known = catalog.branch(driver.branch or 0)
    if driver.source == RUNFILE:
        return known.newest if known else ""
    offered = common_versions(facts, moved_packages(facts, driver))
    return next((one for one in offered if versions.branch(one) == driver.branch and has_pin(facts, driver, one)), "")


def has_pin(facts: Facts, driver: DriverChoice, version: str) -> bool:
    """Return True if the source has the package that pins a version, where it has such packages."""
    offered = facts.offered.versions if facts.offered else {}
    return all(pattern.replace("*", version) in offered for pattern in pin_patterns(facts, driver))


def unmoved_warnings(facts: Facts, driver: DriverChoice | None, release: str) -> list[Notice]:
    """Say why an upgrade within a branch leaves a driver: its modules come with the kernel."""
    if release != NEWEST or driver is None or not driver.satisfied or not has_kernel_packages(facts):
        return []
    return [
        Notice(
            "release_of_kernel",
            "the modules of driver %s are packages for one kernel, in the version of the day: no point release is "
            "requested of them" % (facts.driver.on_disk.version if facts.driver.on_disk else driver.branch),
            "update the kernel with its modules, or set nvidia_driver_kernel_modules to dkms",
        )
    ]
