"""The installed parts of the driver that is left: one answer for removal, release of holds, preparation and rollback.

A package manager removes no held package that nobody named, and resolves less the more it has to find out by itself.
So a change of the driver names every part of the old one: what carries another branch in its name, or is a module of
another flavour, is removed, and a held part whose name stays gets the version of the new driver.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts
from ...catalog import driver_packages, driver_sources
from ...catalog.driver_sources import PROFILES
from ...catalog.model import Distribution
from ..model import DriverChoice, PackageTarget

NAMED_BRANCH = re.compile(r"(?:nvidia|cuda-drivers)(?:-[a-z][a-z0-9]*)*-(\d{3})(?:xx)?(?![^-.:])")
"""The branch in a name: libnvidia-cfg1-580-server, nvidia-firmware-580-server-580.95.05, cuda-drivers-580,
linux-modules-nvidia-580-server-open-6.8.0-100-generic. A number in a kernel's version is none."""
OPEN = re.compile(r"(?:^|-)open(?:-|$)")


class LeftParts(NamedTuple):
    """``remove``: named for removal. ``release``: holds to release before.

    ``follow``: installed where a source has them: held ones whose names stay, the persistence daemon, and libraries of
    a foreign architecture.
    """

    remove: list[str]
    follow: list[PackageTarget]
    release: list[str]


def named_branch(name: str) -> int | None:
    """Return the branch that the name of a package of a driver carries, None for a name without one."""
    match = NAMED_BRANCH.search(name)
    return int(match.group(1)) if match else None


def package_version(name: str, driver: DriverChoice, data: Distribution) -> str | None:
    """Return the version that a package must have, None for any.

    A pin or a module stream decides what is installed, but only a version also changes what is installed already. A
    name with the branch in it, and a source with a single branch, need none (some of their packages have other
    versions).
    """
    if driver.exact is not None:
        return driver.exact.get(name)
    if driver.version:
        return driver.version + "-*"
    single = driver_sources.branches(data, driver.source, driver.kind or driver_sources.DKMS) == [driver.branch]
    return None if single or str(driver.branch) in name else "%d.*" % (driver.branch or 0)


def find_left_parts(facts: Facts, driver: DriverChoice, data: Distribution, requested: Iterable[str]) -> LeftParts:
    """Return what becomes of the parts that are installed; ``requested``: the packages of the new driver."""
    present, held, kept = facts.driver.packages, facts.packages.held, {*requested}
    entry = driver_sources.source_entry(data, driver.source, driver.kind or driver_sources.DKMS)
    daemon = str(entry.get("persistenced") or "").format(branch=driver.branch)
    if is_foreign(facts, driver):
        remove = {*present}
    else:
        remove = {*other_choices(facts, driver, data)}
        remove |= {name for name in present if named_branch(name) not in (None, driver.branch)}
        modules = driver_packages.module_packages(present)
        remove |= {name for name in modules if bool(OPEN.search(name)) != (driver.flavour == driver_sources.OPEN)}
        if names_carry_branch(facts, driver, data):
            remove |= {name for name in other_versions(facts, driver) if named_branch(name) is None} - {daemon}
        remove -= kept
    follow = [
        PackageTarget(name, package_version(name, driver, data))
        for name in sorted({*held, daemon})
        if name in present and name not in remove | kept and package_version(name, driver, data)
    ]
    if driver.exact is None and not is_foreign(facts, driver):
        # Programs of 32 bits keep their libraries: nothing of the new driver depends on them.
        names = [name for name in sorted(remove) if ":" in name and named_branch(name)]
        follow += [PackageTarget(name.replace(str(named_branch(name)), str(driver.branch), 1)) for name in names]
    # The version lock of a package that an interrupted run removed would block its successor.
    return LeftParts(sorted(remove), follow, sorted({*held} & ({*present} | kept)))


def names_carry_branch(facts: Facts, driver: DriverChoice, data: Distribution) -> bool:
    """Return whether the source names the packages of the branch by it, so that its other branches have other names."""
    names = driver_sources.packages(
        data,
        driver.source,
        driver.branch or 0,
        driver.profile or PROFILES[0],
        driver.flavour or "",
        driver.kind or driver_sources.DKMS,
        facts.base.kernel.running,
    )
    return bool(names) and all(named_branch(name) == driver.branch for name in names)


def other_versions(facts: Facts, driver: DriverChoice) -> list[str]:
    """Return the installed parts that have another branch's version; packages for one kernel have the kernel's."""
    return [
        name
        for name, version in facts.driver.packages.items()
        if not name.startswith("linux-") and versions.branch(versions.upstream(version)) != driver.branch
    ]


def installed_parts(facts: Facts) -> list[str]:
    """Return the packages of the installed driver to hold: all but those for one kernel, which are removed with it."""
    kernels = [*facts.base.kernel.installed, facts.base.kernel.running]
    return sorted(
        name
        for name in facts.driver.packages
        if not name.startswith("linux-") and not any(kernel in name for kernel in kernels)
    )


def is_foreign(facts: Facts, driver: DriverChoice) -> bool:
    """Return True if a driver of another origin is installed.

    What an interrupted run of gpu-ready left is in its manifest.
    """
    state = facts.driver
    if state.origin == driver_packages.UNKNOWN and set(state.packages) <= set(facts.runtime.manifest.packages):
        return False
    return state.origin not in (None, driver.source)


def other_choices(facts: Facts, driver: DriverChoice, data: Distribution) -> list[str]:
    """Return the installed packages with which the catalog requests another branch, flavour or kind of the source.

    Not all of them conflict by their package metadata, but two modules for one kernel, or two branches of libraries,
    do not work.
    """
    source, kernels = driver.source, facts.base.kernel.installed
    ours = (driver.kind, driver.branch, driver.flavour)
    own: set[str] = set(driver.packages) | set(driver.exact or {})
    others: set[str] = set()
    installed = versions.branch(facts.driver.on_disk.version) if facts.driver.on_disk else 0
    for kind in driver_sources.module_kinds(data, source):
        for branch in {installed, *driver_sources.branches(data, source, kind)}:
            for flavour in driver_sources.FLAVOURS:
                for names in (
                    driver_sources.packages(data, source, branch, profile, flavour, kind, kernel)
                    for profile in PROFILES
                    for kernel in kernels
                ):
                    (own if (kind, branch, flavour) == ours else others).update(names)
    return sorted((others - own) & set(facts.driver.packages))
