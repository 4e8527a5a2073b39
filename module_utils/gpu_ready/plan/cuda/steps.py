"""The steps to the chosen CUDA toolkits: bring them, lead the link and login shells to one, take others away."""

from typing import Any, Dict, List, Optional

from ...catalog import model as catalog
from ...cuda import profile
from ...cuda import toolkit as names
from .. import repository
from ..model import Step
from . import requests as cuda_wishes
from .requests import Wish


def lack(wish: Wish, found: Optional[Dict[str, Any]]) -> str:
    """Return in words what a host lacks of a wish, "" where it is fulfilled; ``found`` is a whole toolkit or None."""
    if found is None:
        return "CUDA %s is not there" % wish.text
    if wish.release and not names.is_release(found["release"], wish.release):
        return "CUDA %s is there as %s, wanted is %s" % (
            wish.version,
            found["release"] or "an unknown release",
            wish.release,
        )
    return ""


def of_repository(
    observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any], entry: Dict[str, Any], todo: List[Wish]
) -> List[Step]:
    """Return the step that adds NVIDIA's repository where it is not there."""
    driver = choice.get("driver") or {}
    if driver.get("source") == "cuda_repo" and not driver.get("satisfied"):
        return []  # the driver's own step brings it
    third = repository.lacking(observed, [repository.params(entry["repository"], wanted, choice)])
    if not third:
        return []
    reason = "CUDA %s comes from %s" % (" and ".join(wish.text for wish in todo), third[0]["url"])
    return [Step("cuda_toolkit.repository", reason, params={"repositories": third})]


def package(wish: Wish) -> Dict[str, Optional[str]]:
    """Return the package of a toolkit; for a very release, its parts come in the versions of that release too."""
    name = names.toolkit_package(wish.version)
    if wish.release is None:
        return {"name": name, "version": None}
    return {"name": name, "version": wish.release + "-*", "parts": name[len("cuda-toolkit") :] + "(-|$)"}


def of_packages(todo: List[Wish], reasons: List[str]) -> Step:
    """Return the step that brings toolkits as packages."""
    packages = [package(wish) for wish in todo]
    params = {"packages": packages, "versions": [wish.version for wish in todo]}
    return Step("cuda_toolkit.install", "; ".join(reasons), params=params)


def of_installers(observed: Dict[str, Any], wanted: Dict[str, Any], todo: List[Wish], reasons: List[str]) -> Step:
    """Return the step that brings toolkits by NVIDIA's installer."""
    installers = []
    for wish in todo:
        found = cuda_wishes.installer(wish, wanted)
        if found is not None:
            installers.append(cuda_wishes.params(wish, found))
    there = observed["packages"]["installed"]
    needs = [name for name in catalog.cuda_installer_needs() if name not in there]
    params = {"installers": installers, "packages": needs}
    return Step("cuda_toolkit.runfile", "; ".join(reasons), params=params)


def of_default(observed: Dict[str, Any], default: str, packages: bool = False) -> List[Step]:
    """Return the step that leads the link to the default toolkit; ``packages`` that come take a plain link over."""
    path = names.toolkit_path(default)
    found = observed["cuda"]["default"]
    plain = found["kind"] == "link" and not packages
    if found["target"] == path and (plain or found["mode"] == "manual"):
        return []
    if found["target"] == path:
        reason = "%s would leave CUDA %s when another toolkit is installed" % (names.LINK, default)
    else:
        now = "points to %s" % found["target"] if found["target"] else "is not there"
        reason = "%s %s; wanted is CUDA %s" % (names.LINK, now, default)
    return [Step("cuda_toolkit.default", reason, params={"version": default, "path": path})]


def of_profile(observed: Dict[str, Any], prefix: Optional[str]) -> List[Step]:
    """Return the step that writes the profile of login shells for a folder; None: that takes ours away."""
    found = observed["cuda"]["profile"]
    texts: Dict[str, Optional[str]] = dict(profile.files(prefix)) if prefix else dict.fromkeys(profile.PATHS)
    stale = [path for path in sorted(texts) if found.get(path) != texts[path]]
    if prefix is None:
        stale = [path for path in stale if profile.is_ours(found.get(path))]
        reason = "%s is not wanted" % " and ".join(stale)
    else:
        what = "the default toolkit" if prefix == names.LINK else prefix
        reason = "login shells do not find %s through %s" % (what, " and ".join(stale))
    if not stale:
        return []
    diffs = [{"path": path, "before": found.get(path) or "", "after": texts[path] or ""} for path in stale]
    files = [
        {"path": path, "content": texts[path]} if texts[path] is not None else {"path": path, "state": "absent"}
        for path in stale
    ]
    return [Step("cuda_toolkit.profile", reason, params={"files": files})._replace(diff=diffs)]  # type: ignore[arg-type]


def profile_leads_to(observed: Dict[str, Any], versions: List[str]) -> bool:
    """Return whether our profile of login shells is pinned to one of these toolkits."""
    found = observed["cuda"]["profile"]
    pinned = [profile.files(names.toolkit_path(version)) for version in versions]
    return any(found.get(path) == text for files in pinned for path, text in files.items())


def of_removal(observed: Dict[str, Any], going: List[str]) -> List[Step]:
    """Return the step that takes toolkits away, packages and installers alike."""
    rows = {row["version"]: row for row in observed["cuda"]["toolkits"]}
    parts = {version: names.packages_of_toolkit(version, observed["packages"]["installed"]) for version in going}
    there = [version for version in going if version in rows or parts[version]]
    if not there:
        return []
    packages = [name for version in there for name in parts[version]]
    toolkits = [{"version": version, "path": names.toolkit_path(version)} for version in there]
    reason = "CUDA %s is to go" % " and ".join(there)
    return [Step("cuda_toolkit.remove", reason, params={"packages": packages, "toolkits": toolkits})]
