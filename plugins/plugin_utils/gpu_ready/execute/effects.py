# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What steps bring about: declared beside the function of each step, as changes of facts.

Tests plan, apply what the steps declare, and plan again; on lab hosts they compare it with what the step really did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ....module_utils.gpu_ready.cuda.cudnn import model as cudnn
from ....module_utils.gpu_ready.facts.model import Facts, ModuleFacts
from ..completion.probes import make_probes
from ..plan.changes import FactChange, add, drop, set_to
from .model import Answer, Parameters, Step


class Before(Protocol):
    """A host before a step, with what its package manager decides: no parameter of a step says that."""

    facts: Facts

    def version(self, name: str, requested: str | None) -> str:
        """Return the version that a package gets, "" for none; ``requested`` may end in a star, None is any."""

    def gives_up(self, names: Iterable[str]) -> list[str]:
        """Return those that it removes of packages which it may remove."""

    def module(self, expect: Mapping[str, Any]) -> ModuleFacts:
        """Return the module of the driver that packages bring (DriverTarget)."""

    def origin(self, packages: Mapping[str, str]) -> str:
        """Return the source of a driver's packages."""


Effects = Callable[[Parameters, Before], Iterable[FactChange]]
Transactions = Callable[[Parameters], Iterable[Answer]]


class Declared(NamedTuple):
    """The function of a step, and what it changes; ``facts``: values by path that follow in any case.

    ``transactions``: its package transactions as options of gpu_packages, in their order. An upgrade prepares them.
    """

    run: Step
    effects: Effects
    facts: Mapping[str, object] = {}
    transactions: Transactions = lambda step: []

    def changes(self, step: Parameters, before: Before) -> Iterator[FactChange]:
        """Yield what the step changes on a host."""
        yield from self.effects(step, before)
        yield from (set_to(path, value) for path, value in self.facts.items())


def standard_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield what gpu_packages and gpu_files make of the parameters that most steps have."""
    names = [one for key in ("packages", "tools", "pin_packages") for one in step.get(key) or []]
    removed = [one for key in ("remove", "pin_remove") for one in step.get(key) or []]
    removed += before.gives_up(step.get("allow_remove") or [])
    hold, unhold = step.get("hold") or [], step.get("unhold") or []
    if names or removed or hold or unhold:
        yield from package_changes(before, names, removed, hold, unhold)
    for file in [*(step.get("files") or []), *([step] if "content" in step else [])]:
        absent = file.get("state") == "absent" or file.get("content") == ""
        yield (drop if absent else add)("runtime.manifest.files", [file["path"]])


def removal_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield that packages are removed."""
    return package_changes(before, remove=step["packages"], unhold=step["packages"])


def revert_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield what gpu_revert makes of packages and files, which the manifest forgets at once."""
    yield from removal_effects(step, before)
    yield drop("runtime.manifest.packages", step["packages"])
    yield drop("runtime.manifest.files", step.get("paths") or [])


def package_changes(
    before: Before,
    names: Iterable[Any] = (),
    remove: Iterable[str] = (),
    hold: Iterable[str] = (),
    unhold: Iterable[str] = (),
) -> Iterator[FactChange]:
    """Yield what gpu_packages changes: packages and holds, what the manifest says of both, what is read from them."""
    facts = before.facts
    requested = dict((one, None) if isinstance(one, str) else (one["name"], one["version"]) for one in names)
    found = {name: before.version(name, version) for name, version in requested.items()}
    versions = {name: version for name, version in found.items() if version}
    removed, was = {*remove} - {*requested}, facts.packages.installed
    installed = {name: version for name, version in was.items() if name not in removed} | versions
    held = ({*facts.packages.held} - {*unhold} - removed) | ({*hold} & {*installed})
    ours = ({*facts.docker.held_by_us} - {*unhold}) | ({*hold} - {*facts.packages.held})
    # The manifest forgets what is removed at the next change of packages.
    owned = ({*facts.runtime.manifest.packages} & {*was}) | ({*versions} - {*was})
    packaged = cudnn.find_packages(installed)
    libraries = [one.name for one in packaged]
    parts = make_probes().driver_packages(installed)
    yield drop("packages.installed", removed)
    yield add("packages.installed", versions)
    yield set_to("packages.held", sorted(held))
    yield set_to("docker.held_by_us", sorted(ours))
    yield set_to("runtime.manifest.packages", sorted(owned))
    yield set_to("driver.packages", parts)
    yield set_to("driver.held", sorted(held & {*parts}))
    by_toolkit = {key: cudnn.packaged_version(packaged, key) for key in facts.cudnn}
    yield add("cudnn", {key: facts.cudnn[key]._replace(package=version) for key, version in by_toolkit.items()})
    yield set_to("cudnn_packages.installed", {name: installed[name] for name in libraries})
    yield set_to("cudnn_packages.ours", [name for name in libraries if name in owned])
    yield set_to("cudnn_packages.held_by_us", [name for name in libraries if name in ours])
