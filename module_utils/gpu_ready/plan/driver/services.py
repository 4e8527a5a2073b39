"""The driver's services: fabric manager of hosts with NVSwitches, IMEX of nodes in a domain, persistence daemon.

They run only beside a loaded driver, so their steps come after its activation. CUDA does not start on an NVSwitch host
without a fabric manager of exactly the driver's version. Without the persistence daemon the driver initializes each
GPU again for every program. IMEX shares memory between nodes whose NVLinks go to common switches. Only the site knows
which nodes these are, so its service starts where their file exists.
"""

import re
from typing import List, Optional

from ...base import versions
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from ...facts.model import Facts, ModuleFacts
from ..model import Choices, Decision, DriverChoice, Notice, PackageTarget, ServicesChoice, Step
from .model import ServiceParams
from .steps import FABRICMANAGER_PACKAGE, installed_fabricmanager

FABRICMANAGER = "nvidia-fabricmanager"
SUBNET_MANAGER = "nvlsm"
"""Needed by NVLink 5 switches in addition; its version is not tied to the driver's."""
IMEX = "nvidia-imex"
IMEX_PACKAGE = re.compile(IMEX + r"(-\d+)?$")
PERSISTENCED = "nvidia-persistenced"


def decide(facts: Facts, settings: Settings, choices: Choices) -> Decision[ServicesChoice]:
    """Return the steps that install and start the services that this host's driver needs."""
    driver = choices.driver
    if driver is None or driver.source == "none" or facts.base.distro is None:
        return Decision()
    data = catalog.distro(facts.base.distro)
    hold = settings.nvidia_driver_hold
    steps = fabricmanager_steps(facts, driver, data, hold)
    steps += imex_steps(facts, driver, data, hold)
    steps += persistenced_steps(facts, driver, data, hold)
    names = {step.action: step.params.packages[0].name for step in steps if isinstance(step.params, ServiceParams)}
    return Decision(ServicesChoice(**names), steps, warnings=missing_imex_warnings(facts, driver, data))


def fabricmanager_steps(facts: Facts, driver: DriverChoice, data: Distribution, hold: bool) -> List[Step]:
    """Return the step that installs and starts the fabric manager on a host with NVSwitches."""
    switches = facts.base.nvswitches
    name = fabricmanager_name(facts, driver, data) if switches else None
    if name is None:
        return []
    if fits_driver(facts, driver, name):
        if facts.driver.fabricmanager:
            if not needs_hold(facts, name, hold):
                return []
            reason = "an unattended upgrade could leave fabric manager and driver at different versions"
        else:
            reason = "%d NVSwitches need the fabric manager, and it does not run" % len(switches)
    else:
        reason = "%d NVSwitches need a fabric manager of exactly the driver's version" % len(switches)
    params = service_params(facts, driver, name, FABRICMANAGER, hold)
    if any(switch.what == "nvlink5" for switch in switches):
        params = params._replace(packages=params.packages + [PackageTarget(SUBNET_MANAGER)])
    return [Step("nvidia_driver.fabricmanager", reason, params=params)]


def fabricmanager_name(facts: Facts, driver: DriverChoice, data: Distribution) -> Optional[str]:
    """Return the package of the fabric manager: beside an adopted driver the installed one, else its source's."""
    installed = installed_fabricmanager(facts) if driver.satisfied else None
    if installed and fits_driver(facts, driver, installed):
        return installed
    return driver_sources.fabricmanager_package(data, driver.source, driver.branch or 0)


def imex_steps(facts: Facts, driver: DriverChoice, data: Distribution, hold: bool) -> List[Step]:
    """Return the step that keeps an installed IMEX at the driver's version, and installs it on a node of a domain."""
    imex = facts.driver.imex
    installed = [name for name in facts.packages.installed if IMEX_PACKAGE.match(name)]
    name = driver_sources.companion_package(data, driver.source, "imex", driver.branch or 0)
    if name is None or not (installed or imex.member):
        return []
    if not fits_driver(facts, driver, name):
        reason = "IMEX works with a driver of exactly its own version only"
        reason += "" if installed else ", and this node belongs to a domain"
    elif imex.member and not imex.running:
        reason = "this node belongs to an IMEX domain, and IMEX does not run"
    elif needs_hold(facts, name, hold):
        reason = "an unattended upgrade could leave IMEX and driver at different versions"
    else:
        return []
    params = service_params(facts, driver, name, IMEX, hold)
    return [Step("nvidia_driver.imex", reason, params=params._replace(start=imex.member))]


def missing_imex_warnings(facts: Facts, driver: DriverChoice, data: Distribution) -> List[Notice]:
    """Warn of a node in an IMEX domain whose driver source has no IMEX."""
    if not facts.driver.imex.member or driver_sources.companion_package(
        data, driver.source, "imex", driver.branch or 0
    ):
        return []
    return [
        Notice(
            "no_imex",
            "this node belongs to an IMEX domain, and %s has no IMEX for branch %s" % (driver.source, driver.branch),
            "choose cuda_repo as nvidia_driver_source, or install nvidia-imex of the driver's version yourself",
        )
    ]


def persistenced_steps(facts: Facts, driver: DriverChoice, data: Distribution, hold: bool) -> List[Step]:
    """Return the step that starts the persistence daemon where the driver's source has it."""
    name = driver_sources.source_entry(data, driver.source, driver.kind or driver_sources.DKMS).get("persistenced")
    if not name:
        return []
    name = name.format(branch=driver.branch)
    reason = "the persistence daemon keeps the GPUs initialized, and it does not run"
    if fits_driver(facts, driver, name) and facts.driver.persistenced:
        if not needs_hold(facts, name, hold):
            return []
        reason = "an unattended upgrade could leave persistence daemon and driver at different versions"
    params = service_params(facts, driver, name, PERSISTENCED, hold)
    return [Step("nvidia_driver.persistenced", reason, params=params)]


def needs_hold(facts: Facts, name: str, hold: bool) -> bool:
    return hold and name not in facts.packages.held


def fits_driver(facts: Facts, driver: DriverChoice, name: str) -> bool:
    """True if a package of the driver's version is installed beside the chosen driver."""
    version = facts.packages.installed.get(name)
    disk = facts.driver.on_disk
    return bool(driver.satisfied and version and disk and versions.upstream(version) == disk.version)


def service_params(facts: Facts, driver: DriverChoice, name: str, service: str, hold: bool) -> ServiceParams:
    package = PackageTarget(name, package_version(driver, facts.driver.on_disk))
    pattern = {FABRICMANAGER: FABRICMANAGER_PACKAGE, IMEX: IMEX_PACKAGE}.get(service)
    others = [one for one in facts.packages.installed if pattern and pattern.match(one) and one != name]
    return ServiceParams([package], [name] if hold else [], service, remove=sorted(others))


def package_version(driver: DriverChoice, disk: Optional[ModuleFacts]) -> str:
    """Return the version to install: the driver's own where that is known in advance, else one of its branch."""
    if driver.satisfied and disk:
        return disk.version + "-*"
    if driver.version:
        return driver.version + "-*"
    return "%d.*" % (driver.branch or 0)
