"""A sound driver is adopted, whoever installed it: nothing of it is installed, replaced or removed.

Sound is one whose module on disk and libraries have one version, which drives every GPU and fits the request. A
superset of the packages that gpu-ready would install is as good as they are.
"""

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts, GpuFacts
from ...catalog import driver_packages, driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import DKMS, PRECOMPILED, RUNFILE
from ...catalog.model import Distribution
from ..model import DriverChoice
from . import steps as driver_steps
from .candidates import OF_KERNEL, Candidate, DriverRequest, drives, fits_policy, installed_kinds
from .parts import installed_parts, other_choices

MODULES = ["nvidia", "nvidia-uvm"]
MIXED = "mixed"


def adopt_driver(facts: Facts, request: DriverRequest, gpus: list[GpuFacts], data: Distribution) -> DriverChoice | None:
    """Return the installed driver as the choice, None where another one has to be installed.

    ``satisfied`` is False where only programs are missing that its source has: these are added to it.
    """
    state, disk = facts.driver, facts.driver.on_disk
    origin = state.origin or driver_packages.UNKNOWN
    if disk is None or not disk.flavour or not is_sound(facts) or not is_requested(request, origin, data):
        return None
    branch, kind = versions.branch(disk.version), kind_of_modules(facts, data, origin)
    if (
        not fits_policy(branch, request)
        or request.branch not in (None, branch)
        or request.version not in (None, disk.version)
    ):
        return None
    if request.flavour not in (None, disk.flavour) or request.modules not in (None, kind):
        return None
    exact = exact_packages(facts, request)
    if any(facts.packages.installed.get(name) != version for name, version in exact.items()):
        return None
    if not all(drives(gpu, branch, disk.flavour, request) for gpu in gpus):
        return None
    if not driver_steps.has_fabricmanager(facts, data, origin, branch):
        return None
    known = origin in driver_sources.source_names(data)
    names = driver_sources.packages(
        data, origin, branch, request.profile, disk.flavour, kind, facts.base.kernel.running
    )  # fmt: skip
    missing = [name for name in names if name not in facts.packages.installed]
    driver = DriverChoice(
        source=origin,
        kind=kind,
        branch=branch,
        flavour=disk.flavour,
        version=request.version,
        profile=request.profile,
        packages=installed_parts(facts) if missing or not names else names,
        modules=MODULES,
        satisfied=True,
        why="driver %s of %s is adopted as it is" % (disk.version, driver_packages.publisher_name(origin)),
        stream=driver_sources.module_stream(data, origin, branch, disk.flavour, kind) if known else None,
        cuda=getattr(catalog.branch(branch), "cuda", None),
        exact=exact or None,
    )
    if known and contradicting_packages(facts, driver._replace(packages=names), data):
        return None
    if not state.missing_parts and (request.profile == driver_sources.PROFILES[0] or not missing or not known):
        return driver
    # Without a repository that has the installed version, nothing can be added in that version.
    offered = state.repository or not facts.apt.sources
    if known and names and len(missing) < len(names) and offered:
        return driver._replace(satisfied=False, extends=True, packages=names)
    return None


def contradicting_packages(facts: Facts, driver: DriverChoice, data: Distribution) -> list[str]:
    """Return the packages of another branch, flavour or kind that contain another module or have another version.

    Both could be loaded or built instead. A metapackage of the same version contradicts nothing, in whatever branch.
    """
    disk, found = facts.driver.on_disk, other_choices(facts, driver, data)
    modules = driver_packages.module_packages(found)
    return [
        name for name in found
        if name in modules or (disk and versions.upstream(facts.packages.installed[name]) != disk.version)
    ]  # fmt: skip


def exact_packages(facts: Facts, request: DriverRequest) -> dict[str, str]:
    """Return the exactly requested packages, except those for kernels that were removed since."""
    kernels = facts.base.kernel.installed
    return {
        name: version
        for name, version in request.packages.items()
        if not OF_KERNEL.search(name) or any(name.endswith("-" + kernel) for kernel in kernels)
    }


def is_sound(facts: Facts) -> bool:
    """Return True if module and libraries have one version, of one origin, and no installer of them was cut off."""
    state = facts.driver
    assert state.on_disk
    return state.userspace == [state.on_disk.version] and state.origin != MIXED and not state.interrupted


def is_requested(request: DriverRequest, origin: str, data: Distribution) -> bool:
    """Return True if a driver of this origin may stay: none of another source is requested.

    A driver that `auto` would not install does not stay where it may be replaced.
    """
    if request.source is not None:
        return request.source in (origin, "distro" if driver_packages.is_archive_publisher(origin) else origin)
    return not request.replace or origin in driver_sources.automatic_sources(data)


def kind_of_modules(facts: Facts, data: Distribution, origin: str) -> str:
    """Return how the installed module was made: by DKMS, else precompiled; of an installer's, DKMS."""
    disk = facts.driver.on_disk
    assert disk
    if origin in driver_sources.source_names(data) and origin != RUNFILE:
        candidate = Candidate(origin, "", versions.branch(disk.version), disk.flavour or "")
        kinds = set(installed_kinds(facts, data, candidate))
        if len(kinds) == 1:
            return kinds.pop()
    if origin == RUNFILE or disk.version in [row.version for row in facts.driver.dkms]:
        return DKMS
    names = (disk.path or "").split("/")
    own = any(name.startswith("nvidia-") or name == "weak-updates" for name in names[:-1])
    packaged = any(name.startswith("linux-modules-") for name in facts.driver.packages)
    return PRECOMPILED if own or packaged else DKMS
