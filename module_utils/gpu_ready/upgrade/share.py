"""Which host builds the modules of the new driver for which others. Pure; runs on the control node.

Only the operator's variables make a host a builder. What a host answers (``alike``) decides what it can use, never who
takes something from it.
"""

import json
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..report import layout
from .fleet.model import FleetError
from .fleet.rollout import resolve_hosts

VARIABLE = "gpu_upgrade_builders"
NO_BUILDER = "no host of %s is like this one" % VARIABLE
OTHER_FORM = "its answer has another form"
RESUMED = "a resumed run downloads nothing"
NOT_BUILT = "not built beforehand (%s)"
BUILT = "built beforehand"
LONGEST = 200
"""Characters of what a host answered."""
MOST = 8
"""Properties of a host; see modules.shared_properties."""


class ModuleShares(NamedTuple):
    """``builders``: by host, the host that builds for it. ``alone``: why other hosts compile during their upgrade."""

    builders: Dict[str, str]
    alone: Dict[str, str]


def resolve_builders(
    hosts: List[str], named: Mapping[str, object], groups: Mapping[str, List[str]]
) -> Dict[str, List[str]]:
    """By host, the hosts whose modules it may take: those that its own gpu_upgrade_builders names.

    ``named``: the variable by host. FleetError for a name that the inventory does not have.
    """
    found: Dict[str, List[str]] = {}
    known: Dict[str, List[str]] = {}
    for name in hosts:
        value = named.get(name) or []
        listed = value.split(",") if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise FleetError("%s: it must be a list of hosts or groups. Correct it." % VARIABLE)
        names = [one.strip() for one in listed if one.strip()]
        key = json.dumps(names)
        if key not in known:  # one value for the whole fleet is resolved once
            builders = set(resolve_hosts(names, groups, hosts, VARIABLE))
            known[key] = [one for one in hosts if one in builders]
        found[name] = known[key]
    return found


def assign_builders(hosts: List[str], alike: Mapping[str, object], trusted: Mapping[str, List[str]]) -> ModuleShares:
    """Return who builds, and from whom the others take. ``hosts``: in the order of the rollout.

    A host builds if its own variable names it (``trusted``, from resolve_builders), never because of another host. A
    host that does not build takes from the first builder that its variable names and that has equal ``alike``
    (modules.shared_properties). A host whose ``alike`` has ``why`` takes none; an empty one is not reported.
    """
    found = {name: read_properties(alike.get(name)) for name in hosts}
    building = [name for name in hosts if name in trusted[name] and "why" not in found[name]]
    builders: Dict[str, str] = {}
    alone = {}
    for name in hosts:
        if "why" in found[name]:
            alone[name] = found[name]["why"]
        elif name in building:
            builders[name] = name
        else:
            builder = find_builder(name, building, found, trusted[name])
            if builder is None:
                alone[name] = NO_BUILDER
            else:
                builders[name] = builder
    return ModuleShares(builders, {name: why if trusted[name] else "" for name, why in alone.items()})


def find_builder(
    name: str, building: List[str], alike: Mapping[str, Mapping[str, str]], trusted: List[str]
) -> Optional[str]:
    """Return the first builder whose modules this host may take and can use."""
    return next((one for one in building if one in trusted and alike[one] == alike[name]), None)


def read_properties(answer: object) -> Dict[str, str]:
    """Return what a host answered as its shared properties; only ``why`` for an answer of another form."""
    if answer is None or answer == {}:
        return {"why": RESUMED}
    if not isinstance(answer, dict) or len(answer) > MOST:
        return {"why": OTHER_FORM}
    if not all(isinstance(one, str) and len(one) <= LONGEST for pair in answer.items() for one in pair):
        return {"why": OTHER_FORM}
    return {"why": layout.one_line(answer["why"])} if "why" in answer else dict(answer)


def module_origins(hosts: List[str], shares: ModuleShares, failures: Mapping[str, object]) -> Dict[str, str]:
    """Return where the modules of each host come from. ``failures``: why a host could not build or accept them."""
    found = {}
    for name in hosts:
        builder = shares.builders.get(name)
        if builder is None:
            why = shares.alone.get(name, "it takes no part")
            found[name] = NOT_BUILT % why if why else ""
        elif name in failures:
            found[name] = NOT_BUILT % layout.one_line(failures[name])[:LONGEST]
        elif builder in failures:
            found[name] = NOT_BUILT % ("%s did not build them" % builder)
        else:
            found[name] = BUILT if builder == name else "built on %s" % builder
    return found


def origins_table(hosts: List[str], origins: Mapping[str, str]) -> str:
    """Return one line per origin, with its hosts."""
    grouped: Dict[str, List[str]] = {}
    for name in hosts:
        grouped.setdefault(origins[name], []).append(name)
    return "\n".join("modules %s: %s" % (origin, ", ".join(names)) for origin, names in grouped.items() if origin)
