"""Which docker engine is to be there: its source and version, what it replaces, and what that does to containers."""

import re
from typing import Any, Dict, List, NamedTuple, Optional

from ...catalog import model as catalog
from ...packaging.version_match import version_matches
from .. import repository
from ..model import DOCKER_RESTART, NONE, Notice, Refusal, Step

SERVICE = "docker"


class Target(NamedTuple):
    """The engine that is to come or to stay: its source in the catalog, its version as package managers match it."""

    source: str
    entry: Dict[str, Any]
    version: Optional[str]

    @property
    def engine(self) -> List[str]:
        """Return the packages that bear the engine's version, its daemon first."""
        return list(self.entry["engine"])


class Outcome(NamedTuple):
    """What the packages need: the steps, whether the engine restarts and why, and whether containers live on then."""

    steps: List[Step] = []
    refusals: List[Refusal] = []
    warnings: List[Notice] = []
    restarts: str = ""
    survivable: bool = True


def decide(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Outcome:
    """Return what is to be done to the engine's packages and its service."""
    engine = observed["docker"]
    if engine.get("snap") and not engine["installed"]:
        return Outcome([], [snapped(engine["snap"])])
    target = aim(observed, wanted)
    there = present(observed)
    if target is None:
        if not engine["installed"] and wanted.get("docker_engine_source") == "none":
            return Outcome([], [missing()])
        if not engine["installed"] or (there and wanted.get("docker_engine_source") != "none"):
            return Outcome([], [unknown(observed, wanted)])
        refusals = [] if serves(observed, wanted) else [unmovable(observed, wanted)]
        return Outcome([] if refusals else [service(why, []) for why in silent(observed)], refusals)
    lacks = lacking(observed, target)
    if engine["installed"] and not lacks:
        return settled(observed, wanted, target)
    leaving = [] if there == target.source else in_the_way(observed, target)
    if leaving and not wanted.get("docker_engine_replace_conflicting"):
        return Outcome([], [conflicting(target, leaving)])
    third = [repository.params(name, wanted) for name in [target.entry.get("repository")] if name]
    refusals = repository.keyless(third)
    if refusals:
        return Outcome([], refusals)
    third = repository.lacking(observed, third)
    steps = []
    if third:
        reason = "docker comes from %s" % third[0]["url"]
        steps.append(Step("docker_engine.repository", reason, params={"repositories": third}))
    why = reason_of(observed, target, lacks)
    running = bool(engine["active"])
    steps.append(install(observed, target, why, DOCKER_RESTART if running else NONE, leaving))
    warnings = [lost(leaving)] if leaving else []
    # The containers of an engine whose containerd is replaced too are nobody's afterwards, live-restore or not.
    return Outcome(steps, [], warnings, why if running else "", not leaving)


# --- which engine ------------------------------------------------------------------------------------------------


def offered(observed: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    """Return the docker engines that the catalog knows for the distribution, the preferred one first."""
    key = observed["base"]["distro"]
    return dict(catalog.distro(key).get("docker") or {}) if key else {}


def present(observed: Dict[str, Any]) -> Optional[str]:
    """Return the source of the engine that is there, None where none is or its origin is not known."""
    installed = observed["packages"]["installed"]
    found = [name for name, entry in offered(observed).items() if entry["engine"][0] in installed]
    return found[0] if found and observed["docker"]["installed"] else None


def aim(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Optional[Target]:
    """Return the engine to have by package: the one that is there unless another is asked for; None for no package."""
    known = offered(observed)
    name = wanted.get("docker_engine_source") or "auto"
    there = present(observed)
    if name == "none" or (observed["docker"]["installed"] and there is None):
        return None
    version = wish(wanted)
    if there and (version is None or name == "auto"):
        replace = bool(wanted.get("docker_engine_replace_conflicting"))
        stays = Target(there, known[there], version)
        if version is None and not (replace and name in known):
            return stays
        if version is not None and not lacking(observed, stays):
            return stays
    if name == "auto":
        name = likely(known, version, there)
    return Target(name, known[name], version) if name in known else None


def likely(known: Dict[str, Dict[str, Any]], version: Optional[str], there: Optional[str]) -> str:
    """Return the source that has a version: a distribution carries one, Docker's repository all of them."""
    if version is None or len(known) < 2:
        return next(iter(known), "")
    if there == "docker_ce":
        return there
    if "distro" in known and version_matches(number(version) + "*", str(known["distro"].get("version") or "")):
        return "distro"
    return "docker_ce"


def number(version: str) -> str:
    """Return the engine's own number in the version of a package."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return found.group(0) if found else version


def wish(wanted: Dict[str, Any]) -> Optional[str]:
    """Return the asked version as package managers match it: a beginning, without epoch (the client has another)."""
    asked = str(wanted.get("docker_engine_version") or "")
    return re.sub(r"^\d+:", "", asked) + "*" if asked else None


def lacking(observed: Dict[str, Any], target: Target) -> List[str]:
    """Return the packages of the engine that are missing or have another version than asked for."""
    installed = observed["packages"]["installed"]
    if target.version is None:
        return [] if target.engine[0] in installed else target.engine
    return [
        name for name in target.engine if name not in installed or not version_matches(target.version, installed[name])
    ]


def serves(observed: Dict[str, Any], wanted: Dict[str, Any]) -> bool:
    """Return whether an engine that no package of the catalog brought is what is asked for."""
    version = wish(wanted)
    return version is None or version_matches(version, str(observed["docker"]["version"] or ""))


def in_the_way(observed: Dict[str, Any], target: Target) -> List[str]:
    """Return the installed packages that the wanted ones exclude: as the catalog lists them, and other engines."""
    own = {package["name"] for package in packages(target)}
    others = [name for entry in offered(observed).values() for name in names(entry)]
    listed = list(target.entry.get("conflicts") or []) + others
    installed = observed["packages"]["installed"]
    return sorted({name for name in listed if name in installed and name not in own})


def names(entry: Dict[str, Any]) -> List[str]:
    """Return the names of an engine's packages."""
    return [one["name"] if isinstance(one, dict) else one for one in entry["packages"]]


def packages(target: Target) -> List[Dict[str, Any]]:
    """Return the packages of an engine: the asked version, else those that the catalog pins for systems of the past."""
    rows = [dict(one) if isinstance(one, dict) else {"name": one, "version": None} for one in target.entry["packages"]]
    for row in rows:
        if target.version is not None and row["name"] in target.engine:
            row["version"] = target.version
    return rows


def modules(observed: Dict[str, Any], target: Target) -> List[str]:
    """Return the packages with what the engine needs of the kernel that runs and of the one that boots next.

    They come where a source has them: a site's own kernel may have it all, and the engine says what it lacks.
    """
    patterns = target.entry.get("kernel_packages") or []
    kernel = observed["base"]["kernel"] if patterns else {}
    kernels = dict.fromkeys(kernel[name] for name in ("running", "next_boot") if kernel)
    return [pattern.format(kernel=one) for pattern in patterns for one in kernels]


def version(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Optional[str]:
    """Return the version of the engine that will be there as far as it can be told (None: not known)."""
    engine = observed["docker"]
    target = aim(observed, wanted)
    if target is None or (engine["installed"] and not lacking(observed, target)):
        return str(engine["version"]) if engine["version"] else None
    found = number(target.version) if target.version else target.entry.get("version")
    return str(found) if found else None


# --- the steps ---------------------------------------------------------------------------------------------------


def install(observed: Dict[str, Any], target: Target, why: str, disruption: str, leaving: List[str]) -> Step:
    """Return the step that brings the engine's packages to their version and has the service run them."""
    state = observed["packages"]
    hold = target.engine if target.version is not None else []
    tools = catalog.distro(observed["base"]["distro"]).get("hold_tools") or [] if hold else []
    rows = packages(target) + [{"name": name, "version": None} for name in tools if name not in state["installed"]]
    params = {
        "packages": rows,
        "optional": modules(observed, target),
        "remove": leaving,
        "hold": hold,
        "unhold": sorted(set(state["held"]) & {*target.engine, *leaving}),
        "service": SERVICE,
        "state": "restarted" if disruption == DOCKER_RESTART else "started",
    }
    return Step("docker_engine.install", why, disruption, params)


def service(why: str, unhold: List[str], optional: Optional[List[str]] = None) -> Step:
    """Return the step where no package is asked for at a version, and only the service or a hold is not right."""
    params = {
        "packages": [],
        "optional": optional or [],
        "remove": [],
        "hold": [],
        "unhold": unhold,
        "service": SERVICE,
        "state": "started",
    }
    return Step("docker_engine.install", why, NONE, params)


def silent(observed: Dict[str, Any]) -> List[str]:
    """Return the reason to start an engine that does not answer."""
    return [] if observed["docker"]["active"] else ["docker is installed, but does not answer on its socket"]


def settled(observed: Dict[str, Any], wanted: Dict[str, Any], target: Target) -> Outcome:
    """Return what is left where the right packages are there: a start, a restart that is owed, holds."""
    engine, held = observed["docker"], set(observed["packages"]["held"])
    warnings = [elsewhere(wanted, target)] if ignored(wanted, target) else []
    reasons = silent(observed)
    if target.version is None:
        ours = sorted(held & set(target.engine) & set(engine.get("held_by_us") or []))
        if ours:
            reasons.append("%s is held, and no version is asked for any more" % ", ".join(ours))
        more = modules(observed, target) if silent(observed) else []
        return Outcome([service("; ".join(reasons), ours, more)] if reasons else [], [], warnings)
    if not set(target.engine) <= held:
        reasons.append("an unattended upgrade would take docker away from the version that is asked for")
    owed = bool(engine["active"] and engine.get("outdated"))
    if owed:
        reasons.append("docker still runs the program from before its packages changed")
    why = "; ".join(reasons)
    steps = [install(observed, target, why, DOCKER_RESTART if owed else NONE, [])] if reasons else []
    return Outcome(steps, [], warnings, why if owed else "")


def reason_of(observed: Dict[str, Any], target: Target, lacks: List[str]) -> str:
    """Return why packages of the engine are to come."""
    installed = observed["packages"]["installed"]
    if not observed["docker"]["installed"]:
        return "docker is not installed"
    wanted = "%s%s" % (target.engine[0], " " + target.version[:-1] if target.version else "")
    there = present(observed)
    if there != target.source:
        name = offered(observed)[str(there)]["engine"][0]
        return "%s %s is there; wanted is %s" % (name, installed[name], wanted)
    name = lacks[0]
    lack = "%s is %s" % (name, installed[name]) if name in installed else "%s is not there" % name
    return "%s; wanted is %s" % (lack, wanted)


# --- what stands in the way --------------------------------------------------------------------------------------


def ignored(wanted: Dict[str, Any], target: Target) -> bool:
    """Return whether the engine that is there is not from the source that was named."""
    return (wanted.get("docker_engine_source") or "auto") not in ("auto", "none", target.source)


def elsewhere(wanted: Dict[str, Any], target: Target) -> Notice:
    """Return the notice that an engine from another source is used as it is."""
    return Notice(
        "docker_from_elsewhere",
        "%s is there and is used, although docker_engine_source is %s"
        % (target.engine[0], wanted["docker_engine_source"]),
        "docker_engine_replace_conflicting: true exchanges it; images and volumes stay",
    )


def conflicting(target: Target, leaving: List[str]) -> Refusal:
    """Return the refusal to remove packages without leave."""
    one = len(leaving) == 1
    text = "%s %s there and exclude%s %s, which is wanted"
    name = "%s%s" % (target.engine[0], " " + target.version[:-1] if target.version else "")
    return Refusal(
        "docker_conflicting_packages",
        text % (", ".join(leaving), "is" if one else "are", "s" if one else "", name),
        "allow %s removal with docker_engine_replace_conflicting: true (images and volumes in /var/lib/docker stay), "
        "or leave docker_engine_source and docker_engine_version at what is there" % ("its" if one else "their"),
    )


def lost(leaving: List[str]) -> Notice:
    """Return the notice that removed packages do not come back by themselves."""
    return Notice(
        "docker_replaced",
        "%s will be removed; images, volumes and containers in /var/lib/docker stay" % ", ".join(leaving),
        "uninstall.yml does not install them again",
    )


def unmovable(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Refusal:
    """Return the refusal to change the version of an engine that somebody else provides."""
    engine = observed["docker"]
    asked, there = wanted["docker_engine_version"], engine["version"] or "of an unknown version"
    if wanted.get("docker_engine_source") == "none":
        return Refusal(
            "docker_version_impossible",
            "docker %s is there, docker_engine_version is %s, and docker_engine_source is none" % (there, asked),
            "install that version, or name the source that has it, or take docker_engine_version away",
        )
    return Refusal(
        "docker_version_impossible",
        "docker %s (%s) came from no package that the catalog knows, so it cannot be brought to version %s"
        % (there, engine.get("program") or "dockerd", asked),
        "remove it and let gpu-ready install docker, or take docker_engine_version away",
    )


def snapped(path: str) -> Refusal:
    """Return the refusal where docker is a snap: it has files and a toolkit of its own, and takes the same socket."""
    return Refusal(
        "docker_is_a_snap",
        "docker on this host is a snap (%s), with configuration, containers and a toolkit of its own that gpu-ready "
        "does not manage, and a second docker would take its socket" % path,
        "move its containers and images away and run `snap remove docker`, then run this again",
    )


def missing() -> Refusal:
    """Return the refusal where somebody else should have installed docker."""
    return Refusal(
        "docker_missing",
        "docker is not installed, and docker_engine_source is none",
        "install docker, or set docker_engine_source: auto",
    )


def unknown(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Refusal:
    """Return the refusal where the catalog knows no such docker for the distribution."""
    known = offered(observed)
    name = observed["base"]["distro"] or observed["base"]["os"].get("id")
    if known:
        there = "docker is not installed" if not observed["docker"]["installed"] else "another docker is wanted"
        return Refusal(
            "source_impossible",
            "%s, and docker_engine_source %s does not exist for %s" % (there, wanted.get("docker_engine_source"), name),
            "choose auto or %s, or install docker yourself and set docker_engine_source: none" % " or ".join(known),
        )
    return Refusal(
        "unknown_distribution",
        "docker is not installed, and the catalog has no docker packages for this distribution (%s)" % name,
        "install docker yourself and set docker_engine_source: none",
    )
