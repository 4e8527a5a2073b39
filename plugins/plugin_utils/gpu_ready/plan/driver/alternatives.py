"""What to request in place of a driver that a host cannot have: only what the planner accepts for this host.

A remedy that names a branch or a source was tried with the other variables as they are: following it leads to no other
refusal of the same kind.
"""

from collections.abc import Sequence
from typing import NamedTuple

from .....module_utils.gpu_ready.facts.model import Facts
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import DKMS, FLAVOURS, PRECOMPILED
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from ..model import VariableChange
from . import candidates
from .adopt import adopt_driver

BRANCH, SOURCE = "nvidia_driver_branch", "nvidia_driver_source"
FLAVOUR, MODULES = "nvidia_driver_flavour", "nvidia_driver_kernel_modules"
AUTO = "auto"
EXACT = ("nvidia_driver_version", "nvidia_driver_packages", "nvidia_driver_runfile")
"""Variables that name one driver: they do not outlive another branch, and a file or packages no other source."""
NO_DRIVER = "set nvidia_driver_source to none and install a driver yourself, or take the host out of the inventory"


class Situation(NamedTuple):
    """A host, its distribution and what is requested of its driver."""

    facts: Facts
    settings: Settings
    data: Distribution


def remedy(situation: Situation, *order: str) -> VariableChange | str:
    """Return which variables to set to what; ``order``: the variables that are at fault, first the one to change.

    Words where no value of a variable gives the host a driver.
    """
    rest = [name for name in (BRANCH, SOURCE, FLAVOUR, MODULES) if name not in order]
    for name in [*order, *rest]:
        values = fitting_values(situation, name)
        if values:
            return VariableChange({name: [*values]}, dropped(situation.settings, [name]))
    for source in possible_values(situation, SOURCE):
        changed = situation._replace(settings=with_values(situation.settings, {SOURCE: source}))
        branches = fitting_values(changed, BRANCH)
        if branches:
            chosen: dict[str, list[object]] = {SOURCE: [source], BRANCH: [*branches]}
            return VariableChange(chosen, dropped(situation.settings, [SOURCE, BRANCH]))
    given = [name for name in (SOURCE, BRANCH, FLAVOUR, MODULES) if getattr(situation.settings, name) not in ("", AUTO)]
    if is_accepted(situation, dict.fromkeys([*given, BRANCH], AUTO)):
        return VariableChange({name: [AUTO] for name in given}, dropped(situation.settings, [SOURCE, BRANCH]))
    return NO_DRIVER


def possible_values(situation: Situation, name: str) -> list[str]:
    """Return all values of a variable, `auto` first."""
    numbers = [str(branch.number) for branch in catalog.branches()]
    values = {
        BRANCH: [*([AUTO] if situation.settings.nvidia_driver_branch in candidates.KINDS else []), *numbers],
        SOURCE: [AUTO, *driver_sources.source_names(situation.data)],
        FLAVOUR: [AUTO, *FLAVOURS],
        MODULES: [AUTO, DKMS, PRECOMPILED],
    }
    return values[name]


def fitting_values(situation: Situation, name: str) -> list[str]:
    """Return the values of a variable with which the host gets a driver, the others as they are."""
    return [value for value in possible_values(situation, name) if is_accepted(situation, {name: value})]


def is_accepted(situation: Situation, values: dict[str, str]) -> bool:
    request = candidates.parse_request(with_values(situation.settings, values))
    facts, data = situation.facts, situation.data
    gpus = facts.base.served_gpus
    return bool(adopt_driver(facts, request, gpus, data) or candidates.find_candidates(facts, request, gpus, data))


def with_values(settings: Settings, values: dict[str, str]) -> Settings:
    empty = {name: [] if name.endswith("packages") else "" for name in dropped(settings, list(values))}
    return settings._replace(**values, **empty)  # type: ignore[arg-type]


def dropped(settings: Settings, changed: Sequence[str]) -> list[str]:
    """Return the variables that have to be left out when others are changed."""
    version, packages, file = EXACT
    names = [packages] + ([version, file] if BRANCH in changed else []) + ([file] if SOURCE in changed else [])
    return [name for name in EXACT if name in names and getattr(settings, name)]
