"""cuDNN as packages of NVIDIA's CUDA repository: which ones, at which version, held or not, and which are removed."""

from typing import NamedTuple

from .....module_utils.gpu_ready.cuda.cudnn import model as names
from .....module_utils.gpu_ready.facts.model import CudnnFacts, Facts
from .....module_utils.gpu_ready.packaging.version_match import version_matches
from ...catalog import model as catalog
from ...catalog.settings import Settings
from .. import repository
from ..model import (
    Choices,
    CudnnChoice,
    Decision,
    Notice,
    PackageTarget,
    Refusal,
    RepositoryParams,
    RepositoryRequest,
    Step,
    VariableChange,
    refuse,
)
from . import choose as cuda
from . import cudnn_fit
from .cudnn_fit import CudnnTarget, Finding
from .model import CudnnOfToolkit, CudnnPackageParams, CudnnRemovalParams

REPOSITORY_SOURCE = "cuda_repo"
ARCHIVE = VariableChange({"cudnn_source": ["archive"]})


class PackageGroup(NamedTuple):
    """The packages of one major version of cuDNN for one CUDA major; ``version`` as the package manager matches it.

    ``line`` is the major version, ``release`` what messages call the group. ``pinned``: the packages are held.
    """

    line: str
    cuda: str
    release: str
    version: str
    names: list[str]
    pinned: bool


def plan_cudnn_packages(
    facts: Facts, settings: Settings, choices: Choices, targets: list[CudnnTarget]
) -> Decision[CudnnChoice]:
    named = [target for target in targets if target.named] or targets
    source, refusals = _repository(facts, settings, choices)
    groups, group_of, findings = _package_groups(facts, settings, named)
    refusals += [finding for finding in findings if isinstance(finding, Refusal)]
    warnings = [finding for finding in findings if isinstance(finding, Notice)]
    refusals += _one_cuda_refusals(groups, group_of) + _foreign_refusals(facts, groups)
    if refusals:
        return Decision(None, [], refusals, warnings)
    warnings += [_shadowed_notice(target, facts.cudnn[target.version]) for target in named if _shadows(facts, target)]
    steps = _package_steps(facts, groups)
    if steps and source is not None and not _adds_repository(facts, choices):
        missing = repository.missing_repositories(facts, [source])
        unknown = repository.source_refusals(facts, missing)
        if unknown:
            return Decision(None, [], unknown, warnings)
        if missing:
            reason = "the packages of cuDNN come from %s" % source.url
            steps.insert(0, Step("cudnn.repository", reason, params=RepositoryParams(missing)))
    steps += archive_removal(facts, settings)
    versions = {target: group.release for target, group in group_of.items()}
    return Decision(CudnnChoice("package", versions), steps, [], warnings)


def archive_removal(facts: Facts, settings: Settings) -> list[Step]:
    removed = settings.cuda_toolkit_remove
    recorded = sorted(one for one, found in facts.cudnn.items() if found.recorded and one not in removed)
    reason = "CUDA %s has cuDNN from an archive, and cudnn_source is package" % " and ".join(recorded)
    params = CudnnRemovalParams([CudnnOfToolkit(version) for version in recorded])
    return [Step("cudnn.remove", reason, params=params)] if recorded else []


# --- which packages ----------------------------------------------------------------------------------------------


def _package_groups(
    facts: Facts, settings: Settings, targets: list[CudnnTarget]
) -> tuple[list[PackageGroup], dict[str, PackageGroup], list[Finding]]:
    groups: dict[tuple[str, str], PackageGroup] = {}
    group_of: dict[str, PackageGroup] = {}
    findings: list[Finding] = []
    for target in targets:
        pick = cudnn_fit.pick_release(facts, cudnn_fit.requested_version(settings), target)
        findings += [finding for finding in pick.findings if finding not in findings]
        if pick.version is None:
            continue
        group = _package_group(facts, target, pick.version, pick.exact)
        if isinstance(group, Refusal):
            findings.append(group)
            continue
        group_of[target.version] = groups.setdefault((group.line, group.cuda), group)
    return list(groups.values()), group_of, findings


def _package_group(facts: Facts, target: CudnnTarget, version: str, exact: bool) -> PackageGroup | Refusal:
    """Return the packages for a toolkit; installed packages of the same group get the same version."""
    line = version.split(".")[0]
    data = catalog.cudnn_packages(line, _package_kind(facts))
    if data is None:
        message = "the catalog of %s knows no packages of cuDNN %s" % (catalog.DATE, line)
        return refuse("cudnn_without_packages", message, ARCHIVE, "cudnn_version to a later one")
    if len(version.split(".")) == 3 and "{cuda}" in data["version"]:
        message = "cudnn_version %s does not identify a package: its version has four numbers" % version
        return refuse("cudnn_version_wrong", message, "write all four, such as 8.9.7.29")
    exact = exact or data["any"] is None
    pattern = data["version"] if exact else data["any"]
    pattern = pattern.format(version=version, cuda=target.major)
    pattern = pattern.replace("-*", ".*") if len(version.split(".")) == 3 else pattern
    own = [name.format(cuda=target.major) for name in data["names"]]
    beside = [
        one.name
        for one in names.find_packages(facts.cudnn_packages.installed)
        if one.line == line and one.cuda == target.major and one.name not in own
    ]
    return PackageGroup(line, target.major, version if exact else line, pattern, own + beside, exact)


def _package_kind(facts: Facts) -> str:
    return "deb" if facts.base.distro and catalog.distro(facts.base.distro)["package_manager"] == "apt" else "rpm"


def _one_cuda_refusals(groups: list[PackageGroup], group_of: dict[str, PackageGroup]) -> list[Refusal]:
    refusals = []
    for line in sorted({group.line for group in groups}):
        majors = sorted(group.cuda for group in groups if group.line == line)
        if len(majors) > 1 and not (catalog.cudnn_packages(line, "deb") or {}).get("side_by_side"):
            toolkits = [toolkit for toolkit, group in group_of.items() if group.line == line]
            message = "packages of cuDNN %s support one CUDA major at a time, and the toolkits %s are of CUDA %s"
            refusals.append(
                refuse(
                    "cudnn_one_cuda",
                    message % (line, " and ".join(toolkits), " and ".join(majors)),
                    ARCHIVE,
                    "name the toolkits of one of them in cudnn_toolkits",
                )
            )
    return refusals


def _conflicting_packages(facts: Facts, groups: list[PackageGroup]) -> list[str]:
    """Return the installed packages that the groups exclude: of the same major version, for another CUDA."""
    requested = {name for group in groups for name in group.names}
    lines = {group.line: group for group in groups}
    return [
        one.name
        for one in names.find_packages(facts.cudnn_packages.installed)
        if one.line in lines and one.cuda and one.name not in requested and one.cuda != lines[one.line].cuda
    ]


def _foreign_refusals(facts: Facts, groups: list[PackageGroup]) -> list[Refusal]:
    foreign = [name for name in _conflicting_packages(facts, groups) if name not in facts.cudnn_packages.ours]
    if not foreign:
        return []
    message = "%s %s installed, but not by gpu-ready, and packages of cuDNN support one CUDA major at a time" % (
        ", ".join(foreign),
        "is" if len(foreign) == 1 else "are",
    )
    return [refuse("cudnn_foreign", message, ARCHIVE, "remove them yourself and run again")]


# --- the steps ---------------------------------------------------------------------------------------------------


def _package_steps(facts: Facts, groups: list[PackageGroup]) -> list[Step]:
    state, held = facts.cudnn_packages, set(facts.packages.held)
    packages = [PackageTarget(name, group.version) for group in groups for name in group.names]
    missing = [one for one in packages if not _is_installed(facts, one)]
    requested_names = [one.name for one in packages]
    remove = _conflicting_packages(facts, groups)
    # Ours for another CUDA or major version; without any toolkit nothing says that they are no longer needed.
    remove += [name for name in state.ours if groups and name not in requested_names + remove]
    hold = [name for group in groups if group.pinned for name in group.names]
    release_hold = [name for name in state.held_by_us if name in held and name not in hold]
    not_held = [name for name in hold if name not in held]
    if not (missing or remove or not_held or release_hold):
        return []
    changing = {one.name for one in missing} | set(remove) | set(release_hold)
    tools = _hold_tools(facts) if not_held else []
    release = " and ".join("%s for CUDA %s" % (group.release, group.cuda) for group in groups)
    params = CudnnPackageParams(
        packages=packages,
        tools=[name for name in tools if name not in facts.packages.installed],
        remove=remove,
        hold=hold,
        unhold=sorted(changing & held),
        release=release,
    )
    return [
        Step("cudnn.packages", _package_reason(facts, missing, remove, not_held, release_hold, release), params=params)
    ]


def _is_installed(facts: Facts, package: PackageTarget) -> bool:
    version = facts.cudnn_packages.installed.get(package.name)
    return version is not None and version_matches(package.version, version)


def _hold_tools(facts: Facts) -> list[str]:
    return list(catalog.distro(facts.base.distro).get("hold_tools") or []) if facts.base.distro else []


def _package_reason(
    facts: Facts,
    missing: list[PackageTarget],
    remove: list[str],
    not_held: list[str],
    release_hold: list[str],
    release: str,
) -> str:
    installed = facts.cudnn_packages.installed
    if missing:
        name = missing[0].name
        present = "%s is %s" % (name, installed[name]) if name in installed else "%s is not installed" % name
        return "%s; requested is cuDNN %s" % (present, release)
    if remove:
        return "%s %s no longer needed" % (", ".join(remove), "is" if len(remove) == 1 else "are")
    if not_held:
        return "an upgrade would replace cuDNN %s, which is requested or the last one for a GPU of this host" % release
    return "%s %s held, but no version is requested any more" % (
        ", ".join(release_hold),
        "is" if len(release_hold) == 1 else "are",
    )


def _repository(facts: Facts, settings: Settings, choices: Choices) -> tuple[RepositoryRequest | None, list[Refusal]]:
    key = facts.base.distro
    entry = catalog.distro(key)["driver_sources"].get(REPOSITORY_SOURCE) if key else None
    if entry is None:
        message = "NVIDIA has no repository for %s, so there are no packages of cuDNN" % (key or "this distribution")
        return None, [refuse("cudnn_without_packages", message, ARCHIVE)]
    behind = choices.driver is not None and choices.driver.source == "distro"
    return repository.parameters(entry["repository"], settings, behind), []


def _adds_repository(facts: Facts, choices: Choices) -> bool:
    if choices.driver is not None and choices.driver.source == REPOSITORY_SOURCE and not choices.driver.satisfied:
        return True
    if choices.cuda is None or choices.cuda.source != "repo":
        return False
    complete = {toolkit.version for toolkit in cuda.complete_toolkits(facts)}
    return any(toolkit.version not in complete for toolkit in choices.cuda.toolkits)


def _shadows(facts: Facts, target: CudnnTarget) -> bool:
    """Return whether programs find a cuDNN copied into the toolkit's directory before the packaged one."""
    found = facts.cudnn.get(target.version)
    return found is not None and bool(found.version) and not found.recorded


def _shadowed_notice(target: CudnnTarget, found: CudnnFacts) -> Notice:
    message = (
        "%s contains cuDNN %s, which gpu-ready did not install: programs that search there find it before the packages'"
    )
    remedy = "remove its files (include/cudnn*.h, lib64/libcudnn*) to use the cuDNN of the packages"
    return Notice("cudnn_foreign", message % (target.path, found.version), remedy)
