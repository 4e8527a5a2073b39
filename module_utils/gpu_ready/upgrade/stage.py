"""Download what an upgrade and its rollback install, before anything changes.

Packages are in the package manager's cache afterwards, NVIDIA's installers in gpu-ready's directory. The simulation
equals the real installation, with the pin of the new version in place of the present one, so that the cache holds what
the installation will take. Nothing is installed, removed or configured.
"""

import contextlib
import os
import shutil
import tempfile
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional

from ..base import manifest
from ..driver.runfile import fetch as runfile_fetch
from ..driver.runfile import store as runfile_store
from ..driver.runfile.store import StoredInstaller
from ..packaging import apt, archives, dnf, signatures
from ..packaging.manager import Manager, PackageError, PackageSpec, Simulation, package_specs, refuse_unrequested

PREFERENCES = "/etc/apt/preferences.d"
NO_LONGER_OFFERED = (
    "%s: no package source of this host has %s any more, so the installed driver could not be restored after a "
    "failure. Enable a source that keeps old versions (your mirror, snapshot.ubuntu.com, snapshot.debian.org), or "
    "install the offered version of its branch with site.yml, then run again"
)
WHAT = "downloading the driver's packages"
ANY_STATE = ["--allow-downgrades", "--allow-change-held-packages"]
"""Holds are released before the installation and set again after it."""
DNF_OPTIONS = ["--disableplugin=versionlock", "--setopt=keepcache=1"]
"""The same for dnf, which keeps downloads only with this setting."""


class StageRequest(NamedTuple):
    """What the steps of a plan install and remove.

    ``names`` and ``pins``: names or {name, version, parts}. ``pins_removed``: packages of the present pin. ``allowed``:
    packages that the installation may remove. ``replaced``: packages that are removed before NVIDIA's installer runs.
    """

    names: List[object] = []
    pins: List[object] = []
    pins_removed: List[str] = []
    streams: Dict[str, str] = {}
    remove: List[str] = []
    allowed: List[str] = []
    replaced: List[str] = []
    runfile: Optional[StoredInstaller] = None


class StagedPackages(NamedTuple):
    """Packages in the cache as ``name=version``: for the upgrade and for its rollback."""

    coming: List[str]
    kept: List[str]


def build_request(todo: Mapping[str, Mapping[str, object]]) -> StageRequest:
    """Return the downloads of a plan, from the parameters of its steps."""
    install = todo.get("nvidia_driver.install") or {}
    names = _values(install, "packages")
    for step, key in (
        ("nvidia_driver.detect", "packages"),
        ("nvidia_driver.fabricmanager", "packages"),
        ("nvidia_driver.imex", "packages"),
        ("nvidia_driver.persistenced", "packages"),
        ("nvidia_driver.hold", "tools"),
    ):
        names += _values(todo.get(step) or {}, key)
    services = [todo.get(step) or {} for step in ("nvidia_driver.fabricmanager", "nvidia_driver.imex")]
    streams, runfile = install.get("streams"), todo.get("nvidia_driver.runfile")
    return StageRequest(
        names,
        _values(install, "pin_packages"),
        _texts(install, "pin_remove"),
        {str(name): str(stream) for name, stream in streams.items()} if isinstance(streams, dict) else {},
        _texts(install, "remove") + [name for params in services for name in _texts(params, "remove")],
        _texts(install, "allow_remove"),
        _texts(todo.get("nvidia_driver.remove_packages") or {}, "packages"),
        read_installer(runfile) if runfile else None,
    )


def read_installer(value: Mapping[str, object]) -> StoredInstaller:
    """Return an installer from the parameters of a step."""
    return StoredInstaller(*[str(value.get(name) or "") for name in StoredInstaller._fields])


def _values(params: Mapping[str, object], name: str) -> List[object]:
    found = params.get(name)
    return list(found) if isinstance(found, (list, tuple)) else []


def _texts(params: Mapping[str, object], name: str) -> List[str]:
    return [str(value) for value in _values(params, name)]


def stage_packages(manager: Manager, request: StageRequest) -> StagedPackages:
    """Fill the cache; PackageError if a package is not available."""
    if isinstance(manager, dnf.Dnf):
        manager.extra_options = DNF_OPTIONS + (["--setopt=*.module_hotfixes=1"] if request.streams else [])
    if not request.names and not request.pins:
        kept = download_installed(manager, request.replaced)
        if isinstance(manager, dnf.Dnf):
            verify_downloads(manager, kept)
        return StagedPackages([], kept)
    if isinstance(manager, apt.Apt):
        return stage_apt(manager, request)
    if isinstance(manager, dnf.Dnf):
        return stage_dnf(manager, request)
    raise PackageError("%s: it cannot download packages beforehand. Report this defect of gpu-ready." % manager.program)


def download_installed(manager: Manager, names: List[str]) -> List[str]:
    """Download installed packages again, for the rollback; returns them as ``name=version``.

    Both programs succeed although they leave out a version that no source has any more ("Reinstallation of X is not
    possible, it cannot be downloaded"): the files count.
    """
    kept = installed_versions(manager, Simulation({}, names))
    if not kept:
        return []
    what = "downloading the installed driver's packages again, for the rollback"
    if isinstance(manager, apt.Apt):
        manager.run_change(what, ["--download-only", "--reinstall"] + ANY_STATE + ["install"] + kept)
    else:
        manager.run_change(what, ["reinstall", "--downloadonly"] + bare_names(kept))
    missing = [package for package in kept if not find_rollback_file(manager, package)]
    if missing:
        raise PackageError(NO_LONGER_OFFERED % (what, ", ".join(package.replace("=", " ") for package in missing)))
    return kept


def find_rollback_file(manager: Manager, package: str) -> Optional[str]:
    """Return the file of a package (``name=version``) on this host: downloaded, or kept by an earlier upgrade."""
    name, _, version = package.partition("=")
    found = archives.find_archive(manager.host, name, version)
    if found or not isinstance(manager, apt.Apt):
        return found
    return archives.find_kept(manager.host, name, version, manager.store)


def keep_for_rollback(manager: Manager, staged: StagedPackages, recorded: List[str]) -> None:
    """Keep the files with which apt can roll back after its lists forgot their versions (changes the host).

    ``recorded``: all packages of the driver to roll back to. Kept files of other drivers are deleted. For dnf nothing
    is kept: the repositories with drivers keep old versions.
    """
    if not isinstance(manager, apt.Apt):
        return
    paths = {package: find_rollback_file(manager, package) for package in staged.kept}
    obsolete = [
        package
        for package in archives.read_listing(manager.host, manager.store)
        if package not in staged.kept and package not in recorded
    ]
    archives.keep_archives(
        manager.host, {package: path for package, path in paths.items() if path}, obsolete, manager.store
    )


def bare_names(packages: List[str]) -> List[str]:
    return [package.partition("=")[0] for package in packages]


def specs_with_parts(manager: Manager, names: List[object]) -> List[PackageSpec]:
    """Return specs of packages, including the parts of metapackages in an exact version."""
    parts = {str(one["name"]): str(one["parts"]) for one in names if isinstance(one, dict) and one.get("parts")}
    specs = package_specs(names)
    return manager.add_parts(specs, parts) if parts else specs


def installed_versions(manager: Manager, simulation: Simulation) -> List[str]:
    """``name=version`` of installed packages that a transaction changes or removes."""
    installed = manager.installed()
    names = [name for name, (old, _) in simulation.install.items() if old is not None] + simulation.remove
    return sorted("%s=%s" % (name, installed[name].version) for name in set(names) if name in installed)


def new_versions(simulation: Simulation) -> List[str]:
    return sorted("%s=%s" % (name, new) for name, (_, new) in simulation.install.items())


# ---- NVIDIA's installers --------------------------------------------------------------------------------------------


def stage_installers(
    installers: List[StoredInstaller],
    architecture: str,
    limits: runfile_fetch.RunfileLimits,
    directory: str = runfile_store.STORE,
) -> List[str]:
    """Download and verify installers, and delete all others; returns the versions that were missing."""
    runfile_store.delete_other_versions([one.version for one in installers], directory)
    return [one.version for one in installers if runfile_store.store_installer(one, architecture, limits, directory)]


# ---- apt ------------------------------------------------------------------------------------------------------------


def stage_apt(manager: apt.Apt, request: StageRequest) -> StagedPackages:
    manager.update()
    pin_specs = package_specs(request.pins)
    pins = manager.resolve(pin_specs, manager.offers([spec.name for spec in pin_specs]))
    pinned = Simulation({}, [])
    if pins:
        argv = ANY_STATE + ["install"] + pins + [name + "-" for name in request.pins_removed]
        pinned = manager.simulate(WHAT, argv)
        refuse_unrequested(pinned, request.pins_removed)
        manager.run_change(WHAT, ["--download-only"] + argv)
    with future_preferences(manager, pinned, request.pins_removed) as options:
        specs = specs_with_parts(manager, request.names)
        argv = ANY_STATE + ["install"] + manager.resolve(specs, manager.offers([spec.name for spec in specs]))
        argv += [name + "-" for name in request.remove]
        main = manager.simulate(WHAT, options + argv)
        refuse_unrequested(main, request.remove + request.allowed)
        manager.check_disk(main)
        manager.run_change(WHAT, options + ["--download-only"] + argv)
    both = dnf.join_simulations(pinned, main)
    return StagedPackages(
        new_versions(both), download_installed(manager, bare_names(installed_versions(manager, both)))
    )


@contextlib.contextmanager
def future_preferences(manager: apt.Apt, pins: Simulation, removed: List[str]) -> Iterator[List[str]]:
    """Yield options with which apt reads the pins as they will be after the installation."""
    if not pins.install and not removed:
        yield []
        return
    os.makedirs(manifest.DIRECTORY, mode=0o755, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="pins-", dir=manifest.DIRECTORY)
    try:
        os.chmod(directory, 0o755)  # apt reads it as an unprivileged user
        new = os.path.join(directory, "new")
        os.mkdir(new)
        for path in list_files(PREFERENCES, files_of_packages(manager, removed)):
            shutil.copy(path, new)
        for name, (_, version) in pins.install.items():
            archive = archives.find_deb(manager.host, name, version)
            if archive is None:
                continue
            unpacked = os.path.join(directory, "unpacked")
            signatures.unpack_deb(manager.host, "%s=%s" % (name, version), archive, unpacked)
            for path in list_files(unpacked + PREFERENCES, []):
                shutil.copy(path, new)
        yield ["-o", "Dir::Etc::PreferencesParts=" + new]
    finally:
        shutil.rmtree(directory)


def files_of_packages(manager: apt.Apt, names: List[str]) -> List[str]:
    return manager.host.run(["dpkg-query", "-L"] + names).out.split("\n") if names else []


def list_files(directory: str, without: List[str]) -> List[str]:
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    paths = [os.path.join(directory, name) for name in names]
    return [path for path in paths if os.path.isfile(path) and path not in without]


# ---- dnf ------------------------------------------------------------------------------------------------------------


def stage_dnf(manager: dnf.Dnf, request: StageRequest) -> StagedPackages:
    """Without version locks and the filter of module streams, since the installation changes both."""
    if manager.form == "yum":
        raise PackageError(
            "yum 3: it cannot resolve another version beside a pin, so packages cannot be downloaded beforehand. "
            "Exclude the host (gpu_upgrade_exclude) and use site.yml for it."
        )
    manager.update()
    arguments = manager.resolve(specs_with_parts(manager, request.pins + request.names))
    argv = ["install", "--allowerasing"] + arguments
    simulation = manager.simulate(WHAT, argv)
    refuse_unrequested(simulation, request.remove + request.allowed + request.pins_removed)
    manager.run_change(WHAT, argv[:2] + ["--downloadonly"] + arguments)
    replaced = installed_versions(manager, simulation)
    staged = StagedPackages(new_versions(simulation), download_installed(manager, bare_names(replaced)))
    verify_downloads(manager, staged.coming + staged.kept)
    return staged


def verify_downloads(manager: dnf.Dnf, packages: List[str]) -> None:
    """Verify the downloaded files of repositories with a pinned key; the others are verified when dnf installs them."""
    found = {}
    for package in packages:
        name, _, version = package.partition("=")
        path = archives.find_rpm(manager.host, name, version)
        key = signatures.find_pinned_key(manager.host, path) if path else None
        if path and key:
            found[package] = signatures.PinnedFile(path, key)
    signatures.verify_rpms(manager.host, found)
