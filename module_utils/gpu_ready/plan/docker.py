"""Whether docker is to be installed, which options its daemon.json gets, and what that does to running containers."""

from typing import Any, Dict, List, Optional

from .. import catalog, daemon_json, docker
from . import repository
from .steps import DOCKER_RELOAD, DOCKER_RESTART, NONE, Decision, Notice, Refusal, Step

RELOAD = "reload"
RESTART = "restart"
DISRUPTION = {"none": NONE, RELOAD: DOCKER_RELOAD, RESTART: DOCKER_RESTART}
SERVICE = "docker"


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the engine's steps, or why it cannot be made ready."""
    if SERVICE not in (wanted.get("nvidia_container_runtime_engines") or [SERVICE]):
        return Decision()
    engine = observed["docker"]
    steps: List[Step] = []
    if not engine["installed"]:
        if wanted.get("docker_engine_source") == "none":
            return Decision({}, [], [missing()])
        entry = source(observed, wanted)
        if not entry:
            return Decision({}, [], [unknown(observed, wanted)])
        third = [repository.params(name, wanted) for name in [entry.get("repository")] if name]
        refusals = repository.keyless(third)
        if refusals:
            return Decision({}, [], refusals)
        third = repository.lacking(observed, third)
        if third:
            reason = "docker comes from %s" % third[0]["url"]
            steps.append(Step("docker_engine.repository", reason, params={"repositories": third}))
        steps.append(
            Step(
                "docker_engine.install",
                "docker is not installed",
                params={"packages": packages(entry), "service": SERVICE},
            )
        )
    elif not engine["active"]:
        steps.append(
            Step(
                "docker_engine.install",
                "docker is installed, but does not answer on its socket",
                params={"packages": [], "service": SERVICE},
            )
        )
    options = wanted.get("docker_engine_daemon_options") or {}
    if not options and not engine["restart_pending"]:
        return Decision({}, steps)
    try:
        change = daemon_json.merge(text(observed), options)
    except daemon_json.DaemonJsonError as error:
        return Decision({}, [], [invalid(observed, error)])
    need = change.activation
    if engine["restart_pending"]:
        need = RESTART
    if need == "none":
        return Decision({}, steps)
    why = "daemon.json gets %s" % ", ".join(change.keys)
    if not change.keys:
        why = "an interrupted run changed daemon.json and did not restart docker"
    refusals = stops(observed, wanted, change.after, need, why)
    steps.append(configure("docker_engine.configure", why, observed, change, options, need))
    return Decision({}, steps, refusals, [] if refusals else notices(observed, need))


def configure(
    identity: str,
    why: str,
    observed: Dict[str, Any],
    change: daemon_json.Change,
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


def packages(entry: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the packages of an engine, with the versions that the catalog pins for systems of the past."""
    return [dict(one) if isinstance(one, dict) else {"name": one, "version": None} for one in entry["packages"]]


def offered(observed: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    """Return the docker engines that the catalog knows for the distribution, the preferred one first."""
    key = observed["base"]["distro"]
    return dict(catalog.distro(key).get("docker") or {}) if key else {}


def source(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Return what the catalog says of the engine to install, {} where it has none."""
    known = offered(observed)
    name = wanted.get("docker_engine_source") or "auto"
    return dict(known.get(name) or {}) if name != "auto" else dict(next(iter(known.values()), {}))


def version(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Optional[str]:
    """Return the version of the engine that is there, else of the one that will be installed (None: not known)."""
    engine = observed["docker"]
    found = engine["version"] if engine["installed"] else source(observed, wanted).get("version")
    return str(found) if found else None


# --- what stands in the way --------------------------------------------------------------------------------------


def stops(observed: Dict[str, Any], wanted: Dict[str, Any], after: str, need: str, why: str) -> List[Refusal]:
    """Return why the engine may not take over this daemon.json: flags that clash, GPU containers that would die."""
    flags = [docker.Flag(**flag) for flag in observed["docker"]["flags"]]
    found = [
        Refusal(
            "daemon_json_flag_conflict",
            "%s is set in %s and by the flag %s in %s: docker does not start with both"
            % (clash.key, observed["docker"]["daemon_json"]["path"], clash.flag, clash.file),
            "Take %s out of %s (then 'systemctl daemon-reload'), or do not ask for %s."
            % (clash.flag, clash.file, clash.key),
        )
        for clash in docker.conflicts(flags, daemon_json.read(after).value)
    ]
    return found + ends_containers(observed, wanted, need, why)


def ends_containers(observed: Dict[str, Any], wanted: Dict[str, Any], need: str, why: str) -> List[Refusal]:
    """Return the refusal of a restart that would end running GPU containers and that nobody allowed."""
    engine = observed["docker"]
    containers = engine["gpu_containers"]
    survive = (engine["info"] or {}).get("live_restore")
    if need != RESTART or not containers or survive or wanted.get("docker_engine_restart_ok"):
        return []
    return [
        Refusal(
            "gpu_containers_running",
            "docker must restart (%s), which would end the running GPU container%s %s"
            % (why, "" if len(containers) == 1 else "s", ", ".join(containers)),
            "Stop them, turn on live-restore, or allow it with docker_engine_restart_ok: true.",
        )
    ]


def notices(observed: Dict[str, Any], need: str) -> List[Notice]:
    """Return a warning where a restart ends containers, GPU or not."""
    info = observed["docker"]["info"] or {}
    if need != RESTART or not info.get("running") or info.get("live_restore"):
        return []
    count = info["running"]
    return [
        Notice(
            "docker_restart",
            "restarting docker ends %d running container%s" % (count, "" if count == 1 else "s"),
            "Containers with a restart policy come back by themselves; live-restore keeps all of them running.",
        )
    ]


def invalid(observed: Dict[str, Any], error: daemon_json.DaemonJsonError) -> Refusal:
    """Return the refusal to edit a daemon.json that is not strict JSON."""
    path = observed["docker"]["daemon_json"]["path"]
    return Refusal(
        "daemon_json_invalid",
        "%s, line %d, column %d: %s" % (path, error.line, error.column, error.problem),
        "Correct the file (test it with 'python3 -m json.tool %s'); gpu-ready does not edit what it cannot read."
        % path,
    )


def missing() -> Refusal:
    """Return the refusal where somebody else should have installed docker."""
    return Refusal(
        "docker_missing",
        "docker is not installed, and docker_engine_source is none",
        "Install docker, or set docker_engine_source: auto.",
    )


def unknown(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Refusal:
    """Return the refusal where the catalog knows no such docker for the distribution."""
    known = offered(observed)
    name = observed["base"]["distro"] or observed["base"]["os"].get("id")
    if known:
        return Refusal(
            "source_impossible",
            "docker is not installed, and docker_engine_source %s does not exist for %s"
            % (wanted.get("docker_engine_source"), name),
            "Choose auto or %s, or install docker yourself and set docker_engine_source: none." % " or ".join(known),
        )
    return Refusal(
        "unknown_distribution",
        "docker is not installed, and the catalog has no docker packages for this distribution (%s)" % name,
        "Install docker yourself and set docker_engine_source: none.",
    )
