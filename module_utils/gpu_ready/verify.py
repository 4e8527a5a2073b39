"""The proof that a host is a GPU node: what must agree, what is wrong where it does not, and what helps.

``verdict`` is pure: the world as it was seen in, a list of checks out. ``prove`` asks the host and calls it.
"""

import hashlib
import json
import os
import random
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional

from . import container_engine as engines
from . import cudnn, files, messages, nvml, observe, xid
from .host import MISSING, Host, Result
from .observe import verified
from .plan import candidates as plan_candidates

CONTAINER_TIMEOUT = 300.0
"""Seconds for one container; pulling its image from a registry may be part of it."""
FABRIC_MANAGER = "nvidia-fabricmanager"
NOT_RUN = "not run"


class Check(NamedTuple):
    """One thing that must hold; ``ok`` is None where it was not looked at. A red one has cause and remedy."""

    name: str
    ok: Optional[bool]
    expected: str
    found: str
    cause: str = ""
    remedy: str = ""


class Verdict(NamedTuple):
    """All checks; green only when none is red."""

    ok: bool
    checks: List[Check]


def sentence(check: Check) -> str:
    """Return a red check in one sentence: thing, cause, remedy."""
    text = "%s: expected %s, found %s" % (check.name.replace("_", " "), check.expected, check.found)
    if check.cause:
        text += " (%s)" % check.cause
    return text + (": " + check.remedy if check.remedy else "")


def reasons(checks: List[Check]) -> List[str]:
    """Return one sentence for each red check."""
    return [sentence(check) for check in checks if check.ok is False]


# ----------------------------------------------------------------------------------------------------- the pure part


def verdict(world: Dict[str, Any]) -> Verdict:
    """Judge the world as it was seen.

    ``world`` holds ``observed`` (of observe.look), ``expect`` (the plan's parameters), ``smi`` (path or None), ``nvml``
    and ``container`` (nvml.Answer as plain values), ``others`` (the same by engine: what containers of podman and
    containerd saw), ``chosen`` (gpu_verify_devices), ``fabricmanager`` (of :func:`look_fabricmanager`), ``xids`` (new
    serious ones, None where the kernel's log could not be read).
    """
    checks = check_driver(world)
    checks += check_gpus(world)
    for engine in engine_names(world["expect"]):
        checks += check_docker(world) if engine == engines.DOCKER else check_engine(world, engine)
        checks += check_container(world, engine)
    checks += check_fabricmanager(world)
    checks += check_xids(world)
    checks.append(Check("compute", None, "a program computes on every GPU", NOT_RUN))
    return Verdict(all(check.ok is not False for check in checks), checks)


def judge(name: str, good: bool, expected: str, found: str, cause: str = "", remedy: str = "") -> Check:
    """Return a check that explains itself only when it is red."""
    return Check(name, True, expected, found) if good else Check(name, False, expected, found, cause, remedy)


def check_driver(world: Dict[str, Any]) -> List[Check]:
    """Check that loaded module, module on disk, libraries and wish are of one version."""
    state = world["observed"]["driver"]
    loaded = (state.get("loaded") or {}).get("version")
    if not loaded:
        cause, remedy = messages.SMI_STATES["driver_not_loaded"]
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
        checks.append(judge("gpus_on_host", False, count(served), found, answer["cause"], answer["remedy"]))
        return checks
    seen = sorted(gpu["bus_id"] for gpu in answer["gpus"])
    cause = "the driver could not start %s" % (
        ", ".join(sorted(set(served) - set(seen))) or "every GPU as PCI lists it"
    )
    remedy = (
        "read 'dmesg | grep NVRM' for that address: a GPU this driver does not drive, power, BAR settings or hardware"
    )
    checks.append(judge("gpus_on_host", seen == served, count(served), count(seen), cause, remedy))
    loaded = (world["observed"]["driver"].get("loaded") or {}).get("version")
    said = sorted({gpu["driver_version"] for gpu in answer["gpus"]})
    if loaded and seen:
        cause = "NVML speaks for another driver than the loaded module"
        good = said == [loaded]
        checks.append(judge("nvml_version", good, loaded, ", ".join(said), cause, "reboot the host"))
    return checks


def count(items: List[Any]) -> str:
    """Return how many GPUs, as a person says it."""
    return "%d GPU%s" % (len(items), "" if len(items) == 1 else "s")


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


def engine_names(expect: Dict[str, Any]) -> List[str]:
    """Return the engines that have to run GPU containers."""
    return [str(name) for name in (expect.get("engines") or {}).get("names") or [engines.DOCKER]]


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


def mode_of(expect: Dict[str, Any]) -> Optional[str]:
    """Return the container runtime's mode, None where the plan names none."""
    mode = (expect.get("runtime") or expect.get("engines") or {}).get("mode")
    return str(mode) if mode else None


def check_container(world: Dict[str, Any], engine: str = engines.DOCKER) -> List[Check]:
    """Check that a container sees the wanted GPUs, each with the UUID and name that the host sees."""
    docker = engine == engines.DOCKER
    answer, host = world["container"] if docker else (world.get("others") or {}).get(engine), world["nvml"]
    place = "container" if docker else engine + "_container"
    if answer is None:
        return [Check("gpus_in_" + place, None, "a container sees the GPUs", NOT_RUN)]
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


def pick(gpus: List[Dict[str, Any]], chosen: str) -> List[Dict[str, Any]]:
    """Return the GPUs that ``gpu_verify_devices`` names: all, or a list of indices and UUIDs."""
    words = device_words(chosen)
    if words == ["all"]:
        return list(gpus)
    return [gpu for gpu in gpus if str(gpu["index"]) in words or gpu["uuid"] in words]


def device_words(chosen: str) -> List[str]:
    """Return the words of ``gpu_verify_devices``."""
    return re.split(r"[,\s]+", chosen.strip()) if chosen.strip() else ["all"]


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


# ------------------------------------------------------------------------------------------------ asking the host


def run_args(expect: Dict[str, Any], chosen: str = "all") -> List[str]:
    """Return docker's arguments that give a container its GPUs: those of the plan, narrowed to the chosen devices."""
    runtime = expect.get("runtime") or {}
    given = runtime.get("args")
    return narrowed([str(word) for word in given] if given else default_args(mode_of(expect)), chosen)


def narrowed(args: List[str], chosen: str) -> List[str]:
    """Return arguments for all GPUs as those for the chosen devices."""
    words = device_words(chosen)
    if words == ["all"]:
        return args
    found: List[str] = []
    for word in args:
        if word == "all" and found and found[-1] == "--gpus":
            found.append('"device=%s"' % ",".join(words))  # the quotes are docker's: its value is a CSV record
        elif word == "nvidia.com/gpu=all" and found and found[-1] == "--device":
            found.pop()
            for name in words:
                found += ["--device", "nvidia.com/gpu=" + name]
        elif word == "NVIDIA_VISIBLE_DEVICES=all":
            found.append("NVIDIA_VISIBLE_DEVICES=" + ",".join(words))
        else:
            found.append(word)
    return found


def given_args(host: Host, expect: Dict[str, Any], chosen: str) -> List[str]:
    """Return docker's arguments for the chosen devices: of the plan, or what the driver volume's helper prints."""
    helper = (expect.get("runtime") or {}).get("helper")
    if not helper:
        return run_args(expect, chosen)
    answer = host.run([str(helper)] + device_words(chosen), timeout=60.0)
    if answer.rc != 0:
        said = last_words(answer.err) or "it said nothing"
        raise VerifyError("%s names no arguments for docker: %s." % (helper, said))
    return answer.out.split()


def default_args(mode: Optional[str]) -> List[str]:
    """Return the arguments of a mode for a plan that names none."""
    return ["--device", "nvidia.com/gpu=all"] if mode in ("cdi", "native") else ["--gpus", "all"]


def look_container(
    host: Host, image: str, args: List[str], timeout: float, name: str, engine: str = engines.DOCKER
) -> nvml.Answer:
    """Ask nvidia-smi in a container; a container that does not come back in time is removed by its name."""
    pull = engines.pull(engine, image)
    if pull:
        asked = host.run(engines.ask(engine, image), timeout=60.0)
        if asked.rc == 0 and not engines.is_there(engine, asked.rc, asked.out):
            pulled = host.run(pull, timeout=timeout)
            if pulled.rc != 0:
                return read_container(pulled)
    env = ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
    result = host.run(engines.run(engine, name, env, args, image, nvml.QUERY), timeout=timeout)
    if result.rc == 124:
        for argv in engines.remove(engine, name):
            host.run(argv, timeout=30.0)
    return read_container(result)


def look_others(host: Host, expect: Dict[str, Any], image: str, chosen: str, timeout: float) -> Dict[str, Any]:
    """Ask nvidia-smi in a container of each engine beside docker that the plan names and the host has."""
    found = {}
    for engine in engine_names(expect):
        if engine == engines.DOCKER or host.which("ctr" if engine == engines.CONTAINERD else engine) is None:
            continue
        args = narrowed(engines.gpu_args(engine, mode_of(expect) or ""), chosen)
        name = "gpu-ready-verify-%08x" % random.SystemRandom().getrandbits(32)
        found[engine] = nvml.as_dict(look_container(host, image, args, timeout, name, engine))
    return found


def read_container(result: Result) -> nvml.Answer:
    """Return what nvidia-smi said in a container, its failures explained with docker's own in mind."""
    if result.rc in (0, 14):
        return nvml.from_smi(result)._replace(how="container")
    text = "\n".join(part for part in (result.err, result.out) if part.strip())
    found = messages.explain_container(result.rc, text)
    return nvml.Answer(False, "container", [], found.code, last_words(text), found.cause, found.remedy)


def last_words(text: str) -> Optional[str]:
    """Return the line that holds the reason: docker names it last in its chain, before its hint about --help."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "docker run --help" not in line]
    lines = [line for line in lines if not line.startswith("See 'docker run")]
    reason = [
        line for line in lines if re.search(r"error|fail|could not|unresolvable|denied|Unable", line, re.IGNORECASE)
    ]
    if not lines:
        return None
    chosen = (reason or lines)[-1]
    return chosen if len(chosen) <= 400 else chosen[:200] + " ... " + chosen[-190:]


def look_fabricmanager(host: Host, installed: Dict[str, str]) -> Dict[str, Any]:
    """Return state and version of the fabric manager."""
    result = host.run(["systemctl", "is-active", FABRIC_MANAGER], timeout=20.0)
    state = result.out.strip() or None
    version = None
    for program in ("nv-fabricmanager",):
        path = host.which(program)
        if path:
            said = host.run([path, "--version"], timeout=20.0)
            match = re.search(r"(\d{3}\.\d+(?:\.\d+)?)", said.out) if said.rc == 0 else None
            version = match.group(1) if match else None
    if version is None:
        names = [name for name in installed if re.match(r"nvidia-fabric-?manager(-\d+)?$", name)]
        for name in names:
            match = re.search(r"(\d{3}\.\d+(?:\.\d+)?)", installed[name])
            version = match.group(1) if match else None
    return {"active": state if version or state == "active" else None, "version": version}


def look_xids(host: Host) -> Optional[List[xid.Xid]]:
    """Return the serious Xids of this boot, None where no program gives the kernel's log."""
    for argv in (
        ["dmesg"],
        ["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output", "short-monotonic"],
    ):
        result = host.run(argv, timeout=30.0)
        if result.rc == 0:
            return xid.serious(xid.read(result.out))
    return None


def known_xids(record: Optional[Dict[str, Any]], boot_id: Optional[str]) -> Dict[str, int]:
    """Return the Xids that an earlier green verification of this boot already counted."""
    if not record or record.get("boot_id") != boot_id:
        return {}
    return dict(record.get("xids") or {})


class Proof(NamedTuple):
    """A finished verification: the world it saw, the verdict and the record to keep."""

    observed: Dict[str, Any]
    nvml: Dict[str, Any]
    container: Optional[Dict[str, Any]]
    verdict: Verdict
    record: Dict[str, Any]


def prove(
    host: Host,
    expect: Dict[str, Any],
    digest: str,
    image: str,
    chosen: str = "all",
    timeout: float = CONTAINER_TIMEOUT,
    containers: bool = True,
) -> Proof:
    """Look at the host again, ask NVML and a container, and judge. Starts one container, writes nothing."""
    observed = observe.look(host)
    answer = nvml.as_dict(nvml.look(host))
    container = None
    docker = engines.DOCKER in engine_names(expect)
    others = look_others(host, expect, image, chosen, timeout) if containers else {}
    if containers and docker and (observed.get("docker") or {}).get("active"):
        name = "gpu-ready-verify-%08x" % random.SystemRandom().getrandbits(32)
        args = given_args(host, expect, chosen)
        container = nvml.as_dict(look_container(host, image, args, timeout, name))
    found = look_xids(host)
    before = observed.get("verified")
    known = known_xids(before, observed["base"]["boot_id"])
    fresh = None if found is None else [dict(item._asdict()) for item in xid.fresh(found, known)]
    world = {
        "observed": observed,
        "expect": expect,
        "smi": host.which("nvidia-smi"),
        "nvml": answer,
        "container": container,
        "others": others,
        "chosen": chosen,
        "fabricmanager": look_fabricmanager(host, observed["packages"]["installed"])
        if observed["base"]["nvswitches"]
        else None,
        "xids": fresh,
    }
    judged = verdict(world)
    counted = xid.counts(found or []) if judged.ok else known
    shown = container if docker else next(iter(others.values()), None)
    return Proof(observed, answer, shown, judged, record(observed, answer, expect, digest, judged, counted))


def record(
    observed: Dict[str, Any],
    answer: Dict[str, Any],
    expect: Dict[str, Any],
    digest: str,
    judged: Verdict,
    xids: Dict[str, int],
) -> Dict[str, Any]:
    """Return what the host keeps of a verification: the state it proved, or why it failed."""
    state = observed["driver"]
    return {
        "schema": verified.SCHEMA,
        "ok": judged.ok,
        "result": "verified" if judged.ok else "failed",
        "reasons": reasons(judged.checks),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "boot_id": observed["base"]["boot_id"],
        "driver": (state.get("loaded") or {}).get("version"),
        "userspace": list(state.get("userspace") or []),
        "gpus": [gpu["uuid"] for gpu in answer["gpus"]],
        "addresses": sorted(gpu["address"] for gpu in observed["base"]["gpus"]),
        "digest": digest,
        "runtime": mode_of(expect),
        "xids": xids,
        "checks": {check.name: NOT_RUN if check.ok is None else "ok" if check.ok else "red" for check in judged.checks},
    }


def keep(value: Dict[str, Any], path: str = verified.PATH) -> None:
    """Write the record."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.write_atomic(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8"), 0o644)


class VerifyError(Exception):
    """The verification could not be made; the text says thing, cause and remedy."""


IMAGE = "ubuntu:24.04"


def image_name(image: str, archive: str) -> str:
    """Return the name of the image: the given one, one made of a tarball's checksum, or the usual one."""
    if image or not archive:
        return image or IMAGE
    total = hashlib.sha256()
    try:
        with open(archive, "rb") as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                total.update(block)
    except OSError as error:
        raise VerifyError(
            "The image tarball %s is neither on the control node nor on this host: correct gpu_verify_image." % archive
        ) from error
    return "gpu-ready/verify:" + total.hexdigest()[:12]


def load_image(
    host: Host, archive: str, image: str, timeout: float = CONTAINER_TIMEOUT, engine: str = engines.DOCKER
) -> None:
    """Make the engine know ``image``, from a tarball where it does not yet; the tarball's own name does not stay."""
    asked = host.run(engines.ask(engine, image), timeout=60.0)
    if (
        engines.is_there(engine, asked.rc, asked.out)
        or asked.rc == MISSING
        or "Cannot connect to the Docker daemon" in asked.err
    ):
        return  # it is there; or no engine answers, and the verdict says so with everything else that is wrong
    if not host.exists(archive):
        raise VerifyError("The image tarball %s is not on this host: run the role gpu_verify again." % archive)
    names = host.run(engines.images(engine), timeout=60.0)
    result = host.run(engines.load(engine, archive), timeout=timeout)
    name = engines.loaded(engine, result.out + result.err) if result.rc == 0 else None
    if name is None:
        found = messages.explain_container(result.rc, result.err)
        said = last_words(result.err or result.out) or "it said nothing"
        remedy = found.remedy if found.code == "docker_not_running" else "make it with 'docker save IMAGE -o FILE.tar'"
        raise VerifyError("%s cannot load the image tarball %s (%s): %s." % (engine, archive, said, remedy))
    tagged = host.run(engines.tag(engine, name, image), timeout=60.0)
    if tagged.rc != 0:
        raise VerifyError(
            "%s cannot name the loaded image %s: %s." % (engine, image, last_words(tagged.err) or "no reason given")
        )
    known = names.out.split() + [engines.name(engine, image)]
    if names.rc == 0 and not name.startswith("sha256:") and name not in known:
        removed = host.run(engines.forget(engine, name), timeout=60.0)
        if removed.rc != 0:
            raise VerifyError(
                "%s cannot forget the tarball's name %s of the image (%s): run '%s' by hand."
                % (engine, name, last_words(removed.err) or "no reason given", " ".join(engines.forget(engine, name)))
            )


def summary(proof: Proof) -> Dict[str, Any]:
    """Return what the report keeps of a proof."""
    checks = [dict(check._asdict()) for check in proof.verdict.checks]
    return {
        "ok": proof.verdict.ok,
        "time": proof.record["time"],
        "checks": checks,
        "not_run": [check["name"] for check in checks if check["ok"] is None],
        "nvml": proof.nvml,
        "container": proof.container,
    }


def row(proof: Proof) -> Dict[str, Any]:
    """Return the columns of the table that the second look knows better than the plan did."""
    seen = proof.observed
    state = seen["driver"]
    toolkits = (seen.get("cuda") or {}).get("toolkits") or []
    libraries = seen.get("cudnn") or {}
    return {
        "driver_installed": (state.get("on_disk") or {}).get("version"),
        "driver_loaded": (state.get("loaded") or {}).get("version"),
        "driver_userspace": ", ".join(state.get("userspace") or []) or None,
        "cuda": ", ".join(toolkit["version"] for toolkit in toolkits) or None,
        "cudnn": cudnn.shown(libraries),
        "docker_runtime": proof.record["runtime"],
        "verified": proof.record["time"] if proof.verdict.ok else None,
        "why": "verified" if proof.verdict.ok else "; ".join(proof.record["reasons"]),
    }
