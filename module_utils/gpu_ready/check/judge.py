"""Whether the GPUs of a host are healthy now: readings, the record of the last verification and rules give a verdict.

The one function that the check on the host, the metrics, plan, audit and gate of site.yml use. Pure.

A verification is a memory of its time. What is read now and contradicts it outranks it.
"""

from typing import Dict, List, Optional, Sequence

from .model import (
    ACTIONS,
    CRITICAL,
    DRAIN,
    INFO,
    LEVELS,
    PASS,
    RESET_GPU,
    RESTART_OS,
    SERVICE,
    UNKNOWN,
    WARNING,
    CheckInfo,
    Expected,
    Finding,
    GpuIdentity,
    GpuReading,
    HealthVerdict,
    NvmlReading,
    Readings,
    Rules,
    XidFacts,
    XidRule,
)

GPU = "{gpu|ADDRESS}"
"""Where a remedy of catalog/xids.yml names the GPU."""
REBOOT = "drain and reboot the host; if it returns, check power, slot and the GPU"
VERIFY = "run site.yml, which verifies the host again and says what is wrong"
RESET = "drain the host and reset the GPU ('nvidia-smi -r'), or reboot"
MOST_XIDS = 32
"""Xids that are reported, the newest ones."""
SLOWED = {0x8: "hardware slowdown", 0x40: "hardware thermal slowdown", 0x80: "power brake of the system"}
"""Clock event reasons of nvml.h that say that the hardware protects itself; the others are normal under load."""
REGISTERED = 3
"""NVML_GPU_FABRIC_STATE_COMPLETED."""
PASSING = ("degraded_bandwidth", "route_recovery")
"""Problems of the fabric with which programs still run."""
CHECKS: Dict[str, CheckInfo] = {
    "pci": CheckInfo("every GPU answers on the PCI bus and has not left it", "/sys/bus/pci/devices"),
    "gpus": CheckInfo("the driver has every GPU that was verified", "/proc/driver/nvidia/gpus, NVML"),
    "driver": CheckInfo("module, libraries and verified driver agree", "/sys/module/nvidia/version, file names"),
    "device_nodes": CheckInfo("the device nodes exist", "/dev"),
    "nvml": CheckInfo("the management library answers for every GPU within the time limit", "NVML"),
    "identity": CheckInfo("UUID, serial number and VBIOS are those that were verified", "NVML"),
    "memory": CheckInfo("the GPU has as much memory as was verified", "NVML"),
    "ecc_mode": CheckInfo("the ECC mode is the verified one", "NVML"),
    "mig_mode": CheckInfo("the MIG mode is the verified one", "NVML"),
    "pcie_width": CheckInfo("the PCI Express link has as many lanes as were verified", "NVML"),
    "pcie_generation": CheckInfo("link and slot can do the verified generation", "NVML"),
    "nvlinks": CheckInfo("as many NVLinks are active as were verified (the limit may be missing)", "NVML", 0),
    "fabric": CheckInfo("the GPU is registered in the NVLink fabric, which has no problem", "NVML"),
    "recovery": CheckInfo("the driver requires no recovery action", "NVML, field 230"),
    "remapped_rows": CheckInfo("no replacement of memory rows failed or waits for a reset", "NVML"),
    "ecc_errors": CheckInfo("no more uncorrected ECC errors than the limit since the driver was loaded", "NVML", 0),
    "temperature": CheckInfo("the chip is cooler than the limit, in degrees Celsius", "NVML", 90),
    "clocks": CheckInfo("the hardware does not slow its clocks to protect itself", "NVML"),
    "persistence": CheckInfo("persistence mode is on where it was verified", "NVML"),
    "xid": CheckInfo("no Xid or SXid stands that is newer than the verification", "/dev/kmsg"),
    "kernel_log": CheckInfo("the kernel's log can be read", "/dev/kmsg"),
    "verified": CheckInfo("the last verification succeeded, in this boot", "/var/lib/gpu-ready/verified.json"),
}
"""By name; `gpu_health_check_off` and `gpu_health_check_limits` name these."""


def judge(now: Readings, expected: Optional[Expected], rules: Rules) -> HealthVerdict:
    """Return what is wrong, the worst first; each check is switched off by its name."""
    rows = silent_gpus(now, expected) + missing_gpus(now, expected) + forgotten_gpus(now, expected)
    rows += missing_nodes(now, expected)
    rows += reported_xids(now, expected, rules, [one.address for one in rows if one.lost])
    rows += driver_rows(now, expected) + record_rows(now, expected)
    if now.nvml is not None:
        rows += nvml_rows(now, now.nvml, expected, [one.address for one in rows if one.lost])
        for gpu in now.nvml.gpus:
            rows += condition_rows(now, gpu, expected, rules) + identity_rows(now, gpu, expected, rules)
    rows = [one for one in rows if one.name not in rules.off]
    rows.sort(key=lambda one: (-LEVELS.index(one.level), not one.lost))
    level = max([PASS] + [one.level for one in rows], key=LEVELS.index)
    action = max([""] + [one.action for one in rows if one.level == level], key=ACTIONS.index)
    return HealthVerdict(level, action if level == CRITICAL else "", rows)


def is_valid(now: Readings, expected: Optional[Expected]) -> bool:
    """Return True for the record of a verification that succeeded in this boot."""
    return expected is not None and expected.ok and expected.boot_id not in (None, "") and is_of_boot(now, expected)


def is_of_boot(now: Readings, expected: Expected) -> bool:
    return expected.boot_id == now.boot_id


def foreign(now: Readings) -> List[str]:
    """Return the GPUs that virtual machines have, or may get."""
    served = set(now.served)
    return [address for address in now.present if address not in served]


def order(now: Readings, expected: Optional[Expected]) -> List[str]:
    """Return PCI addresses in the order of the PCI bus, in which nvidia-smi counts GPUs."""
    known = set(now.served) | set(expected.addresses if expected else [])
    return sorted(known - set(foreign(now)))


def name(now: Readings, expected: Optional[Expected], address: str) -> str:
    known = order(now, expected)
    return "GPU %d (%s)" % (known.index(address), address) if address in known else "the GPU at %s" % address


def lost_gpu(address: str, message: str) -> Finding:
    return Finding("pci", CRITICAL, message, REBOOT, RESTART_OS, address, lost=True, renews=True)


# ---- files -----------------------------------------------------------------------------------------------------------


def silent_gpus(now: Readings, expected: Optional[Expected]) -> List[Finding]:
    what = '%s does not answer: its PCI configuration reads as ones ("GPU is lost", "fallen off the bus")'
    return [lost_gpu(one, what % name(now, expected, one)) for one in now.silent if one in now.served]


def missing_gpus(now: Readings, expected: Optional[Expected]) -> List[Finding]:
    """Return those that left the PCI bus since they were verified in this boot.

    Nobody takes a card out of a running host.
    """
    if expected is None or not is_valid(now, expected):
        return []
    left = [address for address in expected.addresses if address not in now.present]
    what = "%s is no longer on the PCI bus, where it was verified since the host started"
    return [lost_gpu(address, what % name(now, expected, address)) for address in left]


def forgotten_gpus(now: Readings, expected: Optional[Expected]) -> List[Finding]:
    """Return those that the driver had when they were verified, and does not have now."""
    if now.driven is None or expected is None or not is_valid(now, expected) or now.loaded != expected.driver:
        return []
    missing = [
        one for one in now.served if one in expected.addresses and one not in now.driven and one not in now.silent
    ]
    what = "%s is no longer among the GPUs of the driver (/proc/driver/nvidia/gpus)"
    return [
        Finding("gpus", CRITICAL, what % name(now, expected, one), VERIFY, RESTART_OS, one, renews=True)
        for one in missing
    ]


def missing_nodes(now: Readings, expected: Optional[Expected]) -> List[Finding]:
    """Return device nodes that a verification of this boot opened, on a host where no program creates them again."""
    if now.nodes is None or expected is None or not is_valid(now, expected):
        return []
    numbered = [node for node in now.nodes if node != "nvidiactl"]
    least = min(len(now.driven or []), len(expected.gpus))
    if "nvidiactl" in now.nodes and len(numbered) >= least:
        return []
    found = ", ".join("/dev/" + node for node in now.nodes) or "none"
    message = "device nodes of the driver are missing: %d GPUs and nvidiactl need one each, found %s" % (least, found)
    return [Finding("device_nodes", CRITICAL, message, VERIFY, DRAIN, renews=True)]


def driver_rows(now: Readings, expected: Optional[Expected]) -> List[Finding]:
    """The plan has steps for these, so they do not make the record invalid by themselves."""
    if now.loaded is None:
        if expected is None or not expected.ok or not expected.driver:
            return []
        message = "the NVIDIA driver is not loaded; %s was verified" % expected.driver
        return [Finding("driver", CRITICAL, message, REBOOT, RESTART_OS)]
    if now.libraries and now.loaded not in now.libraries:
        message = "driver %s is loaded, its libraries on disk are of %s" % (now.loaded, ", ".join(now.libraries))
        return [Finding("driver", CRITICAL, message, "reboot the host, or run site.yml", RESTART_OS)]
    if expected is not None and expected.ok and expected.driver != now.loaded:
        message = "driver %s is loaded, %s was verified" % (now.loaded, expected.driver or "none")
        return [Finding("driver", WARNING, message, VERIFY)]
    return []


def record_rows(now: Readings, expected: Optional[Expected]) -> List[Finding]:
    rows = []
    if now.xids is None:
        message = "the kernel's log cannot be read, so Xids are not known"
        rows.append(Finding("kernel_log", UNKNOWN, message, "run the check as root on the host itself"))
    if expected is None:
        rows.append(Finding("verified", UNKNOWN, "this host was never verified", "run site.yml"))
    elif not expected.ok:
        why = "; ".join(expected.reasons) or "no reason recorded"
        rows.append(Finding("verified", WARNING, "the last verification failed: %s" % why, VERIFY))
    elif not is_of_boot(now, expected):
        rows.append(Finding("verified", INFO, "the host was rebooted since its last verification", VERIFY))
    for address in now.served if expected is not None and is_valid(now, expected) else []:
        if expected is not None and address not in expected.addresses:
            message = "%s was not here when the host was verified" % name(now, expected, address)
            rows.append(Finding("verified", WARNING, message, VERIFY, "", address, renews=True))
    return rows


# ---- the kernel's log ------------------------------------------------------------------------------------------------


def reported_xids(now: Readings, expected: Optional[Expected], rules: Rules, known: Sequence[str]) -> List[Finding]:
    """Return Xids that are newer than the last successful verification of this boot, also where a later one has failed.

    That a GPU in ``known`` is lost is not reported again.
    """
    since = expected.logged if expected and is_of_boot(now, expected) else 0.0
    ours = set(now.served) | set(expected.addresses if expected else [])
    ours -= set(foreign(now))
    new = [one for one in now.xids or [] if one.time > since and (one.switch or one.address in ours)]
    rows = [xid_row(now, one, expected, rules) for one in new[-MOST_XIDS:]]
    return [one for one in rows if not (one.lost and one.address in known)]


def for_gpu(remedy: str, address: str) -> str:
    """Return a remedy of the catalog with the GPU in its place, as ``nvidia-smi -i`` takes it."""
    return remedy.replace(GPU, address if "." in address else address + ".0")


def xid_row(now: Readings, one: XidFacts, expected: Optional[Expected], rules: Rules) -> Finding:
    if one.switch:
        rule, what = rules.switch, "SXid %d of %s: %s" % (one.number, one.address, rules.switch.name)
    else:
        rule = rules.xids.get(str(one.number), XidRule(INFO, "", "an Xid that the catalog does not have", ""))
        what = "Xid %d of %s: %s" % (one.number, name(now, expected, one.address), rule.name)
        if one.action is not None:
            required = rules.recovery.get(str(one.action))
            rule = rule._replace(level=CRITICAL, action=DRAIN) if required is None else required
            what = "Xid %d of %s: %s" % (one.number, name(now, expected, one.address), rule.name)
    renews = rule.level in (WARNING, CRITICAL)
    remedy = for_gpu(rule.remedy, one.address)
    remedy = REBOOT if rule.lost else "%s; %s" % (remedy, VERIFY) if rule.level == WARNING else remedy
    evidence = "%.6f s after the boot" % one.time
    return Finding("xid", rule.level, what, remedy, rule.action, one.address, evidence, rule.lost, renews)


# ---- NVML ------------------------------------------------------------------------------------------------------------


def critical(check: str, message: str, remedy: str, action: str, address: str = "") -> Finding:
    return Finding(check, CRITICAL, message, remedy, action, address, renews=True)


def nvml_rows(now: Readings, nvml: NvmlReading, expected: Optional[Expected], lost: Sequence[str]) -> List[Finding]:
    """Return what is wrong with the answer as a whole, and with GPUs that are not in it."""
    if nvml.error:
        if now.loaded is None:
            return []  # `driver` has it
        remedy = "reboot the host: a program that waits in the driver may not end before" if nvml.silent else REBOOT
        if nvml.silent and not nvml.stuck and not is_valid(now, expected):
            return [Finding("nvml", UNKNOWN, "NVML gives no answer: %s" % nvml.error, remedy)]
        return [critical("nvml", "NVML gives no answer: %s" % nvml.error, remedy, RESTART_OS)]
    rows = []
    known = order(now, expected)
    broken = set(lost)
    for index, text in sorted(nvml.lost.items()):
        address = known[int(index)] if int(index) < len(known) else ""
        if address in broken:
            continue
        broken.add(address)
        reset = "reset" in text.lower()
        what = "%s does not answer: NVML says %s" % (name(now, expected, address) if address else "GPU " + index, text)
        rows.append(critical("nvml", what, RESET if reset else REBOOT, RESET_GPU if reset else RESTART_OS, address))
    answered = {one.identity.address for one in nvml.gpus}
    for one in expected.hardware if expected is not None and expected.ok else []:
        if one.address not in answered | broken | set(foreign(now)) and one.address in now.present:
            what = "%s (%s) was verified and is not among the GPUs of NVML" % (
                name(now, expected, one.address), one.uuid)  # fmt: skip
            rows.append(critical("gpus", what, REBOOT, RESTART_OS, one.address))
    return rows


def condition_rows(now: Readings, gpu: GpuReading, expected: Optional[Expected], rules: Rules) -> List[Finding]:
    """Return what is wrong with a GPU whatever was verified."""
    address = gpu.identity.address
    who = name(now, expected, address)
    rows = []
    if gpu.recovery:
        rule = rules.recovery.get(str(gpu.recovery), XidRule(CRITICAL, DRAIN, "action %d" % gpu.recovery, RESET))
        what = "the driver requires a recovery of %s: %s" % (who, rule.name)
        rows.append(critical("recovery", what, for_gpu(rule.remedy, address), rule.action, address))
    if gpu.remap_failed:
        what = "%s could not replace damaged rows of its memory" % who
        rows.append(critical("remapped_rows", what, "have the GPU replaced (RMA)", SERVICE, address))
    elif gpu.remap_pending:
        what = "%s has damaged rows of memory, whose replacement waits for a reset" % who
        rows.append(critical("remapped_rows", what, RESET, RESET_GPU, address))
    if (gpu.ecc_uncorrected or 0) > limit(rules, "ecc_errors"):
        what = "%s has had %d uncorrected ECC errors since its driver was loaded" % (who, gpu.ecc_uncorrected or 0)
        rows.append(critical("ecc_errors", what, RESET + "; replace it if they return", RESET_GPU, address))
    if (gpu.temperature or 0) >= limit(rules, "temperature"):
        what = "%s has %d degrees Celsius" % (who, gpu.temperature or 0)
        rows.append(Finding("temperature", WARNING, what, "check fans and air flow", "", address))
    slowed = [text for bit, text in sorted(SLOWED.items()) if (gpu.clock_reasons or 0) & bit]
    if slowed:
        what = "%s slows its clocks: %s" % (who, ", ".join(slowed))
        rows.append(Finding("clocks", WARNING, what, "check cooling, power supply and power cables", "", address))
    if expected is not None and expected.ok and expected.persistent and gpu.persistence == 0:
        what = "persistence mode of %s is off, it was on when the host was verified" % who
        rows.append(Finding("persistence", WARNING, what, "run site.yml, which turns it on", "", address))
    return rows + fabric_rows(gpu, who, expected)


def fabric_rows(gpu: GpuReading, who: str, expected: Optional[Expected]) -> List[Finding]:
    address = gpu.identity.address
    known = identity_of(gpu, expected)
    if gpu.fabric_state != REGISTERED:
        if known is None or not known.fabric:
            return []
        what = "%s is not registered in the NVLink fabric, as it was when the host was verified" % who
        remedy = "restart nvidia-fabricmanager and read /var/log/fabricmanager.log"
        return [critical("fabric", what, remedy, DRAIN, address)]
    rows = []
    for problem in gpu.fabric_problems:
        what = "the NVLink fabric of %s has a problem: %s" % (who, problem.replace("_", " "))
        remedy = "read /var/log/fabricmanager.log; " + RESET
        if problem in PASSING:
            rows.append(Finding("fabric", WARNING, what, remedy, "", address))
        else:
            rows.append(critical("fabric", what, remedy, RESET_GPU, address))
    return rows


def identity_of(gpu: GpuReading, expected: Optional[Expected]) -> Optional[GpuIdentity]:
    """Return the GPU that was verified in this place; None where none was."""
    found = [one for one in expected.hardware if one.address == gpu.identity.address] if expected else []
    return found[0] if found and expected is not None and expected.ok else None


def identity_rows(now: Readings, gpu: GpuReading, expected: Optional[Expected], rules: Rules) -> List[Finding]:
    """Return how a GPU differs from the one that was verified in its place; a value that is not known differs not."""
    then, one = identity_of(gpu, expected), gpu.identity
    if then is None:
        return []
    who, address = name(now, expected, one.address), one.address
    rows = []
    for field, what in (("uuid", "UUID"), ("serial", "serial number"), ("vbios", "VBIOS")):
        old, new = getattr(then, field), getattr(one, field)
        if old and new and old != new:
            message = "%s has another %s than was verified: %s, not %s" % (who, what, new, old)
            rows.append(Finding("identity", WARNING, message, VERIFY, "", address, renews=True))
    if rows and then.uuid != one.uuid:
        return rows  # it is another card, whose values may differ
    if is_less(one.memory, then.memory) and one.ecc == then.ecc:
        message = "%s has %d MiB of memory, %d were verified" % (who, (one.memory or 0) >> 20, (then.memory or 0) >> 20)
        rows.append(critical("memory", message, RESET + "; replace it if it returns", RESET_GPU, address))
    for field, what in (("ecc", "ECC"), ("mig", "MIG")):
        old, new = getattr(then, field), getattr(one, field)
        if None not in (old, new) and old != new:
            message = "%s mode of %s is %s, it was %s when the host was verified" % (
                what, who, "on" if new else "off", "on" if old else "off")  # fmt: skip
            level = WARNING if field == "ecc" else INFO  # schedulers change MIG while the host serves
            rows.append(Finding(field + "_mode", level, message, VERIFY, "", address, renews=level == WARNING))
    if is_less(one.pcie_width, then.pcie_width):
        message = "the PCI Express link of %s has %s lanes, %s were verified" % (who, one.pcie_width, then.pcie_width)
        remedy = "drain and reboot the host; if it returns, seat the GPU again and check its riser or cable"
        rows.append(critical("pcie_width", message, remedy, RESTART_OS, address))
    if is_less(one.pcie_generation, then.pcie_generation):
        message = "the PCI Express link of %s can do generation %s, %s was verified" % (
            who, one.pcie_generation, then.pcie_generation)  # fmt: skip
        rows.append(Finding("pcie_generation", WARNING, message, "check slot, riser and BIOS settings", "", address))
    if then.nvlinks - one.nvlinks > limit(rules, "nvlinks"):
        message = "%s has %d active NVLinks, %d were verified" % (who, one.nvlinks, then.nvlinks)
        rows.append(
            critical("nvlinks", message, RESET + "; if it returns, check bridges and switches", RESET_GPU, address)
        )
    return rows


def is_less(now: Optional[int], then: Optional[int]) -> bool:
    return now is not None and then is not None and now < then


def limit(rules: Rules, check: str) -> int:
    default = CHECKS[check].limit
    assert default is not None
    return rules.limits.get(check, default)
