"""What an upgrade of the driver would do with one host, from its plan and the journal of the last upgrade."""

from typing import NamedTuple

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.base.records import Word
from ....module_utils.gpu_ready.facts.model import Facts, ModuleFacts
from ....module_utils.gpu_ready.upgrade.model import BACK, CLOSED, DONE, RecordedDriver, UpgradeJournal
from ..catalog import driver_packages, driver_sources
from ..catalog import model as catalog
from ..catalog.settings import Settings
from .compose import Plan
from .driver import choose, point_release
from .driver.model import ActivateParams
from .model import Choices, DriverChoice, InstallerFile

FRESH = 24 * 3600
"""Seconds for which downloads count as what the sources have."""
DRIVER_ACTIONS = ("install", "runfile", "remove_packages", "activate")
"""Steps of the role nvidia_driver that replace the driver; the others wait for site.yml."""
CURRENT, DUE, REFUSED, UNASKED = "current", "due", "refused", "unasked"
FIND_LOST = "see `lspci -d 10de:` and the kernel's log; where they were taken out, run playbooks/uninstall.yml"
VANISHED = (
    "The GPUs of the last verification (%d: %s) are missing: none is on the PCI bus. Remedy: %s, or leave the "
    "host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
LOST = (
    "An upgrade of this host did not come to its end, and there is nothing left to serve (%s). Remedy: see with "
    "`lspci -d 10de:` and a reboot that its GPUs are back on the PCI bus, then run the same command again."
)
NO_DRIVER = "There is no driver to upgrade on this host. Remedy: run site.yml for it, which installs one."
NOT_RECORDABLE = (
    "The installed driver is from %s, so it could not be restored after a failure. Remedy: run site.yml for "
    "this host, or leave it out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
NO_ROLLBACK = (
    "The installed driver %s could not be restored after a failure: %s. Remedy: %s; or leave the host out with "
    "gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
ALLOW = "set gpu_ready_reboot_ok to true, or leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out"


class RollbackSettings(NamedTuple):
    """The settings that restore a driver, without the operator's installer, which is for the new driver."""

    nvidia_driver_source: str
    nvidia_driver_version: str
    nvidia_driver_packages: list[str]
    nvidia_driver_branch: str
    nvidia_driver_flavour: str
    nvidia_driver_kernel_modules: str
    nvidia_driver_runfile: str = ""
    nvidia_driver_runfile_sha256: str = ""


class UpgradeStatus(NamedTuple):
    """``state``: current, due or refused. ``opened``: the last upgrade is unfinished. ``way``: live, reboot or none.

    ``touched``: the driver may be partly replaced. ``staged``: all is downloaded. ``why``: the reason of ``way``.
    ``back``: the settings that restore the recorded driver. ``installer``: the file of an installed .run driver.
    ``drained``: by an earlier run. ``release``: the newer point release of its branch to which the host is moved,
    or the branch and flavour that only the host's package sources have ("620-open").
    ``download``: bytes of its packages, 0 where that is not known. ``loaded``: version of the loaded module.
    """

    state: Word
    opened: bool
    touched: bool
    staged: bool
    from_: str | None
    to: str | None
    way: Word
    why: str
    refusal: str
    installed: RecordedDriver | None
    journal: UpgradeJournal | None
    back: RollbackSettings | None
    installer: InstallerFile | None = None
    drained: bool = False
    release: str = ""
    download: int = 0
    loaded: str | None = None


def upgrade_status(facts: Facts, decided: Plan, settings: Settings, now: int = 0) -> UpgradeStatus:
    """Return what an upgrade would do with a host; ``now``: seconds since 1970 by the host's clock."""
    journal, chosen = facts.upgrade, decided.choices.driver
    installed = installed_driver(facts)
    steps = [step for step in decided.steps if step.role == "nvidia_driver" and step.action in DRIVER_ACTIONS]
    opened = journal is not None and journal.phase not in CLOSED
    way, why = activation_way(facts, decided)
    refusals = upgrade_refusals(facts, decided, opened)
    if refusals:
        state = REFUSED
    elif not decided.gpu_host or (not steps and not opened):
        state = CURRENT
    elif installed is None and not opened:
        state = REFUSED
        refusals = [
            NOT_RECORDABLE % driver_packages.publisher_name(facts.driver.origin or "")
            if facts.driver.on_disk
            else NO_DRIVER
        ]
    elif not opened and rollback_refusals(facts, decided, settings):
        state, refusals = REFUSED, rollback_refusals(facts, decided, settings)
    elif way == "reboot" and not settings.gpu_ready_reboot_ok:
        state = REFUSED
        refusals = ["The driver comes into use with a reboot only: %s. Remedy: %s." % (why, ALLOW)]
    else:
        state = DUE
    target = (chosen.version or (str(chosen.branch) if chosen.branch else None)) if chosen else None
    recorded = journal.from_ if journal else None
    changes = (recorded.version if recorded else None) != (chosen.version if chosen else None)
    old = recorded if opened and changes else installed
    unfinished = opened and journal is not None and journal.phase != BACK and journal.to == target
    return UpgradeStatus(
        state=state,
        opened=opened,
        touched=opened and journal is not None and journal.touched,
        staged=is_fetched(journal, target, now) or unfinished,
        from_=old.version if old else None,
        to=target,
        way=way if steps else "none",
        why=why if way == "reboot" or why.startswith("unless") else decided.summary,
        refusal="\n".join(refusals),
        installed=installed,
        journal=journal,
        back=rollback_settings(recorded) if recorded else None,
        drained=facts.drained,
        download=facts.offered.download if facts.offered else 0,
        release=release_of(facts, chosen) if chosen else "",
        installer=choose.earlier_installer(facts, settings, installed.version)
        if installed and installed.source == driver_sources.RUNFILE
        else None,
        loaded=facts.driver.loaded.version if facts.driver.loaded else None,
    )


def release_of(facts: Facts, chosen: DriverChoice) -> str:
    return (chosen.version or "") if chosen.moved else point_release.only_offered(facts, chosen)


def upgrade_refusals(facts: Facts, decided: Plan, opened: bool) -> list[str]:
    if decided.gpu_host:
        return ["%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals]
    if opened:
        return [LOST % decided.summary]
    gpus = lost_gpus(facts)
    return [VANISHED % (len(gpus), ", ".join(gpus), FIND_LOST)] if gpus else []


def lost_gpus(facts: Facts) -> list[str]:
    return list(facts.verified.addresses) if facts.verified and not facts.base.gpus else []


def is_fetched(journal: UpgradeJournal | None, target: str | None, now: int) -> bool:
    """Return True if everything for this driver was downloaded so recently that the sources need not be checked again.

    A host that was rolled back is checked again: the downloads may be the cause.
    """
    if journal is None or journal.fetched is None or journal.phase == BACK:
        return False
    return journal.fetched.to == target and 0 <= now - journal.fetched.time < FRESH


def was_just_upgraded(facts: Facts, now: int) -> bool:
    """Return True if an upgrade has ended so recently that its release counts as the newest one."""
    journal, disk = facts.upgrade, facts.driver.on_disk
    if journal is None or journal.phase != DONE or disk is None:
        return False
    return any(is_fetched(journal, target, now) for target in (disk.version, str(versions.branch(disk.version))))


def installed_driver(facts: Facts) -> RecordedDriver | None:
    """Return the installed driver as it can be requested again; None if its origin is unclear."""
    state, disk = facts.driver, facts.driver.on_disk
    data = catalog.distro(facts.base.distro) if facts.base.distro else {"driver_sources": {}}
    if not disk or not disk.version or state.origin not in driver_sources.source_names(data):
        return None
    runfile = state.origin == driver_sources.RUNFILE
    return RecordedDriver(
        version=disk.version,
        branch=disk.version.split(".")[0],
        flavour=disk.flavour,
        source=state.origin or "",
        kernel_modules=installed_kind(facts, disk.version),
        packages=[] if runfile else sorted("%s=%s" % item for item in state.packages.items()),
    )


def installed_kind(facts: Facts, version: str) -> str:
    distro, source = facts.base.distro, facts.driver.origin or ""
    kinds = driver_sources.module_kinds(catalog.distro(distro), source) if distro else []
    if len(kinds) == 1:
        return kinds[0]
    built = any(row.version == version for row in facts.driver.dkms)
    return driver_sources.DKMS if built else driver_sources.PRECOMPILED


def rollback_refusals(facts: Facts, decided: Plan, settings: Settings) -> list[str]:
    installed = installed_driver(facts)
    if installed is None or decided.choices.driver is None:
        return []
    back = settings._replace(**rollback_settings(installed)._asdict())
    rollback = choose.plan_driver(with_chosen_driver(facts, decided.choices.driver), back, Choices())
    return [NO_ROLLBACK % (installed.version, one.message, one.remedy) for one in rollback.refusals]


def with_chosen_driver(facts: Facts, chosen: DriverChoice) -> Facts:
    """Return the facts of the host after the upgrade, as far as the planner of the driver reads them."""
    version = chosen.version or "%s.0" % chosen.branch
    packages = {name: version for name in chosen.packages}
    driver = facts.driver._replace(
        on_disk=ModuleFacts(version, chosen.flavour),
        origin=chosen.source,
        packages=packages,
    )
    others = {name: one for name, one in facts.packages.installed.items() if name not in facts.driver.packages}
    return facts._replace(driver=driver, packages=facts.packages._replace(installed=dict(others, **packages)))


def rollback_settings(old: RecordedDriver) -> RollbackSettings:
    return RollbackSettings(
        nvidia_driver_source=old.source,
        nvidia_driver_version=old.version,
        nvidia_driver_packages=old.packages,
        nvidia_driver_branch=old.branch,
        nvidia_driver_flavour=old.flavour or "auto",
        nvidia_driver_kernel_modules=old.kernel_modules if old.source != driver_sources.RUNFILE else "auto",
    )


def activation_way(facts: Facts, decided: Plan) -> tuple[str, str]:
    """Return how the new driver is activated ("live", "reboot" or "none") and why.

    Programs that hold the GPUs now are no reason for a reboot yet: the host is drained first and then planned again.
    """
    for step in decided.steps:
        if isinstance(step.params, ActivateParams):
            clients = [one for one in facts.work.processes if one.container or not one.service]
            if step.params.action == "reboot" and step.params.fallback == "reboot" and clients:
                names = sorted({client.name for client in clients})
                return "live", "unless %s still hold the GPUs after the drain" % ", ".join(names)
            return ("reboot" if step.params.action == "reboot" else "live"), step.why
    return "none", ""
