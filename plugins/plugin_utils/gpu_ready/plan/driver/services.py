"""The driver's services: fabric manager of hosts with NVSwitches, IMEX of nodes in a domain, persistence daemon.

They run only beside a loaded driver, so their steps come after its activation. CUDA does not start on an NVSwitch host
without a fabric manager of exactly the driver's version. Without the persistence daemon the driver initializes each
GPU again for every program. IMEX shares memory between nodes whose NVLinks go to common switches. Only the site knows
which nodes these are, so its service starts where their file exists.
"""

import re

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import FABRIC_MODULES, Facts, ModuleFacts
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from .. import health, repository
from ..model import (
    Choices,
    Decision,
    DriverChoice,
    FileDiff,
    Notice,
    PackageTarget,
    Refusal,
    ServicesChoice,
    Step,
    VariableChange,
    not_held_reason,
    notify,
)
from .model import ServiceParams, UmadParams
from .offers import is_offered
from .refusals import nvswitches_text
from .steps import FABRICMANAGER_PACKAGE, headers_packages, installed_fabricmanager

FABRICMANAGER = "nvidia-fabricmanager"
NVLINK5_PACKAGES = ("nvlsm", "infiniband-diags")
"""Needed by NVLink 5 switches in addition: the subnet manager, and the command ibstat that the fabric manager's script
calls (NVIDIA/gpu-driver-container installs both). Their versions are not tied to the driver's."""
UMAD_PATH = "/etc/modules-load.d/gpu-ready-ib-umad.conf"
UMAD_CONTENT = "# The fabric manager reaches NVLink 5 switches through these modules.\n%s\n" % "\n".join(FABRIC_MODULES)
IMEX = "nvidia-imex"
IMEX_PACKAGE = re.compile(IMEX + r"(-\d+)?$")
PERSISTENCED = "nvidia-persistenced"


def plan_services(facts: Facts, settings: Settings, choices: Choices) -> Decision[ServicesChoice]:
    driver = choices.driver
    if driver is None or driver.source == "none" or facts.base.distro is None:
        return Decision()
    data = catalog.distro(facts.base.distro)
    hold = settings.nvidia_driver_hold
    manager = fabricmanager_name(facts, driver, data) if facts.base.nvswitches else None
    if manager and not is_offered(facts, settings, driver, data, manager):
        return Decision(refusals=[fabricmanager_not_offered(facts, manager)])
    steps = umad_steps(facts, driver, data)
    steps += fabricmanager_steps(facts, driver, data, hold)
    imex = imex_steps(facts, driver, data, hold)
    daemon = "" if facts.base.managed_by else persistenced_package(settings, driver, data)
    needed = [name for name in (*step_packages(imex), daemon) if name]
    absent = [name for name in needed if not is_offered(facts, settings, driver, data, name)]
    steps += [step for step in imex if not set(step_packages([step])) & set(absent)]
    daemon = "" if daemon in absent else daemon
    steps += persistenced_steps(facts, driver, daemon, hold)
    names = {step.action: step.params.packages[0].name for step in steps if isinstance(step.params, ServiceParams)}
    waits = must_wait(facts, driver, daemon)
    mode = bool(daemon) and not facts.driver.persistence.own and not waits
    warnings = missing_imex_warnings(facts, driver, data) + ([persistence_left_off()] if waits else [])
    warnings += [companion_not_offered(facts, name) for name in absent]
    if "imex" in names and driver_sources.is_unverified(data, driver.source, "imex"):
        warnings.append(repository.unverified_notice(data, "IMEX of %s" % driver.source, names["imex"]))
    return Decision(ServicesChoice(persistence=mode, **names), steps, warnings=warnings)


def step_packages(steps: list[Step]) -> list[str]:
    return [one.name for step in steps if isinstance(step.params, ServiceParams) for one in step.params.packages]


def fabricmanager_not_offered(facts: Facts, name: str) -> Refusal:
    """Refuse a host with NVSwitches on which nothing computes: its driver is complete only with a fabric manager."""
    version = facts.driver.on_disk.version if facts.driver.on_disk else ""
    return Refusal(
        "fabricmanager_not_offered",
        "the fabric manager for %s must have exactly the driver's version, and no package source of this host "
        "offers %s %s" % (nvswitches_text(facts), name, version),
        "enable the repository that has it, or set nvidia_driver_version to another version of the branch, which is "
        "installed together with its fabric manager",
    )


def companion_not_offered(facts: Facts, name: str) -> Notice:
    version = facts.driver.on_disk.version if facts.driver.on_disk else ""
    switch = "" if IMEX_PACKAGE.match(name) else ", or set nvidia_driver_persistence to false"
    return Notice(
        "companion_not_offered",
        "no package source of this host offers %s %s, so this service of the adopted driver is left out"
        % (name, version),
        "enable the repository that has it, unless this run does, and run this again%s" % switch,
    )


def umad_steps(facts: Facts, driver: DriverChoice, data: Distribution) -> list[Step]:
    """Return the step that loads mlx5_ib and ib_umad, now and at each boot, on a host with NVLink 5 switches.

    The fabric manager's unit runs `nvidia-fabricmanager-start.sh --mode precheck`, which ends with 'Kernel module
    "ib_umad" has not been loaded, fabric manager cannot be started' (github.com/spectrocloud/CanvOS/pull/700;
    awslabs/amazon-eks-ami writes the same file). Without mlx5_ib it finds no switch (NVIDIA/gpu-operator issue 2781):
    udev loads that module for its adapter, but not again when a package beside the kernel has added it later.
    """
    umad = facts.base.umad
    if umad is None or (umad.loaded and umad.at_boot) or not fabricmanager_name(facts, driver, data):
        return []
    kernel = facts.base.kernel.running
    headers = headers_packages(data, kernel, facts.packages.installed)
    packages = [] if umad.loaded or umad.present else [re.sub(r"-(devel|headers)-", "-modules-extra-", headers[0])]
    params = UmadParams(list(FABRIC_MODULES), UMAD_PATH, UMAD_CONTENT, packages)
    state = "are not loaded at boot" if umad.loaded else "are not loaded"
    names = " and ".join(FABRIC_MODULES)
    reason = "the fabric manager of NVLink 5 needs the kernel modules %s, which %s" % (names, state)
    return [Step("nvidia_driver.umad", reason, params=params, diff=[FileDiff(UMAD_PATH, "", UMAD_CONTENT)])]


def fabricmanager_steps(facts: Facts, driver: DriverChoice, data: Distribution, hold: bool) -> list[Step]:
    switches = facts.base.nvswitches
    name = fabricmanager_name(facts, driver, data) if switches else None
    if name is None:
        return []
    if fits_driver(facts, driver, name):
        if facts.driver.fabricmanager:
            if not needs_hold(facts, name, hold):
                return []
            reason = not_held_reason([name], "fabric manager and driver")
        else:
            reason = "the fabric manager for %s does not run" % nvswitches_text(facts)
    else:
        reason = "the fabric manager for %s must have exactly the driver's version" % nvswitches_text(facts)
    params = service_params(facts, driver, name, FABRICMANAGER, hold)
    if any(switch.what == "nvlink5" for switch in switches):
        params = params._replace(packages=params.packages + [PackageTarget(name) for name in NVLINK5_PACKAGES])
    return [Step("nvidia_driver.fabricmanager", reason, params=params)]


def fabricmanager_name(facts: Facts, driver: DriverChoice, data: Distribution) -> str | None:
    """Return the package of the fabric manager: beside an adopted driver the installed one, else its source's."""
    installed = installed_fabricmanager(facts) if driver.satisfied else None
    if installed and fits_driver(facts, driver, installed):
        return installed
    return driver_sources.fabricmanager_package(data, driver.source, driver.branch or 0)


def imex_steps(facts: Facts, driver: DriverChoice, data: Distribution, hold: bool) -> list[Step]:
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
        reason = not_held_reason([name], "IMEX and driver")
    else:
        return []
    params = service_params(facts, driver, name, IMEX, hold)
    return [Step("nvidia_driver.imex", reason, params=params._replace(start=imex.member))]


def missing_imex_warnings(facts: Facts, driver: DriverChoice, data: Distribution) -> list[Notice]:
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


def persistenced_package(settings: Settings, driver: DriverChoice, data: Distribution) -> str:
    """Return the package of the persistence daemon; "" where the driver's source has none, or it is left alone."""
    if not settings.nvidia_driver_persistence:
        return ""
    entry = driver_sources.source_entry(data, driver.source, driver.kind or driver_sources.DKMS)
    return str(entry.get("persistenced") or "").format(branch=driver.branch)


def must_wait(facts: Facts, driver: DriverChoice, name: str) -> bool:
    """Return True while the daemon needs a start or another command, and containers with GPUs forbid it.

    For both, systemd reads its units again. With systemd's cgroups, a container that docker gave its GPUs by a hook
    loses them then (NVIDIA's container toolkit, troubleshooting: "Failed to initialize NVML: Unknown Error").
    """
    known = facts.driver.persistence
    settled = known.own or (known.running and not known.off)
    busy = any(one.gpu for one in facts.work.containers)
    return bool(name) and busy and not settled and fits_driver(facts, driver, name)


def persistence_left_off() -> Notice:
    return notify(
        "persistence_off",
        "no daemon keeps persistence mode on, and none is started while containers with GPUs run: they could lose them",
        VariableChange({"nvidia_driver_persistence": [False]}),
        "run this again when they have ended",
    )


def persistenced_steps(facts: Facts, driver: DriverChoice, name: str, hold: bool) -> list[Step]:
    """Return the step that starts the persistence daemon where the driver's source has it, with persistence mode on."""
    known = facts.driver.persistence
    if not name or must_wait(facts, driver, name):
        return []
    reason = "the persistence daemon keeps the GPUs initialized, and it does not run"
    if fits_driver(facts, driver, name) and known.running:
        off = "the persistence daemon runs with persistence mode off" if known.off else ""
        reason = "" if known.own else health.persistence_released(facts) or off
        if not reason and needs_hold(facts, name, hold):
            reason = not_held_reason([name], "persistence daemon and driver")
        if not reason:
            return []
    params = service_params(facts, driver, name, PERSISTENCED, hold)
    return [Step("nvidia_driver.persistenced", reason, params=params)]


def needs_hold(facts: Facts, name: str, hold: bool) -> bool:
    return hold and name not in facts.packages.held


def fits_driver(facts: Facts, driver: DriverChoice, name: str) -> bool:
    version = facts.packages.installed.get(name)
    disk = facts.driver.on_disk
    return bool(driver.satisfied and version and disk and versions.upstream(version) == disk.version)


def service_params(facts: Facts, driver: DriverChoice, name: str, service: str, hold: bool) -> ServiceParams:
    package = PackageTarget(name, package_version(driver, facts.driver.on_disk))
    pattern = {FABRICMANAGER: FABRICMANAGER_PACKAGE, IMEX: IMEX_PACKAGE}.get(service)
    others = [one for one in facts.packages.installed if pattern and pattern.match(one) and one != name]
    return ServiceParams([package], [name] if hold else [], service, remove=sorted(others))


def package_version(driver: DriverChoice, disk: ModuleFacts | None) -> str:
    """Return the version to install: the driver's own where that is known in advance, else one of its branch."""
    if driver.satisfied and disk:
        return disk.version + "-*"
    if driver.version:
        return driver.version + "-*"
    return "%d.*" % (driver.branch or 0)
