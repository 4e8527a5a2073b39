"""Judge what a verification collected: host, user space, module and containers must agree. Pure."""

from typing import NamedTuple

from ....module_utils.gpu_ready.check import judge as health_judge
from ....module_utils.gpu_ready.check import rules
from ....module_utils.gpu_ready.check.model import CRITICAL
from ....module_utils.gpu_ready.containers import engine as engines
from ....module_utils.gpu_ready.driver import module_parameters
from ....module_utils.gpu_ready.facts import blocked_module
from ....module_utils.gpu_ready.facts.model import CdiSpecFacts, DriverFacts
from ....module_utils.gpu_ready.hardware import pci
from ....module_utils.gpu_ready.verify.collect import FABRIC_MANAGER
from ....module_utils.gpu_ready.verify.devices import select_gpus, unknown_devices
from ..diagnostics import messages, xid
from ..plan import health
from ..report import layout
from . import compute, frameworks, requirement
from .checks import NOT_RUN, Check, gpu_count, judge
from .evidence import Evidence

UNSPECIFIC = ("driver_not_loaded", "no_devices", "unknown", "timeout")
"""States of NVML for which the kernel's log has the reason."""
NODES_MISSING = (
    "the kernel module is loaded, but NVML cannot open its device nodes",
    "see 'ls -l /dev/nvidia*'; 'nvidia-modprobe -c=255 -c=0' and 'nvidia-modprobe -u -c=0' create them",
)
CONDITION = ("memory", "pcie_width", "nvlinks", "fabric", "recovery", "remapped_rows", "ecc_errors")
"""Checks of gpu-ready-check that a verification fails with; it judges the others by its own questions."""
RUN_AGAIN = "run the playbook again: it creates %s"


class Verdict(NamedTuple):
    """``ok`` if no check failed."""

    ok: bool
    checks: list[Check]


def judge_evidence(evidence: Evidence) -> Verdict:
    gpus = select_gpus(evidence.nvml.gpus, evidence.devices)
    checks = check_driver(evidence)
    checks += check_boot_module(evidence)
    checks += check_parameters(evidence)
    checks += check_gpus(evidence)
    checks += check_devices(evidence)
    for engine in evidence.expect.engine_names:
        checks += check_docker(evidence) if engine == engines.DOCKER else check_engine(evidence, engine)
        checks += check_requirement(evidence, engine)
        checks += check_container(evidence, engine)
        answer = evidence.container_compute.get(engine)
        checks += compute.check(answer, gpus, evidence.mig, "_in_" + container_label(engine), evidence.compute)
    checks += compute.check(evidence.compute, evidence.nvml.gpus, evidence.mig)
    checks += frameworks.check(evidence.framework, gpus)
    checks += check_persistence(evidence)
    checks += check_fabric_manager(evidence)
    checks += check_xids(evidence)
    checks += check_health(evidence)
    return Verdict(all(check.ok is not False for check in checks), checks)


def container_label(engine: str) -> str:
    """Return how names of checks refer to a container of an engine."""
    return "container" if engine == engines.DOCKER else engine + "_container"


def loaded_version(evidence: Evidence) -> str | None:
    loaded = evidence.facts.driver.loaded
    return loaded.version if loaded else None


def check_boot_module(evidence: Evidence) -> list[Check]:
    """Nothing keeps modprobe from loading the driver when the host boots the next time."""
    if evidence.facts.base.module_elsewhere:
        return []
    blocked = evidence.facts.driver.blocked
    text, remedy = (blocked_module.blocked_text(blocked), blocked_module.remedy(blocked.lines)) if blocked else ("", "")
    found = "prevented" if blocked else "not prevented"
    return [judge("driver_at_boot", not blocked, "modprobe loads the driver", found, text, remedy)]


def check_parameters(evidence: Evidence) -> list[Check]:
    """The loaded module has the requested parameters. The driver shows all numbers, and not every string."""
    state, found = evidence.facts.driver, []
    known = state.on_disk.parameters if state.on_disk else {}
    for name, value in evidence.expect.parameters.items():
        shown, expected = state.parameters.get(name), "NVreg_%s is %s" % (name, value)
        if shown is None and name in known:
            found.append(Check("module_parameters", None, expected, NOT_RUN + ": the driver does not show this one"))
        elif shown is None:
            cause = "driver %s does not know this parameter" % loaded_version(evidence)
            remedy = "correct nvidia_driver_module_parameters; 'modinfo -p nvidia' on the host lists all that it takes"
            found.append(judge("module_parameters", False, expected, "none", cause, remedy))
        else:
            cause = "the module was loaded without it, or with another value from elsewhere"
            remedy = "see 'modprobe -c | grep NVreg_' on the host, then run the playbook again: it reloads the module"
            same = module_parameters.is_same(value, shown)
            found.append(judge("module_parameters", same, expected, shown, cause, remedy))
    return found


def check_devices(evidence: Evidence) -> list[Check]:
    """``gpu_verify_devices`` names GPUs of this host."""
    gpus = evidence.nvml.gpus
    unknown = unknown_devices(gpus, evidence.devices) if evidence.nvml.usable else []
    if not unknown:
        return []
    present = ", ".join("%d = %s" % (gpu.index, gpu.uuid) for gpu in gpus)
    cause = "no GPU of this host has that index or UUID; it has %s" % present
    remedy = "correct gpu_verify_devices: all, or indices and UUIDs as 'nvidia-smi -L' prints them"
    return [judge("chosen_devices", False, "GPU " + ", ".join(unknown), "missing", cause, remedy)]


def check_driver(evidence: Evidence) -> list[Check]:
    """Loaded module, module on disk, libraries and desired driver are of one version."""
    state = evidence.facts.driver
    loaded = loaded_version(evidence)
    if not loaded:
        cause, remedy = explain_by_kernel(evidence, *messages.SMI_STATES["driver_not_loaded"])
        return [judge("driver_module", False, "the kernel module nvidia is loaded", "none", cause, remedy)]
    checks = [judge("driver_module", True, "loaded", loaded)]
    desired, found = evidence.expect.driver, "%s loaded" % loaded
    why = explain_other_driver(state, loaded)
    if desired.version:
        ok = loaded == desired.version
        checks.append(judge("driver_version", ok, "driver %s" % desired.version, found, *why))
    elif desired.branch:
        ok = loaded.split(".")[0] == str(desired.branch)
        checks.append(judge("driver_version", ok, "branch %s" % desired.branch, found, *why))
    flavour = state.loaded.flavour if state.loaded else None
    if desired.flavour in ("open", "proprietary") and flavour:
        cause = "a module of the other flavour is loaded"
        remedy = "reboot the host; if this check fails again, remove the packages of the %s module" % flavour
        checks.append(judge("driver_flavour", flavour == desired.flavour, desired.flavour, flavour, cause, remedy))
    disk = state.on_disk.version if state.on_disk else None
    if disk and not evidence.facts.base.module_elsewhere:
        cause = "another driver was installed and its module is not loaded yet"
        remedy = "reboot the host, or stop everything that uses the GPUs and load the new module"
        checks.append(judge("driver_on_disk", disk == loaded, loaded + " on disk", disk, cause, remedy))
    libraries = state.userspace
    if libraries:
        cause = "the driver's libraries are not of the loaded module's version"
        remedy = "reboot if a newer driver was just installed; else remove the libraries that are not of " + loaded
    else:
        cause = "the driver's libraries (libcuda, libnvidia-ml) are missing"
        remedy = "install the driver's user-space libraries"
    found = ", ".join(libraries) or "none"
    checks.append(judge("driver_userspace", libraries == [loaded], "libraries of " + loaded, found, cause, remedy))
    return checks


def explain_by_kernel(evidence: Evidence, cause: str, remedy: str) -> tuple[str, str]:
    """Add the reason in the kernel's log to a cause; NVML and the PCI bus know only the effect."""
    kernel = evidence.kernel
    if kernel is None:
        return cause, remedy
    where = " (%s)" % kernel.detail if kernel.detail else ""
    return "%s: %s%s, by the kernel's log (%s)" % (cause, kernel.cause, where, kernel.message), kernel.remedy


def explain_other_driver(state: DriverFacts, loaded: str) -> tuple[str, str]:
    disk = state.on_disk.version if state.on_disk else None
    if disk and disk != loaded:
        return (
            "driver %s is installed but not loaded" % disk,
            "reboot the host, or set gpu_ready_activation to reload and run the playbook again",
        )
    return (
        "the installed driver is not the desired one",
        "run the playbook with --check, which shows the plan",
    )


def check_gpus(evidence: Evidence) -> list[Check]:
    """PCI bus, plan and NVML list the same GPUs."""
    served = sorted(gpu.address for gpu in evidence.facts.base.served_gpus)
    checks = []
    planned = sorted(evidence.expect.gpus)
    if planned:
        changed = ", ".join(sorted(set(planned) ^ set(served)))
        cause = "GPUs appeared on or disappeared from the PCI bus during the run: %s" % changed
        remedy = "read 'dmesg' for 'fallen off the bus', check power and slots, then reboot"
        checks.append(judge("gpus_on_pci", planned == served, gpu_count(planned), gpu_count(served), cause, remedy))
    cause, remedy = messages.SMI_STATES["smi_missing"]
    smi = evidence.smi
    checks.append(judge("nvidia_smi", bool(smi), "nvidia-smi on the host", smi or "none", cause, remedy))
    answer = evidence.nvml
    if not answer.usable:
        cause, remedy = answer.cause or "", answer.remedy or ""
        if answer.state == "driver_not_loaded" and loaded_version(evidence):
            cause, remedy = NODES_MISSING
        elif answer.state in UNSPECIFIC:
            cause, remedy = explain_by_kernel(evidence, cause, remedy)
        found = answer.message or answer.state or "no answer"
        checks.append(judge("gpus_on_host", False, gpu_count(served), found, cause, remedy))
        return checks
    seen = sorted(gpu.bus_id for gpu in answer.gpus)
    failed = ", ".join(sorted(set(served) - set(seen))) or "every GPU on the PCI bus"
    cause, remedy = explain_by_kernel(
        evidence,
        "the driver could not start " + failed,
        "read 'dmesg | grep NVRM' for that address: unsupported GPU, power, BAR settings or defective hardware",
    )
    hidden = sorted(set(seen) - set(served))
    if hidden and set(served) <= set(seen):
        shown = " and ".join(hidden)
        cause = "NVML shows %s, of which %s has nothing that this host drives itself" % (shown, pci.SYSFS)
        remedy = "run gpu-ready on the machine itself if this is a container; else see which driver has these functions"
    if not served and not seen:
        cause = "there is no NVIDIA GPU that gpu-ready may use"
        remedy = "see 'lspci -nnk -d 10de:', then check power and slots"
    ok = bool(served) and seen == served
    checks.append(judge("gpus_on_host", ok, gpu_count(served), gpu_count(seen), cause, remedy))
    loaded = loaded_version(evidence)
    reported = sorted({gpu.driver_version for gpu in answer.gpus})
    if loaded and seen:
        cause = "NVML reports another driver than the loaded module"
        checks.append(
            judge("nvml_version", reported == [loaded], loaded, ", ".join(reported), cause, "reboot the host")
        )
    return checks


def check_docker(evidence: Evidence) -> list[Check]:
    """The engine runs and has what the runtime's mode needs."""
    engine = evidence.facts.docker
    if not engine.installed:
        return [judge("docker", False, "docker runs", "not installed", "dockerd is missing", "install docker")]
    active = engine.active
    found = "docker %s" % (engine.version or "") if active else "not running"
    remedy = "read 'journalctl -u docker' and start it"
    checks = [judge("docker", active, "docker runs", found, "the engine does not answer", remedy)]
    runtime = evidence.facts.runtime
    if evidence.expect.mode == "toolkit":
        ok = runtime.toolkit
        cause = "nvidia-container-runtime or its hook is not installed"
        remedy = "install nvidia-container-toolkit, or set nvidia_container_runtime_mode to native"
        found = "installed" if ok else "missing"
        checks.append(judge("container_runtime", ok, "nvidia-container-toolkit", found, cause, remedy))
    elif evidence.expect.runtime and evidence.expect.runtime.helper:
        volume = runtime.volume
        found = volume.stale or (volume.version and "driver %s" % volume.version) or "none"
        cause = "the driver volume is not of the installed driver"
        ok = volume.exists and not volume.stale
        checks.append(judge("container_runtime", ok, "a driver volume", found, cause, RUN_AGAIN % "the volume"))
    elif evidence.expect.mode in ("cdi", "native"):
        checks.append(check_specification("container_runtime", runtime.specs))
    return checks


def check_specification(name: str, specs: list[CdiSpecFacts]) -> Check:
    valid = [spec.path for spec in specs if not spec.stale]
    stale = ["%s (%s)" % (spec.path, spec.stale) for spec in specs if spec.stale]
    cause = "no CDI specification describes the present GPUs"
    found = ", ".join(valid or stale) or "none"
    return judge(name, bool(valid), "a CDI specification", found, cause, RUN_AGAIN % "the specification")


def check_engine(evidence: Evidence, name: str) -> list[Check]:
    """An engine beside docker runs and has what the runtime's mode needs."""
    known, runtime = evidence.facts.engines, evidence.facts.runtime
    states = {
        engines.CONTAINERD: (known.containerd.installed, known.containerd.active),
        engines.CRIO: (known.crio.installed, known.crio.active),
    }
    kubelet = known.kubernetes
    installed, ok = states.get(name) or (kubelet.kind == name, kubelet.kind == name and kubelet.active)
    if name == engines.PODMAN:
        installed = ok = known.podman.installed
    found = "not installed" if not installed else "available" if ok else "not running"
    unit = "rke2-server' or 'journalctl -u rke2-agent" if name == engines.RKE2 else name
    remedy = "install it" if not installed else "read 'journalctl -u %s' and start it" % unit
    checks = [judge(name, ok, "%s is available" % name, found, "the engine does not answer", remedy)]
    if name != engines.PODMAN and evidence.expect.mode == "toolkit":
        ok = bool(runtime.programs.get("nvidia-container-runtime"))
        cause, remedy = "nvidia-container-runtime is not installed", "install nvidia-container-toolkit"
        found = "installed" if ok else "missing"
        checks.append(judge("runtime_for_" + name, ok, "nvidia-container-runtime", found, cause, remedy))
        return checks
    return checks + [check_specification("cdi_for_" + name, runtime.specs)]


def check_requirement(evidence: Evidence, engine: str) -> list[Check]:
    cuda = (evidence.compute.cuda if evidence.compute else None) or evidence.cuda
    variables = evidence.requirements.get(engine) or {}
    return requirement.check(variables, loaded_version(evidence), cuda, evidence.expect.mode)


def check_container(evidence: Evidence, engine: str = engines.DOCKER) -> list[Check]:
    """Return a container sees the selected GPUs, each with the UUID and name that the host sees."""
    answer, place = evidence.containers.get(engine), container_label(engine)
    if answer is None:
        found = NOT_RUN
        if engine == engines.CONTAINERD and evidence.expect.mode != "toolkit":
            found += ": ctr supports CDI from 2.0 on; Kubernetes (CRI) does in this version too"
        if engine == engines.CRIO:
            found += ": CRI-O starts containers for a kubelet only; try a pod (docs/kubernetes.md)"
        return [Check("gpus_in_" + place, None, "a container sees the GPUs", found)]
    gpus = select_gpus(evidence.nvml.gpus, evidence.devices)
    if not answer.usable:
        found = answer.message or answer.state or "no answer"
        cause, remedy = answer.cause or "", answer.remedy or ""
        return [judge("gpus_in_" + place, False, gpu_count(gpus), found, cause, remedy)]
    seen = {gpu.uuid: gpu for gpu in answer.gpus}
    missing = [gpu.uuid for gpu in gpus if gpu.uuid not in seen]
    extra = sorted(set(seen) - {gpu.uuid for gpu in gpus})
    parts = ["missing in the container: " + ", ".join(missing)] if missing else []
    parts += ["only in the container: " + ", ".join(extra)] if extra else []
    remedy = "run the playbook again to renew the CDI specification, or check NVIDIA_VISIBLE_DEVICES and the runtime"
    ok = len(gpus) == len(answer.gpus)
    checks = [judge("gpus_in_" + place, ok, gpu_count(gpus), gpu_count(answer.gpus), "; ".join(parts), remedy)]
    if ok:
        expected = ", ".join(gpu.uuid for gpu in gpus)
        same = not missing and not extra
        checks.append(judge("uuids_in_" + place, same, expected, ", ".join(seen), "; ".join(parts), remedy))
    remedy = "the container has other driver libraries than the host: use an image without driver files"
    for gpu in gpus:
        other = seen.get(gpu.uuid)
        if other is None:
            continue
        for label, expected, found in (
            ("name", gpu.name, other.name),
            ("address", gpu.bus_id, other.bus_id),
            ("driver", gpu.driver_version, other.driver_version),
        ):
            if expected != found:
                cause = "%s of GPU %d (%s) differs between host and container" % (label, gpu.index, gpu.uuid)
                checks.append(judge("gpu_in_" + place, False, expected, found, cause, remedy))
    return checks


def check_persistence(evidence: Evidence) -> list[Check]:
    """Return the persistence mode is on for all GPUs; the daemon may run without it."""
    modes = evidence.persistence
    if not evidence.expect.persistence or not evidence.nvml.usable:
        return []
    if modes is None:
        return [Check("persistence_mode", None, "Enabled", NOT_RUN + ": nvidia-smi does not answer")]
    off = sorted(gpu for gpu, mode in modes.items() if mode == "Disabled")  # a virtual GPU has none: [N/A]
    found = "Disabled for " + ", ".join(off) if off else "Enabled"
    cause = "the persistence daemon runs without it, or somebody turned it off"
    remedy = "run 'systemctl restart nvidia-persistenced'; 'systemctl cat nvidia-persistenced' shows its command"
    return [judge("persistence_mode", not off, "Enabled", found, cause, remedy)]


def check_fabric_manager(evidence: Evidence) -> list[Check]:
    """On hosts with NVSwitches the fabric manager runs and has exactly the driver's version."""
    switches = evidence.facts.base.nvswitches
    if not switches:
        return []
    state, version = evidence.fabric_manager
    loaded = loaded_version(evidence)
    served = layout.counted(len(switches), "NVSwitch", "es")
    cause = "it is needed for %s; without it CUDA reports 'system not yet initialized'" % served
    remedy = "read 'journalctl -u %s' and /var/log/fabricmanager.log, then start it" % FABRIC_MANAGER
    found = state or "not installed"
    checks = [judge("fabric_manager", state == "active", "%s is active" % FABRIC_MANAGER, found, cause, remedy)]
    if version and loaded:
        cause = "a fabric manager of another version aborts"
        remedy = "install %s of version %s" % (FABRIC_MANAGER, loaded)
        checks.append(judge("fabric_manager_version", version == loaded, loaded, version, cause, remedy))
    return checks


def check_health(evidence: Evidence) -> list[Check]:
    """The condition of each GPU is sound, and no worse than at the last successful verification (check/judge.py)."""
    if evidence.health is None or evidence.health.error:
        return []
    now = health.readings(evidence.facts)._replace(nvml=evidence.health)
    found = health_judge.judge(now, health.expected(evidence.facts.verified), rules.make_rules()).rows
    bad = [one for one in found if one.level == CRITICAL and one.name in CONDITION]
    checks = [judge("gpu_health", False, "healthy GPUs", one.name, one.message, one.remedy) for one in bad]
    return checks or [judge("gpu_health", True, "healthy GPUs", "healthy")]


def check_xids(evidence: Evidence) -> list[Check]:
    """The kernel's log has no new report of a damaged or lost GPU."""
    found = evidence.xids
    if found is None:
        return [Check("xid", None, "no new serious Xid", NOT_RUN + ": the kernel's log cannot be read")]
    if not found:
        return [judge("xid", True, "no new serious Xid", "none")]
    shown = list(dict.fromkeys(one.label for one in found))
    means = [means for _, means in xid.judge(found)]
    names = ["%d: %s" % (one.number, meaning.name) for one, meaning in zip(found, means, strict=True)]
    cause = "; ".join(dict.fromkeys(names))
    remedy = "; ".join(dict.fromkeys(one_means.remedy for one_means in means))
    return [judge("xid", False, "no new serious Xid", ", ".join(shown), cause, remedy)]
