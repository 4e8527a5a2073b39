"""Which CUDA toolkits a host gets: what its driver and its oldest GPU allow, side by side, one of them the default."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...base import versions
from ...catalog import model as catalog
from ...cuda import toolkit as toolkit_names
from .. import repository
from ..driver.candidates import served
from ..model import Decision, Notice, Refusal, Step
from . import requests as cuda_wishes
from . import steps as cuda_steps
from .requests import NONE, RUNFILE, Wish

REPOSITORY_SOURCE = "cuda_repo"
ALIAS = toolkit_names.ALIAS


class Ground(NamedTuple):
    """What a decision about toolkits stands on; ``whole`` are the toolkits that are there and stay, by version."""

    observed: Dict[str, Any]
    wanted: Dict[str, Any]
    driver: Optional[str]
    source: str
    going: List[str]
    whole: Dict[str, Dict[str, Any]]


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the toolkits and the steps to them; which are there already is looked at version by version."""
    going = cuda_wishes.leaving(wanted)
    whole = {toolkit["version"]: toolkit for toolkit in present(observed) if toolkit["version"] not in going}
    driver = driver_version(observed, choice)
    ground = Ground(observed, wanted, driver, cuda_wishes.source(wanted), going, whole)
    refusals = cuda_wishes.contradictions(wanted) + _removal_refusals(ground)
    if refusals:
        return Decision({}, [], refusals)
    if ground.source == NONE:
        return _left_alone(ground)
    wishes = cuda_wishes.asked(wanted)
    warnings: List[Notice] = []
    if wishes:
        refusals = [refusal for wish in wishes for refusal in _refusals(ground, wish)]
        warnings = [notice for wish in wishes for notice in _unknown(ground, wish)]
    else:
        wishes = [Wish(version) for version in _available(ground)[-1:]]
    todo = [wish for wish in wishes if cuda_steps.lack(wish, whole.get(wish.version))]
    refusals = refusals or [refusal for wish in todo for refusal in _origin_refusals(ground, wish)]
    refusals = refusals or _source_refusals(ground, todo)
    if refusals:
        return Decision({}, [], refusals)
    if not wishes:
        nothing: Dict[str, Any] = {"source": ground.source, "toolkits": [], "default": None}
        return Decision(nothing, cuda_steps.of_removal(observed, going), [], [_nothing_fits(ground)])
    return _arranged(ground, choice, wishes, todo, warnings)


def _arranged(
    ground: Ground, choice: Dict[str, Any], wishes: List[Wish], todo: List[Wish], warnings: List[Notice]
) -> Decision:
    """Return the steps to toolkits that can be had: bring them, make one the default, then take others away."""
    observed, wanted = ground.observed, ground.wanted
    chosen = [wish.version for wish in wishes]
    default = cuda_wishes.default(wanted) or max(chosen, key=versions.key)
    picked = {"source": ground.source, "toolkits": _rows(chosen, ground.whole), "default": default}
    refusals = _default_refusals(ground, default, chosen)
    if refusals:
        return Decision(picked, [], refusals)
    steps: List[Step] = []
    reasons = [cuda_steps.lack(wish, ground.whole.get(wish.version)) for wish in todo]
    if todo and ground.source == RUNFILE:
        steps = [cuda_steps.of_installers(observed, wanted, todo, reasons)]
    elif todo:
        steps = cuda_steps.of_repository(observed, wanted, choice, _entry(observed) or {}, todo)
        refusals = [refusal for step in steps for refusal in repository.keyless(step.params["repositories"])]
        if refusals:
            return Decision(picked, [], refusals)
        steps.append(cuda_steps.of_packages(todo, reasons))
    profile = cuda_wishes.profile(wanted)
    prefix = {NONE: None, cuda_wishes.DEFAULT: toolkit_names.LINK}.get(profile, toolkit_names.toolkit_path(profile))
    packages = bool(todo) and ground.source != RUNFILE
    steps += cuda_steps.of_default(observed, default, packages) + cuda_steps.of_profile(observed, prefix)
    return Decision(picked, steps + cuda_steps.of_removal(observed, ground.going), [], warnings)


def _left_alone(ground: Ground) -> Decision:
    """Return what source none means: toolkits stay as they are, but for those that are to go by name."""
    observed, stay = ground.observed, sorted(ground.whole, key=versions.key)
    picked = {"source": NONE, "toolkits": _rows(stay, ground.whole), "default": None}
    removal = cuda_steps.of_removal(observed, ground.going)
    folders = [toolkit_names.toolkit_path(one) for one in ground.going]
    led, pinned = observed["cuda"]["default"]["target"] in folders, cuda_steps.profile_leads_to(observed, ground.going)
    steps: List[Step] = []
    # The link must lead somewhere, or go together with the profile that follows it.
    if removal and led and stay:
        steps += cuda_steps.of_default(observed, stay[-1])
    if removal and (pinned or (led and not stay)):
        steps += cuda_steps.of_profile(observed, toolkit_names.LINK if stay else None)
    return Decision(picked, steps + removal)


# --- what later rooms ask too ------------------------------------------------------------------------------------


def present(observed: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the toolkits that are there as a whole, from whichever source."""
    others = (toolkit_names.PARTIAL, toolkit_names.ALIAS)
    return [toolkit for toolkit in observed["cuda"]["toolkits"] if toolkit["origin"] not in others]


def gpu_architectures(observed: Dict[str, Any]) -> Dict[str, str]:
    """Return the architectures of the GPUs that the host drives, each with the name of one card.

    Cards that the catalog does not know bound nothing, nor do those that are given to virtual machines.
    """
    found: Dict[str, str] = {}
    for card in served(observed):
        known = catalog.gpu(card["device"])
        if known is not None:
            found.setdefault(known.architecture, card["name"])
    return found


def driver_version(observed: Dict[str, Any], choice: Dict[str, Any]) -> Optional[str]:
    """Return the driver that the host has when the plan is done, None where nobody knows."""
    driver = choice.get("driver") or {}
    if driver.get("version"):
        return str(driver["version"])
    disk = (observed.get("driver") or {}).get("on_disk") or {}
    if driver.get("satisfied") and disk.get("version"):
        return str(disk["version"])
    branch = driver.get("branch")
    if not branch:
        return None
    known = catalog.branch(int(branch))
    return known.newest if known is not None else "%s" % branch


def drops(architectures: Dict[str, str], serves: Tuple[str, ...]) -> Optional[str]:
    """Return the name of a card that something made for the architectures ``serves`` does not serve any more."""
    return next((name for kind, name in sorted(architectures.items()) if kind not in serves), None)


def fits(observed: Dict[str, Any], driver: Optional[str]) -> List[str]:
    """Return the toolkits of the catalog that driver and GPUs allow, ascending."""
    cards = gpu_architectures(observed)
    return [
        toolkit.version
        for toolkit in catalog.toolkits()
        if not _above(toolkit, driver) and drops(cards, toolkit.architectures) is None
    ]


# --- the decision ------------------------------------------------------------------------------------------------


def _rows(chosen: List[str], whole: Dict[str, Dict[str, Any]]) -> List[Dict[str, str]]:
    paths = {version: str(toolkit["path"]) for version, toolkit in whole.items()}
    return [{"version": version, "path": paths.get(version, toolkit_names.toolkit_path(version))} for version in chosen]


def _above(toolkit: catalog.Toolkit, driver: Optional[str]) -> bool:
    # Minor-version compatibility: every x.y of a CUDA major runs on the driver that its first release needed.
    return driver is not None and versions.compare(driver, toolkit.min_driver) < 0


def _known(version: str) -> Optional[catalog.Toolkit]:
    return next((known for known in catalog.toolkits() if known.version == version), None)


def _brought_along(ground: Ground, wish: Wish) -> bool:
    """Return whether a toolkit needs no catalog: it is there, or the operator has its installer."""
    own = cuda_wishes.given(ground.wanted)[0]
    return wish.version in ground.whole or (
        ground.source == RUNFILE and wish.version in [toolkit_names.series(one) for one in own]
    )


def _refusals(ground: Ground, wish: Wish) -> List[Refusal]:
    """Return why a toolkit cannot work on a host, with the newest that can."""
    toolkit = _known(wish.version)
    if toolkit is None:
        known_versions = ", ".join(known.version for known in catalog.toolkits())
        message = "cuda_toolkit_versions asks for CUDA %s, which the catalog of %s does not know"
        refusal = Refusal(
            "cuda_unknown",
            message % (wish.version, catalog.DATE),
            "use versions with two numbers out of: %s" % known_versions,
        )
        return [] if _brought_along(ground, wish) else [refusal]
    fitting = _available(ground)
    most = (
        "set cuda_toolkit_versions to %s, the newest that works here" % fitting[-1]
        if fitting
        else "set cuda_toolkit_source to none: no toolkit fits here"
    )
    refusals = []
    card = drops(gpu_architectures(ground.observed), toolkit.architectures)
    if card is not None:
        message = "CUDA %s does not serve %s" % (wish.version, card)
        refusals.append(Refusal("cuda_drops_gpu", message, most))
    if _above(toolkit, ground.driver):
        numbers = (wish.version, toolkit.min_driver, ground.driver)
        message = "CUDA %s needs driver %s or newer, and this host gets %s" % numbers
        branch = versions.branch(toolkit.min_driver)
        remedy = most if card is not None else "%s, or nvidia_driver_branch to %d or newer" % (most, branch)
        refusals.append(Refusal("cuda_above_driver", message, remedy))
    return refusals


def _unknown(ground: Ground, wish: Wish) -> List[Notice]:
    """Tell of a toolkit that nothing but the operator's word lets through."""
    if _known(wish.version) is not None:
        return []
    message = "the catalog of %s does not know CUDA %s: whether driver and GPUs carry it is not checked"
    remedy = "see NVIDIA's release notes of that toolkit"
    return [Notice("cuda_unknown", message % (catalog.DATE, wish.version), remedy)]


def _entry(observed: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the catalog's words about NVIDIA's repository for this distribution, None where there is none."""
    key = observed["base"]["distro"]
    return None if key is None else catalog.distro(key)["driver_sources"].get(REPOSITORY_SOURCE)


def _carried(ground: Ground) -> Optional[List[str]]:
    """Return the toolkits that the source carries; None where the catalog names no limit."""
    if ground.source == RUNFILE:
        found = list(cuda_wishes.given(ground.wanted)[0]) + [one.release for one in catalog.cuda_installers()]
        return sorted({toolkit_names.series(release) for release in found}, key=versions.key)
    entry = _entry(ground.observed)
    if entry is None:
        return []
    listed = entry.get("toolkits")
    return None if listed is None else [str(version) for version in listed]


def _available(ground: Ground) -> List[str]:
    """Return the toolkits that fit and are there or can be had, ascending; none of those that are to go."""
    carried = _carried(ground)
    return [
        version
        for version in fits(ground.observed, ground.driver)
        if (carried is None or version in carried or version in ground.whole) and version not in ground.going
    ]


def _origin_refusals(ground: Ground, wish: Wish) -> List[Refusal]:
    """Refuse to lay one kind of installation over another in the same folder."""
    observed, version = ground.observed, wish.version
    there = ground.whole.get(version)
    again = 'take it away first (cuda_toolkit_remove: ["%s"])' % version
    if there is not None:
        kinds = {toolkit_names.PACKAGE: "packages", toolkit_names.RUNFILE: "NVIDIA's installer"}
        own = toolkit_names.RUNFILE if ground.source == RUNFILE else toolkit_names.PACKAGE
        if there["origin"] == own:
            return []
        kind = kinds.get(there["origin"])
        if kind is None:
            by_hand = (there["path"], wish.text)
            message = "%s was placed by hand, so it cannot be brought to CUDA %s" % by_hand
            remedy = "move it away, or ask for %s without its third number to keep it as it is" % version
            return [Refusal("cuda_foreign", message, remedy)]
        message = "%s, and %s brought it, not %s" % (cuda_steps.lack(wish, there), kind, kinds[own])
        other = cuda_wishes.RUNFILE if there["origin"] == toolkit_names.RUNFILE else cuda_wishes.REPO
        return [Refusal("cuda_other_source", message, "set cuda_toolkit_source to %s, or %s" % (other, again))]
    aliases = [one for one in observed["cuda"]["toolkits"] if (one["version"], one["origin"]) == (version, ALIAS)]
    if aliases:
        return [_alias_refusal(aliases[0], "move it away, or take %s out of cuda_toolkit_versions" % wish.text)]
    parts = toolkit_names.packages_of_toolkit(version, observed["packages"]["installed"])
    if parts and ground.source == RUNFILE:
        message = "packages of CUDA %s are on this host (%s), and the installer would write over their files" % (
            version,
            ", ".join(parts[:3]),
        )
        return [Refusal("cuda_other_source", message, "set cuda_toolkit_source to repo, or %s" % again)]
    halves = [one["path"] for one in observed["cuda"]["toolkits"] if one["version"] == version and one.get("cut_off")]
    if halves and ground.source != RUNFILE:
        message = "NVIDIA's installer was cut off in %s, and packages would be laid over what is there" % halves[0]
        return [Refusal("cuda_other_source", message, "set cuda_toolkit_source to runfile to finish it, or %s" % again)]
    return []


def _source_refusals(ground: Ground, todo: List[Wish]) -> List[Refusal]:
    """Refuse what the source does not carry, and say what it does."""
    if ground.source == RUNFILE:
        lacking = [wish for wish in todo if cuda_wishes.installer(wish, ground.wanted) is None]
        return [_no_installer(wish) for wish in lacking]
    carried = _carried(ground)
    absent = [wish.version for wish in todo if carried is not None and wish.version not in carried]
    if not absent:
        return []
    return [
        Refusal(
            "source_impossible",
            "NVIDIA's repository for %s carries no CUDA %s" % (ground.observed["base"]["distro"], ", ".join(absent)),
            "choose from: %s; or set cuda_toolkit_source to runfile; or install it yourself and set it to none"
            % (", ".join(carried or []) or "none"),
        )
    ]


def _no_installer(wish: Wish) -> Refusal:
    releases = [one.release for one in catalog.cuda_installers() if toolkit_names.series(one.release) == wish.version]
    return Refusal(
        "source_impossible",
        "the catalog of %s knows no installer of CUDA %s" % (catalog.DATE, wish.text),
        '%sor give yours as cuda_toolkit_runfiles: {"%s": URL or path}'
        % ("ask for one of %s, " % ", ".join(releases) if releases else "ask for another version, ", wish.text),
    )


def _removal_refusals(ground: Ground) -> List[Refusal]:
    """Refuse to take away what neither packages nor an installer brought: nobody knows what else lies there."""
    going = [toolkit for toolkit in ground.observed["cuda"]["toolkits"] if toolkit["version"] in ground.going]
    remedy = "delete the link yourself, or take %s out of cuda_toolkit_remove"
    aliases = [_alias_refusal(one, remedy % one["version"]) for one in going if one["origin"] == ALIAS]
    return aliases + [
        Refusal(
            "cuda_foreign",
            "%s belongs to no package and has no uninstaller, so somebody placed it by hand" % toolkit["path"],
            "delete or move that folder yourself, or take %s out of cuda_toolkit_remove" % toolkit["version"],
        )
        for toolkit in going
        if toolkit["origin"] == toolkit_names.FOREIGN
    ]


def _alias_refusal(toolkit: Dict[str, Any], remedy: str) -> Refusal:
    message = "%s holds CUDA %s: it is a link of somebody's, or another toolkit under a wrong name"
    return Refusal("cuda_foreign", message % (toolkit["path"], toolkit["release"]), remedy)


def _nothing_fits(ground: Ground) -> Notice:
    cards = " and ".join(sorted(gpu_architectures(ground.observed).values())) or "this host"
    return Notice(
        "cuda_none_fits",
        "no CUDA toolkit of the catalog fits %s%s on %s"
        % (cards, " with driver %s" % ground.driver if ground.driver else "", ground.observed["base"]["distro"]),
        "none is installed; set cuda_toolkit_source to none to say that this is meant",
    )


def _default_refusals(ground: Ground, default: str, chosen: List[str]) -> List[Refusal]:
    """Refuse a default or a profile that would lead nowhere."""
    refusals = []
    there = chosen + sorted(ground.whole)
    profile = cuda_wishes.profile(ground.wanted)
    asked = [("cuda_toolkit_default", default)]
    if profile not in (NONE, cuda_wishes.DEFAULT):
        asked.append(("cuda_toolkit_profile", profile))
    for variable, version in asked:
        if version not in there:
            message = "%s is %s, which is neither there nor in cuda_toolkit_versions (%s)"
            remedy = "add it to cuda_toolkit_versions, or choose one of them"
            text = message % (variable, version, ", ".join(chosen))
            refusals.append(Refusal("cuda_default_missing", text, remedy))
    if ground.observed["cuda"]["default"]["kind"] == "folder":
        message = "%s is a folder of its own, so it cannot point to CUDA %s" % (toolkit_names.LINK, default)
        paths = (toolkit_names.LINK, toolkit_names.LINK)
        remedy = "move it away (mv %s %s-old), or set cuda_toolkit_source to none" % paths
        refusals.append(Refusal("cuda_link_is_folder", message, remedy))
    return refusals
