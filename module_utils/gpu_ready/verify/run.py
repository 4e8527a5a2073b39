"""The proof that a host is a GPU node: it asks the host, has verdict.py judge, and keeps the record."""

import json
import os
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional

from ..base import files
from ..base.host import Host
from ..containers import engine as engines
from ..cuda.cudnn import model as cudnn
from ..diagnostics import kernel_log, xid
from ..facts import collect, verified
from . import compute, frameworks, nvml, requirement
from . import container as containers
from .checks import Check, reasons
from .devices import mode_of, unknown
from .verdict import FABRIC_MANAGER, Verdict, verdict


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


def look_kernel_log(host: Host) -> Optional[str]:
    """Return the kernel's log of this boot, None where no program gives it."""
    for argv in (
        ["dmesg"],
        ["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager", "--output", "short-monotonic"],
    ):
        result = host.run(argv, timeout=30.0)
        if result.rc == 0:
            return result.out
    return None


def known_xids(record: Optional[Dict[str, Any]], boot_id: Optional[str]) -> Dict[str, int]:
    """Return the Xids that an earlier green verification of this boot already counted."""
    if not record or record.get("boot_id") != boot_id:
        return {}
    return dict(record.get("xids") or {})


class Wish(NamedTuple):
    """How to verify: the variables of the role, in its words."""

    image: str
    devices: str = "all"
    timeout: float = containers.TIMEOUT
    compute: bool = True
    framework: str = frameworks.NONE
    framework_image: str = ""


class Proof(NamedTuple):
    """A finished verification: the world it saw, the verdict and the record to keep."""

    observed: Dict[str, Any]
    nvml: Dict[str, Any]
    container: Optional[Dict[str, Any]]
    verdict: Verdict
    record: Dict[str, Any]


def prove(host: Host, expect: Dict[str, Any], digest: str, wish: Wish) -> Proof:
    """Look at the host again, ask NVML and a container of each engine, let the GPUs compute, and judge."""
    observed = collect.look(host)
    answer = nvml.as_dict(nvml.look(host))
    log = look_kernel_log(host)
    found = None if log is None else xid.serious(xid.read(log))
    known = known_xids(observed.get("verified"), observed["base"]["boot_id"])
    fresh = None if found is None else [dict(item._asdict()) for item in xid.fresh(found, known)]
    world: Dict[str, Any] = {
        "observed": observed,
        "expect": expect,
        "smi": host.which("nvidia-smi"),
        "nvml": answer,
        "chosen": wish.devices,
        "fabricmanager": look_fabricmanager(host, observed["packages"]["installed"])
        if observed["base"]["nvswitches"]
        else None,
        "xids": fresh,
        "kernel": kernel_log.why(log or ""),
    }
    if wish.compute and answer["usable"]:
        world["compute"] = compute.look(host)
        world["mig"] = compute.look_mig(host, world["compute"], answer["gpus"])
    world.update(look_containers(host, world, wish))
    judged = verdict(world)
    counted = xid.counts(found or []) if judged.ok else known
    shown = world["container"] or next(iter(world["others"].values()), None)
    return Proof(observed, answer, shown, judged, record(observed, answer, expect, digest, judged, counted))


def look_containers(host: Host, world: Dict[str, Any], wish: Wish) -> Dict[str, Any]:
    """Return what containers saw and computed, by engine; none is started for GPUs that are not there."""
    gpus, expect = world["nvml"]["gpus"], world["expect"]
    found: Dict[str, Any] = {"container": None, "others": {}, "computed": {}, "requirements": {}, "framework": None}
    if world["nvml"]["usable"] and unknown(gpus, wish.devices):
        return found
    for engine in containers.usable(host, world["observed"], expect):
        args = containers.args_for(host, engine, expect, wish.devices, gpus)
        if args is None:
            continue
        seen = containers.look(host, engine, wish.image, args, wish.timeout)
        found["requirements"][engine] = requirement.look(host, engine, wish.image)
        if engine == engines.DOCKER:
            found["container"] = seen
        else:
            found["others"][engine] = seen
        if wish.compute and seen["usable"]:
            done = containers.run_in(host, engine, wish.image, args, ["python3"] + compute.program(), compute.TIMEOUT)
            found["computed"][engine] = compute.read(done)
        if wish.framework != frameworks.NONE and found["framework"] is None:
            image = wish.framework_image or frameworks.IMAGES[wish.framework]
            command = ["python3", "-c", frameworks.PROGRAMS[wish.framework]]
            done = containers.run_in(host, engine, image, args, command, wish.timeout)
            found["framework"] = frameworks.read(wish.framework, image, done)
    return found


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
        "checks": words(judged.checks),
    }


def words(checks: List[Check]) -> Dict[str, str]:
    """Return each check by its name: ok, red, or why it was not made; a red one hides others of its name."""
    found: Dict[str, str] = {}
    for check in sorted(checks, key=lambda one: one.ok is False):
        found[check.name] = check.found if check.ok is None else "ok" if check.ok else "red"
    return found


def keep(value: Dict[str, Any], path: str = verified.PATH) -> None:
    """Write the record."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.write_atomic(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8"), 0o644)


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
