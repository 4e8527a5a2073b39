"""Which NVIDIA driver a host gets, and the steps to it: the ceiling first, the flavour second."""

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Set, Tuple

from .. import catalog, versions
from . import repository
from .steps import DRIVER_RELOAD, NONE, Decision, Notice, Refusal, Step

OPEN = "open"
PROPRIETARY = "proprietary"
FLAVOURS = (OPEN, PROPRIETARY)
PROFILES = ("compute", "full")
OPEN_FOR_ALL = 560
"""First branch whose open module drives GeForce and workstation cards as well as data-centre ones by default."""
NOUVEAU_PATH = "/etc/modprobe.d/gpu-ready-blacklist-nouveau.conf"
NOUVEAU_CONTENT = "# The NVIDIA driver needs the GPU for itself.\nblacklist nouveau\noptions nouveau modeset=0\n"
MODULES = ["nvidia", "nvidia-uvm"]
ROOM = 3 * 1024**3
"""Bytes under /usr and /var that a driver with its module build and its packages needs."""
FOREIGN_DRIVERS = ("vfio-pci", "pci-stub", "xen-pciback")

Pair = Tuple[int, str]


class Wish(NamedTuple):
    """What the operator asked of the driver; None where the choice is ours."""

    source: Optional[str]
    branch: Optional[int]
    version: Optional[str]
    flavour: Optional[str]
    profile: str


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the driver's choice and steps, or every reason why there is none."""
    wish = read_wish(wanted)
    cards = served(observed)
    warnings = unknown_warnings(cards)
    if wish.source == "none":
        return Decision(as_found(observed), [], [], warnings)
    if observed["base"]["distro"] is None:
        return Decision({}, [], [unknown_distribution(observed)], warnings)
    data = catalog.distro(observed["base"]["distro"])
    picked, refusals = pick(observed, wish, cards, data)
    if picked is None:
        return Decision({}, [], refusals, warnings)
    driver = choose(observed, wanted, wish, data, picked)
    refusals = refuse(observed, wanted, driver)
    if refusals:
        return Decision(driver, [], refusals, warnings)
    return Decision(driver, steps(observed, wanted, driver, data), [], warnings + branch_warnings(driver))


# --- what is there and what is asked -----------------------------------------------------------------------------


def read_wish(wanted: Dict[str, Any]) -> Wish:
    """Return the operator's wishes with "auto" and empty values as None."""

    def given(name: str) -> Optional[str]:
        value = str(wanted.get(name) or "").strip()
        return None if value in ("", "auto") else value

    version = given("nvidia_driver_version")
    branch = given("nvidia_driver_branch")
    number = int(branch) if branch else versions.branch(version) if version else None
    return Wish(
        given("nvidia_driver_source"),
        number,
        version,
        given("nvidia_driver_flavour"),
        given("nvidia_driver_profile") or "compute",
    )


def served(observed: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the GPUs that the host itself is to drive: not those given away to virtual machines."""
    return [gpu for gpu in observed["base"]["gpus"] if gpu.get("driver") not in FOREIGN_DRIVERS]


def as_found(observed: Dict[str, Any]) -> Dict[str, Any]:
    """Return the choice for a driver that is not ours to change: what is there is what is wanted."""
    disk = observed["driver"]["on_disk"] or observed["driver"]["loaded"] or {}
    version = disk.get("version")
    return {
        "source": "none",
        "version": None,
        "branch": versions.branch(version) if version else None,
        "flavour": disk.get("flavour"),
        "profile": None,
        "packages": [],
        "modules": MODULES,
        "satisfied": True,
        "why": "nvidia_driver_source is none: the driver is left as it is",
    }


# --- the decision ------------------------------------------------------------------------------------------------


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
        return frozenset((wish.branch, flavour) for flavour in (wish.flavour or OPEN,))
    return pairs_of_gpu(device)


def pairs_of_host(cards: List[Dict[str, Any]], wish: Wish) -> Set[Pair]:
    """Return the (branch, flavour) pairs that drive every card of a host."""
    sets = [pairs_asked(card["device"], wish) for card in cards]
    return set(frozenset.intersection(*sets)) if sets else set()


def pairs_of_source(data: Dict[str, Any], source: str, profile: str) -> Set[Pair]:
    """Return the (branch, flavour) pairs that a source of a distribution carries."""
    limit = data.get("max_branch")
    return {
        (branch, flavour)
        for branch in branches_of_source(data, source)
        for flavour in FLAVOURS
        if (limit is None or branch <= limit) and packages_of(data, source, branch, profile, flavour)
    }


def branches_of_source(data: Dict[str, Any], source: str) -> List[int]:
    """Return the branches that a source carries, ascending."""
    return sorted(int(branch) for branch in data["driver_sources"][source]["branches"])


def packages_of(data: Dict[str, Any], source: str, branch: int, profile: str, flavour: str) -> List[str]:
    """Return the packages of a driver, [] where the source has none of that kind."""
    entry = data["driver_sources"][source]
    branches = entry["branches"]
    table = branches.get(branch) or branches.get(str(branch)) if isinstance(branches, dict) else None
    packages = (table or entry)["packages"]
    return list((packages.get(profile) or {}).get(flavour) or [])


def pick(
    observed: Dict[str, Any], wish: Wish, cards: List[Dict[str, Any]], data: Dict[str, Any]
) -> Tuple[Optional[Tuple[str, int, str]], List[Refusal]]:
    """Return source, branch and flavour, or the refusals that say why there is none."""
    possible = pairs_of_host(cards, wish)
    if not possible:
        return None, [no_common_driver(cards)]
    asked = {pair for pair in possible if wish.branch in (None, pair[0]) and wish.flavour in (None, pair[1])}
    found = []
    for source in sources_in_order(observed, wish, data):
        pairs = asked & pairs_of_source(data, source, wish.profile)
        if pairs and not (observed["base"]["nvswitches"] and not has_fabricmanager(data, source)):
            branch, flavour = prefer(pairs, observed, source, cards, wish)
            if observed["driver"]["origin"] == source and installed_pair(observed) == (branch, flavour):
                return (source, branch, flavour), []  # what is there and fits stays
            found.append((source, branch, flavour))
    # A source that has to give up the open module where the cards want it comes after one that does not.
    found.sort(key=lambda choice: lesser_flavour(choice, possible, cards))
    if found:
        return found[0], []
    return None, explain_nothing(observed, wish, cards, data, possible, asked)


def sources_in_order(observed: Dict[str, Any], wish: Wish, data: Dict[str, Any]) -> List[str]:
    """Return the sources to try: the one asked for; else where the present driver came from, the archive, NVIDIA's."""
    known = list(data["driver_sources"])
    if wish.source is not None:
        return [wish.source] if wish.source in known else []
    order = ["distro", "cuda_repo"]
    origin = observed["driver"]["origin"]
    if origin in known:
        order.insert(0, origin)
    return [source for position, source in enumerate(order) if source in known and source not in order[:position]]


def has_fabricmanager(data: Dict[str, Any], source: str) -> bool:
    """Return whether a source carries the fabric manager that NVSwitch hosts need."""
    return bool(data["driver_sources"][source].get("fabricmanager"))


def prefer(pairs: Set[Pair], observed: Dict[str, Any], source: str, cards: List[Dict[str, Any]], wish: Wish) -> Pair:
    """Return the best pair: what is installed already, else the branch with the longest support, open where it can."""
    installed = installed_pair(observed)
    if observed["driver"]["origin"] == source and installed in pairs:
        return installed
    numbers = sorted({branch for branch, _ in pairs})
    below = [number for number in numbers if number <= catalog.DEFAULT_BRANCH]
    branch = below[-1] if below else numbers[0]
    flavours = {flavour for number, flavour in pairs if number == branch}
    if OPEN in flavours and (open_is_ready(branch, cards) or PROPRIETARY not in flavours):
        return branch, OPEN
    return branch, PROPRIETARY if PROPRIETARY in flavours else OPEN


def open_is_ready(branch: int, cards: List[Dict[str, Any]]) -> bool:
    """Return whether the open module of a branch drives cards of this kind without being asked to."""
    return branch >= OPEN_FOR_ALL or not any(consumer(card["name"]) for card in cards)


def lesser_flavour(choice: Tuple[str, int, str], possible: Set[Pair], cards: List[Dict[str, Any]]) -> bool:
    """Return whether a choice takes the proprietary module although the open one of its branch drives the cards."""
    _, branch, flavour = choice
    return flavour == PROPRIETARY and (branch, OPEN) in possible and open_is_ready(branch, cards)


def installed_pair(observed: Dict[str, Any]) -> Optional[Pair]:
    """Return branch and flavour of the driver on disk."""
    disk = observed["driver"]["on_disk"]
    if not disk or not disk["version"] or not disk["flavour"]:
        return None
    return versions.branch(disk["version"]), disk["flavour"]


def consumer(name: str) -> bool:
    """Return whether a card is a GeForce or workstation one, which the early open modules did not drive."""
    return any(word in name.upper() for word in ("GEFORCE", "QUADRO", "TITAN", "RTX"))


# --- the words of a refusal --------------------------------------------------------------------------------------


def unknown_distribution(observed: Dict[str, Any]) -> Refusal:
    """Refuse a system that the catalog does not know."""
    system = observed["base"]["os"]
    name = system.get("pretty") or system.get("pretty_name") or "this system"
    return Refusal(
        "unknown_distribution",
        "%s (ID=%s, VERSION_ID=%s in /etc/os-release) is not a distribution that gpu-ready knows"
        % (name, system.get("id") or "", system.get("version_id") or ""),
        "set gpu_ready_treat_as to the one it is compatible with: %s" % ", ".join(sorted(catalog.distros())),
    )


def card_name(card: Dict[str, Any]) -> str:
    """Return a card as an operator finds it: name, id and slot."""
    return "%s [10de:%s] at %s" % (card["name"], card["device"], card["address"])


def span(device: str) -> str:
    """Return in words which drivers a device takes."""
    pairs = pairs_of_gpu(device)
    if not pairs:
        gpu = catalog.gpu(device)
        return "no driver newer than %s" % (gpu.last_branch if gpu else "the catalog")
    numbers = sorted({branch for branch, _ in pairs})
    flavours = [flavour for flavour in FLAVOURS if any(pair[1] == flavour for pair in pairs)]
    return "branches %d to %d, %s module" % (numbers[0], numbers[-1], " or ".join(flavours))


def no_common_driver(cards: List[Dict[str, Any]]) -> Refusal:
    """Refuse a host whose cards no driver of the catalog serves together, or alone."""
    lonely = [card for card in cards if not pairs_of_gpu(card["device"])]
    if lonely:
        card = lonely[0]
        return Refusal(
            "gpu_too_old",
            "%s takes %s: no driver branch of the catalog drives it" % (card_name(card), span(card["device"])),
            "take the card out, or set nvidia_driver_source to none and look after its driver yourself",
        )
    kinds: Dict[str, Dict[str, Any]] = {}
    for card in cards:
        kinds.setdefault(card["device"], card)
    # Two cards that already exclude each other say more than the whole list.
    for first in kinds.values():
        for second in kinds.values():
            if not pairs_of_gpu(first["device"]) & pairs_of_gpu(second["device"]):
                kinds = {first["device"]: first, second["device"]: second}
    told = " and ".join("%s takes %s" % (card_name(card), span(card["device"])) for card in kinds.values())
    return Refusal(
        "no_driver_for_mixed_gpus",
        "one host runs one driver, but " + told,
        "move one kind of card to another host, or bind it to vfio-pci",
    )


def explain_nothing(
    observed: Dict[str, Any],
    wish: Wish,
    cards: List[Dict[str, Any]],
    data: Dict[str, Any],
    possible: Set[Pair],
    asked: Set[Pair],
) -> List[Refusal]:
    """Return why no source gives a driver that the cards can take and the operator asked for."""
    if not asked:
        return branch_refusals(wish, cards, possible) + flavour_refusals(wish, cards, possible)
    return source_refusals(observed, wish, data, asked)


def branch_refusals(wish: Wish, cards: List[Dict[str, Any]], possible: Set[Pair]) -> List[Refusal]:
    """Return what is wrong with the branch that was asked for."""
    if wish.branch is None or wish.branch in {branch for branch, _ in possible}:
        return []
    numbers = [branch.number for branch in catalog.branches()]
    said = "nvidia_driver_branch %d" % wish.branch
    fitting = ", ".join(str(number) for number in sorted({branch for branch, _ in possible}))
    if wish.branch not in numbers:
        return [
            Refusal(
                "branch_unknown",
                "%s is no driver branch of the catalog of %s" % (said, catalog.DATE),
                "choose one that drives this host: %s" % fitting,
            )
        ]
    for card in cards:
        gpu = catalog.gpu(card["device"])
        if gpu and gpu.last_branch is not None and wish.branch > gpu.last_branch:
            message = "%s: %s is served up to branch %d" % (said, card_name(card), gpu.last_branch)
            return [Refusal("branch_above_ceiling", message, "choose one of %s" % fitting)]
    for card in cards:
        gpu = catalog.gpu(card["device"])
        if gpu and gpu.first_branch is not None and wish.branch < gpu.first_branch:
            message = "%s: %s is served from branch %d on" % (said, card_name(card), gpu.first_branch)
            return [Refusal("branch_below_floor", message, "choose one of %s" % fitting)]
    return [Refusal("branch_impossible", "%s drives not all cards of this host" % said, "choose one of %s" % fitting)]


def flavour_refusals(wish: Wish, cards: List[Dict[str, Any]], possible: Set[Pair]) -> List[Refusal]:
    """Return what is wrong with the kernel module flavour that was asked for."""
    if wish.flavour is None:
        return []
    others = sorted({flavour for branch, flavour in possible if wish.branch in (None, branch)} - {wish.flavour})
    fitting = {branch for branch, flavour in possible if flavour == wish.flavour}
    if not others or (wish.branch is None and fitting) or wish.branch in fitting:
        return []
    culprits = [card for card in cards if wish.flavour not in {f for _, f in pairs_asked(card["device"], wish)}]
    cause = (
        "%s has no %s kernel module" % (card_name(culprits[0]), wish.flavour)
        if culprits
        else ("branch %s has no %s kernel module for these cards" % (wish.branch, wish.flavour))
    )
    remedy = "set nvidia_driver_flavour to auto or %s" % others[0]
    return [Refusal("flavour_impossible", "nvidia_driver_flavour %s: %s" % (wish.flavour, cause), remedy)]


def source_refusals(observed: Dict[str, Any], wish: Wish, data: Dict[str, Any], asked: Set[Pair]) -> List[Refusal]:
    """Return why a source, or all of them, cannot give what is asked."""
    pretty = data["pretty"]
    known = list(data["driver_sources"])
    if wish.source is not None and wish.source not in known:
        return [
            Refusal(
                "source_impossible",
                "nvidia_driver_source %s does not exist for %s" % (wish.source, pretty),
                "choose auto, %s or none" % ", ".join(known),
            )
        ]
    limit = data.get("max_branch")
    if limit is not None and not any(branch <= limit for branch, _ in asked):
        return [
            Refusal(
                "branch_above_kernel",
                "branch %d is needed, but the kernel of %s takes drivers up to branch %d"
                % (min(asked)[0], pretty, limit),
                "upgrade the host to a newer distribution",
            )
        ]
    sources = [wish.source] if wish.source else known
    if wish.source and observed["base"]["nvswitches"] and not has_fabricmanager(data, wish.source):
        return [
            Refusal(
                "source_impossible",
                "nvidia_driver_source %s: this host has %d NVSwitches, and %s carries no fabric manager there"
                % (wish.source, len(observed["base"]["nvswitches"]), pretty),
                "set nvidia_driver_source to auto or cuda_repo",
            )
        ]
    carried = "; ".join(
        "%s carries %s" % (source, ", ".join(str(branch) for branch in branches_of_source(data, source)) or "none")
        for source in sources
    )
    needed = ", ".join(sorted({"%d %s" % pair for pair in asked}))
    code = "source_impossible" if wish.source else "branch_not_carried"
    message = "no source of %s has a driver that fits (%s): %s" % (pretty, needed, carried)
    return [Refusal(code, message, "choose another nvidia_driver_branch or nvidia_driver_source, or auto for both")]


def unknown_warnings(cards: List[Dict[str, Any]]) -> List[Notice]:
    """Warn of device ids that the catalog does not know."""
    return [
        Notice(
            "gpu_unknown",
            "%s is not in the catalog of %s: taken for newer, so it gets the newest branch with the open module"
            % (card_name(card), catalog.DATE),
            "update gpu-ready, or set nvidia_driver_branch and nvidia_driver_flavour",
        )
        for card in {card["device"]: card for card in cards if catalog.gpu(card["device"]) is None}.values()
    ]


def branch_warnings(driver: Dict[str, Any]) -> List[Notice]:
    """Warn of a branch that NVIDIA no longer maintains."""
    branch = catalog.branch(driver["branch"])
    if branch is None or not branch.eol or branch.eol[:7] >= catalog.DATE[:7]:
        return []
    return [
        Notice(
            "branch_ended",
            "driver branch %d is no longer maintained by NVIDIA (end of life %s)" % (branch.number, branch.eol),
            "plan a move to branch %d where the GPUs allow it" % catalog.DEFAULT_BRANCH,
        )
    ]


# --- the choice and its steps ------------------------------------------------------------------------------------


def choose(
    observed: Dict[str, Any], wanted: Dict[str, Any], wish: Wish, data: Dict[str, Any], picked: Tuple[str, int, str]
) -> Dict[str, Any]:
    """Return everything later rooms and the table need to know of the chosen driver."""
    source, branch, flavour = picked
    driver: Dict[str, Any] = {
        "source": source,
        "branch": branch,
        "flavour": flavour,
        "version": wish.version,
        "profile": wish.profile,
        "packages": packages_of(data, source, branch, wish.profile, flavour),
        "modules": MODULES,
        "cuda": getattr(catalog.branch(branch), "cuda", None),
    }
    driver["satisfied"] = satisfied(observed, driver)
    driver["why"] = why(observed, wish, driver)
    return driver


def why(observed: Dict[str, Any], wish: Wish, driver: Dict[str, Any]) -> str:
    """Return in one sentence why it is this driver."""
    names = []
    for card in served(observed):
        if card["name"] not in names:
            names.append(card["name"])
    asked = wish.branch is not None or wish.flavour is not None or wish.source is not None
    return "branch %d with the %s kernel module from %s drives %s%s" % (
        driver["branch"],
        driver["flavour"],
        driver["source"],
        " and ".join(names),
        ", as asked" if asked else "",
    )


def satisfied(observed: Dict[str, Any], driver: Dict[str, Any]) -> bool:
    """Return whether the driver on disk is the chosen one, whole and from the chosen source."""
    state = observed["driver"]
    disk = state["on_disk"]
    return bool(
        disk
        and fits(disk["version"], driver)
        and disk["flavour"] == driver["flavour"]
        and state["userspace"] == [disk["version"]]
        and state["origin"] == driver["source"]
        and all(name in state["packages"] or name in installed(observed) for name in driver["packages"])
    )


def installed(observed: Dict[str, Any]) -> Dict[str, str]:
    """Return the packages of the package manager."""
    return dict(observed["packages"]["installed"])


def fits(version: str, driver: Dict[str, Any]) -> bool:
    """Return whether a version is the one asked for, or of the branch where only that matters."""
    if driver["version"]:
        return bool(version == driver["version"])
    return bool(versions.branch(version) == driver["branch"])


def refuse(observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any]) -> List[Refusal]:
    """Return what forbids installing the chosen driver on this host, [] where it is there already."""
    if driver["satisfied"]:
        return []
    refusals = []
    if foreign(observed, driver) and not wanted.get("nvidia_driver_replace_foreign"):
        refusals.append(foreign_driver(observed, driver))
    boot = observed["base"]["secure_boot"]
    if boot["on"] and not boot["enrolled"]:
        refusals.append(secure_boot_unsigned(boot))
    refusals += disk_full(observed)
    return refusals


def foreign(observed: Dict[str, Any], driver: Dict[str, Any]) -> bool:
    """Return whether a driver of another origin is in the way."""
    return observed["driver"]["origin"] not in (None, driver["source"])


def foreign_driver(observed: Dict[str, Any], driver: Dict[str, Any]) -> Refusal:
    """Refuse to mix two drivers."""
    state = observed["driver"]
    words = {"runfile": "a .run installer (%s)" % state["runfile"], "mixed": "packages and a .run installer at once"}
    disk = state["on_disk"] or {}
    return Refusal(
        "foreign_driver",
        "driver %s on this host came from %s, and two drivers of different origin break each other; wanted is %s"
        % (disk.get("version") or "files", words.get(state["origin"], state["origin"]), driver["source"]),
        "set nvidia_driver_replace_foreign to true to have it replaced, or nvidia_driver_source to none to keep it",
    )


def secure_boot_unsigned(boot: Dict[str, Any]) -> Refusal:
    """Refuse a module that the kernel would reject."""
    key = boot["key"]
    cause = "its key %s is not enrolled" % key if key else "there is no key to sign it with yet"
    enrol = (
        "run `mokutil --import %s`" % key if key else "install dkms, then run `mokutil --import /var/lib/dkms/mok.pub`"
    )
    return Refusal(
        "secure_boot_unsigned",
        "Secure Boot is on, the module is built on this host, and %s: the kernel would reject it" % cause,
        "%s, confirm at the console during a reboot, and run this again; or turn Secure Boot off" % enrol,
    )


def disk_full(observed: Dict[str, Any]) -> List[Refusal]:
    """Refuse where the packages and the module build would fill a file system."""
    disk = observed["base"]["disk"]
    short = [path for path in ("/usr", "/var") if disk.get(path) is not None and disk[path] < ROOM]
    return [
        Refusal(
            "disk_full",
            "%s has %d MiB free, the driver with its module build needs %d"
            % (path, disk[path] // 1024**2, ROOM // 1024**2),
            "make room there and run this again",
        )
        for path in short
    ]


def steps(observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[Step]:
    """Return the steps to the chosen driver, in order."""
    install = [] if driver["satisfied"] else [install_step(observed, driver, data)]
    return (
        (headers_steps(observed, data) + repository_steps(observed, wanted, driver, data) if install else [])
        + nouveau_steps(observed, driver, data)
        + install
        + hold_steps(observed, wanted, driver)
    )


def headers_steps(observed: Dict[str, Any], data: Dict[str, Any]) -> List[Step]:
    """Return the step that brings the headers of the running kernel, and of the one that boots next."""
    kernel = observed["base"]["kernel"]
    kernels = [kernel["running"]] + [name for name in (kernel["next_boot"],) if name != kernel["running"]]
    missing = [name for name in kernels if not kernel["headers"].get(name)]
    compiler = [] if observed["base"]["compiler"] else list(data.get("build_tools") or [])
    if not missing and not compiler:
        return []
    packages = [pattern.format(kernel=name) for name in missing for pattern in data["headers"]] + compiler
    cause = "the headers of kernel %s are missing" % " and ".join(missing) if missing else "there is no compiler"
    params = {"packages": packages, "kernel": kernel["running"]}
    return [Step("kernel_headers.install", "the driver's module is built here, and %s" % cause, params=params)]


def repository_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]
) -> List[Step]:
    """Return the step that opens the source of the driver packages."""
    entry = data["driver_sources"][driver["source"]]
    components = entry.get("components")
    wanting = components if repository.components_missing(observed, components) else None
    identity = entry.get("repository")
    third = repository.params(identity, wanted, {"driver": driver}) if identity else None
    if third is not None and repository.present(observed, third):
        third = None
    if wanting is None and third is None:
        return []
    reason = (
        "the packages of branch %d come from %s" % (driver["branch"], third["url"])
        if third
        else "the driver is in the components %s" % ", ".join(wanting or [])
    )
    params = {"components": list(wanting) if wanting else None, "repository": third}
    return [Step("nvidia_driver.repository", reason, params=params)]


def nouveau_steps(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[Step]:
    """Return the step that keeps nouveau away where nothing does and no NVIDIA driver took its place yet."""
    nouveau = observed["base"]["nouveau"]
    if nouveau["blacklisted"]:
        return []
    params: Dict[str, Any] = {"path": NOUVEAU_PATH, "content": NOUVEAU_CONTENT, "rebuild": None}
    if (nouveau["loaded"] or nouveau["bound"]) and observed["base"]["initramfs"]:
        params["rebuild"] = list(data.get("initramfs") or []) or None
    diff = {"path": NOUVEAU_PATH, "before": "", "after": NOUVEAU_CONTENT}
    reason = "nouveau would take the GPU before NVIDIA's module can"
    return [Step("nvidia_driver.blacklist_nouveau", reason, params=params, diff=diff)]


def install_step(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> Step:
    """Return the step that installs, upgrades, downgrades or changes the flavour of the driver."""
    state = observed["driver"]
    entry = data["driver_sources"][driver["source"]]
    pinning = entry.get("pinning")
    version = driver["version"]
    exact = version + "-*" if version and not pinning else None
    params = {
        "packages": [{"name": name, "version": exact} for name in driver["packages"]],
        "pin_packages": [pinning.format(branch=version or driver["branch"])] if pinning else [],
        "remove": removals(observed, driver, data),
        "runfile": state["runfile"] if foreign(observed, driver) else None,
        "rebuild": rebuild(observed, driver),
        "expect": {"branch": driver["branch"], "version": version, "flavour": driver["flavour"]},
    }
    disruption = DRIVER_RELOAD if state["loaded"] else NONE
    return Step("nvidia_driver.install", install_reason(observed, driver), disruption, params)


def rebuild(observed: Dict[str, Any], driver: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the kernel to build the module for where the packages are there and only its build is missing."""
    state = observed["driver"]
    complete = all(name in state["packages"] for name in driver["packages"])
    if state["on_disk"] or not complete:
        return None
    return {"kernel": observed["base"]["kernel"]["running"]}


def removals(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[str]:
    """Return the installed packages that make way: all of a foreign driver, or those of the other flavour."""
    present = observed["driver"]["packages"]
    if foreign(observed, driver):
        return sorted(present)
    other = PROPRIETARY if driver["flavour"] == OPEN else OPEN
    names = {
        name for profile in PROFILES for name in packages_of(data, driver["source"], driver["branch"], profile, other)
    }
    own = {
        name
        for profile in PROFILES
        for name in packages_of(data, driver["source"], driver["branch"], profile, driver["flavour"])
    }
    return sorted((names - own - set(driver["packages"])) & set(present))


def install_reason(observed: Dict[str, Any], driver: Dict[str, Any]) -> str:
    """Return why the driver step is there."""
    state = observed["driver"]
    disk = state["on_disk"]
    target = "driver %s (%s)" % (driver["version"] or "branch %d" % driver["branch"], driver["flavour"])
    if not disk:
        lack = "no module for the running kernel" if state["packages"] else "no NVIDIA driver"
        return "there is %s; wanted is %s" % (lack, target)
    if foreign(observed, driver):
        return "the driver came from %s; wanted is %s from %s" % (state["origin"], target, driver["source"])
    if fits(disk["version"], driver) and disk["flavour"] == driver["flavour"]:
        return "%s is not whole: userspace %s" % (target, ", ".join(state["userspace"]) or "is missing")
    return "driver %s (%s) is installed; wanted is %s" % (disk["version"], disk["flavour"], target)


def hold_steps(observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any]) -> List[Step]:
    """Return the step that keeps unattended upgrades off the driver."""
    if not wanted.get("nvidia_driver_hold") or set(driver["packages"]) <= set(observed["packages"]["held"]):
        return []
    reason = "an unattended upgrade would part the driver's userspace from the loaded module"
    return [Step("nvidia_driver.hold", reason, params={"packages": driver["packages"]})]


def decide_fabricmanager(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the step that brings the fabric manager to an NVSwitch host; it runs after the driver is loaded."""
    driver = choice["driver"]
    switches = observed["base"]["nvswitches"]
    if not switches or driver.get("source") in (None, "none"):
        return Decision()
    entry = catalog.distro(observed["base"]["distro"])["driver_sources"][driver["source"]]
    name = entry["fabricmanager"].format(branch=driver["branch"])
    version = installed(observed).get(name)
    disk = observed["driver"]["on_disk"]
    fits_driver = driver["satisfied"] and version and disk and versions.upstream(version) == disk["version"]
    if fits_driver and observed["driver"].get("fabricmanager"):
        return Decision({"package": name})
    if fits_driver:
        reason = "%d NVSwitches need the fabric manager, and it does not run" % len(switches)
    else:
        reason = "%d NVSwitches need a fabric manager of exactly the driver's version" % len(switches)
    params = {"packages": [{"name": name, "version": None}], "service": "nvidia-fabricmanager"}
    return Decision({"package": name}, [Step("nvidia_driver.fabricmanager", reason, params=params)])
