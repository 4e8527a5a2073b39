"""Which NVIDIA driver a host gets: the ceiling first, the flavour second, then a source that carries it."""

from typing import Any, Dict, List, Optional

from ...base import versions
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import RUNFILE
from .. import repository
from ..model import Decision, Refusal
from . import candidates
from . import refusals as driver_refusals
from . import steps as driver_steps
from .candidates import Candidate, Wish, served
from .steps import fits, foreign

MODULES = ["nvidia", "nvidia-uvm"]


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the driver's choice and steps, or every reason why there is none."""
    wish = candidates.read_wish(wanted)
    cards = served(observed)
    warnings = driver_refusals.unknown_warnings(cards)
    if observed["base"]["arch"] != catalog.MACHINE:
        return Decision({}, [], [driver_refusals.machine_unsupported(observed)], warnings)
    if wish.source == "none":
        return Decision(as_found(observed), [], driver_refusals.driver_missing(observed), warnings)
    if observed["base"]["distro"] is None:
        return Decision({}, [], [driver_refusals.unknown_distribution(observed)], warnings)
    data = catalog.distro(observed["base"]["distro"])
    found = candidates.find(observed, wish, cards, data)
    if not found:
        possible = candidates.pairs_of_host(cards, wish)
        return Decision({}, [], driver_refusals.explain_nothing(observed, wish, cards, data, possible), warnings)
    driver = choose(observed, wanted, wish, data, found[0])
    refusals = refuse(observed, wanted, wish, driver, found[0], data)
    if refusals:
        return Decision(driver, [], refusals, warnings)
    steps = driver_steps.steps(observed, wanted, driver, data)
    warnings += driver_refusals.branch_warnings(driver)
    if driver["satisfied"] and not driver_steps.next_kernel(observed, driver):
        names = driver_steps.for_next_boot(observed, driver, data)
        warnings += driver_refusals.next_boot_warnings(observed, names)
    return Decision(driver, steps, [], warnings)


def as_found(observed: Dict[str, Any]) -> Dict[str, Any]:
    """Return the choice for a driver that is not ours to change: what is there is what is wanted."""
    disk = observed["driver"]["on_disk"] or observed["driver"]["loaded"] or {}
    version = disk.get("version")
    return {
        "source": "none",
        "kind": None,
        "version": None,
        "branch": versions.branch(version) if version else None,
        "flavour": disk.get("flavour"),
        "profile": None,
        "packages": [],
        "modules": MODULES,
        "satisfied": True,
        "why": "nvidia_driver_source is none: the driver is left as it is",
    }


def choose(
    observed: Dict[str, Any], wanted: Dict[str, Any], wish: Wish, data: Dict[str, Any], picked: Candidate
) -> Dict[str, Any]:
    """Return everything later rooms and the table need to know of the chosen driver."""
    source, kind, branch, flavour = picked
    kernel = observed["base"]["kernel"]["running"]
    entry = driver_sources.table(data, source, kind)
    driver: Dict[str, Any] = {
        "source": source,
        "kind": kind,
        "branch": branch,
        "flavour": flavour,
        "version": wish.version,
        "profile": wish.profile,
        "packages": driver_sources.packages(data, source, branch, wish.profile, flavour, kind, kernel),
        "stream": driver_sources.stream(data, source, branch, flavour, kind),
        "modules": MODULES,
        "cuda": getattr(catalog.branch(branch), "cuda", None),
    }
    if source == RUNFILE:
        driver["runfile"] = installer(wanted, driver, entry)
    if entry.get("detect"):
        driver["detected"] = verdict(observed, data, source, kind, wish)
    driver["satisfied"] = satisfied(observed, driver, data)
    driver["why"] = why(observed, wish, driver)
    return driver


def installer(wanted: Dict[str, Any], driver: Dict[str, Any], entry: Dict[str, Any]) -> Dict[str, Any]:
    """Return version and origin of an installer: the operator's file, else NVIDIA's newest of the branch.

    Unasked, the version is that of the file only: a driver of the branch that is there stays.
    """
    given = str(wanted.get("nvidia_driver_runfile") or "")
    checksum = str(wanted.get("nvidia_driver_runfile_sha256") or "").lower()
    version = driver["version"] or (None if given else getattr(catalog.branch(driver["branch"]), "newest", None))
    if given:
        return {"version": version, "source": given, "sha256": checksum, "sha256_url": ""}
    mirror = wanted.get("gpu_ready_mirror") or ""
    url, sums = (
        repository.mirrored(entry[name].format(version=version), mirror) for name in ("url", "sha256_url")
    )  # fmt: skip
    return {"version": version, "source": url, "sha256": checksum, "sha256_url": "" if checksum else sums}


def earlier_installer(observed: Dict[str, Any], wanted: Dict[str, Any], version: str) -> Optional[Dict[str, Any]]:
    """Return version and origin of another installer, such as that of the driver that is there; None without any.

    Where the operator gave a file, the other one is looked for beside it, under its own version; else at NVIDIA's.
    """
    given = str(wanted.get("nvidia_driver_runfile") or "")
    other = candidates.version_of_file(given)
    if other:
        return {"version": version, "source": given.replace(other, version), "sha256": "", "sha256_url": ""}
    distro = observed["base"]["distro"]
    entry = catalog.distro(distro)["driver_sources"].get(RUNFILE) if distro else None
    return (
        installer({"gpu_ready_mirror": wanted.get("gpu_ready_mirror")}, {"version": version}, entry) if entry else None
    )


def verdict(observed: Dict[str, Any], data: Dict[str, Any], source: str, kind: str, wish: Wish) -> List[str]:
    """Return the packages that a source's own detector may name for the cards of this host, by our catalog.

    A detector looks at one card at a time and names what serves it best, whatever branch was asked for.
    """
    found = set()
    for card in served(observed):
        pairs = candidates.pairs_of_gpu(card["device"]) & driver_sources.pairs(data, source, kind, wish.profile)
        newest = max([branch for branch, _ in pairs] or [0])
        for branch, flavour in pairs:
            if branch == newest:
                names = driver_sources.packages(data, source, branch, wish.profile, flavour, kind)
                found |= {name for name in names if name.startswith("kmod-")}
    return sorted(found)


def why(observed: Dict[str, Any], wish: Wish, driver: Dict[str, Any]) -> str:
    """Return in one sentence why it is this driver."""
    names: List[str] = []
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


def satisfied(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> bool:
    """Return whether the driver on disk is the chosen one, whole and with nothing of another beside it."""
    state = observed["driver"]
    disk = state["on_disk"]
    there = observed["packages"]["installed"]
    return bool(
        disk
        and fits(disk["version"], driver)
        and disk["flavour"] == driver["flavour"]
        and state["userspace"] == [disk["version"]]
        and state["origin"] == driver["source"]
        and all(name in there for name in driver["packages"])
        and not driver_steps.removals(observed, driver, data)
        and not (driver["source"] == RUNFILE and state.get("interrupted"))
    )


def refuse(
    observed: Dict[str, Any],
    wanted: Dict[str, Any],
    wish: Wish,
    driver: Dict[str, Any],
    picked: Candidate,
    data: Dict[str, Any],
) -> List[Refusal]:
    """Return what forbids installing the chosen driver on this host, [] where it is there already."""
    if driver["satisfied"]:
        return []
    if observed["base"].get("image"):
        return [driver_refusals.image_based()]
    refusals = []
    if foreign(observed, driver) and not wanted.get("nvidia_driver_replace_foreign"):
        refusals.append(driver_refusals.foreign_driver(observed, driver))
    if driver["source"] == RUNFILE and not driver["runfile"]["version"]:
        refusals.append(driver_refusals.version_unknown())
    virtual = [card for card in served(observed) if card.get("vgpu") is not None]
    if virtual and not wanted.get("nvidia_driver_runfile"):
        refusals.append(driver_refusals.vgpu_guest(virtual[0]))
    if not candidates.trusted(observed, data, picked):
        refusals.append(driver_refusals.secure_boot_unsigned(observed["base"]["secure_boot"], picked, data))
    refusals += repository.keyless(repository.lacking(observed, needed(observed, wanted, driver, data)))
    return refusals + driver_refusals.disk_full(observed)


def needed(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]
) -> List[Dict[str, Any]]:
    """Return every repository that the driver and its build come from."""
    build: List[str] = list(data.get("build_repositories") or []) if driver["kind"] == driver_sources.DKMS else []
    return driver_steps.repositories(wanted, driver, data) + [repository.params(name, wanted) for name in build]
