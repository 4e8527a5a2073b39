"""What containerd has to be told, and what that does to running containers."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...containers.containerd import config
from ..model import CONTAINERD_RESTART, Refusal, Step


class Asked(NamedTuple):
    """The step for containerd's files, or why they cannot carry our keys."""

    step: Optional[Step]
    refusals: List[Refusal]


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], mode: str) -> Asked:
    """Return the step that makes containerd know the GPUs in a mode, or forget them (``config.NONE``)."""
    engine = observed["engines"]["containerd"]
    if mode == config.NONE:
        return leave(engine, wanted)
    default = bool(wanted.get("nvidia_container_runtime_default"))
    refusals = impossible(engine, mode, default)
    if refusals:
        return Asked(None, refusals)
    from ...containers.containerd import edits

    try:
        change = edits.plan_edits(version(engine), files(engine), mode, default, record(engine))
    except config.ConfigError as error:
        return Asked(None, [Refusal(error.code, error.problem, error.remedy)])
    if change.edits:
        why = "containerd's configuration gets %s" % ", ".join(change.keys)
    elif engine["pending"]:
        why = "an interrupted run changed containerd's configuration and did not restart it"
    elif not engine["active"]:
        why = "containerd is installed, but does not run"
    else:
        return Asked(None, [])
    return asked(engine, wanted, mode, default, change, why)


def leave(engine: Dict[str, Any], wanted: Dict[str, Any]) -> Asked:
    """Return the step that takes our keys back where containerd is no longer among the engines."""
    if not engine["installed"] or engine["rancher"]:
        return Asked(None, [])
    ours = engine["record"] or [path for path, _ in engine["files"] if path == config.DROP_IN]
    if not ours and not engine["pending"]:
        return Asked(None, [])
    from ...containers.containerd import edits

    try:
        change = edits.plan_removal(files(engine), engine["before"], engine["after"], record(engine))
    except config.ConfigError as error:
        return Asked(None, [Refusal(error.code, error.problem, error.remedy)])
    due = engine["active"] and engine["pending"]
    if not change.edits and not due:
        return Asked(None, [])
    why = "containerd is no longer among nvidia_container_runtime_engines: "
    why += "its configuration loses %s" % ", ".join(change.keys) if change.edits else "it was not restarted since"
    return asked(engine, wanted, config.NONE, False, change, why)


def asked(
    engine: Dict[str, Any], wanted: Dict[str, Any], mode: str, default: bool, change: config.ContainerdChange, why: str
) -> Asked:
    """Return the step for a change, or why containerd may not restart for it."""
    shown: Any = [{"path": edit.path, "before": edit.before, "after": edit.after} for edit in change.edits]
    params = {"mode": mode, "default": default}
    restart = engine["active"] and bool(change.edits or engine["pending"])
    step = Step(
        "nvidia_container_runtime.containerd",
        why + ("; its restart leaves running containers alone" if restart and engine["keeps_containers"] else ""),
        CONTAINERD_RESTART if restart else "none",
        dict(params, state="restarted" if restart else "started" if mode != config.NONE else ""),
        shown or None,
    )
    return Asked(step, ends_containers(engine, wanted, why) if restart else [])


def version(engine: Dict[str, Any]) -> Tuple[int, ...]:
    """Return the version; one that nobody tells is taken for the oldest, which gets what all understand."""
    return tuple(engine["version"] or (1, 6))


def files(engine: Dict[str, Any]) -> List[config.ConfigFile]:
    """Return the observed files of the configuration."""
    return [config.ConfigFile(path, text) for path, text in engine["files"]]


def record(engine: Dict[str, Any]) -> config.KeyValues:
    """Return what the manifest says of our keys in config.toml."""
    return [(tuple(path), value) for path, value in engine["record"]]


def impossible(engine: Dict[str, Any], mode: str, default: bool) -> List[Refusal]:
    """Return why this containerd is not ours to configure."""
    if engine["rancher"]:
        name = engine["rancher"].split("/")[-2]
        return [
            Refusal(
                "containerd_of_rancher",
                "%s has a containerd of its own here (%s) and writes its configuration anew at each start"
                % (name, engine["rancher"]),
                "take containerd out of nvidia_container_runtime_engines and restart %s after the driver and "
                "nvidia-container-toolkit are there: it finds nvidia-container-runtime by itself; for more, write its "
                "etc/containerd/config.toml.tmpl" % name,
            )
        ]
    if not engine["installed"]:
        return [
            Refusal(
                "containerd_missing",
                "containerd is not installed, and nvidia_container_runtime_engines names it",
                "install the package containerd (or containerd.io), or take containerd out of "
                "nvidia_container_runtime_engines",
            )
        ]
    if default and mode != "toolkit":
        return [
            Refusal(
                "default_runtime_impossible",
                "nvidia_container_runtime_default is true, but mode %s brings no runtime called nvidia" % mode,
                "set nvidia_container_runtime_mode: toolkit, or nvidia_container_runtime_default: false",
            )
        ]
    return []


def ends_containers(engine: Dict[str, Any], wanted: Dict[str, Any], why: str) -> List[Refusal]:
    """Return the refusal of a restart that would end running GPU containers and that nobody allowed."""
    names = engine["gpu_containers"]
    if engine["keeps_containers"] or not names or wanted.get("docker_engine_restart_ok"):
        return []
    return [
        Refusal(
            "gpu_containers_running",
            "containerd must restart (%s), and since its unit has not KillMode=process that would end the running GPU "
            "container%s %s" % (why, "" if len(names) == 1 else "s", ", ".join(names)),
            "stop them, set KillMode=process in the unit, or allow it with docker_engine_restart_ok: true",
        )
    ]
