"""cuDNN as packages of NVIDIA's CUDA repository: which ones, at which version, held or not, and which make way."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...catalog import model as catalog
from ...cuda.cudnn import model as names
from ...packaging.version_match import version_matches
from .. import repository
from ..model import Decision, Notice, Refusal, Step
from . import choose as cuda
from . import cudnn_fit
from .cudnn_fit import Target

REPOSITORY_SOURCE = "cuda_repo"


class Group(NamedTuple):
    """The packages of one major version of cuDNN for one CUDA major; ``version`` as the package manager matches it."""

    line: str
    cuda: str
    release: str
    version: str
    names: List[str]
    pinned: bool


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any], targets: List[Target]) -> Decision:
    """Return the packages for the CUDA majors of the toolkits, and the steps to them."""
    named = [target for target in targets if target.named] or targets
    third, refusals = _repository(observed, wanted, choice)
    groups, served, said = _groups(observed, wanted, named)
    refusals += [notice for notice in said if isinstance(notice, Refusal)]
    warnings = [notice for notice in said if isinstance(notice, Notice)]
    refusals += _together(groups, served) + _foreign(observed, groups)
    if refusals:
        return Decision({}, [], refusals, warnings)
    warnings += [_shadowed(observed, target) for target in named if _in_the_way(observed, target)]
    steps = _package_steps(observed, wanted, groups)
    if steps and third is not None and not _brought(observed, choice):
        lacking = repository.lacking(observed, [third])
        unknown = repository.keyless(lacking)
        if unknown:
            return Decision({}, [], unknown, warnings)
        if lacking:
            reason = "the packages of cuDNN come from %s" % third["url"]
            steps.insert(0, Step("cudnn.repository", reason, params={"repositories": lacking}))
    steps += archives(observed, wanted)
    versions = {target: group.release for target, group in served.items()}
    return Decision({"source": "package", "versions": versions}, steps, [], warnings)


def removal(observed: Dict[str, Any]) -> List[Step]:
    """Return the step that takes our packages away where archives are wanted; those of others stay."""
    there = observed.get("cudnn_packages") or {}
    ours = list(there.get("ours") or [])
    if not ours:
        return []
    reason = "cuDNN came as packages (%s); wanted are archives" % ", ".join(ours)
    held = [name for name in ours if name in observed["packages"]["held"]]
    return [Step("cudnn.remove_packages", reason, params={"packages": ours, "unhold": held})]


def archives(observed: Dict[str, Any], wanted: Dict[str, Any]) -> List[Step]:
    """Return the step that takes our archives out of all toolkits once the packages are there."""
    going = wanted.get("cuda_toolkit_remove") or []
    toolkits = observed.get("cudnn") or {}
    recorded = sorted(one for one, found in toolkits.items() if found.get("recorded") and one not in going)
    reason = "CUDA %s has the archive of cuDNN; wanted are packages" % " and ".join(recorded)
    params = {"installs": [{"cuda": version} for version in recorded]}
    return [Step("cudnn.remove", reason, params=params)] if recorded else []


# --- which packages ----------------------------------------------------------------------------------------------


def _groups(
    observed: Dict[str, Any], wanted: Dict[str, Any], targets: List[Target]
) -> Tuple[List[Group], Dict[str, Group], List[Any]]:
    """Return the groups of packages, the one that serves each toolkit, and what there is to say."""
    asked = str(wanted.get("cudnn_version") or "")
    asked = "" if asked == "auto" else asked
    groups: Dict[Tuple[str, str], Group] = {}
    served: Dict[str, Group] = {}
    said: List[Any] = []
    for target in targets:
        pick = cudnn_fit.pick(observed, asked, target)
        said += [notice for notice in pick.said if notice not in said]
        if pick.version is None:
            continue
        group = _group(observed, target, pick)
        if isinstance(group, Refusal):
            said.append(group)
            continue
        served[target.version] = groups.setdefault((group.line, group.cuda), group)
    return list(groups.values()), served, said


def _group(observed: Dict[str, Any], target: Target, pick: cudnn_fit.Pick) -> Any:
    """Return the packages for a toolkit; those that are installed beside them move along to the same version."""
    version = str(pick.version)
    line = version.split(".")[0]
    data = catalog.cudnn_packages(line, _kind(observed))
    if data is None:
        message = "the catalog of %s knows no packages of cuDNN %s" % (catalog.DATE, line)
        return Refusal("cudnn_unknown", message, "set cudnn_source to archive, or cudnn_version to 8 or 9 of it")
    if len(version.split(".")) == 3 and "{cuda}" in data["version"]:
        message = "cudnn_version %s does not tell the package: its version has four numbers" % version
        return Refusal("cudnn_unknown", message, "write all four, such as 8.9.7.29")
    exact = pick.exact or data["any"] is None
    wish = data["version"] if exact else data["any"]
    wish = wish.format(version=version, cuda=target.major)
    wish = wish.replace("-*", ".*") if len(version.split(".")) == 3 else wish
    own = [name.format(cuda=target.major) for name in data["names"]]
    beside = [
        one.name
        for one in names.find_packages(_installed(observed))
        if one.line == line and one.cuda == target.major and one.name not in own
    ]
    return Group(line, target.major, version if exact else line, wish, own + beside, exact)


def _kind(observed: Dict[str, Any]) -> str:
    return "deb" if catalog.distro(observed["base"]["distro"])["package_manager"] == "apt" else "rpm"


def _installed(observed: Dict[str, Any]) -> Dict[str, str]:
    return dict((observed.get("cudnn_packages") or {}).get("installed") or {})


def _together(groups: List[Group], served: Dict[str, Group]) -> List[Refusal]:
    """Refuse packages of two CUDA majors where they exclude each other."""
    refusals = []
    for line in sorted({group.line for group in groups}):
        majors = sorted(group.cuda for group in groups if group.line == line)
        if len(majors) > 1 and not (catalog.cudnn_packages(line, "deb") or {}).get("side_by_side"):
            toolkits = [toolkit for toolkit, group in served.items() if group.line == line]
            message = "packages of cuDNN %s serve one CUDA at a time, and the toolkits %s are of CUDA %s"
            refusals.append(
                Refusal(
                    "cudnn_one_cuda",
                    message % (line, " and ".join(toolkits), " and ".join(majors)),
                    "name the toolkits of one of them in cudnn_toolkits, or set cudnn_source to archive",
                )
            )
    return refusals


def _making_way(observed: Dict[str, Any], groups: List[Group]) -> List[str]:
    """Return the installed packages that exclude the wanted ones: of the same major version, for another CUDA."""
    wanted = {name for group in groups for name in group.names}
    lines = {group.line: group for group in groups}
    return [
        one.name
        for one in names.find_packages(_installed(observed))
        if one.line in lines and one.cuda and one.name not in wanted and one.cuda != lines[one.line].cuda
    ]


def _foreign(observed: Dict[str, Any], groups: List[Group]) -> List[Refusal]:
    """Refuse where packages that somebody else installed would have to go."""
    ours = (observed.get("cudnn_packages") or {}).get("ours") or []
    foreign = [name for name in _making_way(observed, groups) if name not in ours]
    if not foreign:
        return []
    message = "%s %s there, gpu-ready did not install %s, and packages of cuDNN serve one CUDA at a time" % (
        ", ".join(foreign),
        "is" if len(foreign) == 1 else "are",
        "it" if len(foreign) == 1 else "them",
    )
    return [Refusal("cudnn_foreign", message, "remove them yourself and run again, or set cudnn_source to archive")]


# --- the steps ---------------------------------------------------------------------------------------------------


def _package_steps(observed: Dict[str, Any], wanted: Dict[str, Any], groups: List[Group]) -> List[Step]:
    there, state = _installed(observed), observed.get("cudnn_packages") or {}
    held = set(observed["packages"]["held"])
    lacking = [
        {"name": name, "version": group.version}
        for group in groups
        for name in group.names
        if name not in there or not version_matches(group.version, there[name])
    ]
    wanted_names = [name for group in groups for name in group.names]
    gone = _making_way(observed, groups)
    # Ours of a CUDA or a major version that is wanted no more; without any toolkit nothing tells that they are not.
    gone += [name for name in state.get("ours") or [] if groups and name not in wanted_names + gone]
    hold = [name for group in groups if group.pinned for name in group.names]
    loose = [name for name in state.get("held_by_us") or [] if name in held and name not in hold]
    unheld = [name for name in hold if name not in held]
    if not (lacking or gone or unheld or loose):
        return []
    moving = {one["name"] for one in lacking} | set(gone) | set(loose)
    tools = catalog.distro(observed["base"]["distro"]).get("hold_tools") or [] if unheld else []
    params = {
        "packages": [{"name": name, "version": group.version} for group in groups for name in group.names],
        "tools": [name for name in tools if name not in observed["packages"]["installed"]],
        "remove": gone,
        "hold": hold,
        "unhold": sorted(moving & held),
        "release": " and ".join("%s for CUDA %s" % (group.release, group.cuda) for group in groups),
    }
    return [Step("cudnn.packages", _reason(there, lacking, gone, unheld, loose, params["release"]), params=params)]


def _reason(
    there: Dict[str, str],
    lacking: List[Dict[str, str]],
    gone: List[str],
    unheld: List[str],
    loose: List[str],
    release: Any,
) -> str:
    if lacking:
        name = lacking[0]["name"]
        lack = "%s is %s" % (name, there[name]) if name in there else "%s is not there" % name
        return "%s; wanted is cuDNN %s" % (lack, release)
    if gone:
        return "%s is wanted no more" % ", ".join(gone)
    if unheld:
        return "an upgrade would take cuDNN %s away: it is asked for, or the last one for a GPU of this host" % release
    return "%s is held, and no version is asked for any more" % ", ".join(loose)


def _repository(
    observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]
) -> Tuple[Optional[Dict[str, Any]], List[Refusal]]:
    """Return the parameters of NVIDIA's repository, or the refusal where there is none for this distribution."""
    key = observed["base"]["distro"]
    entry = catalog.distro(key)["driver_sources"].get(REPOSITORY_SOURCE) if key else None
    if entry is None:
        message = "NVIDIA has no repository for %s, so there are no packages of cuDNN" % (key or "this distribution")
        return None, [Refusal("source_impossible", message, "set cudnn_source to archive")]
    return repository.params(entry["repository"], wanted, choice), []


def _brought(observed: Dict[str, Any], choice: Dict[str, Any]) -> bool:
    """Return whether a step of the driver or the toolkits adds the repository before."""
    driver, toolkits = choice.get("driver") or {}, choice.get("cuda") or {}
    if driver.get("source") == REPOSITORY_SOURCE and not driver.get("satisfied"):
        return True
    whole = {toolkit["version"] for toolkit in cuda.present(observed)}
    rows = toolkits.get("toolkits") or []
    return toolkits.get("source") == "repo" and any(row["version"] not in whole for row in rows)


def _in_the_way(observed: Dict[str, Any], target: Target) -> bool:
    found = (observed.get("cudnn") or {}).get(target.version) or {}
    return bool(found.get("version")) and not found.get("recorded")


def _shadowed(observed: Dict[str, Any], target: Target) -> Notice:
    found = observed["cudnn"][target.version]
    message = (
        "%s holds cuDNN %s, which gpu-ready did not place: programs that search there take it before the packages'"
    )
    remedy = "take its files away (include/cudnn*.h, lib64/libcudnn*) if the packages' are meant"
    return Notice("cudnn_foreign", message % (target.path, found["version"]), remedy)
