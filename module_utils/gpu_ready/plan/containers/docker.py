"""Which docker engine is to be there, which options its daemon.json gets, and what that does to running containers."""

from typing import Any, Dict, List, Optional

from ...containers import docker
from ...containers.daemon_json import merge as daemon_json
from ..model import DOCKER_RELOAD, DOCKER_RESTART, NONE, Decision, Notice, Refusal, Step
from . import docker_options, docker_packages

RELOAD = "reload"
RESTART = "restart"
DISRUPTION = {"none": NONE, RELOAD: DOCKER_RELOAD, RESTART: DOCKER_RESTART}


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the engine's steps, or why it cannot be made ready; none where other engines are wanted instead."""
    if "docker" not in (wanted.get("nvidia_container_runtime_engines") or ["docker"]):
        return Decision()
    outcome = docker_packages.decide(observed, wanted)
    steps, refusals, warnings = list(outcome.steps), list(outcome.refusals), list(outcome.warnings)
    if outcome.restarts:
        refusals += ends_containers(observed, wanted, RESTART, outcome.restarts, outcome.survivable)
        warnings += notices(observed, RESTART, outcome.survivable)
    configured = configuration(observed, wanted)
    steps += configured.steps
    refusals += [one for one in configured.refusals if one.code not in [said.code for said in refusals]]
    warnings += [one for one in configured.warnings if one not in warnings]
    return Decision({}, [] if refusals else steps, refusals, [] if refusals else warnings)


def configuration(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Decision:
    """Return the step that brings the engine's options into daemon.json, or why they cannot be there."""
    pending = observed["docker"]["restart_pending"]
    keys = docker_options.options(observed, wanted)
    if not keys and not pending:
        return Decision()
    try:
        change = daemon_json.merge(text(observed), keys)
    except daemon_json.DaemonJsonError as error:
        return Decision({}, [], [invalid(observed, error)])
    refusals = docker_options.refusals(wanted, daemon_json.parse(change.after).value)
    need = RESTART if pending else change.activation
    if need == "none":
        # dockerd may run since before a flag came: then it is the next start that fails.
        return Decision({}, [], refusals + clashes(observed, keys))
    why = "daemon.json gets %s" % ", ".join(change.keys)
    if not change.keys:
        why = "an interrupted run changed daemon.json and did not restart docker"
    refusals = refusals + stops(observed, wanted, change.after, need, why)
    step = configure("docker_engine.configure", why, observed, change, keys, need)
    return Decision({}, [step], refusals, notices(observed, need))


def configure(
    identity: str,
    why: str,
    observed: Dict[str, Any],
    change: daemon_json.DaemonJsonChange,
    wanted: Dict[str, Any],
    need: str,
) -> Step:
    """Return a step that writes daemon.json and makes the engine take it over."""
    path = observed["docker"]["daemon_json"]["path"]
    return Step(
        identity,
        why,
        DISRUPTION[need],
        {"daemon_json": {"path": path, "set": wanted, "unset": []}, "activation": need},
        {"path": path, "before": change.before, "after": change.after} if change.changed else None,
    )


def text(observed: Dict[str, Any]) -> Optional[str]:
    """Return the text of daemon.json (None: no file); raises DaemonJsonError for one that may not be edited."""
    found = observed["docker"]["daemon_json"]
    if found["error"]:
        raise daemon_json.DaemonJsonError(**found["error"])
    return str(found["text"]) if found["text"] is not None else None


def options(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Return all keys that the docker_engine_* variables want in daemon.json."""
    return docker_options.options(observed, wanted)


def version(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Optional[str]:
    """Return the version of the engine that will be there (None: not known)."""
    return docker_packages.version(observed, wanted)


# --- what stands in the way --------------------------------------------------------------------------------------


def stops(observed: Dict[str, Any], wanted: Dict[str, Any], after: str, need: str, why: str) -> List[Refusal]:
    """Return why the engine may not take over this daemon.json: flags that clash, GPU containers that would die."""
    return clashes(observed, daemon_json.parse(after).value) + ends_containers(observed, wanted, need, why)


def clashes(observed: Dict[str, Any], value: Dict[str, Any]) -> List[Refusal]:
    """Return a refusal for each of these keys of daemon.json that is a flag of dockerd too."""
    flags = [docker.Flag(**flag) for flag in observed["docker"]["flags"]]
    return [
        Refusal(
            "daemon_json_flag_conflict",
            "%s is set in %s and by the flag %s in %s: docker does not start with both"
            % (clash.key, observed["docker"]["daemon_json"]["path"], clash.flag, clash.file),
            "take %s out of %s (then 'systemctl daemon-reload'), or do not ask for %s"
            % (clash.flag, clash.file, clash.key),
        )
        for clash in docker.conflicts(flags, value)
    ]


def ends_containers(
    observed: Dict[str, Any], wanted: Dict[str, Any], need: str, why: str, survivable: bool = True
) -> List[Refusal]:
    """Return the refusal of a restart that would end running GPU containers and that nobody allowed.

    ``survivable``: whether live-restore would keep them.
    """
    engine = observed["docker"]
    containers = engine["gpu_containers"]
    survive = survivable and (engine["info"] or {}).get("live_restore")
    if need != RESTART or not containers or survive or wanted.get("docker_engine_restart_ok"):
        return []
    return [
        Refusal(
            "gpu_containers_running",
            "docker must restart (%s), which would end the running GPU container%s %s"
            % (why, "" if len(containers) == 1 else "s", ", ".join(containers)),
            "stop them%s, or allow it with docker_engine_restart_ok: true"
            % (", turn on live-restore" if survivable else ""),
        )
    ]


def notices(observed: Dict[str, Any], need: str, survivable: bool = True) -> List[Notice]:
    """Return a warning where a restart ends containers, GPU or not."""
    info = observed["docker"]["info"] or {}
    if need != RESTART or not info.get("running") or (survivable and info.get("live_restore")):
        return []
    count = info["running"]
    return [
        Notice(
            "docker_restart",
            "restarting docker ends %d running container%s" % (count, "" if count == 1 else "s"),
            "containers with a restart policy come back by themselves; live-restore keeps all of them running",
        )
    ]


def invalid(observed: Dict[str, Any], error: daemon_json.DaemonJsonError) -> Refusal:
    """Return the refusal to edit a daemon.json that is not strict JSON."""
    path = observed["docker"]["daemon_json"]["path"]
    return Refusal(
        "daemon_json_invalid",
        "%s: %s" % (path, error),
        "correct the file (test it with 'python3 -m json.tool %s'); gpu-ready does not edit an invalid file" % path,
    )
