"""The decision: observed host and wanted state in, ordered steps or refusals out. Pure; no I/O, no distribution names.

Each room answers a Decision from what is observed, what is wanted and what earlier rooms chose; they are composed here
in the order in which the roles act.
"""

import hashlib
import json
from typing import Any, Dict, List, NamedTuple

from ..base import validation
from ..catalog import model as catalog
from ..catalog import settings
from ..cuda.cudnn import model as cudnn_names
from . import verification
from .containers import docker, engines, runtime
from .cuda import choose as cuda
from .cuda import cudnn
from .driver import activation, candidates, services
from .driver import choose as driver
from .model import Notice, Refusal, Step


class Plan(NamedTuple):
    """Everything that is decided for one host."""

    gpu_host: bool
    summary: str
    choice: Dict[str, Any]
    steps: List[Step]
    refusals: List[Refusal]
    warnings: List[Notice]
    digest: str

    @property
    def converged(self) -> bool:
        """Return whether nothing is to be done and nothing stands in the way."""
        return not self.steps and not self.refusals


def plan(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Plan:
    """Decide everything for one host: same input, same answer, also under --check."""
    if not candidates.served(observed):
        return Plan(False, nothing_to_serve(observed), {}, [], [], [], "")
    choice: Dict[str, Any] = {}
    decisions = []
    for name, room in (
        ("driver", driver.decide),
        ("activation", activation.decide),
        ("services", services.decide),
        ("cuda", cuda.decide),
        ("cudnn", cudnn.decide),
        ("docker", docker.decide),
        ("runtime", runtime.decide),
        ("engines", engines.decide),
    ):
        decision = room(observed, wanted, dict(choice))
        choice[name] = decision.choice
        decisions.append(decision)
        if name == "driver" and decision.refusals and not decision.choice:
            break  # without a driver there is nothing that the later rooms could fit
    refusals = [refusal for decision in decisions for refusal in decision.refusals]
    warnings = [warning for decision in decisions for warning in decision.warnings]
    steps = [] if refusals else repair_steps(observed) + [step for decision in decisions for step in decision.steps]
    stamp = digest(wanted, choice)
    if not refusals:
        steps += verify_steps(observed, choice, steps, stamp)
    return Plan(True, summary(observed, choice, steps, refusals), choice, steps, refusals, warnings, stamp)


def nothing_to_serve(observed: Dict[str, Any]) -> str:
    """Return why a host is left alone."""
    given = len(observed["base"]["gpus"])
    if given:
        return "%s given to virtual machines: left alone" % ("its NVIDIA GPU is" if given == 1 else "its GPUs are")
    return "no NVIDIA GPU: left alone"


def repair_steps(observed: Dict[str, Any]) -> List[Step]:
    """Return the step that finishes what a killed package run left half done."""
    broken = observed["packages"]["broken"]
    if not broken:
        return []
    names = ", ".join(broken[:3]) + (" and %d more" % (len(broken) - 3) if len(broken) > 3 else "")
    return [Step("gpu_plan.repair_packages", "an interrupted package run left %s half-configured" % names)]


def digest(wanted: Dict[str, Any], choice: Dict[str, Any]) -> str:
    """Return the fingerprint of the wanted state; a variable that a later release adds empty does not change it."""
    state = {name: value for name, value in wanted.items() if name not in settings.POLICY}
    state = {name: value for name, value in state.items() if value not in ("", None, [], {})}
    state = {name: value for name, value in state.items() if value is not False}
    chosen = choice.get("driver") or {}
    state["driver"] = {name: chosen.get(name) for name in ("source", "branch", "version", "flavour")}
    for part in ("cuda", "cudnn", "runtime"):
        state["chosen " + part] = choice.get(part) or {}
    text = json.dumps(state, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def verify_steps(observed: Dict[str, Any], choice: Dict[str, Any], steps: List[Step], stamp: str) -> List[Step]:
    """Return the proof that is due: after any change, and where no record proves the present state."""
    reason = "what was changed is proved in a container" if steps else verification.lacking(observed, stamp)
    if reason is None:
        return []
    return [Step("gpu_verify.verify", reason, params=promised(observed, choice, stamp))]


def promised(observed: Dict[str, Any], choice: Dict[str, Any], stamp: str) -> Dict[str, Any]:
    """Return what a proof compares the host with: the parameters of gpu_verify.verify, also where no proof is due."""
    chosen = choice["driver"]
    expect = {
        "driver": {name: chosen.get(name) for name in ("branch", "version", "flavour")},
        "gpus": [gpu["address"] for gpu in candidates.served(observed)],
        "nvswitches": len(observed["base"]["nvswitches"]),
        "runtime": choice.get("runtime") or {},
        "engines": choice.get("engines") or {},
    }
    return {"expect": expect, "digest": stamp}


def summary(observed: Dict[str, Any], choice: Dict[str, Any], steps: List[Step], refusals: List[Refusal]) -> str:
    """Return the plan in one sentence."""
    if refusals:
        return "; ".join(refusal.message for refusal in refusals)
    chosen = choice["driver"]
    name = "driver %s %s" % (chosen.get("version") or chosen.get("branch") or "", chosen.get("flavour") or "")
    what = "%s with %s" % (gpus_text(observed), " ".join(name.split()))
    if not steps:
        return "%s: ready and verified, nothing to do" % what
    return "%s: %d step%s to do" % (what, len(steps), "" if len(steps) == 1 else "s")


def gpus_text(observed: Dict[str, Any]) -> str:
    """Return the GPUs as a person counts them: ``2x Tesla P40, 1x Tesla T4``."""
    names = [gpu["name"] for gpu in observed["base"]["gpus"]]
    return ", ".join("%dx %s" % (names.count(name), name) for name in sorted(set(names), key=names.index)) or "none"


def row(observed: Dict[str, Any], decided: Plan) -> Dict[str, Any]:
    """Return the host's line of the table: what is wanted, and what is there of it."""
    base, state = observed["base"], observed.get("driver") or {}
    chosen = decided.choice.get("driver") or {}
    toolkits = (observed.get("cuda") or {}).get("toolkits") or []
    libraries = observed.get("cudnn") or {}
    disk, loaded = state.get("on_disk") or {}, state.get("loaded") or {}
    record = observed.get("verified") or {}
    return {
        "distribution": pretty(base),
        "gpus": gpus_text(observed),
        "driver_desired": str(chosen.get("version") or chosen.get("branch") or "") or None,
        "driver_flavour": chosen.get("flavour"),
        "driver_installed": disk.get("version"),
        "driver_loaded": loaded.get("version"),
        "driver_userspace": ", ".join(state.get("userspace") or []) or None,
        "cuda": ", ".join(toolkit["version"] for toolkit in toolkits) or None,
        "cudnn": cudnn_names.format_versions(libraries),
        "docker_runtime": (decided.choice.get("runtime") or decided.choice.get("engines") or {}).get("mode"),
        "verified": record.get("time") if record and verification.lacking(observed, decided.digest) is None else None,
        "why": decided.summary,
    }


def pretty(base: Dict[str, Any]) -> str:
    """Return the distribution as the table names it."""
    system = base["os"]
    known = catalog.distro(base["distro"])["pretty"] if base["distro"] else system.get("pretty") or system.get("id")
    return str(known).split(" (")[0]  # the code name would only widen the column


def as_dict(decided: Plan) -> Dict[str, Any]:
    """Return the plan as plain values, without the parameters (those are :func:`todo`)."""
    return {
        "gpu_host": decided.gpu_host,
        "converged": decided.converged,
        "summary": decided.summary,
        "choice": decided.choice,
        "refusals": [dict(refusal._asdict()) for refusal in decided.refusals],
        "warnings": [dict(warning._asdict()) for warning in decided.warnings],
        "steps": [
            {"id": step.id, "role": step.role, "action": step.action, "why": step.why, "disruption": step.disruption}
            for step in decided.steps
        ],
        "digest": decided.digest,
    }


def todo(decided: Plan) -> Dict[str, Any]:
    """Return the parameters of each step by its id: all that roles act on."""
    return {step.id: step.params for step in decided.steps}


def diff(decided: Plan) -> List[Dict[str, str]]:
    """Return what --diff shows: the steps as text, then each file that a step writes."""
    if not decided.steps:
        return []
    lines = "".join("%s: %s [%s]\n" % (step.id, step.why, step.disruption) for step in decided.steps)
    shown = [{"before_header": "steps", "after_header": "steps", "before": "", "after": lines}]
    for step in decided.steps:
        for change in step.diff if isinstance(step.diff, list) else [step.diff] if step.diff else []:
            shown.append(
                {
                    "before_header": change["path"],
                    "after_header": change["path"],
                    "before": validation.mask_secrets(change.get("before") or ""),
                    "after": validation.mask_secrets(change.get("after") or ""),
                }
            )
    return shown
