"""Driver sources of a distribution: kinds of kernel modules, branches, packages, streams."""

import re
from typing import Any

from ....module_utils.gpu_ready.base import versions
from . import model as catalog
from .model import Distribution

OPEN = "open"
PROPRIETARY = "proprietary"
FLAVOURS = (OPEN, PROPRIETARY)
PROFILES = ("compute", "full")
DKMS = "dkms"
PRECOMPILED = "precompiled"
RUNFILE = "runfile"

Pair = tuple[int, str]
"""Branch and flavour."""
DriverSource = dict[str, Any]
"""The data of one driver source of a distribution."""


def source_names(data: Distribution) -> list[str]:
    """Return driver sources of a distribution in the order in which `auto` tries them."""
    return list(data["driver_sources"])


def automatic_sources(data: Distribution) -> list[str]:
    return [name for name, entry in data["driver_sources"].items() if not entry.get("only_when_asked")]


def module_kinds(data: Distribution, source: str) -> list[str]:
    """Return kinds of kernel module of a source, first the kind that `auto` prefers.

    DKMS first: it builds the module for each kernel that an unattended update installs, in the version of the libraries
    that are held. Precompiled modules are for one kernel, and those for the next may need newer libraries. They are
    taken where Secure Boot would reject what DKMS builds.
    """
    entry = data["driver_sources"].get(source) or {}
    if entry.get("kernel_modules"):
        return [entry["kernel_modules"]]
    return [DKMS, PRECOMPILED] if entry.get("precompiled") else [DKMS]


def source_entry(data: Distribution, source: str, kind: str = DKMS) -> DriverSource:
    """Return the entry of a source for one kind of kernel module, {} if gpu-ready installs nothing from it."""
    entry = dict(data["driver_sources"].get(source) or {})
    other = entry.pop("precompiled", None) or {}
    return dict(entry, **other) if kind == PRECOMPILED else entry


def has_modules_for(data: Distribution, source: str, kind: str, kernel: str) -> bool | None:
    """Return whether a source says that its precompiled modules are for a kernel; None where it says nothing."""
    pattern = source_entry(data, source, kind).get("kernels")
    return bool(re.search(pattern, kernel)) if pattern else None


def kernel_max(data: Distribution, source: str, kind: str, branch: int) -> str | None:
    """Return the newest series of the kernel for which a source has modules of a branch; None where none is known.

    What an archive patches builds for the kernels of its release, whatever NVIDIA's own source builds for.
    """
    entry = source_entry(data, source, kind)
    own = (entry.get("kernel_max") or {}).get(branch)
    known = catalog.branch(branch)
    built = kind == DKMS and not entry.get("patched")
    return own or (known.kernel_max if known and built else None)


def newest_known_kernel(data: Distribution, source: str, kind: str, branch: int, kernel: str) -> str | None:
    """Return the newest series of the kernel that a branch is known to build for, None if a kernel is not newer.

    Of a source that patches what it builds for the kernels of its release nothing has to be known.
    """
    known, series = catalog.branch(branch), re.match(r"\d+\.\d+", kernel)
    newest = (
        known.kernel_known if known and kind == DKMS and not source_entry(data, source, kind).get("patched") else None
    )
    return newest if newest and series and versions.compare(series.group(), newest) > 0 else None


def builds_for(data: Distribution, source: str, kind: str, branch: int, kernel: str) -> bool:
    """Return False where it is known that a source has no modules of a branch for a kernel, by its release."""
    series = re.match(r"\d+\.\d+", kernel)
    if series is None:
        return True
    newest, oldest = kernel_max(data, source, kind, branch), catalog.kernel_min(branch)
    below = newest is None or versions.compare(series.group(), newest) <= 0
    return below and (oldest is None or versions.compare(series.group(), oldest) >= 0)


def branches(data: Distribution, source: str, kind: str = DKMS) -> list[int]:
    """Return branches that a source carries, ascending."""
    return sorted(int(branch) for branch in source_entry(data, source, kind).get("branches") or ())


def carries(data: Distribution, source: str, kind: str, branch: int) -> bool:
    """Return True if a source has a branch, or may have one that the catalog does not know: its list is open."""
    entry = source_entry(data, source, kind)
    if branch in branches(data, source, kind):
        return True
    first = entry.get("branches_from")
    return first is not None and catalog.branch(branch) is None and branch >= int(first)


def packages(
    data: Distribution, source: str, branch: int, profile: str, flavour: str, kind: str = DKMS, kernel: str = ""
) -> list[str]:
    """Return packages of a driver, [] where the source has none of that kind."""
    entry = source_entry(data, source, kind)
    if is_absent(entry, branch, flavour):
        return []
    own = [names for limits, names in entry.get("packages_of", {}).items() if versions.is_branch_within(branch, limits)]
    found = (own[0] if own else entry.get("packages") or {}).get(profile) or {}
    return [name.format(branch=branch, kernel=kernel) for name in found.get(flavour) or []]


def is_absent(entry: DriverSource, branch: int, flavour: str) -> bool:
    """Return True if a source has no such flavour of a branch, although its package names would fit."""
    return any(versions.is_branch_within(branch, limits) for limits in (entry.get("absent") or {}).get(flavour) or ())


def is_unverified(data: Distribution, source: str, field: str, value: object = None) -> bool:
    """Return True if no public source confirms a field of a driver source, or a value of it."""
    doubtful = (data["driver_sources"][source].get("unverified") or {}).get(field)
    return doubtful is True or value in (doubtful or ())


def module_stream(data: Distribution, source: str, branch: int, flavour: str, kind: str = DKMS) -> str | None:
    """Return the module stream of a driver, None where the repository is not modular."""
    streams = source_entry(data, source, kind).get("streams")
    return streams[flavour].format(branch=branch) if streams and flavour in streams else None


def fabricmanager_package(data: Distribution, source: str, branch: int) -> str | None:
    return companion_package(data, source, "fabricmanager", branch)


def companion_package(data: Distribution, source: str, what: str, branch: int) -> str | None:
    """Return package of a service beside the driver ("imex"), None where a source has none for a branch."""
    name = (data["driver_sources"].get(source) or {}).get(what)
    if isinstance(name, dict):
        name = next((value for limits, value in name.items() if versions.is_branch_within(branch, limits)), None)
    return name.format(branch=branch) if name else None


def branch_flavours(data: Distribution, source: str, kind: str, profile: str, named: int | None = None) -> set[Pair]:
    """Return what a source has; ``named``: a branch to be had besides those of its list."""
    return {
        (branch, flavour)
        for branch in {*branches(data, source, kind), *([] if named is None else [named])}
        for flavour in FLAVOURS
        if has_flavour(data, source, branch, profile, flavour, kind)
    }


def has_flavour(data: Distribution, source: str, branch: int, profile: str, flavour: str, kind: str) -> bool:
    """Return True if a source has a flavour of a branch; an installer has all that the branch has."""
    if source == RUNFILE:
        return flavour in catalog.branch_rules(branch).flavours
    return bool(packages(data, source, branch, profile, flavour, kind, "any"))


def all_branches(data: Distribution, source: str) -> list[int]:
    """Return branches that a source carries in any kind, ascending."""
    return sorted({branch for kind in module_kinds(data, source) for branch in branches(data, source, kind)})
