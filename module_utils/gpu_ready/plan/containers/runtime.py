"""How docker's containers get the GPUs: NVIDIA's toolkit, docker's own CDI, or what we make of the installed driver.

Mode ``native`` is a CDI specification of our own, and on engines without CDI a driver volume with a program that prints
docker's arguments.
"""

from typing import Any, Dict, List, Optional, Tuple

from ...catalog import model as catalog
from ...containers import cdi, driver_volume
from ...containers import docker as engines
from ...containers.daemon_json import merge as daemon_json
from .. import repository
from ..driver import candidates
from ..model import Decision, Notice, Refusal, Step
from . import cdi_versions, docker, runtime_switch
from . import docker_permissions as docker_leaves

TOOLKIT = "toolkit"
CDI = "cdi"
NATIVE = "native"
VOLUME = "volume"
DOCKER = "docker"
REPOSITORY = "container-toolkit"
Reason = runtime_switch.Reason
PACKAGES = ("nvidia-container-toolkit",)
RUNTIME = {"path": "nvidia-container-runtime"}
ARGUMENTS = {
    TOOLKIT: ["--gpus", "all"],
    CDI: ["--device", "nvidia.com/gpu=all"],
    VOLUME: [],
}
"""What makes ``docker run`` give a container all GPUs; with a volume it is what the helper prints."""


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the runtime's steps for docker, or why this mode cannot work with this engine."""
    if DOCKER not in names(wanted):
        return docker_leaves.decide(observed, wanted, leave(observed, wanted))
    mode = wanted.get("nvidia_container_runtime_mode") or TOOLKIT
    default = bool(wanted.get("nvidia_container_runtime_default"))
    way = way_of(mode, docker.version(observed, wanted))
    chosen: Dict[str, Any] = {"mode": mode, "default": default, "args": ARGUMENTS[way]}
    if way == VOLUME:
        chosen["helper"] = driver_volume.HELPER
    migration = runtime_switch.migrate(observed, wanted)
    refusals = impossible(observed, wanted, mode, default) + migration.refusals
    if refusals:
        return Decision(chosen, [], refusals)
    leaving = leave(observed, wanted)
    observed = leaving.observed
    reasons: List[Reason] = []
    if way == TOOLKIT:
        steps, reasons = toolkit_steps(observed, wanted)
    elif way == VOLUME:
        steps, refusals = volume_steps(observed, choice)
    else:
        steps, refusals = specification_steps(observed, wanted, mode, choice)
    step, more, warnings = configure(observed, wanted, way, default, reasons, bool(migration.steps))
    refusals += leaving.refusals + more
    steps = migration.steps + leaving.steps + steps + ([step] if step else [])
    return Decision(chosen, steps, refusals, [] if refusals else migration.warnings + warnings)


def way_of(mode: str, version: Optional[str]) -> str:
    """Return the way of a mode on an engine of this version: toolkit, CDI specification, or driver volume."""
    if mode == NATIVE:
        return VOLUME if engines.capabilities(version).cdi == "none" else CDI
    return mode


def names(wanted: Dict[str, Any]) -> List[str]:
    """Return the engines that are to have the GPUs."""
    return list(wanted.get("nvidia_container_runtime_engines") or [DOCKER])


def leave(observed: Dict[str, Any], wanted: Dict[str, Any]) -> runtime_switch.Leaving:
    """Return what no engine of this host lives by any more, and the host as it is without; for all engines at once."""
    mode = wanted.get("nvidia_container_runtime_mode") or TOOLKIT
    way = way_of(mode, docker.version(observed, wanted))
    mine = used(mode, way) if DOCKER in names(wanted) else []
    mine += [cdi.REFRESH_OLD] if cdi_versions.too_old(observed, wanted) else []
    return runtime_switch.leave(observed, wanted, mode, mine + shared(wanted, mode, way))


def used(mode: str, way: str) -> List[str]:
    """Return the files and folders of ours that docker lives by in a mode."""
    if way == TOOLKIT:
        return []
    mine = [driver_volume.ROOT] if way == VOLUME else [cdi.NATIVE, cdi.GENERATED, cdi.REFRESHED]
    return mine + [cdi.BOOT_NODES] + ([driver_volume.HELPER] if mode == NATIVE else [])


def shared(wanted: Dict[str, Any], mode: str, way: str) -> List[str]:
    """Return the files of ours that other engines live by, whatever docker does."""
    there = names(wanted)
    if "podman" not in there and ("containerd" not in there or mode == TOOLKIT):
        return []
    specifications = [cdi.NATIVE, cdi.GENERATED, cdi.REFRESHED]
    # docker's drop-in makes the device nodes where docker has the same specification, nvidia-ctk in mode toolkit.
    return specifications + ([] if mode == TOOLKIT or (DOCKER in there and way == CDI) else list(cdi.NODES))


def impossible(observed: Dict[str, Any], wanted: Dict[str, Any], mode: str, default: bool) -> List[Refusal]:
    """Return why a mode cannot work here at all."""
    found = []
    version = docker.version(observed, wanted)
    if mode == CDI and version and engines.capabilities(version).cdi == "none":
        found.append(
            Refusal(
                "engine_without_cdi",
                "docker %s has no CDI, which nvidia_container_runtime_mode: %s needs (25.0 is the first that has it)"
                % (version, mode),
                "set nvidia_container_runtime_mode: toolkit or native (they work with every docker), or install docker "
                "25 or newer",
            )
        )
    if mode != TOOLKIT and default:
        found.append(
            Refusal(
                "default_runtime_impossible",
                "nvidia_container_runtime_default is true, but mode %s brings no runtime called nvidia" % mode,
                "set nvidia_container_runtime_mode: toolkit, or nvidia_container_runtime_default: false",
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
    observed: Dict[str, Any],
    wanted: Dict[str, Any],
    mode: str,
    choice: Dict[str, Any],
    files: Optional[List[Dict[str, str]]] = None,
) -> Tuple[List[Step], List[Refusal]]:
    """Return the step that writes a specification, where none fits the driver that will be there.

    ``files``: the small files that it needs beside it, docker's where none are given.
    """
    runtime = observed["runtime"]
    program = runtime["programs"]["nvidia-ctk"] if mode == CDI else None
    ours = [spec for spec in runtime["specs"] if spec["ours"]]
    others = [spec for spec in runtime["specs"] if not spec["ours"]]
    changing = driver_changes(choice)
    old = cdi_versions.too_old(observed, wanted)
    files = own_files(observed, mode) if files is None else files
    files = old_files(runtime["refresh"], old) if program else files
    files_there = not lacking_files(observed, files)
    fitting = [
        spec
        for spec in runtime["specs"]
        if spec["stale"] is None
        and (files_there or not (spec["ours"] or program))
        and not (old and cdi_versions.is_new(spec))
    ]
    doubled = bool(ours and program and runtime["refresh"])  # the toolkit's service writes, or will write, another
    if mode == CDI and len(runtime["specs"]) == 1 and fitting and not changing and not doubled:
        return [], []
    if others and program is None or len(others) > 1:
        return [], [conflict(others[0], mode, old)]
    mine = others if program else ours
    if mine and mine[0] in fitting and not changing and not (program and ours):
        return [], []
    why = "containers need a CDI specification of the GPUs"
    if mine and mine[0]["stale"]:
        why = "%s is out of date: %s" % (mine[0]["path"], mine[0]["stale"])
    elif mine and old and cdi_versions.is_new(mine[0]):
        why = "%s asks for CDI %s, which %s does not read" % (mine[0]["path"], mine[0]["format"], old)
    elif mine and changing:
        why = "%s names files of the driver that is replaced" % mine[0]["path"]
    elif mine and ours and others:
        why = "%s and %s describe the same devices, and docker refuses both" % (ours[0]["path"], others[0]["path"])
    elif doubled and not others:
        why = (
            "%s and what nvidia-cdi-refresh writes describe the same devices, and engines refuse both" % ours[0]["path"]
        )
    elif mine:
        why = because_of_files(observed, files, mine[0]["path"])
    path = cdi.NATIVE
    if program:
        path = mine[0]["path"] if mine else cdi.REFRESHED if runtime["refresh"] else cdi.GENERATED
    params: Dict[str, Any] = {"path": path, "generator": "nvidia-ctk" if program else "native", "remove": []}
    params["files"] = files
    params["feature_flags"] = list(cdi.OLD_FEATURES) if program and old else []
    if program and ours:
        params["remove"] = [cdi.NATIVE]
    return [Step("nvidia_container_runtime.cdi_spec", why, params=params)], []


def own_files(observed: Dict[str, Any], mode: str) -> List[Dict[str, str]]:
    """Return the small files that our own specification or volume needs beside it."""
    content = cdi.boot_nodes(len(candidates.served(observed)))
    files = [{"path": cdi.BOOT_NODES, "content": content, "mode": "0644"}]
    if mode == NATIVE:
        files.append({"path": driver_volume.HELPER, "content": driver_volume.HELPER_TEXT, "mode": "0755"})
    return files


def old_files(refreshed: bool, old: Optional[str]) -> List[Dict[str, str]]:
    """Return the file that has the toolkit's own service write what an old engine reads too."""
    if not refreshed or not old:
        return []
    return [{"path": cdi.REFRESH_OLD, "content": cdi.REFRESH_OLD_TEXT, "mode": "0644"}]


def lacking_files(observed: Dict[str, Any], files: List[Dict[str, str]]) -> List[str]:
    """Return which of those files are not there as they should be."""
    there = {
        cdi.BOOT_NODES: observed["runtime"]["boot_nodes"],
        driver_volume.HELPER: observed["runtime"]["helper"],
        cdi.REFRESH_OLD: observed["runtime"]["refresh_old"],
    }
    there.update(observed["engines"]["nodes"])
    return [file["path"] for file in files if there.get(file["path"]) != file["content"]]


def because_of_files(observed: Dict[str, Any], files: List[Dict[str, str]], named: str) -> str:
    """Return the sentence for small files that are not there as they should be."""
    lacking = lacking_files(observed, files)
    if cdi.REFRESH_OLD in lacking:
        return "nvidia-cdi-refresh may write %s anew in a version of CDI that an engine here does not read" % named
    if [path for path in lacking if path != driver_volume.HELPER]:
        return "after a reboot containers may start before the device nodes exist that %s names" % named
    return "%s, which prints docker's arguments, is not there as it should be" % driver_volume.HELPER


def volume_steps(observed: Dict[str, Any], choice: Dict[str, Any]) -> Tuple[List[Step], List[Refusal]]:
    """Return the step that makes the driver volume, where none fits the driver that will be there."""
    volume = observed["runtime"]["volume"]
    files = own_files(observed, NATIVE)
    if volume["exists"] and driver_volume.ROOT not in observed["runtime"]["noted"]["folders"]:
        return [], [foreign_volume()]
    why = "containers of an engine without CDI need the driver's files under a stable path"
    if volume["stale"]:
        why = "%s is out of date: %s" % (driver_volume.ROOT, volume["stale"])
    elif volume["exists"] and driver_changes(choice):
        why = "%s holds the files of the driver that is replaced" % driver_volume.ROOT
    elif volume["exists"] and lacking_files(observed, files):
        why = because_of_files(observed, files, driver_volume.HELPER)
    elif volume["exists"]:
        return [], []
    return [Step("nvidia_container_runtime.volume", why, params={"files": files})], []


def foreign_volume() -> Refusal:
    """Return the refusal to write into a folder that somebody else made."""
    return Refusal(
        "driver_volume_conflict",
        "%s is there already, and gpu-ready did not make it" % driver_volume.ROOT,
        "move it away, or set nvidia_container_runtime_mode: toolkit",
    )


def driver_changes(choice: Dict[str, Any]) -> bool:
    """Return whether this run exchanges the driver, and with it the files that a specification names."""
    return (choice.get("driver") or {}).get("satisfied") is False


def conflict(spec: Dict[str, Any], mode: str, old: Optional[str] = None) -> Refusal:
    """Return the refusal to put a second specification of the same devices beside somebody else's."""
    but = spec["stale"]
    if old and not but and cdi_versions.is_new(spec):
        but = "for CDI %s, which %s does not read" % (spec["format"], old)
    return Refusal(
        "cdi_spec_conflict",
        "%s describes %s already%s, and two specifications of the same devices make docker refuse both"
        % (spec["path"], cdi.KIND, " (but %s)" % but if but else ""),
        "remove %s, or %s"
        % (
            spec["path"],
            "set nvidia_container_runtime_mode: cdi to use it" if mode == NATIVE else "write it again with nvidia-ctk",
        ),
    )


# --- daemon.json -------------------------------------------------------------------------------------------------


def configure(
    observed: Dict[str, Any],
    wanted: Dict[str, Any],
    way: str,
    default: bool,
    reasons: List[Reason],
    migrating: bool = False,
) -> Tuple[Optional[Step], List[Refusal], List[Notice]]:
    """Return the step for daemon.json: after that of docker_engine, whose options it takes as written."""
    options = docker.options(observed, wanted)
    version = docker.version(observed, wanted)
    try:
        before = daemon_json.merge(docker.text(observed), options).after if options else docker.text(observed)
        ours = keys(before, version, way, default)
        contradicted = [key for key in daemon_json.merge(before, ours).keys if said(options, key.split("."))]
        noted = observed["runtime"]["noted"]["keys"]
        back = runtime_switch.withdraw(before, noted, ours, options, migrating and way != TOOLKIT)
        ours = runtime_switch.together(back.set, ours)
        change = daemon_json.merge(before, ours, back.unset)
    except daemon_json.DaemonJsonError as error:
        if options or observed["docker"]["restart_pending"] or not keys(None, version, way, default):
            return None, [], []  # the engine's own room has refused it, or nothing of ours has to be in the file
        return None, [docker.invalid(observed, error)], []
    if contradicted:
        return None, [contradiction(contradicted[0])], []
    if way != TOOLKIT and not observed["runtime"]["toolkit"] and runtime_switch.names_nvidia(change.after):
        return None, [runtime_switch.without_program(observed["docker"]["daemon_json"]["path"])], []
    if [key for key in back.unset if key.partition(".")[0] in ("runtimes", "default-runtime")]:
        # On SIGHUP dockerd keeps the runtimes and the default of keys that are gone from the file.
        reasons = reasons + [("docker forgets a runtime only when it starts", docker.RESTART)]
    elif not change.changed:
        reasons = reasons + not_taken_over(observed, way, default, before)
    needs = [change.activation] + [need for _, need in reasons]
    need = max(needs, key=("none", docker.RELOAD, docker.RESTART).index)
    if need == "none":
        return None, [], []
    lost = [key for key in change.keys if key in back.unset]
    gained = [key for key in change.keys if key not in lost]
    written = ["daemon.json gets %s" % ", ".join(gained)] if gained else []
    written += ["%s, which gpu-ready added, leaves daemon.json" % ", ".join(lost)] if lost else []
    why = "; ".join(written + [text for text, _ in reasons])
    refusals = docker.stops(observed, wanted, change.after, need, why)
    step = docker.configure("nvidia_container_runtime.configure", why, observed, change, ours, need)
    step.params["daemon_json"]["unset"] = back.unset
    return step, refusals, docker.notices(observed, need)


def keys(text: Optional[str], version: Optional[str], way: str, default: bool) -> Dict[str, Any]:
    """Return the keys of daemon.json that a way needs on an engine of this version."""
    if way == VOLUME:
        return {}
    if way == TOOLKIT:
        found: Dict[str, Any] = {"runtimes": {"nvidia": dict(RUNTIME)}}
        if default:
            found["default-runtime"] = "nvidia"
        return found
    features = daemon_json.parse(text).value.get("features")
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
        "take %s out of docker_engine_daemon_options" % key,
    )


def not_taken_over(observed: Dict[str, Any], way: str, default: bool, text: Optional[str]) -> List[Reason]:
    """Return what daemon.json says and the running engine does not know yet (a run was killed in between)."""
    info = observed["docker"]["info"]
    if info is None:
        return []
    if way == TOOLKIT:
        if "nvidia" not in info["runtimes"]:
            return [("docker does not know the runtime nvidia of daemon.json yet", docker.RELOAD)]
        if default and info["default_runtime"] != "nvidia":
            return [("docker does not use the default runtime of daemon.json yet", docker.RELOAD)]
    elif not info["cdi_dirs"] and keys(text, observed["docker"]["version"], way, default):
        return [("docker does not use CDI yet, although daemon.json says so", docker.RESTART)]
    return runtime_switch.remembered(observed["docker"], text, way != TOOLKIT)
