"""Download what an upgrade and its rollback install, before anything changes.

Packages are in the package manager's cache afterwards, NVIDIA's installers in gpu-ready's directory. The transactions
are those of the steps, planned by the function that plans them for the steps (packaging/install.py). With apt each is
simulated on the state that the ones before it leave; dnf has no such state, so it gets their union. Nothing is
installed, removed or configured.
"""

from typing import List, Mapping, NamedTuple, Optional

from ..driver.runfile import fetch as runfile_fetch
from ..driver.runfile import store as runfile_store
from ..driver.runfile.store import StoredInstaller
from ..packaging import apt, archives, dnf, signatures
from ..packaging.install import Transaction, plan_transaction, release
from ..packaging.manager import Manager, PackageError, Simulation

NO_LONGER_OFFERED = (
    "%s: no package source of this host has %s any more, so the installed driver could not be restored after a "
    "failure. Enable a source that keeps old versions (your mirror, snapshot.ubuntu.com, snapshot.debian.org), or "
    "install the offered version of its branch with site.yml, then run again"
)
ANY_STATE = ["--allow-downgrades", "--allow-change-held-packages"]
"""Options of apt for packages that are only downloaded again."""


class StagedPackages(NamedTuple):
    """Packages in the cache as ``name=version``: for the upgrade and for its rollback."""

    coming: List[str]
    kept: List[str]


def read_installer(value: Mapping[str, object]) -> StoredInstaller:
    """Return an installer from the parameters of a step."""
    return StoredInstaller(*[str(value.get(name) or "") for name in StoredInstaller._fields])


def stage_packages(manager: Manager, transactions: List[Transaction]) -> StagedPackages:
    """Fill the cache; PackageError if a package is not available."""
    if not transactions:
        return StagedPackages([], [])
    if isinstance(manager, apt.Apt):
        simulated = stage_apt(manager, transactions)
    elif isinstance(manager, dnf.Dnf):
        simulated = stage_dnf(manager, transactions)
    else:
        raise PackageError(
            "%s: it cannot download packages beforehand. Report this defect of gpu-ready." % manager.program
        )
    staged = StagedPackages(
        new_versions(simulated), download_installed(manager, bare_names(installed_versions(manager, simulated)))
    )
    if isinstance(manager, dnf.Dnf):
        verify_downloads(manager, staged.coming + staged.kept)
    return staged


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


def stage_apt(manager: apt.Apt, transactions: List[Transaction]) -> Simulation:
    """Download the new packages; returns what all transactions do together."""
    manager.update()
    found = Simulation({}, [])
    with manager.simulated():
        for one in transactions:
            release(manager, one)
            planned = plan_transaction(manager, one, manager.installed(), check=True)
            for argv in planned.calls if planned.simulation.install else []:
                manager.run_change("downloading " + one.purpose, ["--download-only"] + argv)
            if manager.state and one is not transactions[-1]:
                manager.state.apply(planned.simulation)
                manager.hold(one.hold)
            found = dnf.join_simulations(found, planned.simulation)
    return found


# ---- dnf ------------------------------------------------------------------------------------------------------------


def stage_dnf(manager: dnf.Dnf, transactions: List[Transaction]) -> Simulation:
    """Download the new packages; returns what the union of the transactions does."""
    union = join_transactions(transactions)
    installs = bool(union.names or union.optional)
    if manager.form == "yum" and installs:
        raise PackageError(
            "yum 3: it cannot resolve another version beside a pin, so packages cannot be downloaded beforehand. "
            "Exclude the host (gpu_upgrade_exclude) and use site.yml for it."
        )
    # Downloads are kept only with this setting. The filter of module streams would hide those of another stream.
    manager.extra_options += ["--setopt=keepcache=1"] + (["--setopt=*.module_hotfixes=1"] if union.streams else [])
    if installs:
        manager.update()
    with manager.simulated():
        planned = plan_transaction(manager, union, manager.installed(), check=True)
        for argv in planned.calls:
            if argv[0] != "remove":
                manager.run_change("downloading " + union.purpose, argv[:1] + ["--downloadonly"] + argv[1:])
    return planned.simulation


def join_transactions(transactions: List[Transaction]) -> Transaction:
    """Return the union of transactions."""
    first = transactions[0]
    for one in transactions[1:]:
        lists = {
            name: getattr(first, name) + [each for each in getattr(one, name) if each not in getattr(first, name)]
            for name in ("names", "optional", "remove", "hold", "unhold", "allow_remove")
        }
        first = first._replace(
            parts=dict(first.parts, **one.parts), streams=dict(first.streams, **one.streams), **lists
        )
    return first


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
