"""Which drivers a host can have: first by its GPUs, then by the request and by what the sources carry."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts, GpuFacts
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import OPEN, PRECOMPILED, PROPRIETARY, RUNFILE, Pair
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from ..index_versions import common_versions

OPEN_FOR_ALL = 560
"""First branch whose open module drives GeForce and workstation gpus as well as data-centre ones by default."""
OF_KERNEL = re.compile(r"-\d+\.\d+\.\d+-\d+-[a-z]")
"""In the names of Ubuntu's packages with modules for one kernel (linux-modules-nvidia-580-server-6.8.0-88-generic)."""
KINDS: dict[str, tuple[str, ...]] = {"lts": ("lts",), "production": ("lts", "production"), "newest": ()}
"""Values of nvidia_driver_branch that name no branch, with the kinds that they allow; () for any."""
FILE_VERSION = r"-(\d{2,4}(?:\.\d+){1,2})(?:-[\w-]+)?\.run$"


class DriverRequest(NamedTuple):
    """What the operator requests of the driver; None where gpu-ready chooses.

    ``offered``: what the first plan of a rollout found in the package sources of the host, which are not asked again.
    """

    source: str | None
    branch: int | None
    version: str | None
    flavour: str | None
    profile: str
    modules: str | None = None
    replace: bool = False
    packages: dict[str, str] = {}
    own_file: bool = False
    policy: str = ""
    min_age: int = 0
    offered: Pair | None = None


class Candidate(NamedTuple):
    """A driver that a host could get. ``kind`` of kernel module: dkms or precompiled."""

    source: str
    kind: str
    branch: int
    flavour: str


def parse_request(settings: Settings) -> DriverRequest:
    """Return the operator's request with "auto" and empty values as None."""
    runfile = _given(settings.nvidia_driver_runfile)
    version = _given(settings.nvidia_driver_version) or version_of_file(runfile)
    branch = _given(settings.nvidia_driver_branch)
    policy = branch if branch in KINDS and not version else None
    number = int(branch) if branch and branch.isdigit() else versions.branch(version) if version else None
    return DriverRequest(
        _given(settings.nvidia_driver_source) or (RUNFILE if runfile else None),
        number,
        version,
        _given(settings.nvidia_driver_flavour),
        _given(settings.nvidia_driver_profile) or "compute",
        _given(settings.nvidia_driver_kernel_modules),
        settings.nvidia_driver_replace_foreign,
        dict(text.split("=", 1) for text in settings.nvidia_driver_packages),
        runfile is not None,
        policy or "",
        settings.gpu_ready_branch_min_age,
    )


def _given(value: str) -> str | None:
    return None if value in ("", "auto") else value


def version_of_file(name: str | None) -> str | None:
    """Return the driver version in the name of an installer (NVIDIA-Linux-x86_64-580.95.05.run)."""
    match = re.search(FILE_VERSION, name or "")
    return match.group(1) if match else None


def pairs_of_gpu(device: str) -> frozenset[Pair]:
    """Return every (branch, flavour) that drives a device id.

    One that the catalog does not have is newer than it, or a chip before Turing of which no branch is known.
    """
    gpu = catalog.gpu(device)
    if gpu is None:
        newer = not catalog.is_older_than_turing(device)
        return frozenset([(catalog.newest_branch(), OPEN)] if newer else [])
    return frozenset(
        (branch.number, flavour)
        for branch in catalog.branches()
        for flavour in gpu.flavours
        if flavour in branch.flavours
        and (gpu.first_branch is None or branch.number >= gpu.first_branch)
        and (gpu.last_branch is None or branch.number <= gpu.last_branch)
    )


def requested_pairs(device: str, request: DriverRequest) -> frozenset[Pair]:
    """Like :func:`pairs_of_gpu`, but accepts a requested branch, or a device, that the catalog does not list."""
    known = catalog.gpu(device)
    if request.branch is not None and (known is None or catalog.branch(request.branch) is None):
        made = catalog.branch_rules(request.branch).flavours
        if known is not None:
            fitting = [flavour for flavour in made if is_within(known, request.branch, flavour)]
            return pairs_of_gpu(device) | {(request.branch, flavour) for flavour in fitting}
        if catalog.is_older_than_turing(device):
            made = tuple(flavour for flavour in made if flavour == PROPRIETARY)
        flavours = (request.flavour,) if request.flavour else (OPEN,) if OPEN in made else made
        return frozenset((request.branch, flavour) for flavour in flavours if flavour in made)
    return pairs_of_gpu(device)


def pairs_of_host(gpus: list[GpuFacts], request: DriverRequest) -> set[Pair]:
    sets = [requested_pairs(gpu.device, request) for gpu in gpus]
    return set(frozenset.intersection(*sets)) if sets else set()


def open_is_ready(branch: int, gpus: list[GpuFacts]) -> bool:
    """Return True if the open module of a branch drives such gpus without a module option."""
    return branch >= OPEN_FOR_ALL or not any(is_workstation_gpu(gpu.name) for gpu in gpus)


def lesser_flavour(choice: Candidate, possible: set[Pair], gpus: list[GpuFacts]) -> bool:
    """Return True if a choice has the proprietary module although the open one of its branch drives the GPUs."""
    open_possible = (choice.branch, OPEN) in possible and open_is_ready(choice.branch, gpus)
    return choice.flavour == PROPRIETARY and open_possible


def installed_pair(facts: Facts) -> Pair | None:
    disk = facts.driver.on_disk
    if not disk or not disk.version or not disk.flavour:
        return None
    return versions.branch(disk.version), disk.flavour


def is_workstation_gpu(name: str) -> bool:
    """Return True for GeForce and workstation GPUs, which the early open modules did not drive."""
    return any(word in name.upper() for word in ("GEFORCE", "QUADRO", "TITAN", "RTX"))


def source_order(facts: Facts, request: DriverRequest, data: Distribution) -> list[str]:
    """Return the sources to try: the requested one, else the installed driver's, then what `auto` allows.

    A driver from a source that `auto` does not use (an installer) does not count where it may be replaced.
    """
    known = driver_sources.source_names(data)
    if request.source is not None:
        return [request.source] if request.source in known else []
    found = driver_sources.automatic_sources(data)
    origin = facts.driver.origin
    if origin not in (found if request.replace else known):
        return found
    return [origin] + [name for name in found if name != origin]


def find_candidates(facts: Facts, request: DriverRequest, gpus: list[GpuFacts], data: Distribution) -> list[Candidate]:
    recorded = recorded_candidate(request, data)
    if recorded:
        exists = has_flavour(recorded.branch, recorded.flavour)
        driven = all(drives(gpu, recorded.branch, recorded.flavour, request) for gpu in gpus)
        return [recorded] if exists and driven else []
    possible = pairs_of_host(gpus, request)
    requested = matching_pairs(possible, request)
    found = []
    for source in source_order(facts, request, data):
        for kind in driver_sources.module_kinds(data, source):
            if request.modules not in (None, kind) or not fits_kernel(facts, data, source, kind):
                continue
            if (request.modules is None and not is_automatic_kind(data, source, kind)) or (
                request.version and is_versioned_by_kernel(data, source, kind)
            ):
                continue
            carried = source_pairs(data, source, kind, request)
            carried |= offered_pairs(facts, data, source, kind, request)
            pairs = requested & carried
            pairs = with_fabricmanager(facts, data, source, pairs_for_kernel(facts, data, source, kind, pairs))
            if not pairs:
                continue
            branch, flavour = prefer(pairs, facts, source, gpus, data, request)
            candidate = Candidate(source, kind, branch, flavour)
            if is_installed(facts, data, candidate):
                return [candidate]
            found.append(candidate)
    # Best first: accepted by the kernel, maintained branch, open module where possible, keeps packages for one kernel.
    found.sort(
        key=lambda one: (
            not is_trusted(facts, data, one),
            is_ended_elsewhere(facts, one),
            -one.branch if request.policy else 0,
            lesser_flavour(one, possible, gpus),
            not keeps_kernel_packages(facts, data, one),
        )
    )
    return found


def keeps_kernel_packages(facts: Facts, data: Distribution, candidate: Candidate) -> bool:
    """Return True if the host has packages with modules for one kernel, and this driver has such packages too.

    A request for another branch is none for another kind of module: the host may have no compiler.
    """
    return has_kernel_packages(facts) and is_versioned_by_kernel(data, candidate.source, candidate.kind)


def has_kernel_packages(facts: Facts) -> bool:
    return any(OF_KERNEL.search(name) for name in facts.driver.packages)


def is_ended_elsewhere(facts: Facts, candidate: Candidate) -> bool:
    """Return True if a branch has ended and the installed driver, which is kept, came from another source."""
    return catalog.has_ended(candidate.branch, facts.today) and candidate.source != facts.driver.origin


def recorded_candidate(request: DriverRequest, data: Distribution) -> Candidate | None:
    """Return the driver whose exact packages are requested, None if they are not.

    It may have run on this host before, so the catalog need not carry its branch, and packages that are named by the
    kernel have the recorded versions. What it does not drive, it does not drive either way: see `drives`.
    """
    source, kind, branch, flavour = request.source, request.modules, request.branch, request.flavour
    if not request.packages or source is None or kind is None or branch is None or flavour is None:
        return None
    known = source in driver_sources.source_names(data) and kind in driver_sources.module_kinds(data, source)
    return Candidate(source, kind, branch, flavour) if known else None


def source_pairs(data: Distribution, source: str, kind: str, request: DriverRequest) -> set[Pair]:
    """Return what a source has, and the requested branch where it may have it although no list does.

    The operator's own installer is a source of every branch. NVIDIA's has an address only with a version.
    """
    named = request.branch
    if named is not None and not (source == RUNFILE and request.own_file):
        addressed = source != RUNFILE or bool(request.version)
        named = named if addressed and driver_sources.carries(data, source, kind, named) else None
    return driver_sources.branch_flavours(data, source, kind, request.profile, named)


def offered_pairs(facts: Facts, data: Distribution, source: str, kind: str, request: DriverRequest) -> set[Pair]:
    """Return the flavours of the requested branch that the host's package sources have, whatever the lists say."""
    branch = request.branch
    if branch is None or source == RUNFILE:
        return set()
    if request.offered and request.offered[0] == branch:
        return {request.offered}
    kernel = facts.base.kernel.running
    sets = {
        flavour: driver_sources.packages(data, source, branch, request.profile, flavour, kind, kernel)
        for flavour in driver_sources.FLAVOURS
    }
    return {(branch, flavour) for flavour, names in sets.items() if names and has_branch(facts, names, branch)}


def has_branch(facts: Facts, names: Sequence[str], branch: int) -> bool:
    """Return True if the index of a host has all of these packages, in some version of a branch."""
    return any(versions.branch(one) == branch for one in common_versions(facts, names))


def has_flavour(branch: int, flavour: str) -> bool:
    return flavour in catalog.branch_rules(branch).flavours


def drives(gpu: GpuFacts, branch: int, flavour: str, request: DriverRequest) -> bool:
    """Return True if a branch and flavour drive a GPU by the limits of the catalog, even if no list has the branch.

    Of a GPU that the catalog does not know, the requested branch is trusted, or the newest one.
    """
    known = catalog.gpu(gpu.device)
    if known is None:
        if catalog.is_older_than_turing(gpu.device):
            return request.branch is not None and flavour == PROPRIETARY
        return request.branch is not None or (branch >= catalog.newest_branch() and flavour == OPEN)
    return is_within(known, branch, flavour)


def is_within(gpu: catalog.Gpu, branch: int, flavour: str) -> bool:
    above = gpu.first_branch is None or branch >= gpu.first_branch
    below = gpu.last_branch is None or branch <= gpu.last_branch
    return above and below and flavour in gpu.flavours


def matching_pairs(possible: set[Pair], request: DriverRequest) -> set[Pair]:
    return {
        pair
        for pair in possible
        if request.branch in (None, pair[0]) and request.flavour in (None, pair[1]) and fits_policy(pair[0], request)
    }


def fits_policy(branch: int, request: DriverRequest) -> bool:
    """Return True if a branch is of a kind that is asked for, whatever its age."""
    kinds = KINDS.get(request.policy, ())
    return not kinds or catalog.branch_rules(branch).kind in kinds


def fits_kernel(facts: Facts, data: Distribution, source: str, kind: str) -> bool:
    """Return True if modules of a kind fit this host's kernel: some are compiled for the kernels of one vendor only."""
    ids = driver_sources.source_entry(data, source, kind).get("ids")
    if ids and facts.base.os.id not in ids:
        return False
    return driver_sources.has_modules_for(data, source, kind, facts.base.kernel.running) is not False


def pairs_for_kernel(facts: Facts, data: Distribution, source: str, kind: str, pairs: set[Pair]) -> set[Pair]:
    """Return those pairs of which no source says that they do not build for the running kernel."""
    kernel = facts.base.kernel.running
    return {pair for pair in pairs if driver_sources.builds_for(data, source, kind, pair[0], kernel)}


def is_automatic_kind(data: Distribution, source: str, kind: str) -> bool:
    """Return True if `auto` may choose a kind of kernel module.

    Not one that NVIDIA compiled for one vendor's kernels.
    """
    return (
        kind == driver_sources.module_kinds(data, source)[0]
        or driver_sources.source_entry(data, source, kind).get("signed_by") != "nvidia"
    )


def is_versioned_by_kernel(data: Distribution, source: str, kind: str) -> bool:
    """Return True if packages of a kind are named by the kernel, so that no driver version can be requested of them."""
    entry = driver_sources.source_entry(data, source, kind)
    return any(
        "{kernel}" in name for sets in (entry.get("packages") or {}).values() for one in sets.values() for name in one
    )


def with_fabricmanager(facts: Facts, data: Distribution, source: str, pairs: set[Pair]) -> set[Pair]:
    """Return those pairs whose source carries the fabric manager, on a host with NVSwitches."""
    return {pair for pair in pairs if can_manage_switches(facts, data, source, pair[0])}


def can_manage_switches(facts: Facts, data: Distribution, source: str, branch: int) -> bool:
    """Return True if a source has what manages the NVSwitches of a host.

    Ubuntu's archive has no NVLink 5 subnet manager.
    """
    needed = ["fabricmanager"] if facts.base.nvswitches else []
    needed += ["subnet_manager"] if facts.base.umad else []
    return all(driver_sources.companion_package(data, source, what, branch) for what in needed)


def is_installed(facts: Facts, data: Distribution, candidate: Candidate) -> bool:
    state = facts.driver
    if state.origin != candidate.source or installed_pair(facts) != (candidate.branch, candidate.flavour):
        return False
    return candidate.kind in installed_kinds(facts, data, candidate)


def installed_kinds(facts: Facts, data: Distribution, candidate: Candidate) -> list[str]:
    """Return the kinds of kernel module that the installed packages are of; all kinds where that is unclear."""
    kinds = driver_sources.module_kinds(data, candidate.source)
    packages = facts.packages.installed
    kernel = facts.base.kernel.running
    known = [
        kind
        for kind in kinds
        for profile in driver_sources.PROFILES
        for names in [
            driver_sources.packages(data, candidate.source, candidate.branch, profile, candidate.flavour, kind, kernel)
        ]
        if names and all(name in packages for name in names)
    ]
    by_kernel = [kind for kind in kinds if is_versioned_by_kernel(data, candidate.source, kind)]
    return known or (by_kernel if has_kernel_packages(facts) else []) or kinds


def is_trusted(facts: Facts, data: Distribution, candidate: Candidate) -> bool:
    """Return True if the kernel would load the module: any without Secure Boot, else one with an enrolled signer."""
    boot = facts.base.secure_boot
    if not boot.on:
        return True
    if candidate.kind == PRECOMPILED:
        return bool(
            driver_sources.source_entry(data, candidate.source, candidate.kind).get("signed_by") == "distribution"
        )
    return bool(boot.enrolled)


def prefer(
    pairs: set[Pair], facts: Facts, source: str, gpus: list[GpuFacts], data: Distribution, request: DriverRequest
) -> Pair:
    """Return the installed pair or its branch, else the maintained branch with the longest support, open if possible.

    A branch that came out less than the minimum age ago waits, and so does one that no public source confirms of this
    source; each only where there is another. With a policy it is the newest one that the policy allows. A source may
    have the open module of its newest branch only (ELRepo). GPUs that need it then get that branch.
    """
    installed = installed_pair(facts)
    if facts.driver.origin == source and installed in pairs:
        return installed
    if facts.driver.origin == source and installed:
        # A request for the other flavour is none for another branch.
        pairs = {pair for pair in pairs if pair[0] == installed[0]} or pairs
    pairs = {pair for pair in pairs if not catalog.has_ended(pair[0], facts.today)} or pairs
    opens = {branch for branch, flavour in pairs if flavour == OPEN and open_is_ready(branch, gpus)}
    numbers = sorted(opens or {branch for branch, _ in pairs})
    confirmed = [one for one in numbers if not driver_sources.is_unverified(data, source, "branches", one)]
    if request.policy:
        branch = max(confirmed or numbers)
    else:
        branch = max(confirmed or numbers, key=lambda one: catalog.support_order(one, facts.today, request.min_age))
    flavours = {flavour for number, flavour in pairs if number == branch}
    if OPEN in flavours and (open_is_ready(branch, gpus) or PROPRIETARY not in flavours):
        return branch, OPEN
    return branch, PROPRIETARY if PROPRIETARY in flavours else OPEN
