"""What docker gives back where it is no longer among the engines that are to have the GPUs: our keys of daemon.json."""

from typing import Any, Dict, List

from ...containers.daemon_json import merge as daemon_json
from ..model import Decision
from . import docker, runtime_switch


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], leaving: runtime_switch.Leaving) -> Decision:
    """Return the steps that take our work from docker; ``leaving``: what no engine lives by any more."""
    engine = observed["docker"]
    packages = [package for step in leaving.steps for package in step.params["packages"]]
    noted = observed["runtime"]["noted"]["keys"]
    try:
        before = docker.text(observed)
        back = runtime_switch.withdraw(before, noted, {}, docker.options(observed, wanted), False)
        change = daemon_json.merge(before, back.set, back.unset)
    except daemon_json.DaemonJsonError as error:
        ours = set(noted) & set(runtime_switch.POINTERS)
        return Decision({}, [], [docker.invalid(observed, error)]) if ours else as_it_is(leaving)
    if packages and runtime_switch.names_nvidia(change.after):
        return Decision({}, [], [runtime_switch.without_program(engine["daemon_json"]["path"])])
    reasons: List[runtime_switch.Reason] = []
    if engine["info"] and not leaving.observed["runtime"]["toolkit"]:
        reasons = runtime_switch.remembered(engine, change.after, True)
    need = activation(engine, change, bool(back.unset or reasons))
    if not change.changed and need == "none":
        return as_it_is(leaving)
    why = "docker is no longer among nvidia_container_runtime_engines: "
    why += "; ".join(["daemon.json loses %s" % ", ".join(change.keys)] * change.changed + [text for text, _ in reasons])
    step = docker.configure("nvidia_container_runtime.configure", why, observed, change, back.set, need)
    step.params["daemon_json"]["unset"] = back.unset
    refusals = leaving.refusals + docker.stops(observed, wanted, change.after, need, why)
    return Decision({}, leaving.steps + [step], refusals, [] if refusals else docker.notices(observed, need))


def as_it_is(leaving: runtime_switch.Leaving) -> Decision:
    """Return the decision where docker itself has nothing to give back."""
    return Decision({}, list(leaving.steps), list(leaving.refusals))


def activation(engine: Dict[str, Any], change: daemon_json.DaemonJsonChange, forgets: bool) -> str:
    """Return what docker needs to take the change over; one that does not run reads the file when it starts."""
    if not engine["active"]:
        return "none"
    return docker.RESTART if forgets else change.activation
