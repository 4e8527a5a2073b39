"""Which host builds the modules of the new driver for which others. Pure; runs on the control node."""

import json
from typing import Dict, List, Mapping, NamedTuple

OFF = "gpu_upgrade_build_once is off"
NOT_BUILT = "not built beforehand (%s)"
BUILT = "built beforehand"


class ModuleShares(NamedTuple):
    """``builders``: by host, the host that builds for it. ``alone``: why other hosts compile during their upgrade."""

    builders: Dict[str, str]
    alone: Dict[str, str]


def assign_builders(
    hosts: List[str], alike: Mapping[str, Mapping[str, str]], enabled: Mapping[str, bool]
) -> ModuleShares:
    """Of hosts with equal ``alike`` (modules.shared_properties) the first in the rollout builds for all.

    A host whose ``alike`` has ``why`` takes none; an empty one is not reported. ``enabled``: gpu_upgrade_build_once by
    host.
    """
    builders: Dict[str, str] = {}
    alone = {}
    first: Dict[str, str] = {}
    for name in hosts:
        found = alike.get(name) or {"why": "a resumed run downloads nothing"}
        if not enabled.get(name, True):
            alone[name] = OFF
        elif "why" in found:
            alone[name] = str(found["why"])
        else:
            builders[name] = first.setdefault(json.dumps(found, sort_keys=True), name)
    return ModuleShares(builders, alone)


def module_origins(hosts: List[str], shares: ModuleShares, failures: Mapping[str, str]) -> Dict[str, str]:
    """Where the modules of each host come from. ``failures``: why a host could not build or accept them."""
    found = {}
    for name in hosts:
        builder = shares.builders.get(name)
        if builder is None:
            why = shares.alone.get(name, "it takes no part")
            found[name] = NOT_BUILT % why if why else ""
        elif name in failures:
            found[name] = NOT_BUILT % failures[name]
        elif builder in failures:
            found[name] = NOT_BUILT % ("%s did not build them" % builder)
        else:
            found[name] = BUILT if builder == name else "built on %s" % builder
    return found


def origins_table(hosts: List[str], origins: Mapping[str, str]) -> str:
    """One line per origin, with its hosts."""
    grouped: Dict[str, List[str]] = {}
    for name in hosts:
        grouped.setdefault(origins[name], []).append(name)
    return "\n".join("modules %s: %s" % (origin, ", ".join(names)) for origin, names in grouped.items() if origin)
