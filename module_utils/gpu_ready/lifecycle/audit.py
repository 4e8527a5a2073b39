"""What an audit says of a host: each part with what is wanted, what is there, and whether that is drift.

The same look and the same decision as gpu_node_plan: a host without drift is one that site.yml would leave as it is
and whose next boot finds a module for its kernel. Besides, a host that lost all its GPUs is no host without GPU.
"""

from typing import Any, Dict, List, NamedTuple, Optional

from ..base import versions
from ..base.host import Host
from ..facts import driver, holders
from ..plan import compose, verification
from ..plan.model import REBOOT
from ..upgrade import journal as upgrade
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
CUT_OFF = "an exchange that was cut off stopped %s"


class Check(NamedTuple):
    """One part of a host. ``ok``: True, False for drift, None for what is told and is no drift."""

    name: str
    desired: Optional[str]
    found: Optional[str]
    ok: Optional[bool]
    why: str = ""


def host(door: Host, given: Dict[str, Any]) -> Dict[str, Any]:
    """Look at a host, decide, and return what the audit says of it; ``given`` are the variables of gpu_node_plan."""
    observed, decided = decide.both(door, given)
    return answer(observed, decided, extra(door, observed) if decided.gpu_host else {})


def extra(door: Host, observed: Dict[str, Any]) -> Dict[str, Any]:
    """Return what only an audit asks: the module of the next boot, who holds the GPUs, what waits for a reboot."""
    kernel = observed["base"]["kernel"]
    following = kernel["next_boot"]
    module = observed["driver"]["on_disk"]
    if following != kernel["running"]:
        paths = driver.find_modules(door, following)
        module = driver.read_module(door, paths[0]) if paths else None
    return {
        "next_module": module,
        "holders": holders.look(door),
        "reboot_mark": next((path for path in REBOOT_MARKS if door.exists(path)), None),
    }


def answer(observed: Dict[str, Any], decided: compose.Plan, more: Dict[str, Any]) -> Dict[str, Any]:
    """Return the host's state, its checks, who holds its GPUs, and its columns of the table."""
    checks = judge(observed, decided, more) if decided.gpu_host else gone(observed)
    state = state_of(decided, checks)
    refusals = ["%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals]
    return {
        "state": state,
        "why": refusals or ["%s: %s" % (check.name, check.why) for check in checks if check.ok is False],
        "checks": [dict(check._asdict()) for check in checks],
        "holders": more.get("holders") or [],
        "steps": [step.id for step in decided.steps],
        "warnings": ["%s; %s" % (one.message, one.remedy) for one in decided.warnings],
        "summary": decided.summary,
        "row": compose.row(observed, decided),
    }


def state_of(decided: compose.Plan, checks: List[Check]) -> str:
    """Return the host in one word."""
    if decided.refusals:
        return REFUSED
    if not decided.gpu_host and not checks:
        return NO_GPU
    return DRIFT if any(check.ok is False for check in checks) else SOUND


def judge(observed: Dict[str, Any], decided: compose.Plan, more: Dict[str, Any]) -> List[Check]:
    """Return every check that concerns this host."""
    chosen = decided.choice.get("driver") or {}
    if not chosen:
        return [Check("driver", None, version_of(observed["driver"]["on_disk"]), False, decided.summary)]
    checks = [installed(observed, decided, chosen), loaded(observed, chosen), userspace(observed, chosen)]
    checks += fabric(observed, decided)
    checks += groups(observed, decided)
    checks += [holds(observed, decided), next_boot(observed, chosen, more), reboot(observed, decided, more)]
    return checks + [verified(observed, decided)]


def gone(observed: Dict[str, Any]) -> List[Check]:
    """Judge a host without any GPU: a drift where the last verification saw some, which fell off the bus since."""
    there = upgrade.lost(observed)
    if not there:
        return []
    why = "the last verification saw %d, now none is on the PCI bus: %s" % (len(there), upgrade.FIND_LOST)
    return [Check("gpus", ", ".join(there), None, False, why)]


def version_of(module: Optional[Dict[str, Any]]) -> Optional[str]:
    """Return version and flavour of a module as people write them."""
    if not module:
        return None
    return " ".join(str(part) for part in (module["version"], module["flavour"]) if part)


def wish(chosen: Dict[str, Any]) -> str:
    """Return the wanted driver as people write it."""
    return " ".join(
        str(part) for part in (chosen.get("version") or chosen.get("branch"), chosen.get("flavour")) if part
    )


def whys(decided: compose.Plan, starts: Any) -> str:
    """Return the reasons of the steps whose names begin so, in one text."""
    return "; ".join(step.why for step in decided.steps if step.id.startswith(starts))


def installed(observed: Dict[str, Any], decided: compose.Plan, chosen: Dict[str, Any]) -> Check:
    """Judge the driver on disk."""
    reasons = whys(decided, DRIVER_STEPS)
    ok = bool(chosen["satisfied"]) and not reasons
    why = "" if ok else reasons or "the driver on disk is not the wanted one"
    return Check("driver", wish(chosen), version_of(observed["driver"]["on_disk"]), ok, why)


def loaded(observed: Dict[str, Any], chosen: Dict[str, Any]) -> Check:
    """Judge the loaded module: it has to be the one on disk."""
    module, disk = observed["driver"]["loaded"], observed["driver"]["on_disk"]
    wanted = version_of(disk) or wish(chosen)
    if not module:
        own = observed["base"]["nouveau"]
        why = "%s drives the GPU" % (own.get("name") or "nouveau") if own["bound"] else "no NVIDIA module is loaded"
        return Check("loaded", wanted, None, False, why)
    same = bool(disk) and module["version"] == disk["version"] and module["flavour"] in (None, disk["flavour"])
    why = "" if same else "the loaded module is %s, on disk is %s" % (version_of(module), version_of(disk) or "none")
    return Check("loaded", wanted, version_of(module), same, why)


def userspace(observed: Dict[str, Any], chosen: Dict[str, Any]) -> Check:
    """Judge the driver's libraries: all of the version of the module on disk."""
    found, disk = observed["driver"]["userspace"], observed["driver"]["on_disk"]
    wanted = disk["version"] if disk else str(chosen.get("version") or chosen.get("branch") or "")
    ok = bool(disk) and list(found) == [wanted]
    why = "" if ok else "the driver's libraries are %s" % (", ".join(found) or "missing")
    return Check("userspace", wanted, ", ".join(found) or None, ok, why)


def fabric(observed: Dict[str, Any], decided: compose.Plan) -> List[Check]:
    """Judge the fabric manager of a host with NVSwitches."""
    if not observed["base"]["nvswitches"]:
        return []
    running = bool(observed["driver"].get("fabricmanager"))
    why = whys(decided, "nvidia_driver.fabricmanager") or ("" if running else "the fabric manager does not run")
    return [Check("fabric_manager", "running", "running" if running else "not running", not why, why)]


def groups(observed: Dict[str, Any], decided: compose.Plan) -> List[Check]:
    """Judge the parts of which the plan tells what they lack."""
    row = compose.row(observed, decided)
    mode = (decided.choice.get("runtime") or decided.choice.get("engines") or {}).get("mode")
    toolkits = (decided.choice.get("cuda") or {}).get("toolkits") or []
    wanted = {"container": mode, "cuda": ", ".join(toolkit["version"] for toolkit in toolkits) or None}
    engine = observed.get("docker") or {}
    found = {"cuda": row["cuda"], "cudnn": row["cudnn"], "docker": engine.get("version")}
    checks = []
    for name, starts in GROUPS:
        why = whys(decided, starts)
        if name == "services" and observed["driver"].get("stopped"):
            why = "; ".join(part for part in (why, CUT_OFF % ", ".join(observed["driver"]["stopped"])) if part)
        there = found.get(name) or (wanted.get(name) if not why and not decided.refusals else None)
        if why or wanted.get(name) or there:
            ok = None if decided.refusals and not why else not why
            checks.append(Check(name, wanted.get(name), there, ok, why))
    return checks


def holds(observed: Dict[str, Any], decided: compose.Plan) -> Check:
    """Judge the holds that keep unattended upgrades off the driver's packages."""
    why = whys(decided, "nvidia_driver.hold")
    held = observed["driver"]["held"]
    found = "%d held" % len(held) if held else None
    if why:
        return Check("holds", "held", found, False, why)
    return Check("holds", found, found, True if held else None, "" if held else "no hold is asked for, or none yet")


def next_boot(observed: Dict[str, Any], chosen: Dict[str, Any], more: Dict[str, Any]) -> Check:
    """Judge the kernel that boots next: it needs a module of the driver, there already or built by DKMS at boot."""
    kernel = observed["base"]["kernel"]["next_boot"]
    module, disk = more.get("next_module"), observed["driver"]["on_disk"]
    found = "%s: %s" % (kernel, version_of(module) or "no module")
    wanted = "%s: %s" % (kernel, version_of(disk) or wish(chosen))
    if module and disk and module["version"] == disk["version"]:
        return Check("next_boot", wanted, found, True)
    if module:
        why = "the module for kernel %s is %s, the driver on disk is %s" % (
            kernel, version_of(module), version_of(disk) or "none",
        )  # fmt: skip
        return Check("next_boot", wanted, found, False, why)
    why = "there is no module for kernel %s; %s" % (kernel, would_build(observed, kernel))
    return Check("next_boot", wanted, found, False, why)


def would_build(observed: Dict[str, Any], kernel: str) -> str:
    """Return whether DKMS could build the module for a kernel, and what it would lack."""
    base = observed["base"]
    known = sorted({row["version"] for row in observed["driver"]["dkms"]}, key=versions.key)
    lacks = [] if base["kernel"]["headers"].get(kernel) else ["its headers"]
    lacks += [] if base["compiler"] else ["a compiler"]
    if not known:
        return "DKMS knows no source to build it from"
    if lacks:
        return "DKMS cannot build %s without %s" % (known[-1], " and ".join(lacks))
    return "'dkms autoinstall -k %s' would build %s: headers and compiler are there" % (kernel, known[-1])


def reboot(observed: Dict[str, Any], decided: compose.Plan, more: Dict[str, Any]) -> Check:
    """Tell what waits for a reboot; only what the driver waits for is drift."""
    for step in decided.steps:
        if step.disruption == REBOOT:
            return Check("reboot", "not needed", "needed", False, step.why)
    kernel = observed["base"]["kernel"]
    if kernel["next_boot"] != kernel["running"]:
        why = "kernel %s runs, %s boots next" % (kernel["running"], kernel["next_boot"])
        return Check("reboot", "not needed", "pending", None, why)
    if more.get("reboot_mark"):
        why = "%s is there: a package of the system waits for a reboot" % more["reboot_mark"]
        return Check("reboot", "not needed", "pending", None, why)
    return Check("reboot", "not needed", "not needed", True)


def verified(observed: Dict[str, Any], decided: compose.Plan) -> Check:
    """Judge the last proof in a container: it has to be of this boot, these versions and this wish."""
    record = observed.get("verified") or {}
    why = verification.lacking(observed, decided.digest) or ""
    found = "%s %s" % (record.get("driver"), record.get("time")) if record.get("ok") else None
    return Check("verified", version_of(observed["driver"]["loaded"]), found, not why, why)
