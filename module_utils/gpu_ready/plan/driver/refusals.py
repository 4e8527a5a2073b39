"""Why a host gets no driver, in words: each refusal names the card or the variable, the cause and the way out."""

from typing import Any, Dict, List, Set

from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import FLAVOURS, PRECOMPILED, Pair
from ..model import Notice, Refusal
from .candidates import Candidate, Wish, asked_of, by_kernel, fits_kernel, pairs_asked, pairs_of_gpu

ROOM = 3 * 1024**3
"""Bytes under /usr and /var that a driver with its module build and its packages needs."""
MAKE_KEY = {
    "/var/lib/shim-signed/mok/MOK.der": "run `update-secureboot-policy --new-key`",
    # What DKMS does itself at the first build; its own command for it (generate_mok) is one of 3.1 and newer.
    "/var/lib/dkms/mok.pub": "install dkms, run `openssl req -new -x509 -nodes -days 36500 -newkey rsa:2048 -subj "
    "'/CN=DKMS module signing key' -outform DER -keyout /var/lib/dkms/mok.key -out /var/lib/dkms/mok.pub`",
}
"""What makes a key for DKMS, by its certificate."""


def machine_unsupported(observed: Dict[str, Any]) -> Refusal:
    """Refuse a machine for which the catalog names no packages."""
    return Refusal(
        "machine_unsupported",
        "this is a machine of kind %s, and gpu-ready knows the packages for %s only"
        % (observed["base"]["arch"], catalog.MACHINE),
        "take the host out of the inventory of gpu-ready",
    )


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


def image_based() -> Refusal:
    """Refuse a system that is booted as a whole image: what is installed into it is lost, or cannot be installed."""
    return Refusal(
        "image_based",
        "this host boots an image (ostree or bootc), whose /usr is read-only: no driver can be installed into it",
        "build the driver into the image, then set nvidia_driver_source to none",
    )


def driver_missing(observed: Dict[str, Any]) -> List[Refusal]:
    """Refuse a host without a driver where somebody else should have installed it: nothing could be verified."""
    if observed["driver"]["on_disk"] or observed["driver"]["loaded"]:
        return []
    return [
        Refusal(
            "driver_missing",
            "there is no NVIDIA driver for the running kernel, and nvidia_driver_source is none",
            "install one, or set nvidia_driver_source to auto",
        )
    ]


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
) -> List[Refusal]:
    """Return why no source gives a driver that the cards can take and the operator asked for."""
    if not possible:
        return [no_common_driver(cards)]
    asked = asked_of(possible, wish)
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
    known = driver_sources.names(data)
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
    asked_sources = [wish.source] if wish.source else known
    if (
        wish.source
        and observed["base"]["nvswitches"]
        and not any(
            driver_sources.fabricmanager(data, wish.source, branch)
            for branch in driver_sources.all_branches(data, wish.source)
        )
    ):
        return [
            Refusal(
                "source_impossible",
                "nvidia_driver_source %s: this host has %d NVSwitches, and %s carries no fabric manager there"
                % (wish.source, len(observed["base"]["nvswitches"]), pretty),
                "set nvidia_driver_source to auto or cuda_repo",
            )
        ]
    if wish.modules and not any(
        wish.modules in driver_sources.kinds(data, source) and fits_kernel(observed, data, source, wish.modules)
        for source in asked_sources
    ):
        return [
            Refusal(
                "kernel_modules_impossible",
                "nvidia_driver_kernel_modules %s: no such driver comes from %s on %s"
                % (wish.modules, " or ".join(asked_sources), pretty),
                "set nvidia_driver_kernel_modules to auto",
            )
        ]
    if wish.modules and wish.version and all(by_kernel(data, source, wish.modules) for source in asked_sources):
        return [
            Refusal(
                "kernel_modules_impossible",
                "nvidia_driver_version %s: %s modules of %s come with the kernel, in the version of the day"
                % (wish.version, wish.modules, " and ".join(asked_sources)),
                "give nvidia_driver_branch instead, or set nvidia_driver_kernel_modules to dkms",
            )
        ]
    carried = "; ".join(
        "%s carries %s"
        % (source, ", ".join(str(branch) for branch in driver_sources.all_branches(data, source)) or "none")
        for source in asked_sources
    )
    needed = ", ".join(sorted({"%d %s" % pair for pair in asked}))
    code = "source_impossible" if wish.source else "branch_not_carried"
    message = "no source of %s has a driver that fits (%s): %s" % (pretty, needed, carried)
    remedy = "choose another nvidia_driver_branch or nvidia_driver_source, or auto for both"
    unasked = [
        source
        for source in known
        if not wish.source and source not in driver_sources.automatic(data)
        for kind in driver_sources.kinds(data, source)
        if asked & driver_sources.pairs(data, source, kind, wish.profile)
    ]
    if unasked:
        remedy = "set nvidia_driver_source to %s, which is taken only when asked for" % " or ".join(unasked)
    return [Refusal(code, message, remedy)]


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


def next_boot_warnings(observed: Dict[str, Any], names: List[str]) -> List[Notice]:
    """Warn of a kernel that boots next and has no module; ``names``: packages that would bring it one.

    They are not brought unasked: they may need a newer driver than the one that is held and runs.
    """
    kernel = observed["driver"]["kernel_without_module"]
    if kernel is None:
        return []
    first = "install %s before it boots" % " and ".join(names) if names else "bring its module before it boots"
    return [
        Notice(
            "next_kernel_without_module",
            "kernel %s boots next and has no NVIDIA module: after a reboot there would be no GPU" % kernel,
            "%s, or run this again after the reboot; nvidia_driver_kernel_modules: dkms has modules built with each "
            "new kernel" % first,
        )
    ]


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


def vgpu_guest(card: Dict[str, Any]) -> Refusal:
    """Refuse to give a virtual GPU the driver of the whole card, which does not start on it."""
    behind = " (the driver on its machine is %s)" % card["vgpu"] if card["vgpu"] else ""
    return Refusal(
        "vgpu_guest",
        "%s is a virtual GPU%s: it takes NVIDIA's vGPU guest driver only, which no repository carries"
        % (card_name(card), behind),
        "give the guest driver's installer (NVIDIA-Linux-x86_64-VERSION-grid.run) as nvidia_driver_runfile, or install "
        "it yourself and set nvidia_driver_source to none",
    )


def secure_boot_unsigned(boot: Dict[str, Any], candidate: Candidate, data: Dict[str, Any]) -> Refusal:
    """Refuse a module that the kernel would reject, before anything is changed."""
    signed = [
        source
        for source in driver_sources.names(data)
        for kind in driver_sources.kinds(data, source)
        if kind == PRECOMPILED and driver_sources.table(data, source, kind).get("signed_by") == "distribution"
    ]
    instead = "set nvidia_driver_source to %s, whose modules are signed; or " % signed[0] if signed else ""
    if candidate.kind == PRECOMPILED:
        signer = driver_sources.table(data, candidate.source, candidate.kind).get("signed_by") or candidate.source
        return Refusal(
            "secure_boot_unsigned",
            "Secure Boot is on, and the modules of %s are signed with a key of %s that gpu-ready cannot find enrolled: "
            "the kernel would reject them" % (candidate.source, signer),
            instead + "choose modules that DKMS signs with an enrolled key of yours; or turn Secure Boot off",
        )
    key = boot["key"]
    cause = "its key %s is not enrolled" % key if key else "there is no key to sign it with yet"
    make = "" if key else MAKE_KEY.get(boot["certificate"], "put it there") + ", then "
    enrol = make + "run `mokutil --import %s`" % boot["certificate"]
    return Refusal(
        "secure_boot_unsigned",
        "Secure Boot is on, the module is built on this host, and %s: the kernel would reject it" % cause,
        "%s%s, confirm at the console during a reboot, and run this again; or turn Secure Boot off" % (instead, enrol),
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


def version_unknown() -> Refusal:
    """Refuse an installer whose name does not tell its version."""
    return Refusal(
        "runfile_version_unknown",
        "nvidia_driver_runfile names a file whose driver version its name does not tell",
        "set nvidia_driver_version to the version that it installs, or keep NVIDIA's file name",
    )
