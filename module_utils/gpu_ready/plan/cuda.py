"""Which CUDA toolkits a host gets: what its driver and its oldest GPU allow, side by side, one of them the default."""

from typing import Any, Dict, List, Optional, Tuple

from .. import catalog, profile_d, versions
from .. import cuda as toolkit_names
from . import repository
from .steps import Decision, Notice, Refusal, Step

REPOSITORY_SOURCE = "cuda_repo"


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the toolkits and the steps to them; which are there already is looked at version by version."""
    whole = {toolkit["version"]: toolkit["path"] for toolkit in present(observed)}
    if wanted.get("cuda_toolkit_source") == "none":
        return Decision({"source": "none", "toolkits": _rows(sorted(whole, key=versions.key), whole), "default": None})
    asked = _asked(wanted)
    driver = driver_version(observed, choice)
    carried = _carried(observed)
    if asked:
        refusals = [refusal for version in asked for refusal in _refusals(observed, version, driver)]
        missing = [version for version in asked if version not in whole]
        if not refusals and missing:
            refusals = _source_refusals(observed, missing, carried)
        chosen = asked
    else:
        fitting = _available(observed, driver)
        chosen, refusals = fitting[-1:], []
    if refusals:
        return Decision({}, [], refusals)
    if not chosen:
        return Decision({"source": "repo", "toolkits": [], "default": None}, [], [], [_nothing_fits(observed, driver)])
    default = str(wanted.get("cuda_toolkit_default") or "auto")
    default = max(chosen, key=versions.key) if default == "auto" else default
    refusals = _default_refusals(observed, default, chosen, whole)
    picked = {"source": "repo", "toolkits": _rows(chosen, whole), "default": default}
    if refusals:
        return Decision(picked, [], refusals)
    missing = [version for version in chosen if version not in whole]
    steps = _repository_steps(observed, wanted, choice, missing)
    refusals = [refusal for step in steps for refusal in repository.keyless(step.params["repositories"])]
    if refusals:
        return Decision(picked, [], refusals)
    steps += _install_steps(missing) + _default_steps(observed, default) + _profile_steps(observed)
    return Decision(picked, steps)


# --- what later rooms ask too ------------------------------------------------------------------------------------


def present(observed: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the toolkits that are there as a whole, from whichever source."""
    return [toolkit for toolkit in observed["cuda"]["toolkits"] if toolkit["origin"] != "partial"]


def gpu_architectures(observed: Dict[str, Any]) -> Dict[str, str]:
    """Return the architectures of the host's GPUs, each with the name of one card; unknown cards bound nothing."""
    found: Dict[str, str] = {}
    for card in observed["base"]["gpus"]:
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


def _asked(wanted: Dict[str, Any]) -> List[str]:
    """Return the versions asked for, each once, in their order; [] where the choice is ours."""
    value = wanted.get("cuda_toolkit_versions") or []
    value = value.replace(",", " ").split() if isinstance(value, str) else value
    versions_asked: List[str] = []
    for entry in value:
        if str(entry) not in versions_asked + ["auto", ""]:
            versions_asked.append(str(entry))
    return versions_asked


def _rows(chosen: List[str], whole: Dict[str, str]) -> List[Dict[str, str]]:
    return [{"version": version, "path": whole.get(version, toolkit_names.folder(version))} for version in chosen]


def _above(toolkit: catalog.Toolkit, driver: Optional[str]) -> bool:
    # Minor-version compatibility: every x.y of a CUDA major runs on the driver that its first release needed.
    return driver is not None and versions.compare(driver, toolkit.min_driver) < 0


def _refusals(observed: Dict[str, Any], version: str, driver: Optional[str]) -> List[Refusal]:
    toolkit = next((known for known in catalog.toolkits() if known.version == version), None)
    if toolkit is None:
        known_versions = ", ".join(known.version for known in catalog.toolkits())
        return [
            Refusal(
                "cuda_unknown",
                "cuda_toolkit_versions asks for CUDA %s, which the catalog of %s does not know"
                % (version, catalog.DATE),
                "use versions with two numbers out of: %s" % known_versions,
            )
        ]
    fitting = _available(observed, driver)
    most = (
        "set cuda_toolkit_versions to %s, the newest that works here" % fitting[-1]
        if fitting
        else "set cuda_toolkit_source to none: no toolkit fits here"
    )
    refusals = []
    card = drops(gpu_architectures(observed), toolkit.architectures)
    if card is not None:
        message = "CUDA %s does not serve %s" % (version, card)
        refusals.append(Refusal("cuda_drops_gpu", message, most))
    if _above(toolkit, driver):
        message = "CUDA %s needs driver %s or newer, and this host gets %s" % (version, toolkit.min_driver, driver)
        branch = versions.branch(toolkit.min_driver)
        remedy = most if card is not None else "%s, or nvidia_driver_branch to %d or newer" % (most, branch)
        refusals.append(Refusal("cuda_above_driver", message, remedy))
    return refusals


def _entry(observed: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the catalog's words about NVIDIA's repository for this distribution, None where there is none."""
    key = observed["base"]["distro"]
    return None if key is None else catalog.distro(key)["driver_sources"].get(REPOSITORY_SOURCE)


def _carried(observed: Dict[str, Any]) -> Optional[List[str]]:
    """Return the toolkits that the repository carries; None where the catalog names no limit."""
    entry = _entry(observed)
    if entry is None:
        return []
    listed = entry.get("toolkits")
    return None if listed is None else [str(version) for version in listed]


def _available(observed: Dict[str, Any], driver: Optional[str]) -> List[str]:
    """Return the toolkits that fit and are there or in the repository, ascending."""
    carried = _carried(observed)
    whole = [toolkit["version"] for toolkit in present(observed)]
    return [version for version in fits(observed, driver) if carried is None or version in carried or version in whole]


def _source_refusals(observed: Dict[str, Any], missing: List[str], carried: Optional[List[str]]) -> List[Refusal]:
    lacking = [version for version in missing if carried is not None and version not in carried]
    if not lacking:
        return []
    return [
        Refusal(
            "source_impossible",
            "NVIDIA's repository for %s carries no CUDA %s" % (observed["base"]["distro"], ", ".join(lacking)),
            "choose from: %s; or install it yourself and set cuda_toolkit_source to none"
            % (", ".join(carried or []) or "none"),
        )
    ]


def _nothing_fits(observed: Dict[str, Any], driver: Optional[str]) -> Notice:
    cards = " and ".join(sorted(gpu_architectures(observed).values())) or "this host"
    return Notice(
        "cuda_none_fits",
        "no CUDA toolkit of the catalog fits %s%s on %s"
        % (cards, " with driver %s" % driver if driver else "", observed["base"]["distro"]),
        "none is installed; set cuda_toolkit_source to none to say that this is meant",
    )


def _default_refusals(
    observed: Dict[str, Any], default: str, chosen: List[str], whole: Dict[str, str]
) -> List[Refusal]:
    if default not in chosen and default not in whole:
        return [
            Refusal(
                "cuda_default_missing",
                "cuda_toolkit_default is %s, which is neither there nor in cuda_toolkit_versions (%s)"
                % (default, ", ".join(chosen)),
                "add it to cuda_toolkit_versions, or choose one of them",
            )
        ]
    if observed["cuda"]["default"]["kind"] == "folder":
        return [
            Refusal(
                "cuda_link_is_folder",
                "%s is a folder of its own, so it cannot point to CUDA %s" % (toolkit_names.LINK, default),
                "move it away (mv %s %s-old), or set cuda_toolkit_source to none"
                % (toolkit_names.LINK, toolkit_names.LINK),
            )
        ]
    return []


# --- the steps ---------------------------------------------------------------------------------------------------


def _repository_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any], missing: List[str]
) -> List[Step]:
    entry = _entry(observed)
    if not missing or entry is None:
        return []
    driver = choice.get("driver") or {}
    if driver.get("source") == REPOSITORY_SOURCE and not driver.get("satisfied"):
        return []  # the driver's own step brings it
    third = repository.lacking(observed, [repository.params(entry["repository"], wanted, choice)])
    if not third:
        return []
    reason = "CUDA %s comes from %s" % (" and ".join(missing), third[0]["url"])
    return [Step("cuda_toolkit.repository", reason, params={"repositories": third})]


def _install_steps(missing: List[str]) -> List[Step]:
    if not missing:
        return []
    reason = "CUDA %s is not there" % " and ".join(missing)
    packages = [{"name": toolkit_names.package(version), "version": None} for version in missing]
    return [Step("cuda_toolkit.install", reason, params={"packages": packages, "versions": list(missing)})]


def _default_steps(observed: Dict[str, Any], default: str) -> List[Step]:
    path = toolkit_names.folder(default)
    found = observed["cuda"]["default"]
    if found["target"] == path and (found["kind"] == "link" or found["mode"] == "manual"):
        return []
    if found["target"] == path:
        reason = "%s would leave CUDA %s when another toolkit is installed" % (toolkit_names.LINK, default)
    else:
        now = "points to %s" % found["target"] if found["target"] else "is not there"
        reason = "%s %s; wanted is CUDA %s" % (toolkit_names.LINK, now, default)
    return [Step("cuda_toolkit.default", reason, params={"version": default, "path": path})]


def _profile_steps(observed: Dict[str, Any]) -> List[Step]:
    texts = profile_d.files(toolkit_names.LINK)
    found = observed["cuda"]["profile"]
    stale = [path for path in sorted(texts) if found.get(path) != texts[path]]
    if not stale:
        return []
    diffs = [{"path": path, "before": found.get(path) or "", "after": texts[path]} for path in stale]
    params = {"files": [{"path": path, "content": texts[path]} for path in stale]}
    reason = "login shells do not find the default toolkit through %s" % " and ".join(stale)
    return [Step("cuda_toolkit.profile", reason, params=params)._replace(diff=diffs)]  # type: ignore[arg-type]
