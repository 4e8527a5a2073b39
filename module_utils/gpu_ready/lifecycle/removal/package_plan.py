"""Chooses which of the packages that gpu-ready installed are removed, and which are kept and why."""

from typing import Any, Dict, List, NamedTuple

from ...base import manifest
from ...packaging.manager import Manager, is_installed

WHAT = "purging gpu-ready's packages"
MARKED = "somebody marked it as installed by hand, or installed it again"


class PackagePlan(NamedTuple):
    """``remove``: packages to remove; ``kept``: the others that are installed, with the reason."""

    remove: List[str]
    kept: Dict[str, str]


def plan_packages(manager: Manager, recorded: Dict[str, Dict[str, Any]]) -> PackagePlan:
    """Keep what somebody requested since, and what a package that stays needs.

    Of a package that gpu-ready itself requested by name, the package manager does not know whether somebody else
    requested it too.
    """
    names = manifest.owned_packages(recorded)
    installed = manager.installed() if names else {}
    names = [name for name in names if name in installed and installed[name].state != "not-installed"]
    if not names:
        return PackagePlan([], {})
    requested = manager.user_installed()
    dependencies = [name for name in names if recorded["packages"][name].get("manual") is False]
    kept = {name: MARKED for name in dependencies if name in requested and is_installed(installed, name)}
    names = [name for name in names if name not in kept]
    if manager.find_interrupted():
        return PackagePlan(names, kept)  # nothing can be simulated before it is repaired
    needed: Dict[str, str] = {}
    return PackagePlan(sorted(find_removable(manager, [], names, needed, names)), dict(kept, **needed))


def find_removable(
    manager: Manager, accepted: List[str], names: List[str], needed: Dict[str, str], ours: List[str]
) -> List[str]:
    """Return ``accepted`` and the ``names`` that can be removed with them; add the rest to ``needed``, with the reason.

    The package manager is asked about halves, as it alone knows what else would satisfy a dependency.
    """
    if not names:
        return accepted
    foreign = find_foreign_changes(manager, accepted + names, ours)
    if not foreign:
        return accepted + names
    if len(names) == 1:
        needed[names[0]] = "%s needs it" % ", ".join(foreign[:3])
        return accepted
    middle = len(names) // 2
    accepted = find_removable(manager, accepted, names[:middle], needed, ours)
    return find_removable(manager, accepted, names[middle:], needed, ours)


def find_foreign_changes(manager: Manager, names: List[str], ours: List[str]) -> List[str]:
    """Return packages beside ``ours`` that the removal of ``names`` would remove or install."""
    simulation = manager.simulate(WHAT, manager.removal_command(names))
    # Of a package with two installed versions, the full name is recorded, and the short one is in the simulation.
    known = [name for name in simulation.remove if name in ours or [n for n in ours if n.startswith(name + "-")]]
    return [name for name in simulation.remove if name not in known] + sorted(simulation.install)
