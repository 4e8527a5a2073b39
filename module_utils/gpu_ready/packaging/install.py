"""Installs, removes and holds packages, and records in the manifest what is new."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..base import manifest, manifest_notes
from ..base.evidence import without_evidence
from .manager import (
    GROUPS,
    LEFTOVERS,
    USERS,
    Installed,
    Manager,
    PackageChange,
    PackageError,
    PackageSpec,
    Simulation,
    is_installed,
    package_specs,
    pins_parts,
)
from .version_match import version_matches

OWNERS = {owner for owners in (GROUPS, USERS, LEFTOVERS) for names in owners.values() for owner in names}
"""Packages whose removal leaves users, groups or files."""


class Transaction(NamedTuple):
    """One package transaction: what is installed, removed, held and released with it, as the options of gpu_packages.

    Preparation, check and execution get the same one. ``parts``: regular expressions for what metapackages depend on,
    by metapackage. ``unhold`` is released before, ``allow_remove`` may be removed because others conflict with it.
    """

    names: List[PackageSpec]
    optional: List[PackageSpec]
    parts: Dict[str, str]
    streams: Dict[str, str]
    remove: List[str]
    purge: bool
    hold: List[str]
    unhold: List[str]
    allow_remove: List[str]
    update_cache: bool
    purpose: str

    @property
    def what(self) -> str:
        """What is done, as errors begin."""
        return "installing " + self.purpose


class PlannedChange(NamedTuple):
    """What the package manager is called with for a transaction; ``missing``: those of ``specs`` to be installed."""

    specs: List[PackageSpec]
    missing: List[PackageSpec]
    calls: List[List[str]]
    simulation: Simulation


def parse_transaction(params: Mapping[str, Any]) -> Transaction:
    """Return the transaction in options of gpu_packages; absent ones have their defaults."""
    names, optional = params.get("names") or [], params.get("optional") or []
    lists = {name: params.get(name) or [] for name in ("remove", "hold", "unhold", "allow_remove")}
    return Transaction(
        names=package_specs(names),
        optional=package_specs(optional),
        parts={value["name"]: value["parts"] for value in names if pins_parts(value)},
        streams=params.get("streams") or {},
        purge=bool(params.get("purge")),
        update_cache=bool(params.get("update_cache")),
        purpose=params.get("purpose") or "the packages",
        **lists,
    )


def converge(manager: Manager, request: Transaction, check: bool) -> Dict[str, Any]:
    """Install, remove and hold what the request asks for; returns the module's values."""
    result: Dict[str, Any] = {"installed": {}, "removed": [], "held": [], "versions": {}}
    manager.owned = owned = manifest.owned_packages(manifest.read())
    result["repaired"] = manager.find_interrupted() if check else manager.repair(owned)
    before = manager.installed()
    if not check:
        manifest_notes.forget_packages([name for name in owned if name not in before], OWNERS)

    if check and find_held(manager, request):
        with manager.simulated():
            return converge_packages(manager, request, before, check, result)
    return converge_packages(manager, request, before, check, result)


def converge_packages(
    manager: Manager, request: Transaction, before: Dict[str, Installed], check: bool, result: Dict[str, Any]
) -> Dict[str, Any]:
    """Carry out a transaction, or simulate it for a check; adds to ``result`` and returns it."""
    result["unheld"] = release(manager, request)
    streams_before = switch_streams(manager, request.streams, check)
    result["streams"] = {name: request.streams[name] for name in streams_before}
    try:
        if check and streams_before:
            # Only an enabled stream shows its packages: a simulation would describe another stream's.
            specs = choose_specs(manager, request, before, check)
            missing = missing_packages(before, specs)
            result["installed"].update({spec.name: spec.version or "any" for spec in missing})
            result["removed"] += [name for name in request.remove if is_installed(before, name)]
        else:
            specs = change_packages(manager, request, check, result)
            if request.purge and not check:
                purge_configuration(manager, request.remove)
    except PackageError:
        if not check:
            restore_protection(manager, before, streams_before, result["unheld"])
        raise

    after = before if check else manager.installed()
    result["held"] = packages_to_hold(request, after, result)
    if not check:
        if result["held"]:
            manifest_notes.note("holds", {name: {} for name in result["held"]})
            manager.hold(result["held"])
        missing_names = [spec.name for spec in specs if not is_installed(after, spec.name)]
        if missing_names:
            raise PackageError(
                "%s: %s succeeded, but %s is not installed" % (request.what, manager.program, ", ".join(missing_names))
            )
        result["versions"] = {spec.name: after[spec.name].version for spec in specs}
        # A hold that somebody sets from here on is not gpu-ready's.
        manifest_notes.drop("holds", [name for name in result["unheld"] if name not in request.hold])
    else:
        del result["versions"]
    result["warnings"] = [
        "this package source was left out, because it could not be read: %s" % one for one in manager.failed_sources
    ]
    result["changed"] = any(result[key] for key in ("installed", "removed", "repaired", "held", "unheld", "streams"))
    result["diff"] = {
        "before": "".join(
            "%s %s\n" % (name, before[name].version)
            for name in sorted(result["installed"]) + sorted(result["removed"])
            if is_installed(before, name)
        ),
        "after": "".join("%s %s\n" % item for item in sorted(result["installed"].items())),
    }
    return result


def find_held(manager: Manager, request: Transaction) -> List[str]:
    locked = manager.held() if request.unhold else []
    return [name for name in request.unhold if name in locked]


def release(manager: Manager, request: Transaction) -> List[str]:
    """Release what a transaction releases; returns the packages that were held."""
    held = find_held(manager, request)
    if held:
        manager.unhold(held)
    return held


def choose_specs(
    manager: Manager, request: Transaction, before: Dict[str, Installed], check: bool
) -> List[PackageSpec]:
    """Return the requested packages, the optional ones that a source offers, and the parts of exact metapackages."""
    optional = missing_packages(before, request.optional)
    if optional and request.update_cache and not check and manager.lists_are_stale():
        manager.update()  # lists that were never read offer nothing
    offers = manager.offers([spec.name for spec in optional])
    offered = [
        spec for spec in optional if any(version_matches(spec.version, one) for one in offers.get(spec.name, []))
    ]
    specs = request.names + offered
    exact = missing_packages(before, [spec for spec in specs if spec.name in request.parts])
    if exact:
        refresh_lists(manager, request, exact, check)
        specs = manager.add_parts(specs, request.parts)
    return specs


def missing_packages(installed: Dict[str, Installed], specs: List[PackageSpec]) -> List[PackageSpec]:
    """Return specs that no installed version matches."""
    return [
        spec
        for spec in specs
        if not (is_installed(installed, spec.name) and version_matches(spec.version, installed[spec.name].version))
    ]


def is_offered(spec: PackageSpec, offers: Dict[str, List[str]]) -> bool:
    return any(version_matches(spec.version, one) for one in offers.get(spec.name, []))


def refresh_lists(manager: Manager, request: Transaction, specs: List[PackageSpec], check: bool) -> None:
    """Read the package lists again when they are old, or offer no matching version of a package."""
    if not specs or not request.update_cache or check:
        return
    offers = manager.offers([spec.name for spec in specs])
    if not all(is_offered(spec, offers) for spec in specs) or manager.lists_are_stale():
        manager.update()


def plan_transaction(
    manager: Manager, request: Transaction, before: Dict[str, Installed], check: bool
) -> PlannedChange:
    """Return the calls of a transaction, from the state that the manager sees: holds are released by then.

    The one place where they are made: for the preparation of an upgrade, for a check, and for the execution. ``check``:
    the package lists are not read again.
    """
    specs = choose_specs(manager, request, before, check)
    missing = missing_packages(before, specs)
    remove = [name for name in request.remove if is_installed(before, name)]
    if not missing and not remove:
        return PlannedChange(specs, missing, [], Simulation({}, []))
    refresh_lists(manager, request, missing, check)
    change = PackageChange(missing, remove, request.allow_remove)
    return PlannedChange(specs, missing, *manager.plan_change(request.what, change))


def change_packages(manager: Manager, request: Transaction, check: bool, result: Dict[str, Any]) -> List[PackageSpec]:
    """Install and remove in one transaction where the manager can; adds to ``installed`` and ``removed``.

    Returns the packages that are installed by then.
    """
    before = manager.installed()
    planned = plan_transaction(manager, request, before, check)
    if not planned.calls:
        return planned.specs
    if not check:
        requested = [spec.name for spec in planned.missing]
        try:
            apply_recorded(manager, request.what, planned.calls, planned.simulation, requested)
        except PackageError as error:
            if "404" not in without_evidence(str(error)):
                raise
            # Lists that are older than the mirror name files that it no longer has: read them again, once.
            manager.update()
            planned = plan_transaction(manager, request, before, check)
            apply_recorded(manager, request.what, planned.calls, planned.simulation, requested)
    result["installed"].update({name: after for name, (_, after) in planned.simulation.install.items()})
    result["removed"] += planned.simulation.remove
    if request.remove and not check and missing_packages(manager.installed(), planned.missing):
        # yum 3 cannot replace packages in one transaction: it has removed them by now.
        change_packages(manager, request._replace(remove=[]), check, result)
    return planned.specs


def apply_recorded(
    manager: Manager, what: str, calls: List[List[str]], simulation: Simulation, requested: List[str]
) -> None:
    """Record what will be new, then install it; what a failed transaction did not install is not recorded as ours."""
    before = manager.installed()
    fresh = record_new_packages(manager, simulation, requested)
    try:
        manager.apply_change(what, calls, simulation)
    except PackageError:
        after = manager.installed()
        manifest_notes.forget_packages([name for name in fresh if after.get(name) == before.get(name)])
        raise


def record_new_packages(manager: Manager, simulation: Simulation, requested: List[str]) -> List[str]:
    """Record what will be new, before it is installed; and what existed before and a removal leaves.

    Returns the packages that were not recorded yet.
    """
    known = manifest.owned_packages(manifest.read())
    fresh = {package for package in simulation.new if package not in known}
    stays: List[str] = []
    for names, path in ((GROUPS, "/etc/group"), (USERS, "/etc/passwd")):
        existing = {line.split(":")[0] for line in (manager.host.read(path) or "").splitlines()}
        stays += [name for name, owners in names.items() if fresh.intersection(owners) and name in existing]
    stays += [path for path, own in LEFTOVERS.items() if fresh.intersection(own) and manager.host.exists(path)]
    manifest_notes.note("stays", {name: {} for name in stays})
    recorded = simulation.new + [name for name in requested if name in known]
    manifest_notes.note_packages({name: is_requested(name, simulation, requested) for name in recorded})
    return sorted(fresh)


def is_requested(name: str, simulation: Simulation, requested: List[str]) -> bool:
    """Return True for a package that is requested by its name, or by name and version.

    Kernel-devel-5.14.0-570.el9.x86_64.
    """
    version = simulation.install[name][1].split(":")[-1] if name in simulation.install else ""
    full = "%s-%s" % (name, version)
    return any(one in (name, full) or (version and one.startswith(full + ".")) for one in requested)


def purge_configuration(manager: Manager, names: List[str]) -> None:
    """Remove what removed packages left of their configuration."""
    installed = manager.installed()
    left = [name for name in names if name in installed and installed[name].state == "config-files"]
    if left:
        manager.run_change("purging " + ", ".join(left[:5]), manager.removal_command(left))


def switch_streams(manager: Manager, streams: Dict[str, str], check: bool) -> Dict[str, Optional[str]]:
    """Enable module streams; returns the streams before, of the modules that change."""
    enabled = manager.streams() if streams else {}
    changed = {name: stream for name, stream in streams.items() if enabled.get(name) != stream}
    before = {name: enabled.get(name) for name in changed}
    if before and not check:
        manifest_notes.note("streams", {name: {"before": stream} for name, stream in before.items()})
        manager.enable_streams(changed)
    return before


def restore_protection(
    manager: Manager, before: Dict[str, Installed], streams: Dict[str, Optional[str]], unheld: List[str]
) -> None:
    """After a failure: the module streams of before, unless packages changed, and the released holds."""
    if streams and manager.installed() == before:
        manager.restore_streams(streams)
    installed = manager.installed() if unheld else {}
    remaining = [name for name in unheld if name in installed]
    if remaining:
        # They must not be upgraded unattended until somebody repairs the cause.
        manager.hold(remaining)


def packages_to_hold(request: Transaction, after: Dict[str, Installed], result: Dict[str, Any]) -> List[str]:
    return [
        name
        for name in request.hold
        if not (name in after and after[name].hold and name not in result["unheld"])
        and (name in after or name in result["installed"])
    ]
