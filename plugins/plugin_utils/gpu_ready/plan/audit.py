"""The audit of a host: for each part what is desired, what is found, and whether that is drift.

It uses the facts and the plan of gpu_node_plan: site.yml would change nothing on a host without drift, and its next
boot finds a module for its kernel. A host that lost all its GPUs is no host without GPU.
"""

from ....module_utils.gpu_ready.base import records, versions
from ....module_utils.gpu_ready.base.disruptions import REBOOT
from ....module_utils.gpu_ready.facts.blocked_module import blocked_text
from ....module_utils.gpu_ready.facts.model import Facts, ModuleFacts
from ..report.host_audit import AuditCheck
from . import compose, health, security, updates, verification
from . import upgrade as plan_upgrade
from .driver import parameters
from .model import DriverChoice, Refusal
from .open_upgrade import CODE, DOING, open_upgrade

SOUND, DRIFT, REFUSED, NO_GPU = "ok", "drift", "refused", "no_gpu"
UPGRADING = "upgrading"
"""In the middle of an upgrade, whether its run works or was interrupted."""
DRIVER_STEPS = (
    "kernel_headers.repository",
    "kernel_headers.install",
    "nvidia_driver.repository",
    "nvidia_driver.blacklist_nouveau",
    "nvidia_driver.detect",
    "nvidia_driver.remove_packages",
    "nvidia_driver.runfile",
    "nvidia_driver.install",
)
GROUPS = (
    ("services", ("nvidia_driver.umad", "nvidia_driver.imex", "nvidia_driver.persistenced")),
    ("cuda", ("cuda_toolkit.",)),
    ("cudnn", ("cudnn.",)),
    ("docker", ("docker_engine.",)),
    ("container", ("nvidia_container_runtime.",)),
    ("monitoring", ("gpu_monitoring.",)),
    ("packages", ("gpu_plan.repair_packages",)),
)
"""Parts with the beginnings of the ids of their steps in the plan."""
UPGRADE = "upgrade"
INTERRUPTED = "an interrupted live reload stopped %s"


def answer_json(facts: Facts, decided: compose.Plan) -> dict[str, object]:
    """Return the host's state, its checks, who holds its GPUs, and its columns of the table."""
    checks = upgrade_checks(facts) + (all_checks(facts, decided) if decided.gpu_host else lost_gpu_checks(facts))
    refusals = ["%s. Remedy: %s." % (one.message, one.remedy) for one in settings_refusals(decided)]
    state = state_of(decided, checks)
    # In the middle of an upgrade the other differences are its consequences.
    reasons = upgrade_checks(facts) if state == UPGRADING else checks
    return {
        "state": state,
        "why": refusals or ["%s: %s" % (check.name, check.why) for check in reasons if check.ok is False],
        "checks": records.to_json(checks),
        "holders": records.to_json(facts.work.processes if decided.gpu_host else []),
        "steps": [step.id for step in decided.steps],
        "warnings": ["%s; %s" % (one.message, one.remedy) for one in decided.warnings if one.code != CODE],
        "summary": decided.summary,
        "row": records.to_json(compose.report_row(facts, decided)),
    }


def settings_refusals(decided: compose.Plan) -> list[Refusal]:
    """Leave out the refusals for lost GPUs: they are not about what was requested, but how the host is now."""
    return [one for one in decided.refusals if one.code != health.LOST]


def state_of(decided: compose.Plan, checks: list[AuditCheck]) -> str:
    """Return the state of the host: ok, drift, upgrading, refused or no_gpu."""
    if settings_refusals(decided):
        return REFUSED
    if any(check.name == UPGRADE and check.found in DOING for check in checks):
        return UPGRADING
    if not decided.gpu_host and not checks:
        return NO_GPU
    return DRIFT if any(check.ok is False for check in checks) else SOUND


def upgrade_checks(facts: Facts) -> list[AuditCheck]:
    """Report an upgrade that has not come to its end."""
    found = open_upgrade(facts)
    if found is None:
        return []
    return [AuditCheck(UPGRADE, "finished", found.phase, False, "%s. Remedy: %s" % (found.message, found.remedy))]


def all_checks(facts: Facts, decided: compose.Plan) -> list[AuditCheck]:
    chosen = decided.choices.driver
    if chosen is None:
        return health_checks(facts) + [
            AuditCheck("driver", None, module_text(facts.driver.on_disk), False, decided.summary)
        ]
    checks = health_checks(facts)
    checks += [check_disk(facts, decided, chosen), check_loaded(facts, chosen), check_userspace(facts, chosen)]
    checks += check_fabric_manager(facts, decided)
    checks += check_parameters(facts, decided) + check_groups(facts, decided)
    checks += [check_holds(facts, decided), check_next_boot(facts, chosen), check_reboot(facts, decided)]
    checks += check_security(facts, decided) + updates.update_checks(facts, decided.choices)
    return checks + [check_verified(facts, decided)]


def health_checks(facts: Facts) -> list[AuditCheck]:
    """Report what the last verification did not see: GPUs that do not answer, and Xids."""
    found = health.findings(facts)
    if not found:
        return []
    why = " ".join("%s. Remedy: %s." % (one.message, one.remedy) for one in found).rstrip(".")
    return [AuditCheck("gpus", "healthy", compose.gpus_text(facts.base), False, why)]


def lost_gpu_checks(facts: Facts) -> list[AuditCheck]:
    """Return check a host without any GPU: it is drift if the last verification saw some."""
    lost = plan_upgrade.lost_gpus(facts)
    if not lost:
        return []
    why = "the last verification saw %d, now none is on the PCI bus: %s" % (len(lost), plan_upgrade.FIND_LOST)
    return [AuditCheck("gpus", ", ".join(lost), None, False, why)]


def module_text(module: ModuleFacts | None) -> str | None:
    """Return the version and flavour of a module."""
    if not module:
        return None
    return " ".join(str(part) for part in (module.version, module.flavour) if part)


def driver_text(chosen: DriverChoice) -> str:
    """Return the version or branch and flavour of the desired driver."""
    return " ".join(str(part) for part in (chosen.version or chosen.branch, chosen.flavour) if part)


def reasons_of(decided: compose.Plan, starts: str | tuple[str, ...]) -> str:
    """Return the reasons of the steps whose ids start so."""
    return "; ".join(step.why for step in decided.steps if step.id.startswith(starts))


def check_disk(facts: Facts, decided: compose.Plan, chosen: DriverChoice) -> AuditCheck:
    reasons = reasons_of(decided, DRIVER_STEPS)
    ok = bool(chosen.satisfied) and not reasons
    why = "" if ok else reasons or "the driver on disk is not the desired one"
    return AuditCheck("driver", driver_text(chosen), module_text(facts.driver.on_disk), ok, why)


def check_loaded(facts: Facts, chosen: DriverChoice) -> AuditCheck:
    """The loaded module must be the module on disk."""
    module, disk = facts.driver.loaded, facts.driver.on_disk
    desired = module_text(disk) or driver_text(chosen)
    if not module:
        own = facts.base.nouveau
        why = "%s drives the GPU" % (own.name or "nouveau") if own.bound else "no NVIDIA module is loaded"
        return AuditCheck("loaded", desired, None, False, why)
    same = disk is not None and module.version == disk.version and module.flavour in (None, disk.flavour)
    why = "" if same else "the loaded module is %s, on disk is %s" % (module_text(module), module_text(disk) or "none")
    return AuditCheck("loaded", desired, module_text(module), same, why)


def check_userspace(facts: Facts, chosen: DriverChoice) -> AuditCheck:
    """All libraries must have the version of the module on disk."""
    found, disk = facts.driver.userspace, facts.driver.on_disk
    desired = disk.version if disk else str(chosen.version or chosen.branch or "")
    ok = bool(disk) and list(found) == [desired]
    why = "" if ok else "the driver's libraries are %s" % (", ".join(found) or "missing")
    return AuditCheck("userspace", desired, ", ".join(found) or None, ok, why)


def check_fabric_manager(facts: Facts, decided: compose.Plan) -> list[AuditCheck]:
    if not facts.base.nvswitches:
        return []
    running = bool(facts.driver.fabricmanager)
    why = reasons_of(decided, "nvidia_driver.fabricmanager") or ("" if running else "the fabric manager does not run")
    return [AuditCheck("fabric_manager", "running", "running" if running else "not running", not why, why)]


def check_parameters(facts: Facts, decided: compose.Plan) -> list[AuditCheck]:
    """Return the file of modprobe.d and the loaded module must have the requested parameters."""
    desired = decided.choices.parameters
    missing = parameters.outdated(facts, desired) if facts.driver.loaded else []
    why = "; ".join(missing) or reasons_of(decided, "nvidia_driver.parameters")
    if not desired and not why:
        return []
    shown = " ".join("NVreg_%s=%s" % item for item in desired.items()) or None
    found = " ".join("NVreg_%s=%s" % (name, facts.driver.parameters.get(name, "?")) for name in desired) or None
    return [AuditCheck("parameters", shown, found, not why, why)]


def check_groups(facts: Facts, decided: compose.Plan) -> list[AuditCheck]:
    """Return check the parts whose steps in the plan are the only drift."""
    row = compose.report_row(facts, decided)
    container = decided.choices.runtime or decided.choices.engines
    toolkits = decided.choices.cuda.toolkits if decided.choices.cuda else []
    desired = {
        "container": container.mode if container else None,
        "cuda": ", ".join(toolkit.version for toolkit in toolkits) or None,
    }
    found = {"cuda": row.cuda, "cudnn": row.cudnn, "docker": facts.docker.version}
    checks = []
    for name, starts in GROUPS:
        why = reasons_of(decided, starts)
        if name == "services" and facts.driver.stopped:
            why = "; ".join(part for part in (why, INTERRUPTED % ", ".join(facts.driver.stopped)) if part)
        present = found.get(name) or (desired.get(name) if not why and not decided.refusals else None)
        if why or desired.get(name) or present:
            ok = None if decided.refusals and not why else not why
            checks.append(AuditCheck(name, desired.get(name), present, ok, why))
    return checks


def check_holds(facts: Facts, decided: compose.Plan) -> AuditCheck:
    """Return check the holds that protect the driver's packages from unattended upgrades."""
    why = reasons_of(decided, "nvidia_driver.hold")
    held = facts.driver.held
    found = "%d held" % len(held) if held else None
    if why:
        return AuditCheck("holds", "held", found, False, why)
    return AuditCheck(
        "holds", found, found, True if held else None, "" if held else "no hold is requested, or none is set yet"
    )


def check_next_boot(facts: Facts, chosen: DriverChoice) -> AuditCheck:
    """Return the kernel that boots next needs a module of the driver, and modprobe has to load it."""
    kernel, disk = facts.base.kernel.next_boot, facts.driver.on_disk
    module = disk if kernel == facts.base.kernel.running else facts.driver.next_module
    found = "%s: %s" % (kernel, module_text(module) or "no module")
    desired = "%s: %s" % (kernel, module_text(disk) or driver_text(chosen))
    if facts.driver.blocked and facts.driver.blocked.at_boot:
        return AuditCheck("next_boot", desired, found, False, blocked_text(facts.driver.blocked))
    if module and disk and module.version == disk.version:
        return AuditCheck("next_boot", desired, found, True)
    if module:
        why = "the module for kernel %s is %s, the driver on disk is %s" % (
            kernel, module_text(module), module_text(disk) or "none",
        )  # fmt: skip
        return AuditCheck("next_boot", desired, found, False, why)
    why = "there is no module for kernel %s; %s" % (kernel, dkms_text(facts, kernel))
    return AuditCheck("next_boot", desired, found, False, why)


def dkms_text(facts: Facts, kernel: str) -> str:
    """Return whether DKMS could build the module for a kernel, and what is missing for it."""
    base = facts.base
    known = sorted(facts.driver.dkms, key=lambda row: versions.key(row.version))
    missing = [] if base.kernel.headers.get(kernel) else ["its headers"]
    missing += [] if base.compiler else ["a compiler"]
    if not known:
        return "DKMS knows no source to build it from"
    if missing:
        return "DKMS cannot build %s without %s" % (known[-1].version, " and ".join(missing))
    module = "%s/%s" % (known[-1].name, known[-1].version)
    return "'dkms install %s -k %s' would build it: headers and compiler are installed" % (module, kernel)


def check_reboot(facts: Facts, decided: compose.Plan) -> AuditCheck:
    """Report a pending reboot. It is drift only if the driver needs it."""
    for step in decided.steps:
        if step.disruption == REBOOT:
            return AuditCheck("reboot", "not needed", "needed", False, step.why)
    kernel = facts.base.kernel
    if kernel.next_boot != kernel.running:
        why = "kernel %s runs, %s boots next" % (kernel.running, kernel.next_boot)
        return AuditCheck("reboot", "not needed", "pending", None, why)
    if facts.base.reboot_mark:
        why = "%s exists: a package of the system needs a reboot" % facts.base.reboot_mark
        return AuditCheck("reboot", "not needed", "pending", None, why)
    return AuditCheck("reboot", "not needed", "not needed", True)


def check_security(facts: Facts, decided: compose.Plan) -> list[AuditCheck]:
    """Report published vulnerabilities: drift where a fix can be had, else what the operator has to know."""
    present = security.installed(facts)
    if not present:
        return []
    open_ = security.installed_vulnerable(facts, decided.choices)
    found = ", ".join("%s %s" % (security.NAMES[component], version) for component, version in present.items())
    fixed = ", ".join(
        "%s %s" % (security.NAMES[one.component], one.fixed) for one in open_ if one.fixed and one.offered
    )
    ok = not open_ or (False if fixed else None)
    why = "; ".join("%s: %s" % (one.text, one.remedy) for one in open_)
    return [AuditCheck("security", fixed or None, found, ok, why)]


def check_verified(facts: Facts, decided: compose.Plan) -> AuditCheck:
    """The last verification must be of this boot, these versions and these settings."""
    record = facts.verified
    why = verification.outdated(facts, decided.digest) or ""
    if not why and health.findings(facts):
        why = "what gpus reports is newer than the last verification"
    found = "%s %s" % (record.driver, record.time) if record and record.ok else None
    return AuditCheck("verified", module_text(facts.driver.loaded), found, not why, why)
