"""What must agree on a GPU node, and what is wrong where it does not. Pure: the world as it was seen in, checks out."""

from typing import Any, Dict, List, NamedTuple, Tuple

from ..containers import engine as engines
from ..diagnostics import messages, xid
from ..plan.driver import candidates as plan_candidates
from . import compute, frameworks, requirement
from .checks import NOT_RUN, Check, count, judge
from .devices import engine_names, mode_of, pick, unknown

FABRIC_MANAGER = "nvidia-fabricmanager"
SAYS_LITTLE = ("driver_not_loaded", "no_devices", "unknown", "timeout")
"""States of NVML for which the kernel's log has the reason."""
NOT_REACHED = (
    "the kernel module is loaded, but NVML does not get at it: its device nodes are missing, or closed",
    "see 'ls -l /dev/nvidia*'; 'nvidia-modprobe -c=255 -c=0' and 'nvidia-modprobe -u -c=0' make them",
)


class Verdict(NamedTuple):
    """All checks; green only when none is red."""

    ok: bool
    checks: List[Check]


def verdict(world: Dict[str, Any]) -> Verdict:
    """Judge the world as it was seen.

    ``world`` holds ``observed`` (of observe.look), ``expect`` (the plan's parameters), ``smi`` (path or None), ``nvml``
    and ``container`` (nvml.Answer as plain values), ``others`` (the same by engine: what containers of podman and
    containerd saw), ``compute`` and ``mig`` (of compute.py), ``computed`` and ``requirements`` (the same, and the
    image's variables, by engine), ``framework`` (of frameworks.py), ``chosen`` (gpu_verify_devices),
    ``fabricmanager`` (of verify.py), ``xids`` (new serious ones,
    None where the kernel's log could not be read), ``kernel`` (what that log says of the driver's last start: an
    Explanation or None).
    """
    checks = check_driver(world)
    checks += check_gpus(world)
    checks += check_chosen(world)
    wanted = pick(world["nvml"]["gpus"], world["chosen"])
    mig = world.get("mig") or []
    for engine in engine_names(world["expect"]):
        checks += check_docker(world) if engine == engines.DOCKER else check_engine(world, engine)
        checks += requirement.check(world, engine)
        checks += check_container(world, engine)
        answer = (world.get("computed") or {}).get(engine)
        checks += compute.check(answer, wanted, mig, "_in_" + place_of(engine))
    checks += compute.check(world.get("compute"), world["nvml"]["gpus"], mig)
    checks += frameworks.check(world.get("framework"), wanted)
    checks += check_fabricmanager(world)
    checks += check_xids(world)
    return Verdict(all(check.ok is not False for check in checks), checks)


def place_of(engine: str) -> str:
    """Return how checks call a container of an engine."""
    return "container" if engine == engines.DOCKER else engine + "_container"


def check_chosen(world: Dict[str, Any]) -> List[Check]:
    """Check that ``gpu_verify_devices`` names GPUs of this host."""
    gpus = world["nvml"]["gpus"]
    wrong = unknown(gpus, world["chosen"]) if world["nvml"]["usable"] else []
    if not wrong:
        return []
    there = ", ".join("%d = %s" % (gpu["index"], gpu["uuid"]) for gpu in gpus)
    cause = "no GPU of this host has that number or UUID; it has %s" % there
    remedy = "correct gpu_verify_devices: all, or numbers and UUIDs as 'nvidia-smi -L' prints them"
    return [judge("chosen_devices", False, "GPU " + ", ".join(wrong), "not there", cause, remedy)]


def check_driver(world: Dict[str, Any]) -> List[Check]:
    """Check that loaded module, module on disk, libraries and wish are of one version."""
    state = world["observed"]["driver"]
    loaded = (state.get("loaded") or {}).get("version")
    if not loaded:
        cause, remedy = by_kernel(world, *messages.SMI_STATES["driver_not_loaded"])
        return [judge("driver_module", False, "the kernel module nvidia is loaded", "none", cause, remedy)]
    checks = [judge("driver_module", True, "loaded", loaded)]
    wish = world["expect"].get("driver") or {}
    version, branch, flavour = wish.get("version"), wish.get("branch"), wish.get("flavour")
    if version:
        good = loaded == version
        checks.append(
            judge("driver_version", good, "driver %s" % version, "%s loaded" % loaded, *not_wanted(state, loaded))
        )
    elif branch:
        good = loaded.split(".")[0] == str(branch)
        checks.append(
            judge("driver_version", good, "branch %s" % branch, "%s loaded" % loaded, *not_wanted(state, loaded))
        )
    if flavour in ("open", "proprietary") and state["loaded"].get("flavour"):
        has = state["loaded"]["flavour"]
        cause = "a module of the other flavour is loaded"
        remedy = "reboot the host; if it comes back, remove the packages of the %s module" % has
        checks.append(judge("driver_flavour", has == flavour, flavour, has, cause, remedy))
    disk = (state.get("on_disk") or {}).get("version")
    if disk:
        cause = "another driver was installed and its module is not loaded yet"
        remedy = "reboot the host, or stop everything that uses the GPUs and load the new module"
        checks.append(judge("driver_on_disk", disk == loaded, loaded + " on disk", disk, cause, remedy))
    libraries = list(state.get("userspace") or [])
    cause = (
        "no driver libraries (libcuda, libnvidia-ml)" if not libraries else "libraries and module are not of one driver"
    )
    remedy = (
        "install the driver's user-space libraries"
        if not libraries
        else "reboot when a newer driver was just installed; else remove the libraries that do not belong to %s"
        % loaded
    )
    found = ", ".join(libraries) or "none"
    checks.append(judge("driver_userspace", libraries == [loaded], "libraries of " + loaded, found, cause, remedy))
    return checks


def by_kernel(world: Dict[str, Any], cause: str, remedy: str) -> Tuple[str, str]:
    """Return cause and remedy with what the kernel says; it knows why, NVML and the bus only know that."""
    said = world.get("kernel")
    if said is None:
        return cause, remedy
    where = " (%s)" % said.detail if said.detail else ""
    return "%s: %s%s, as the kernel says (%s)" % (cause, said.cause, where, said.message), said.remedy


def not_wanted(state: Dict[str, Any], loaded: str) -> List[str]:
    """Return cause and remedy for a loaded module that is not the wanted one."""
    disk = (state.get("on_disk") or {}).get("version")
    if disk and disk != loaded:
        return [
            "driver %s is installed but not loaded" % disk,
            "reboot the host, or let gpu_ready_activation exchange it",
        ]
    return ["the installed driver is not the wanted one", "run the playbook again; the plan says what it would install"]


def check_gpus(world: Dict[str, Any]) -> List[Check]:
    """Check that PCI bus, plan and NVML name the same GPUs."""
    served = sorted(gpu["address"] for gpu in plan_candidates.served(world["observed"]))
    checks = []
    planned = sorted(world["expect"].get("gpus") or [])
    if planned:
        cause = "GPUs left or joined the PCI bus while the playbook ran: %s" % ", ".join(
            sorted(set(planned) ^ set(served))
        )
        remedy = "read 'dmesg' for 'fallen off the bus', check power and slots, then reboot"
        checks.append(judge("gpus_on_pci", planned == served, count(planned), count(served), cause, remedy))
    cause, remedy = messages.SMI_STATES["smi_missing"]
    checks.append(
        judge("nvidia_smi", bool(world["smi"]), "nvidia-smi on the host", world["smi"] or "none", cause, remedy)
    )
    answer = world["nvml"]
    if not answer["usable"]:
        found = answer.get("said") or answer["state"]
        cause, remedy = answer["cause"], answer["remedy"]
        if answer["state"] == "driver_not_loaded" and world["observed"]["driver"].get("loaded"):
            cause, remedy = NOT_REACHED
        elif answer["state"] in SAYS_LITTLE:
            cause, remedy = by_kernel(world, cause, remedy)
        checks.append(judge("gpus_on_host", False, count(served), found, cause, remedy))
        return checks
    seen = sorted(gpu["bus_id"] for gpu in answer["gpus"])
    cause = "the driver could not start %s" % (
        ", ".join(sorted(set(served) - set(seen))) or "every GPU as PCI lists it"
    )
    remedy = (
        "read 'dmesg | grep NVRM' for that address: a GPU this driver does not drive, power, BAR settings or hardware"
    )
    cause, remedy = by_kernel(world, cause, remedy)
    if not served and not seen:
        cause, remedy = (
            "there is no NVIDIA GPU that gpu-ready may use",
            "see 'lspci -nnk -d 10de:', then power and slots",
        )
    checks.append(judge("gpus_on_host", bool(served) and seen == served, count(served), count(seen), cause, remedy))
    loaded = (world["observed"]["driver"].get("loaded") or {}).get("version")
    said = sorted({gpu["driver_version"] for gpu in answer["gpus"]})
    if loaded and seen:
        cause = "NVML speaks for another driver than the loaded module"
        good = said == [loaded]
        checks.append(judge("nvml_version", good, loaded, ", ".join(said), cause, "reboot the host"))
    return checks


def check_docker(world: Dict[str, Any]) -> List[Check]:
    """Check that the engine runs and has what the mode needs."""
    engine = world["observed"].get("docker") or {}
    if not engine.get("installed"):
        return [judge("docker", False, "docker runs", "not installed", "no dockerd on this host", "install docker")]
    remedy = "read 'journalctl -u docker' and start it"
    checks = [
        judge(
            "docker", bool(engine.get("active")), "docker runs", running(engine), "the engine does not answer", remedy
        )
    ]
    if mode_of(world["expect"]) == "toolkit":
        there = bool((world["observed"].get("runtime") or {}).get("toolkit"))
        found = "there" if there else "missing"
        cause = "nvidia-container-runtime or its hook is not installed"
        remedy = "install nvidia-container-toolkit, or use nvidia_container_runtime_mode native"
        checks.append(judge("container_runtime", there, "nvidia-container-toolkit", found, cause, remedy))
    elif (world["expect"].get("runtime") or {}).get("helper"):
        volume = (world["observed"].get("runtime") or {}).get("volume") or {}
        found = volume.get("stale") or (volume.get("version") and "driver %s" % volume["version"]) or "none"
        cause = "the driver volume is not made of the installed driver"
        good = bool(volume.get("exists") and not volume.get("stale"))
        remedy = "run the playbook again: it makes the volume"
        checks.append(judge("container_runtime", good, "a driver volume", found, cause, remedy))
    elif mode_of(world["expect"]) in ("cdi", "native"):
        specs = (world["observed"].get("runtime") or {}).get("specs") or []
        fit = [spec["path"] for spec in specs if not spec.get("stale")]
        stale = ["%s (%s)" % (spec["path"], spec["stale"]) for spec in specs if spec.get("stale")]
        cause = "no CDI specification describes the GPUs as they are"
        remedy = "run the playbook again: it writes the specification"
        found = ", ".join(fit or stale) or "none"
        checks.append(judge("container_runtime", bool(fit), "a CDI specification", found, cause, remedy))
    return checks


def check_engine(world: Dict[str, Any], name: str) -> List[Check]:
    """Check that podman or containerd is there and has what the mode needs."""
    observed = world["observed"]
    engine = observed["engines"][name]
    good = bool(engine["installed"] and engine.get("active", True))
    found = "not installed" if not engine["installed"] else "there" if good else "not running"
    remedy = "install it" if not engine["installed"] else "read 'journalctl -u %s' and start it" % name
    checks = [judge(name, good, "%s is there" % name, found, "the engine does not answer", remedy)]
    if name == engines.CONTAINERD and mode_of(world["expect"]) == "toolkit":
        there = bool(observed["runtime"]["programs"].get("nvidia-container-runtime"))
        cause, remedy = "nvidia-container-runtime is not installed", "install nvidia-container-toolkit"
        checks.append(
            judge("runtime_for_" + name, there, "its runtime", "there" if there else "missing", cause, remedy)
        )
        return checks
    fit = [spec["path"] for spec in observed["runtime"]["specs"] if not spec.get("stale")]
    cause = "no CDI specification describes the GPUs as they are"
    remedy = "run the playbook again: it writes the specification"
    checks.append(judge("cdi_for_" + name, bool(fit), "a CDI specification", ", ".join(fit) or "none", cause, remedy))
    return checks


def running(engine: Dict[str, Any]) -> str:
    """Return the state of an engine in words."""
    return "docker %s" % (engine.get("version") or "") if engine.get("active") else "not running"


def check_container(world: Dict[str, Any], engine: str = engines.DOCKER) -> List[Check]:
    """Check that a container sees the wanted GPUs, each with the UUID and name that the host sees."""
    answer = world["container"] if engine == engines.DOCKER else (world.get("others") or {}).get(engine)
    host, place = world["nvml"], place_of(engine)
    if answer is None:
        found = NOT_RUN
        if engine == engines.CONTAINERD and mode_of(world["expect"]) != "toolkit":
            found += ": ctr has no CDI before 2.0; Kubernetes (CRI) has it"
        return [Check("gpus_in_" + place, None, "a container sees the GPUs", found)]
    wanted = pick(host["gpus"], world.get("chosen") or "all")
    if not answer["usable"]:
        found = answer.get("said") or answer["state"]
        return [judge("gpus_in_" + place, False, count(wanted), found, answer["cause"], answer["remedy"])]
    seen = {gpu["uuid"]: gpu for gpu in answer["gpus"]}
    missing = [gpu["uuid"] for gpu in wanted if gpu["uuid"] not in seen]
    extra = sorted(set(seen) - {gpu["uuid"] for gpu in wanted})
    parts = ["missing there: " + ", ".join(missing)] if missing else []
    parts += ["only there: " + ", ".join(extra)] if extra else []
    remedy = "run the playbook again to renew the CDI specification, or look at NVIDIA_VISIBLE_DEVICES and the runtime"
    good = len(wanted) == len(answer["gpus"])
    checks = [judge("gpus_in_" + place, good, count(wanted), count(answer["gpus"]), "; ".join(parts), remedy)]
    if good:
        same = not missing and not extra
        expected = ", ".join(gpu["uuid"] for gpu in wanted)
        checks.append(judge("uuids_in_" + place, same, expected, ", ".join(seen), "; ".join(parts), remedy))
    for gpu in wanted:
        twin = seen.get(gpu["uuid"])
        for part, label in (("name", "name"), ("bus_id", "address"), ("driver_version", "driver")):
            if twin is not None and twin[part] != gpu[part]:
                cause = "%s of GPU %d (%s) differs between host and container" % (label, gpu["index"], gpu["uuid"])
                remedy = "the container uses other driver libraries than the host: take an image without driver files"
                checks.append(judge("gpu_in_" + place, False, gpu[part], twin[part], cause, remedy))
    return checks


def check_fabricmanager(world: Dict[str, Any]) -> List[Check]:
    """Check the fabric manager on NVSwitch hosts: it runs and has exactly the driver's version."""
    switches = world["observed"]["base"].get("nvswitches") or []
    if not switches:
        return []
    state = world["fabricmanager"] or {}
    loaded = (world["observed"]["driver"].get("loaded") or {}).get("version")
    why = "%d NVSwitches need it; without it CUDA says 'system not yet initialized'" % len(switches)
    remedy = "read 'journalctl -u %s' and /var/log/fabricmanager.log, then start it" % FABRIC_MANAGER
    active = state.get("active") == "active"
    found = state.get("active") or "not installed"
    checks = [judge("fabric_manager", active, "%s is active" % FABRIC_MANAGER, found, why, remedy)]
    version = state.get("version")
    if version and loaded:
        cause = "a fabric manager of another version aborts"
        remedy = "install %s of version %s" % (FABRIC_MANAGER, loaded)
        checks.append(judge("fabric_manager_version", version == loaded, loaded, version, cause, remedy))
    return checks


def check_xids(world: Dict[str, Any]) -> List[Check]:
    """Check that the kernel's log holds no new report of a damaged or lost GPU."""
    found = world["xids"]
    if found is None:
        return [Check("xid", None, "no new serious Xid", "not looked at: the kernel's log cannot be read")]
    if not found:
        return [judge("xid", True, "no new serious Xid", "none")]
    shown = [
        "Xid %d of %s" % (number, address) for number, address in sorted({(x["number"], x["address"]) for x in found})
    ]
    cause = "; ".join(sorted({"%d: %s" % (x["number"], xid.SERIOUS[x["number"]]) for x in found}))
    remedy = "stop the GPU's users and reset it or reboot; if it comes back, have the GPU replaced"
    return [judge("xid", False, "no new serious Xid", ", ".join(shown), cause, remedy)]
