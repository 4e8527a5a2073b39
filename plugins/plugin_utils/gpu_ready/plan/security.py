"""Published vulnerabilities of what a host has, or gets: by its version and the bulletins of the catalog."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.facts.model import Facts
from ..catalog import model as catalog
from ..catalog.settings import Settings
from .containers.daemon_json_keys import TOOLKIT as TOOLKIT_MODE
from .containers.runtime_cleanup import TOOLKIT_PACKAGES
from .index_versions import common_versions
from .model import Choices, Notice, Step, VariableChange

DRIVER, TOOLKIT = "driver", "container_toolkit"
NAMES = {DRIVER: "driver", TOOLKIT: "NVIDIA container toolkit"}
INSTALL, CLEANUP = "nvidia_container_runtime.install", "nvidia_container_runtime.cleanup"


class Vulnerable(NamedTuple):
    """A component with published vulnerabilities. ``fixed``: the version of its branch that has none, "" without one.

    ``branches``: with a fix. ``offered``: gpu-ready can install that version. An archive of a distribution or a third
    party has one driver at a time, and may never get it; a toolkit is left alone where containers do not need it.
    """

    component: str
    version: str
    fixed: str
    bulletins: tuple[str, ...]
    cves: tuple[str, ...]
    branches: tuple[int, ...]
    offered: bool = True

    @property
    def text(self) -> str:
        cves = self.cves[0] + (" and %d more" % (len(self.cves) - 1) if len(self.cves) > 1 else "")
        fixed = "fixed in %s" % self.fixed if self.fixed else "not fixed in branch %d" % versions.branch(self.version)
        many = "s" if len(self.bulletins) > 1 else ""
        return "%s %s has published vulnerabilities, %s (%s; bulletin%s %s of NVIDIA)" % (
            NAMES[self.component], self.version, fixed, cves, many, ", ".join(self.bulletins),
        )  # fmt: skip

    @property
    def change(self) -> VariableChange | None:
        """The remedy as variables, where it is that."""
        if self.component != TOOLKIT or not self.offered:
            return None
        effect = "or a newer one, and run site.yml"
        return VariableChange({"nvidia_container_toolkit_version": [self.fixed]}, effect=effect)

    @property
    def remedy(self) -> str:
        if self.change:
            return self.change.text
        if self.component == TOOLKIT:
            return "upgrade %s to %s or a newer version with the host's package manager" % (
                TOOLKIT_PACKAGES[0], self.fixed,
            )  # fmt: skip
        if self.fixed and not self.offered:
            return "run playbooks/upgrade_drivers.yml when the archive has %s, or set nvidia_driver_source to %s" % (
                self.fixed, " or ".join(catalog.sources_of_every_release()),
            )  # fmt: skip
        if self.fixed:
            known = catalog.branch(versions.branch(self.version))
            best = known.newest if known and versions.compare(known.newest, self.fixed) > 0 else self.fixed
            return "run playbooks/upgrade_drivers.yml with nvidia_driver_version=%s, or a newer one" % best
        return "run playbooks/upgrade_drivers.yml with nvidia_driver_branch set to one that has the fixes: %s" % (
            ", ".join(map(str, self.branches))
        )


def find_vulnerable(component: str, version: str | None) -> Vulnerable | None:
    """Return what is published about a version of a component; None for nothing, and for an unknown version."""
    if not version or not versions.parse(version):
        return None
    branch, found = versions.branch(version), []
    for one in catalog.bulletins():
        if one.component != component:
            continue
        own = [fixed for fixed in one.fixed if versions.branch(fixed) == branch]
        newer = branch > max(map(versions.branch, one.fixed))
        if not newer and not any(versions.compare(version, fixed) >= 0 for fixed in own):
            found.append((one, own))
    if not found:
        return None
    fixes = sorted((fixed for _, own in found for fixed in own), key=versions.key)
    last = found[-1][0]
    return Vulnerable(
        component,
        version,
        fixes[-1] if all(own for _, own in found) else "",
        tuple(one.number for one, _ in found),
        tuple(dict.fromkeys(cve for one, _ in reversed(found) for cve in one.cves)),
        tuple(versions.branch(fixed) for fixed in last.fixed),
    )


def installed_toolkit(facts: Facts) -> str | None:
    """Return the version of the container toolkit, None without a package of it."""
    found = facts.packages.installed.get(TOOLKIT_PACKAGES[0])
    return versions.upstream(found) if found else None


def installed(facts: Facts) -> dict[str, str]:
    """Return the versions of the components that a host has."""
    disk = facts.driver.on_disk
    found = {DRIVER: disk.version if disk else None, TOOLKIT: installed_toolkit(facts)}
    return {component: version for component, version in found.items() if version}


def may_fix_toolkit(facts: Facts, settings: Settings) -> bool:
    """Return whether a vulnerable toolkit is replaced by a fixed one that is offered: nobody requests or holds it."""
    free = not settings.nvidia_container_toolkit_version and not set(facts.packages.held) & set(TOOLKIT_PACKAGES)
    used = settings.nvidia_container_runtime_mode == TOOLKIT_MODE
    return used and free and find_vulnerable(TOOLKIT, installed_toolkit(facts)) is not None


def fixed_toolkit(facts: Facts) -> str | None:
    """Return the newest offered toolkit without published vulnerabilities, None where the index has none."""
    offered = common_versions(facts, TOOLKIT_PACKAGES)
    return next((one for one in offered if find_vulnerable(TOOLKIT, one) is None), None)


def installed_vulnerable(facts: Facts, choices: Choices) -> list[Vulnerable]:
    return vulnerable_of(installed(facts), facts.driver.origin, choices)


def vulnerable_of(present: Mapping[str, str], source: str | None, choices: Choices) -> list[Vulnerable]:
    """Return what is published about these versions; ``source``: of the driver."""
    modes = [one.mode for one in (choices.runtime, choices.engines) if one]
    offered = {DRIVER: source in catalog.sources_of_every_release(), TOOLKIT: TOOLKIT_MODE in modes}
    found = (find_vulnerable(component, version) for component, version in present.items())
    return [one._replace(offered=offered[one.component]) for one in found if one is not None]


def planned(facts: Facts, choices: Choices, steps: Sequence[Step]) -> dict[str, str]:
    """Return the versions of the components that a host has when its plan is done, as far as they are known."""
    found, driver = installed(facts), choices.driver
    if driver is not None and not driver.satisfied:
        found.pop(DRIVER, None)
        if driver.version and len(versions.parse(driver.version)) > 1:
            found[DRIVER] = driver.version
    for step in steps:
        packages = getattr(step.params, "packages", [])
        if step.id == INSTALL or (step.id == CLEANUP and TOOLKIT_PACKAGES[0] in packages):
            found.pop(TOOLKIT, None)
    return found


def warnings(facts: Facts, choices: Choices, steps: Sequence[Step]) -> list[Notice]:
    """Warn of what a host still has when its plan is done."""
    source = choices.driver.source if choices.driver is not None else facts.driver.origin
    found = vulnerable_of(planned(facts, choices, steps), source, choices)
    return [Notice("known_vulnerabilities", "the " + one.text, one.remedy, one.change) for one in found]
