"""Have on the host what an upgrade and its way back install, before anything changes.

Packages lie in the package manager's cache, NVIDIA's installers beside our other files. The simulation is that of
the real installation: with the pin of the new version in place of the present one, so that what lies in the cache
afterwards is what the installation will take. Nothing is installed, removed or configured.
"""

import contextlib
import glob
import os
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, NamedTuple

from ..base import manifest
from ..driver.runfile import fetch as runfile_fetch
from ..driver.runfile import store as runfile_store
from ..packaging import apt, dnf
from ..packaging.manager import Manager, PackageError, PackageSpec, Simulation, package_specs, refuse_unrequested

PREFERENCES = "/etc/apt/preferences.d"
ANY_STATE = ["--allow-downgrades", "--allow-change-held-packages"]
"""Holds go before the installation and come back after it."""
ASIDE = ["--disableplugin=versionlock", "--setopt=keepcache=1"]
"""The same for dnf, which keeps what it fetched only when told so."""


class Staged(NamedTuple):
    """Packages that lie in the cache: what will come, and what is needed to come back, as ``name=version``."""

    coming: List[str]
    kept: List[str]


def stage(manager: Manager, wanted: Dict[str, Any]) -> Staged:
    """Fetch what ``upgrade.downloads`` says (fills the cache); PackageError says what cannot be had."""
    if isinstance(manager, dnf.Dnf):
        manager.extra_options = ASIDE + (["--setopt=*.module_hotfixes=1"] if wanted["streams"] else [])
    if not wanted["names"] and not wanted["pins"]:
        return Staged([], again(manager, wanted["gone"]))
    if isinstance(manager, apt.Apt):
        return stage_apt(manager, wanted)
    if isinstance(manager, dnf.Dnf):
        return stage_dnf(manager, wanted)
    raise PackageError("%s cannot fetch packages beforehand: this is an error in gpu-ready" % manager.program)


def again(manager: Manager, names: List[str]) -> List[str]:
    """Fetch installed packages that go before NVIDIA's installer comes; return them as ``name=version``."""
    kept = before(manager, Simulation({}, names))
    if kept:
        what = "fetching the installed driver's packages again, for the way back"
        if isinstance(manager, apt.Apt):
            manager.run_change(what, ["--download-only", "--reinstall"] + ANY_STATE + ["install"] + kept)
        else:
            bare = [one.partition("=")[0] for one in kept]
            manager.run_change(what, ["reinstall", "--downloadonly"] + bare)
    return kept


def parts(manager: Manager, wanted: Dict[str, Any]) -> List[PackageSpec]:
    """Return the packages by name and version, those of metapackages too."""
    inner = {one["name"]: one["parts"] for one in wanted["names"] if isinstance(one, dict) and one.get("parts")}
    names = package_specs(wanted["names"])
    return manager.add_parts(names, inner) if inner else names


def before(manager: Manager, simulation: Simulation) -> List[str]:
    """Return what is installed now of the packages that will change or go, as ``name=version``."""
    there = manager.installed()
    names = [name for name, (old, _) in simulation.install.items() if old is not None] + simulation.remove
    return sorted("%s=%s" % (name, there[name].version) for name in set(names) if name in there)


def after(simulation: Simulation) -> List[str]:
    """Return what will be installed, as ``name=version``."""
    return sorted("%s=%s" % (name, new) for name, (_, new) in simulation.install.items())


# ---- NVIDIA's installers --------------------------------------------------------------------------------------------


def installers(
    wanted: List[Dict[str, Any]], machine: str, limits: runfile_fetch.RunfileLimits, folder: str = runfile_store.STORE
) -> List[str]:
    """Have installers on the host, proved (changes it), and no others; return the versions that were not there."""
    rows = [
        runfile_store.StoredInstaller(one["version"], one["source"], one["sha256"], one["sha256_url"]) for one in wanted
    ]
    runfile_store.delete_other_versions([row.version for row in rows], folder)
    return [row.version for row in rows if runfile_store.store_installer(row, machine, limits, folder)]


# ---- apt ------------------------------------------------------------------------------------------------------------


def stage_apt(manager: apt.Apt, wanted: Dict[str, Any]) -> Staged:
    """Fetch with apt-get."""
    what = "fetching the driver's packages"
    manager.update()
    pins = manager.resolve(package_specs(wanted["pins"]), manager.offers(wanted["pins"]))
    simulation = Simulation({}, [])
    if pins:
        argv = ANY_STATE + ["install"] + pins + [name + "-" for name in wanted["pins_gone"]]
        simulation = manager.simulate(what, argv)
        refuse_unrequested(simulation, wanted["pins_gone"])
        manager.run_change(what, ["--download-only"] + argv)
    with preferences(manager, simulation, wanted["pins_gone"]) as option:
        names = parts(manager, wanted)
        argv = ANY_STATE + ["install"] + manager.resolve(names, manager.offers([wish.name for wish in names]))
        argv += [name + "-" for name in wanted["remove"]]
        main = manager.simulate(what, option + argv)
        refuse_unrequested(main, wanted["remove"] + wanted["allowed"])
        manager.check_disk(main)
        manager.run_change(what, option + ["--download-only"] + argv)
    both = dnf.join_simulations(simulation, main)
    kept = before(manager, both)
    return Staged(after(both), again(manager, [one.partition("=")[0] for one in kept]))


@contextlib.contextmanager
def preferences(manager: apt.Apt, pins: Simulation, gone: List[str]) -> Iterator[List[str]]:
    """Give the options with which apt reads the pins that will be there, in place of those of now."""
    fetched = [name for name in pins.install]
    if not fetched and not gone:
        yield []
        return
    os.makedirs(manifest.DIRECTORY, mode=0o755, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="pins-", dir=manifest.DIRECTORY)
    try:
        os.chmod(folder, 0o755)  # apt reads it as a user without rights
        new = os.path.join(folder, "new")
        os.mkdir(new)
        for path in texts(PREFERENCES, owned(manager, gone)):
            shutil.copy(path, new)
        for name, (_, version) in pins.install.items():
            for archive in archives(name, version):
                unpacked = os.path.join(folder, "unpacked")
                answer = manager.host.run(["dpkg-deb", "-x", archive, unpacked], timeout=120.0)
                if answer.rc != 0:
                    raise PackageError("reading %s: %s: clear apt's cache and run again" % (archive, answer.err[-300:]))
                for path in texts(unpacked + PREFERENCES, []):
                    shutil.copy(path, new)
        yield ["-o", "Dir::Etc::PreferencesParts=" + new]
    finally:
        shutil.rmtree(folder)


def owned(manager: apt.Apt, names: List[str]) -> List[str]:
    """Return the files of installed packages."""
    return manager.host.run(["dpkg-query", "-L"] + names).out.split("\n") if names else []


def texts(folder: str, without: List[str]) -> List[str]:
    """Return the files of a folder but those of ``without``."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [os.path.join(folder, name) for name in names]
    return [path for path in paths if os.path.isfile(path) and path not in without]


def archives(name: str, version: str) -> List[str]:
    """Return the file of a package in apt's cache; its name has the colon of an epoch in writing."""
    return glob.glob("%s/%s_%s_*.deb" % (apt.ARCHIVES, glob.escape(name), glob.escape(version.replace(":", "%3a"))))


# ---- dnf ------------------------------------------------------------------------------------------------------------


def stage_dnf(manager: dnf.Dnf, wanted: Dict[str, Any]) -> Staged:
    """Fetch with dnf; locks and the filter of module streams stand aside, since both change with the installation."""
    if manager.form == "yum":
        raise PackageError(
            "yum 3 on this host resolves nothing beside an older pin, so packages cannot be fetched beforehand: leave "
            "the host out (gpu_upgrade_exclude) and use site.yml for it"
        )
    what = "fetching the driver's packages"
    manager.update()
    wanted = dict(wanted, names=wanted["pins"] + wanted["names"])
    arguments = manager.resolve(parts(manager, wanted))
    argv = ["install", "--allowerasing"] + arguments
    simulation = manager.simulate(what, argv)
    refuse_unrequested(simulation, wanted["remove"] + wanted["allowed"] + wanted["pins_gone"])
    manager.run_change(what, argv[:2] + ["--downloadonly"] + arguments)
    kept = before(manager, simulation)
    return Staged(after(simulation), again(manager, [one.partition("=")[0] for one in kept]))


def downloads(todo: Dict[str, Any]) -> Dict[str, Any]:
    """Return what the steps of a plan will ask for: packages, pins, streams, what may go, and NVIDIA's installer."""
    install = todo.get("nvidia_driver.install") or {}
    names: List[Any] = list(install.get("packages") or [])
    for step, key in (
        ("nvidia_driver.detect", "packages"),
        ("nvidia_driver.fabricmanager", "packages"),
        ("nvidia_driver.imex", "packages"),
        ("nvidia_driver.persistenced", "packages"),
        ("nvidia_driver.hold", "tools"),
    ):
        names += (todo.get(step) or {}).get(key) or []
    return {
        "names": names,
        "pins": list(install.get("pin_packages") or []),
        "pins_gone": list(install.get("pin_remove") or []),
        "streams": dict(install.get("streams") or {}),
        "remove": list(install.get("remove") or []),
        "allowed": list(install.get("allow_remove") or []),
        "gone": list((todo.get("nvidia_driver.remove_packages") or {}).get("packages") or []),
        "runfile": todo.get("nvidia_driver.runfile"),
    }
