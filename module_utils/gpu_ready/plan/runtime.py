"""How containers get the GPUs: NVIDIA's toolkit, docker's own CDI, or a CDI specification of our own."""

from typing import Any, Dict, List, Optional, Tuple

from .. import catalog, cdi, daemon_json
from .. import docker as engines
from . import candidates, docker, repository
from .steps import Decision, Notice, Refusal, Step

TOOLKIT = "toolkit"
CDI = "cdi"
NATIVE = "native"
DOCKER = "docker"
REPOSITORY = "container-toolkit"
Reason = Tuple[str, str]
"""Why the engine has to do something although daemon.json may be right already: the sentence, and reload or restart."""
PACKAGES = ("nvidia-container-toolkit",)
RUNTIME = {"path": "nvidia-container-runtime"}
ARGUMENTS = {
    TOOLKIT: ["--gpus", "all"],
    CDI: ["--device", "nvidia.com/gpu=all"],
    NATIVE: ["--device", "nvidia.com/gpu=all"],
}
"""What makes ``docker run`` give a container all GPUs."""


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the runtime's steps for docker, or why this mode cannot work with this engine."""
    if DOCKER not in (wanted.get("nvidia_container_runtime_engines") or [DOCKER]):
        return Decision()
    mode = wanted.get("nvidia_container_runtime_mode") or TOOLKIT
    default = bool(wanted.get("nvidia_container_runtime_default"))
    chosen = {"mode": mode, "default": default, "args": ARGUMENTS[mode]}
    refusals = impossible(observed, wanted, mode, default)
    if refusals:
        return Decision(chosen, [], refusals)
    if mode == TOOLKIT:
        steps, reasons = toolkit_steps(observed, wanted)
    else:
        steps, refusals = specification_steps(observed, mode, choice)
        reasons = []
    step, more, warnings = configure(observed, wanted, mode, default, reasons)
    refusals += more
    return Decision(chosen, steps + ([step] if step else []), refusals, [] if refusals else warnings)


def impossible(observed: Dict[str, Any], wanted: Dict[str, Any], mode: str, default: bool) -> List[Refusal]:
    """Return why a mode cannot work here at all."""
    found = []
    version = docker.version(observed, wanted)
    if mode != TOOLKIT and version and engines.capabilities(version).cdi == "none":
        found.append(
            Refusal(
                "engine_without_cdi",
                "docker %s has no CDI, which nvidia_container_runtime_mode: %s needs (25.0 is the first that has it)"
                % (version, mode),
                "Set nvidia_container_runtime_mode: toolkit (works with every docker), or install docker 25 or newer.",
            )
        )
    if mode != TOOLKIT and default:
        found.append(
            Refusal(
                "default_runtime_impossible",
                "nvidia_container_runtime_default is true, but mode %s brings no runtime called nvidia" % mode,
                "Set nvidia_container_runtime_mode: toolkit, or nvidia_container_runtime_default: false.",
            )
        )
    return found


# --- the toolkit -------------------------------------------------------------------------------------------------


def toolkit_steps(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Tuple[List[Step], List[Reason]]:
    """Return the steps that bring the toolkit, and the reasons they give for a restart of docker."""
    runtime = observed["runtime"]
    if runtime["toolkit"]:
        late = runtime["hook_known"] is False
        why = "docker started before nvidia-container-runtime-hook came, and looks for it only then"
        return [], [(why, docker.RESTART)] if late else []
    steps = []
    third = repository.lacking(observed, [repository.params(origin(observed), wanted)])
    if third:
        steps.append(
            Step(
                "nvidia_container_runtime.repository",
                "the NVIDIA container toolkit comes from NVIDIA's repository",
                params={"repositories": third},
            )
        )
    steps.append(
        Step(
            "nvidia_container_runtime.install",
            "the NVIDIA container toolkit is not installed",
            params={"packages": [{"name": name, "version": None} for name in PACKAGES]},
        )
    )
    return steps, [("docker looks for nvidia-container-runtime-hook only when it starts", docker.RESTART)]


def origin(observed: Dict[str, Any]) -> str:
    """Return the repository of the toolkit's packages for a distribution."""
    key = observed["base"]["distro"]
    return str((catalog.distro(key).get("container_toolkit") if key else None) or REPOSITORY)


# --- CDI ---------------------------------------------------------------------------------------------------------


def specification_steps(
    observed: Dict[str, Any], mode: str, choice: Dict[str, Any]
) -> Tuple[List[Step], List[Refusal]]:
    """Return the step that writes a specification, where none fits the driver that will be there."""
    runtime = observed["runtime"]
    program = runtime["programs"]["nvidia-ctk"] if mode == CDI else None
    ours = [spec for spec in runtime["specs"] if spec["ours"]]
    others = [spec for spec in runtime["specs"] if not spec["ours"]]
    changing = driver_changes(choice)
    nodes = {"path": cdi.BOOT_NODES, "content": cdi.boot_nodes(len(candidates.served(observed)))}
    nodes_come = program is not None or runtime["boot_nodes"] == nodes["content"]
    fitting = [spec for spec in runtime["specs"] if spec["stale"] is None and (nodes_come or not spec["ours"])]
    if mode == CDI and fitting and not changing:
        return [], []
    if others and program is None:
        return [], [conflict(others[0], mode)]
    mine = others if program else ours
    if mine and mine[0] in fitting and not changing:
        return [], []
    why = "containers need a CDI specification of the GPUs"
    if mine and mine[0]["stale"]:
        why = "%s is out of date: %s" % (mine[0]["path"], mine[0]["stale"])
    elif mine and not changing:
        why = "after a reboot docker may start before the device nodes exist that %s names" % mine[0]["path"]
    elif mine:
        why = "%s names files of the driver that is replaced" % mine[0]["path"]
    path = cdi.NATIVE
    if program:
        path = mine[0]["path"] if mine else cdi.REFRESHED if runtime["refresh"] else cdi.GENERATED
    params: Dict[str, Any] = {"path": path, "generator": "nvidia-ctk" if program else "native", "remove": []}
    params["files"] = [] if program else [nodes]
    if program and ours:
        params["remove"] = [cdi.NATIVE]
    return [Step("nvidia_container_runtime.cdi_spec", why, params=params)], []


def driver_changes(choice: Dict[str, Any]) -> bool:
    """Return whether this run exchanges the driver, and with it the files that a specification names."""
    return (choice.get("driver") or {}).get("satisfied") is False


def conflict(spec: Dict[str, Any], mode: str) -> Refusal:
    """Return the refusal to put a second specification of the same devices beside somebody else's."""
    return Refusal(
        "cdi_spec_conflict",
        "%s describes %s already%s, and two specifications of the same devices make docker refuse both"
        % (spec["path"], cdi.KIND, " (but %s)" % spec["stale"] if spec["stale"] else ""),
        "Remove %s, or %s."
        % (
            spec["path"],
            "set nvidia_container_runtime_mode: cdi to use it" if mode == NATIVE else "write it again with nvidia-ctk",
        ),
    )


# --- daemon.json -------------------------------------------------------------------------------------------------


def configure(
    observed: Dict[str, Any], wanted: Dict[str, Any], mode: str, default: bool, reasons: List[Reason]
) -> Tuple[Optional[Step], List[Refusal], List[Notice]]:
    """Return the step for daemon.json: after that of docker_engine, whose options it takes as written."""
    options = wanted.get("docker_engine_daemon_options") or {}
    try:
        before = daemon_json.merge(docker.text(observed), options).after if options else docker.text(observed)
        ours = keys(before, docker.version(observed, wanted), mode, default)
        contradicted = [key for key in daemon_json.merge(before, ours).keys if said(options, key.split("."))]
        change = daemon_json.merge(before, ours)
    except daemon_json.DaemonJsonError as error:
        if (
            options
            or observed["docker"]["restart_pending"]
            or not keys(None, docker.version(observed, wanted), mode, default)
        ):
            return None, [], []  # the engine's own room has refused it, or nothing of ours has to be in the file
        return None, [docker.invalid(observed, error)], []
    if contradicted:
        return None, [contradiction(contradicted[0])], []
    reasons = reasons + ([] if change.changed or not ours else not_taken_over(observed, mode, default))
    needs = [change.activation] + [need for _, need in reasons]
    need = max(needs, key=("none", docker.RELOAD, docker.RESTART).index)
    if need == "none":
        return None, [], []
    written = ["daemon.json gets %s" % ", ".join(change.keys)] if change.keys else []
    why = "; ".join(written + [text for text, _ in reasons])
    refusals = docker.stops(observed, wanted, change.after, need, why)
    step = docker.configure("nvidia_container_runtime.configure", why, observed, change, ours, need)
    return step, refusals, docker.notices(observed, need)


def keys(text: Optional[str], version: Optional[str], mode: str, default: bool) -> Dict[str, Any]:
    """Return the keys of daemon.json that a mode needs on an engine of this version."""
    if mode == TOOLKIT:
        found: Dict[str, Any] = {"runtimes": {"nvidia": dict(RUNTIME)}}
        if default:
            found["default-runtime"] = "nvidia"
        return found
    features = daemon_json.read(text).value.get("features")
    turned_off = isinstance(features, dict) and features.get("cdi") is False
    if engines.capabilities(version).cdi == "default" and not turned_off:
        return {}
    return {"features": {"cdi": True}}


def said(options: Any, path: List[str]) -> bool:
    """Return whether the operator's own options say something about a key (or all of what is below it)."""
    for key in path:
        if not isinstance(options, dict) or key not in options:
            return False
        options = options[key]
    return True


def contradiction(key: str) -> Refusal:
    """Return the refusal where two variables want different values of one key."""
    return Refusal(
        "daemon_options_contradict",
        "docker_engine_daemon_options sets %s, and nvidia_container_runtime_* needs another value of it" % key,
        "Take %s out of docker_engine_daemon_options." % key,
    )


def not_taken_over(observed: Dict[str, Any], mode: str, default: bool) -> List[Reason]:
    """Return what daemon.json says already and the running engine does not know (a run was killed in between)."""
    info = observed["docker"]["info"]
    if info is None:
        return []
    if mode != TOOLKIT:
        return (
            [] if info["cdi_dirs"] else [("docker does not use CDI yet, although daemon.json says so", docker.RESTART)]
        )
    if "nvidia" not in info["runtimes"]:
        return [("docker does not know the runtime nvidia of daemon.json yet", docker.RELOAD)]
    if default and info["default_runtime"] != "nvidia":
        return [("docker does not use the default runtime of daemon.json yet", docker.RELOAD)]
    return []
