"""The steps to the chosen CUDA toolkits: install them, point the link and login shells to one, remove others."""

from .....module_utils.gpu_ready.cuda import profile
from .....module_utils.gpu_ready.cuda import toolkit as names
from .....module_utils.gpu_ready.facts.model import Facts, ToolkitFacts
from ...catalog import model as catalog
from ...catalog.settings import Settings
from .. import repository
from ..model import Choices, FileDiff, PackageTarget, RepositoryRequest, Step, ToolkitChoice
from . import requests
from .model import (
    AbsentFile,
    DefaultToolkitParams,
    ProfileFile,
    ProfileParams,
    ToolkitInstallParams,
    ToolkitPackage,
    ToolkitRemovalParams,
    ToolkitRunfileParams,
)
from .requests import ToolkitRequest


def difference(request: ToolkitRequest, installed: ToolkitFacts | None) -> str:
    """Return what differs from a request, "" where it is fulfilled; ``installed`` is a complete toolkit or None."""
    if installed is None:
        return "CUDA %s is not installed" % request.text
    if request.release and not names.is_release(installed.release, request.release):
        return "CUDA %s is installed as %s, requested is %s" % (
            request.version,
            installed.release or "an unknown release",
            request.release,
        )
    return ""


def missing_repositories(facts: Facts, settings: Settings, choices: Choices, identity: str) -> list[RepositoryRequest]:
    driver = choices.driver
    if driver is not None and driver.source == "cuda_repo" and not driver.satisfied:
        return []
    behind = driver is not None and driver.source == "distro"
    return repository.missing_repositories(facts, [repository.parameters(identity, settings, behind)])


def package_request(request: ToolkitRequest) -> PackageTarget | ToolkitPackage:
    """Return the metapackage of a toolkit; the parts of an exact release are installed in that release too."""
    name = names.toolkit_package(request.version)
    if request.release is None:
        return PackageTarget(name)
    return ToolkitPackage(name, request.release + "-*", name[len("cuda-toolkit") :] + "(-|$)")


def install_packages(todo: list[ToolkitRequest], reasons: list[str]) -> Step:
    params = ToolkitInstallParams([package_request(request) for request in todo], [request.version for request in todo])
    return Step("cuda_toolkit.install", "; ".join(reasons), params=params)


def run_installers(facts: Facts, settings: Settings, todo: list[ToolkitRequest], reasons: list[str]) -> Step:
    installers = []
    for request in todo:
        found = requests.find_installer(request, settings)
        if found is not None:
            installers.append(requests.installer_parameters(request, found))
    needs = [name for name in catalog.cuda_installer_needs() if name not in facts.packages.installed]
    return Step("cuda_toolkit.runfile", "; ".join(reasons), params=ToolkitRunfileParams(installers, needs))


def set_default(facts: Facts, default: str, packages: bool = False) -> list[Step]:
    """Return the step that points the link to the default toolkit.

    ``packages``: this plan installs toolkits as packages, whose scripts replace a plain link.
    """
    path = names.toolkit_path(default)
    found = facts.cuda.default
    plain = found.kind == "link" and not packages
    if found.target == path and (plain or found.mode == "manual"):
        return []
    if found.target == path:
        reason = "%s points to CUDA %s only until another toolkit is installed" % (names.LINK, default)
    else:
        now = "points to %s" % found.target if found.target else "does not exist"
        reason = "%s %s; the default toolkit is CUDA %s" % (names.LINK, now, default)
    return [Step("cuda_toolkit.default", reason, params=DefaultToolkitParams(default, path))]


def write_profile(facts: Facts, prefix: str | None) -> list[Step]:
    """Return the step that writes the profile of login shells for a directory; None: the step that removes ours."""
    found = facts.cuda.profile
    texts: dict[str, str | None] = dict(profile.files(prefix)) if prefix else dict.fromkeys(profile.PATHS)
    stale = [path for path in sorted(texts) if found.get(path) != texts[path]]
    if prefix is None:
        stale = [path for path in stale if profile.is_ours(found.get(path))]
        reason = "%s is no longer needed" % " and ".join(stale)
    else:
        what = "the default toolkit" if prefix == names.LINK else prefix
        reason = "login shells do not find %s through %s" % (what, " and ".join(stale))
    if not stale:
        return []
    files: list[ProfileFile | AbsentFile] = []
    for path in stale:
        text = texts[path]
        files.append(AbsentFile(path) if text is None else ProfileFile(path, text))
    diffs = [FileDiff(path, found.get(path) or "", texts[path] or "") for path in stale]
    return [Step("cuda_toolkit.profile", reason, params=ProfileParams(files), diff=diffs)]


def profile_names_toolkit(facts: Facts, versions: list[str]) -> bool:
    found = facts.cuda.profile
    pinned = [profile.files(names.toolkit_path(version)) for version in versions]
    return any(found.get(path) == text for files in pinned for path, text in files.items())


def removal(facts: Facts, versions: list[str]) -> list[Step]:
    directories = [toolkit.version for toolkit in facts.cuda.toolkits]
    parts = {version: names.packages_of_toolkit(version, facts.packages.installed) for version in versions}
    existing = [version for version in versions if version in directories or parts[version]]
    if not existing:
        return []
    packages = [name for version in existing for name in parts[version]]
    toolkits = [ToolkitChoice(version, names.toolkit_path(version)) for version in existing]
    reason = "cuda_toolkit_remove names CUDA %s" % " and ".join(existing)
    return [Step("cuda_toolkit.remove", reason, params=ToolkitRemovalParams(packages, toolkits))]
