"""Which drivers a host can take: the ceiling of its cards first, then what was asked for and what a source carries."""

import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set

from ...base import versions
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import OPEN, PRECOMPILED, PROPRIETARY, RUNFILE, Pair

OPEN_FOR_ALL = 560
"""First branch whose open module drives GeForce and workstation cards as well as data-centre ones by default."""
FOREIGN_DRIVERS = ("vfio-pci", "pci-stub", "xen-pciback")
FILE_VERSION = re.compile(r"-(\d{2,4}(?:\.\d+){1,2})(?:-[\w-]+)?\.run$")


class Wish(NamedTuple):
    """What the operator asked of the driver; None where the choice is ours."""

    source: Optional[str]
    branch: Optional[int]
    version: Optional[str]
    flavour: Optional[str]
    profile: str
    modules: Optional[str] = None
    replace: bool = False


class Candidate(NamedTuple):
    """A driver that a host could get: source, kind of kernel module (dkms, precompiled), branch, flavour."""

    source: str
    kind: str
    branch: int
    flavour: str


def read_wish(wanted: Dict[str, Any]) -> Wish:
    """Return the operator's wishes with "auto" and empty values as None."""

    def given(name: str) -> Optional[str]:
        value = str(wanted.get(name) or "").strip()
        return None if value in ("", "auto") else value

    runfile = given("nvidia_driver_runfile")
    version = given("nvidia_driver_version") or version_of_file(runfile)
    branch = given("nvidia_driver_branch")
    number = int(branch) if branch else versions.branch(version) if version else None
    return Wish(
        given("nvidia_driver_source") or (RUNFILE if runfile else None),
        number,
        version,
        given("nvidia_driver_flavour"),
        given("nvidia_driver_profile") or "compute",
        given("nvidia_driver_kernel_modules"),
        bool(wanted.get("nvidia_driver_replace_foreign")),
    )


def version_of_file(name: Optional[str]) -> Optional[str]:
    """Return the driver version that the name of an installer tells (NVIDIA-Linux-x86_64-580.95.05.run)."""
    match = FILE_VERSION.search(name or "")
    return match.group(1) if match else None


def served(observed: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the GPUs that the host itself is to drive: not those given away to virtual machines."""
    return [gpu for gpu in observed["base"]["gpus"] if gpu.get("driver") not in FOREIGN_DRIVERS]


def pairs_of_gpu(device: str) -> FrozenSet[Pair]:
    """Return every (branch, flavour) that drives a device id; an unknown one is newer than the catalog."""
    gpu = catalog.gpu(device)
    if gpu is None:
        return frozenset([(catalog.NEWEST_BRANCH, OPEN)])
    return frozenset(
        (branch.number, flavour)
        for branch in catalog.branches()
        for flavour in gpu.flavours
        if flavour in branch.flavours
        and (gpu.first_branch is None or branch.number >= gpu.first_branch)
        and (gpu.last_branch is None or branch.number <= gpu.last_branch)
    )


def pairs_asked(device: str, wish: Wish) -> FrozenSet[Pair]:
    """Return the same, where an explicit branch is the operator's word for a device that the catalog does not know."""
    if catalog.gpu(device) is None and wish.branch is not None:
        known = catalog.branch(wish.branch)
        made = known.flavours if known is not None else (OPEN,)
        flavours = (wish.flavour,) if wish.flavour else (OPEN,) if OPEN in made else made
        return frozenset((wish.branch, flavour) for flavour in flavours if known is None or flavour in made)
    return pairs_of_gpu(device)


def pairs_of_host(cards: List[Dict[str, Any]], wish: Wish) -> Set[Pair]:
    """Return the (branch, flavour) pairs that drive every card of a host."""
    sets = [pairs_asked(card["device"], wish) for card in cards]
    return set(frozenset.intersection(*sets)) if sets else set()


def open_is_ready(branch: int, cards: List[Dict[str, Any]]) -> bool:
    """Return whether the open module of a branch drives cards of this kind without being asked to."""
    return branch >= OPEN_FOR_ALL or not any(consumer(card["name"]) for card in cards)


def lesser_flavour(choice: Candidate, possible: Set[Pair], cards: List[Dict[str, Any]]) -> bool:
    """Return whether a choice takes the proprietary module although the open one of its branch drives the cards."""
    wanted = (choice.branch, OPEN) in possible and open_is_ready(choice.branch, cards)
    return choice.flavour == PROPRIETARY and wanted


def installed_pair(observed: Dict[str, Any]) -> Optional[Pair]:
    """Return branch and flavour of the driver on disk."""
    disk = observed["driver"]["on_disk"]
    if not disk or not disk["version"] or not disk["flavour"]:
        return None
    return versions.branch(disk["version"]), disk["flavour"]


def consumer(name: str) -> bool:
    """Return whether a card is a GeForce or workstation one, which the early open modules did not drive."""
    return any(word in name.upper() for word in ("GEFORCE", "QUADRO", "TITAN", "RTX"))


def order(observed: Dict[str, Any], wish: Wish, data: Dict[str, Any]) -> List[str]:
    """Return the sources to try: the one asked for; else where the present driver came from, then those of `auto`.

    Where a driver may be replaced that `auto` would not have taken (an installer's), that is what is asked for.
    """
    known = driver_sources.names(data)
    if wish.source is not None:
        return [wish.source] if wish.source in known else []
    found = driver_sources.automatic(data)
    origin = observed["driver"]["origin"]
    if origin not in (found if wish.replace else known):
        return found
    return [origin] + [name for name in found if name != origin]


def find(observed: Dict[str, Any], wish: Wish, cards: List[Dict[str, Any]], data: Dict[str, Any]) -> List[Candidate]:
    """Return the drivers that serve every card and were not asked away, the best first."""
    possible = pairs_of_host(cards, wish)
    asked = asked_of(possible, wish)
    found = []
    for source in order(observed, wish, data):
        for kind in driver_sources.kinds(data, source):
            if wish.modules not in (None, kind) or not fits_kernel(observed, data, source, kind):
                continue
            if (wish.modules is None and not eligible(data, source, kind)) or (
                wish.version and by_kernel(data, source, kind)
            ):
                continue
            pairs = with_fabricmanager(
                observed, data, source, asked & driver_sources.pairs(data, source, kind, wish.profile)
            )
            if not pairs:
                continue
            branch, flavour = prefer(pairs, observed, source, cards)
            candidate = Candidate(source, kind, branch, flavour)
            if stays(observed, data, candidate):
                return [candidate]
            found.append(candidate)
    # What the kernel would reject comes last; before it what has to give up the open module where the cards want it.
    found.sort(key=lambda one: (not trusted(observed, data, one), lesser_flavour(one, possible, cards)))
    return found


def asked_of(possible: Set[Pair], wish: Wish) -> Set[Pair]:
    """Return those of the possible pairs that were asked for."""
    return {pair for pair in possible if wish.branch in (None, pair[0]) and wish.flavour in (None, pair[1])}


def fits_kernel(observed: Dict[str, Any], data: Dict[str, Any], source: str, kind: str) -> bool:
    """Return whether modules of a kind are for this host's kernel: some were compiled for those of one vendor only."""
    ids = driver_sources.table(data, source, kind).get("ids")
    return not ids or observed["base"]["os"]["id"] in ids


def eligible(data: Dict[str, Any], source: str, kind: str) -> bool:
    """Return whether a kind of kernel module may be taken unasked: not those for the kernels of one vendor only."""
    return (
        kind == driver_sources.kinds(data, source)[0]
        or driver_sources.table(data, source, kind).get("signed_by") != "nvidia"
    )


def by_kernel(data: Dict[str, Any], source: str, kind: str) -> bool:
    """Return whether packages of a kind have the kernel's version, so that no driver version can be asked of them."""
    entry = driver_sources.table(data, source, kind)
    return any(
        "{kernel}" in name for sets in (entry.get("packages") or {}).values() for one in sets.values() for name in one
    )


def with_fabricmanager(observed: Dict[str, Any], data: Dict[str, Any], source: str, pairs: Set[Pair]) -> Set[Pair]:
    """Return those pairs whose source carries the fabric manager, on a host with NVSwitches."""
    if not observed["base"]["nvswitches"]:
        return pairs
    return {pair for pair in pairs if driver_sources.fabricmanager(data, source, pair[0])}


def stays(observed: Dict[str, Any], data: Dict[str, Any], candidate: Candidate) -> bool:
    """Return whether a driver is the one that is there: what is there and fits stays."""
    state = observed["driver"]
    if state["origin"] != candidate.source or installed_pair(observed) != (candidate.branch, candidate.flavour):
        return False
    return candidate.kind in installed_kinds(observed, data, candidate)


def installed_kinds(observed: Dict[str, Any], data: Dict[str, Any], candidate: Candidate) -> List[str]:
    """Return the kinds of kernel module that the installed packages are of; all of them where nothing tells."""
    kinds = driver_sources.kinds(data, candidate.source)
    there = observed["packages"]["installed"]
    kernel = observed["base"]["kernel"]["running"]
    known = [
        kind
        for kind in kinds
        for profile in driver_sources.PROFILES
        for names in [
            driver_sources.packages(data, candidate.source, candidate.branch, profile, candidate.flavour, kind, kernel)
        ]
        if names and all(name in there for name in names)
    ]
    return known or kinds


def trusted(observed: Dict[str, Any], data: Dict[str, Any], candidate: Candidate) -> bool:
    """Return whether the kernel would take the module: all without Secure Boot, else those of an enrolled signer."""
    boot = observed["base"]["secure_boot"]
    if not boot["on"]:
        return True
    if candidate.kind == PRECOMPILED:
        return bool(driver_sources.table(data, candidate.source, candidate.kind).get("signed_by") == "distribution")
    return bool(boot["enrolled"])


def prefer(pairs: Set[Pair], observed: Dict[str, Any], source: str, cards: List[Dict[str, Any]]) -> Pair:
    """Return the best pair: what is installed or its branch, else the branch with the longest support; open if it can.

    A source may have the open module of its newest branch only (ELRepo): cards that want it get that branch.
    """
    installed = installed_pair(observed)
    if observed["driver"]["origin"] == source and installed in pairs:
        return installed
    if observed["driver"]["origin"] == source and installed:
        # Who asks for the other flavour did not ask for another branch.
        pairs = {pair for pair in pairs if pair[0] == installed[0]} or pairs
    opens = {branch for branch, flavour in pairs if flavour == OPEN and open_is_ready(branch, cards)}
    numbers = sorted(opens or {branch for branch, _ in pairs})
    below = [number for number in numbers if number <= catalog.DEFAULT_BRANCH]
    branch = below[-1] if below else numbers[0]
    flavours = {flavour for number, flavour in pairs if number == branch}
    if OPEN in flavours and (open_is_ready(branch, cards) or PROPRIETARY not in flavours):
        return branch, OPEN
    return branch, PROPRIETARY if PROPRIETARY in flavours else OPEN
