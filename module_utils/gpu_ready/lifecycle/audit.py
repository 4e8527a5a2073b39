"""What an audit says of a host: each part with what is wanted, what is there, and whether that is drift.

The same look and the same decision as gpu_node_plan: a host without drift is one that site.yml would leave as it is
and whose next boot finds a module for its kernel. Besides, a host that lost all its GPUs is no host without GPU.
"""

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

from ..base import records, versions
from ..base.host import Host
from ..facts import driver, holders
from ..facts.model import Facts, GpuProcess, ModuleFacts
from ..plan import compose, verification
from ..plan import upgrade as plan_upgrade
from ..plan.model import REBOOT, DriverChoice
from . import decide

SOUND, DRIFT, REFUSED, NO_GPU = "ok", "drift", "refused", "no_gpu"
REBOOT_MARKS = ("/run/reboot-required", "/var/run/reboot-required")
"""Left by Debian's and Ubuntu's packages that want a reboot."""
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
    ("services", ("nvidia_driver.imex", "nvidia_driver.persistenced")),
    ("cuda", ("cuda_toolkit.",)),
    ("cudnn", ("cudnn.",)),
    ("docker", ("docker_engine.",)),
    ("container", ("nvidia_container_runtime.",)),
    ("packages", ("gpu_plan.repair_packages",)),
)
"""Parts of which the plan says what they lack: the part, and how the names of its steps begin."""
CUT_OFF = "an interrupted live reload stopped %s"


class Check(NamedTuple):
    """One part of a host. ``ok``: True, False for drift, None for what is told and is no drift."""

    name: str
    desired: Optional[str]
    found: Optional[str]
    ok: Optional[bool]
    why: str = ""


class AuditFacts(NamedTuple):
    """Facts that only an audit needs. ``next_module``: for the kernel that boots next. ``reboot_mark``: a path."""

    next_module: Optional[ModuleFacts] = None
    holders: List[GpuProcess] = []
    reboot_mark: Optional[str] = None


NO_AUDIT_FACTS = AuditFacts()


def audit_json(host: Host, given: Mapping[str, object]) -> Dict[str, object]:
    """Audit a host; ``given`` are the variables of gpu_node_plan."""
    planned = decide.plan_host(host, given)
    more = collect_audit_facts(host, planned.facts) if planned.plan.gpu_host else NO_AUDIT_FACTS
    return answer_json(planned.facts, planned.plan, more)


def collect_audit_facts(host: Host, facts: Facts) -> AuditFacts:
    kernel = facts.base.kernel
    module = facts.driver.on_disk
    if kernel.next_boot != kernel.running:
        paths = driver.find_modules(host, kernel.next_boot)
        module = driver.read_module(host, paths[0]) if paths else None
    reboot_mark = next((path for path in REBOOT_MARKS if host.exists(path)), None)
    return AuditFacts(module, holders.collect(host), reboot_mark)


def answer_json(facts: Facts, decided: compose.Plan, more: AuditFacts) -> Dict[str, object]:
    """Return the host's state, its checks, who holds its GPUs, and its columns of the table."""
    checks = judge(facts, decided, more) if decided.gpu_host else lost_gpu_checks(facts)
    refusals = ["%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals]
    return {
        "state": state_of(decided, checks),
        "why": refusals or ["%s: %s" % (check.name, check.why) for check in checks if check.ok is False],
        "checks": records.to_json(checks),
        "holders": records.to_json(more.holders),
        "steps": [step.id for step in decided.steps],
        "warnings": ["%s; %s" % (one.message, one.remedy) for one in decided.warnings],
        "summary": decided.summary,
        "row": records.to_json(compose.report_row(facts, decided)),
    }


def state_of(decided: compose.Plan, checks: List[Check]) -> str:
    """Return the host in one word."""
    if decided.refusals:
        return REFUSED
    if not decided.gpu_host and not checks:
        return NO_GPU
    return DRIFT if any(check.ok is False for check in checks) else SOUND


def judge(facts: Facts, decided: compose.Plan, more: AuditFacts) -> List[Check]:
    """Return every check that concerns this host."""
    chosen = decided.choices.driver
    if chosen is None:
        return [Check("driver", None, version_of(facts.driver.on_disk), False, decided.summary)]
    checks = [installed(facts, decided, chosen), loaded(facts, chosen), userspace(facts, chosen)]
    checks += fabric(facts, decided)
    checks += groups(facts, decided)
    checks += [holds(facts, decided), next_boot(facts, chosen, more), reboot(facts, decided, more)]
    return checks + [verified(facts, decided)]


def lost_gpu_checks(facts: Facts) -> List[Check]:
    """Judge a host without any GPU: a drift where the last verification saw some, which fell off the bus since."""
    there = plan_upgrade.lost_gpus(facts)
    if not there:
        return []
    why = "the last verification saw %d, now none is on the PCI bus: %s" % (len(there), plan_upgrade.FIND_LOST)
    return [Check("gpus", ", ".join(there), None, False, why)]


def version_of(module: Optional[ModuleFacts]) -> Optional[str]:
    """Return version and flavour of a module as people write them."""
    if not module:
        return None
    return " ".join(str(part) for part in (module.version, module.flavour) if part)


def driver_text(chosen: DriverChoice) -> str:
    """Return the wanted driver as people write it."""
    return " ".join(str(part) for part in (chosen.version or chosen.branch, chosen.flavour) if part)


def reasons_of(decided: compose.Plan, starts: Union[str, Tuple[str, ...]]) -> str:
    """Return the reasons of the steps whose names begin so, in one text."""
    return "; ".join(step.why for step in decided.steps if step.id.startswith(starts))


def installed(facts: Facts, decided: compose.Plan, chosen: DriverChoice) -> Check:
    """Judge the driver on disk."""
    reasons = reasons_of(decided, DRIVER_STEPS)
    ok = bool(chosen.satisfied) and not reasons
    why = "" if ok else reasons or "the driver on disk is not the wanted one"
    return Check("driver", driver_text(chosen), version_of(facts.driver.on_disk), ok, why)


def loaded(facts: Facts, chosen: DriverChoice) -> Check:
    """Judge the loaded module: it has to be the one on disk."""
    module, disk = facts.driver.loaded, facts.driver.on_disk
    wanted = version_of(disk) or driver_text(chosen)
    if not module:
        own = facts.base.nouveau
        why = "%s drives the GPU" % (own.name or "nouveau") if own.bound else "no NVIDIA module is loaded"
        return Check("loaded", wanted, None, False, why)
    same = disk is not None and module.version == disk.version and module.flavour in (None, disk.flavour)
    why = "" if same else "the loaded module is %s, on disk is %s" % (version_of(module), version_of(disk) or "none")
    return Check("loaded", wanted, version_of(module), same, why)


def userspace(facts: Facts, chosen: DriverChoice) -> Check:
    """Judge the driver's libraries: all of the version of the module on disk."""
    found, disk = facts.driver.userspace, facts.driver.on_disk
    wanted = disk.version if disk else str(chosen.version or chosen.branch or "")
    ok = bool(disk) and list(found) == [wanted]
    why = "" if ok else "the driver's libraries are %s" % (", ".join(found) or "missing")
    return Check("userspace", wanted, ", ".join(found) or None, ok, why)


def fabric(facts: Facts, decided: compose.Plan) -> List[Check]:
    """Judge the fabric manager of a host with NVSwitches."""
    if not facts.base.nvswitches:
        return []
    running = bool(facts.driver.fabricmanager)
    why = reasons_of(decided, "nvidia_driver.fabricmanager") or ("" if running else "the fabric manager does not run")
    return [Check("fabric_manager", "running", "running" if running else "not running", not why, why)]


def groups(facts: Facts, decided: compose.Plan) -> List[Check]:
    """Judge the parts of which the plan tells what they lack."""
    row = compose.report_row(facts, decided)
    container = decided.choices.runtime or decided.choices.engines
    toolkits = decided.choices.cuda.toolkits if decided.choices.cuda else []
    wanted = {
        "container": container.mode if container else None,
        "cuda": ", ".join(toolkit.version for toolkit in toolkits) or None,
    }
    found = {"cuda": row.cuda, "cudnn": row.cudnn, "docker": facts.docker.version}
    checks = []
    for name, starts in GROUPS:
        why = reasons_of(decided, starts)
        if name == "services" and facts.driver.stopped:
            why = "; ".join(part for part in (why, CUT_OFF % ", ".join(facts.driver.stopped)) if part)
        there = found.get(name) or (wanted.get(name) if not why and not decided.refusals else None)
        if why or wanted.get(name) or there:
            ok = None if decided.refusals and not why else not why
            checks.append(Check(name, wanted.get(name), there, ok, why))
    return checks


def holds(facts: Facts, decided: compose.Plan) -> Check:
    """Judge the holds that keep unattended upgrades off the driver's packages."""
    why = reasons_of(decided, "nvidia_driver.hold")
    held = facts.driver.held
    found = "%d held" % len(held) if held else None
    if why:
        return Check("holds", "held", found, False, why)
    return Check("holds", found, found, True if held else None, "" if held else "no hold is asked for, or none yet")


def next_boot(facts: Facts, chosen: DriverChoice, more: AuditFacts) -> Check:
    """Judge the kernel that boots next: it needs a module of the driver, there already or built by DKMS at boot."""
    kernel = facts.base.kernel.next_boot
    module, disk = more.next_module, facts.driver.on_disk
    found = "%s: %s" % (kernel, version_of(module) or "no module")
    wanted = "%s: %s" % (kernel, version_of(disk) or driver_text(chosen))
    if module and disk and module.version == disk.version:
        return Check("next_boot", wanted, found, True)
    if module:
        why = "the module for kernel %s is %s, the driver on disk is %s" % (
            kernel, version_of(module), version_of(disk) or "none",
        )  # fmt: skip
        return Check("next_boot", wanted, found, False, why)
    why = "there is no module for kernel %s; %s" % (kernel, would_build(facts, kernel))
    return Check("next_boot", wanted, found, False, why)


def would_build(facts: Facts, kernel: str) -> str:
    """Return whether DKMS could build the module for a kernel, and what it would lack."""
    base = facts.base
    known = sorted({row.version for row in facts.driver.dkms}, key=versions.key)
    lacks = [] if base.kernel.headers.get(kernel) else ["its headers"]
    lacks += [] if base.compiler else ["a compiler"]
    if not known:
        return "DKMS knows no source to build it from"
    if lacks:
        return "DKMS cannot build %s without %s" % (known[-1], " and ".join(lacks))
    return "'dkms autoinstall -k %s' would build %s: headers and compiler are there" % (kernel, known[-1])


def reboot(facts: Facts, decided: compose.Plan, more: AuditFacts) -> Check:
    """Tell what waits for a reboot; only what the driver waits for is drift."""
    for step in decided.steps:
        if step.disruption == REBOOT:
            return Check("reboot", "not needed", "needed", False, step.why)
    kernel = facts.base.kernel
    if kernel.next_boot != kernel.running:
        why = "kernel %s runs, %s boots next" % (kernel.running, kernel.next_boot)
        return Check("reboot", "not needed", "pending", None, why)
    if more.reboot_mark:
        why = "%s is there: a package of the system waits for a reboot" % more.reboot_mark
        return Check("reboot", "not needed", "pending", None, why)
    return Check("reboot", "not needed", "not needed", True)


def verified(facts: Facts, decided: compose.Plan) -> Check:
    """Judge the last proof in a container: it has to be of this boot, these versions and this wish."""
    record = facts.verified
    why = verification.reason_to_verify(facts, decided.digest) or ""
    found = "%s %s" % (record.driver, record.time) if record and record.ok else None
    return Check("verified", version_of(facts.driver.loaded), found, not why, why)
