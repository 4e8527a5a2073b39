"""What an earlier mode, or one of NVIDIA's abandoned products, left on a host, and what of it goes."""

import copy
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...containers import cdi, driver_volume
from ...containers.daemon_json import merge as daemon_json
from ..model import DOCKER_RESTART, NONE, Decision, Notice, Refusal, Step

TOOLKIT_PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
POINTERS = ("/runtimes/nvidia", "/default-runtime", "/features/cdi")
"""Keys of daemon.json that some mode adds, as the manifest writes them."""
DOCKER2 = "nvidia-docker2"
DOCKER1 = "nvidia-docker"
LEGACY = {DOCKER1: "nvidia-docker 1.0", DOCKER2: "nvidia-docker2"}
SERVICE = "nvidia-docker"
LEFT = ("/var/lib/nvidia-docker", "/etc/docker/plugins/nvidia-docker.spec")
"""What the service of nvidia-docker 1.0 made and its package leaves."""


Reason = Tuple[str, str]
"""Why docker has to do something although daemon.json may be right already: the sentence, and reload or restart."""


class Leaving(NamedTuple):
    """What leaves with an earlier mode: steps, refusals, and the host as later rooms of this plan find it."""

    steps: List[Step]
    refusals: List[Refusal]
    observed: Dict[str, Any]


class Back(NamedTuple):
    """Keys of daemon.json that go back to what they were: values to set again, and keys that go."""

    set: Dict[str, Any]
    unset: List[str]


# --- earlier modes -----------------------------------------------------------------------------------------------


def leave(observed: Dict[str, Any], wanted: Dict[str, Any], mode: str, used: List[str]) -> Leaving:
    """Return what of ours goes because no engine lives by it in this mode; ``used``: the files that one lives by.

    What the manifest does not list is the work of others and stays.
    """
    packages = [] if mode == "toolkit" else brought(observed)
    unused = not_used(observed, used, bool(packages), mode)
    if not unused and not packages:
        return Leaving([], [], observed)
    service = packages and observed["runtime"]["refresh"] and cdi.REFRESHED in there(observed)
    remains = [cdi.REFRESHED] if service and cdi.REFRESHED not in unused else []
    containers = observed["docker"]["gpu_containers"] if packages else []
    others = observed["engines"]["containerd"]["gpu_containers"] if packages else []
    refusals = []
    if containers and not wanted.get("docker_engine_restart_ok"):
        refusals.append(still_running(containers, "the NVIDIA container toolkit is removed, which they run by"))
    if others:
        refusals.append(never_ending(others))
    gone = ["the NVIDIA container toolkit"] * bool(packages) + sorted(unused)
    why = "another nvidia_container_runtime_mode or engine brought %s, and it is no longer needed" % ", ".join(gone)
    params = {"packages": packages, "containers": containers, "paths": sorted(unused), "remains": remains}
    step = Step("nvidia_container_runtime.cleanup", why, DOCKER_RESTART if containers else NONE, params)
    return Leaving([step], refusals, without(observed, unused | set(remains), bool(packages)))


def there(observed: Dict[str, Any]) -> "set[str]":
    """Return the files and folders of any mode that are on the host, whoever brought them."""
    runtime = observed["runtime"]
    found = {spec["path"] for spec in runtime["specs"]}
    found |= {cdi.BOOT_NODES} if runtime["boot_nodes"] is not None else set()
    found |= {driver_volume.HELPER} if runtime["helper"] is not None else set()
    found |= {cdi.REFRESH_OLD} if runtime["refresh_old"] is not None else set()
    found |= set(observed["engines"]["nodes"])
    return found | ({driver_volume.ROOT} if runtime["volume"]["exists"] else set())


def not_used(observed: Dict[str, Any], used: List[str], packages_go: bool, mode: str) -> "set[str]":
    """Return the files and folders of ours that no engine lives by."""
    noted = observed["runtime"]["noted"]
    mine = there(observed) & set(noted["files"] + noted["folders"])
    found = mine - set(used)
    if packages_go:
        # nvidia-ctk goes, and with it who would write and refresh its specifications.
        found |= mine & {cdi.GENERATED, cdi.REFRESHED, cdi.REFRESH_OLD}
    elif mode == "native":
        found |= mine & {cdi.GENERATED}  # native has a specification of its own
    if observed["runtime"]["refresh"] and not packages_go:
        found.discard(cdi.REFRESHED)  # the toolkit's own service would make it anew
    return found


def brought(observed: Dict[str, Any]) -> List[str]:
    """Return the toolkit's packages that gpu-ready brought and that are still there."""
    noted, installed = observed["runtime"]["noted"]["packages"], observed["packages"]["installed"]
    if TOOLKIT_PACKAGES[0] not in noted:
        return []
    return [name for name in TOOLKIT_PACKAGES if name in noted and name in installed]


def without(observed: Dict[str, Any], gone: "set[str]", packages_go: bool) -> Dict[str, Any]:
    """Return the host as it is after the cleanup."""
    runtime = copy.deepcopy(observed["runtime"])
    runtime["specs"] = [spec for spec in runtime["specs"] if spec["path"] not in gone]
    runtime["boot_nodes"] = None if cdi.BOOT_NODES in gone else runtime["boot_nodes"]
    runtime["refresh_old"] = None if cdi.REFRESH_OLD in gone else runtime["refresh_old"]
    runtime["helper"] = None if driver_volume.HELPER in gone else runtime["helper"]
    if driver_volume.ROOT in gone:
        runtime["volume"] = {"exists": False, "version": None, "stale": None}
    if packages_go:
        runtime.update(toolkit=False, refresh=False, programs=dict.fromkeys(runtime["programs"]))
    nodes = {path: text for path, text in observed["engines"]["nodes"].items() if path not in gone}
    return dict(observed, runtime=runtime, engines=dict(observed["engines"], nodes=nodes))


def withdraw(
    text: Optional[str], noted: Dict[str, Any], ours: Dict[str, Any], options: Dict[str, Any], legacy: bool
) -> Back:
    """Return what of ours leaves daemon.json, since neither this mode (``ours``) nor the operator's options need it.

    ``legacy``: the runtime of a package that goes with this plan is no longer there to be called.
    """
    value = daemon_json.parse(text).value
    entries = {name: entry for name, entry in noted.items() if name in POINTERS and "after" in entry}
    if legacy and "nvidia" in (value.get("runtimes") or {}):
        entries.setdefault("/runtimes/nvidia", {"after": value["runtimes"]["nvidia"], "made": ["/runtimes"]})
        if value.get("default-runtime") == "nvidia":
            entries.setdefault("/default-runtime", {"after": "nvidia"})
    back = Back({}, [])
    for pointer, entry in sorted(entries.items()):
        path = pointer.strip("/").split("/")
        have = at(value, path)
        if have is None or at(ours, path) is not None or at(options, path) is not None:
            continue
        if not daemon_json.same_value(tuple(path), have, entry["after"]):
            continue  # somebody changed it since: it is theirs
        if "before" in entry:
            put(back.set, path, entry["before"])
        else:
            parent = "/" + path[0]
            alone = len(path) == 2 and parent in entry.get("made", ()) and len(value[path[0]]) == 1
            back.unset.append(path[0] if alone else ".".join(path))
    return back


def remembered(engine: Dict[str, Any], text: Optional[str], runtimes: bool) -> List[Reason]:
    """Return what docker still lives by although daemon.json no longer names it: it forgets only when it starts.

    ``runtimes``: also a runtime that containers would have to ask for.
    """
    info, value = engine["info"], daemon_json.parse(text).value
    flags = {flag["key"] for flag in engine["flags"]}
    left = info["default_runtime"] == "nvidia" and value.get("default-runtime") != "nvidia"
    if left and "default-runtime" not in flags:
        return [("docker still uses the default runtime nvidia, which daemon.json no longer names", "restart")]
    known = "nvidia" in info["runtimes"] and "nvidia" not in (value.get("runtimes") or {})
    if known and runtimes and "runtimes" not in flags:
        return [("docker still knows the runtime nvidia, which daemon.json no longer names", "restart")]
    return []


def names_nvidia(text: str) -> bool:
    """Return whether a daemon.json makes nvidia the default runtime."""
    return bool(daemon_json.parse(text).value.get("default-runtime") == "nvidia")


def without_program(path: str) -> Refusal:
    """Return the refusal to leave a host whose containers could not start at all."""
    return Refusal(
        "default_runtime_impossible",
        "default-runtime is nvidia in %s, and this nvidia_container_runtime_mode brings no runtime of that name: no "
        "container could start" % path,
        "take default-runtime out of it (and of docker_engine_daemon_options), or set nvidia_container_runtime_mode: "
        "toolkit",
    )


def at(value: Any, path: List[str]) -> Any:
    """Return what stands at a path of nested mappings, None where nothing does."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def put(value: Dict[str, Any], path: List[str], item: Any) -> None:
    """Put an item at a path of nested mappings."""
    for key in path[:-1]:
        value = value.setdefault(key, {})
    value[path[-1]] = item


def together(first: Dict[str, Any], second: Dict[str, Any]) -> Dict[str, Any]:
    """Return two nested mappings in one; what the second says counts."""
    found = dict(first)
    for key, item in second.items():
        mine = found.get(key)
        found[key] = together(mine, item) if isinstance(mine, dict) and isinstance(item, dict) else item
    return found


def still_running(containers: List[str], cause: str) -> Refusal:
    """Return the refusal to take from running GPU containers what they live by."""
    return Refusal(
        "gpu_containers_running",
        "the GPU container%s %s run%s, and %s"
        % ("" if len(containers) == 1 else "s", ", ".join(containers), "s" if len(containers) == 1 else "", cause),
        "stop them, or allow it with docker_engine_restart_ok: true",
    )


def never_ending(containers: List[str]) -> Refusal:
    """Return the refusal to take from containers of containerd the runtime that stops and ends them too.

    Nobody can allow that: they would run on and could not be ended.
    """
    return Refusal(
        "gpu_containers_running",
        "the GPU container%s %s of containerd run%s by the NVIDIA container toolkit, which goes and without which "
        "nothing could end them"
        % ("" if len(containers) == 1 else "s", ", ".join(containers), "s" if len(containers) == 1 else ""),
        "stop them first ('kubectl drain' for those of Kubernetes), or keep nvidia_container_runtime_mode: toolkit",
    )


# --- nvidia-docker2 and nvidia-docker 1.0 ------------------------------------------------------------------------


def migrate(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Decision:
    """Return the step that takes NVIDIA's abandoned products away, or why it may not be taken."""
    installed = observed["packages"]["installed"]
    packages = [name for name in (DOCKER1, DOCKER2) if name in installed]
    legacy = observed["runtime"]["legacy"]
    if not packages and not legacy["plugin"]:
        return Decision()
    names = " and ".join("%s (%s)" % (LEGACY[name], installed[name]) for name in packages)
    if legacy["plugin"] and DOCKER1 not in packages:
        return Decision({}, [], [unpackaged(legacy["plugin"])])
    if not wanted.get("nvidia_container_runtime_migrate"):
        return Decision({}, [], [abandoned(names)])
    refusals = []
    containers = observed["docker"]["gpu_containers"]
    if containers and not wanted.get("docker_engine_restart_ok"):
        refusals.append(still_running(containers, "%s is removed, which they run by" % names))
    if legacy["containers"]:
        refusals.append(volume_used(legacy))
    step = Step(
        "nvidia_container_runtime.migrate",
        "%s is replaced: NVIDIA has abandoned it" % names,
        DOCKER_RESTART if containers else NONE,
        {
            "packages": packages,
            "containers": containers,
            "volumes": legacy["volumes"],
            "services": [SERVICE] if DOCKER1 in packages else [],
            "left": list(LEFT) if DOCKER1 in packages else [],
            # apt calls it no longer needed, and would remove it at the next occasion.
            "keep": [name for name in TOOLKIT_PACKAGES[:1] if name in installed and observed["apt"]["sources"]],
            "daemon_json": observed["docker"]["daemon_json"]["path"],
        },
    )
    return Decision({}, [step], refusals, [conffile(observed)] if DOCKER2 in packages else [])


def abandoned(names: str) -> Refusal:
    """Return the refusal to work beside a product that nobody maintains, or to replace it unasked."""
    return Refusal(
        "legacy_nvidia_docker",
        "%s is installed, which NVIDIA has abandoned and which owns parts of docker's configuration" % names,
        "allow its replacement with nvidia_container_runtime_migrate: true, or remove it yourself",
    )


def unpackaged(plugin: str) -> Refusal:
    """Return the refusal to remove a program that no package brought."""
    return Refusal(
        "legacy_nvidia_docker",
        "%s of nvidia-docker 1.0 is there, and no package brought it" % plugin,
        "remove its volumes ('docker volume ls --filter driver=nvidia-docker'), its service, and the programs "
        "nvidia-docker and nvidia-docker-plugin yourself",
    )


def volume_used(legacy: Dict[str, Any]) -> Refusal:
    """Return the refusal to remove volumes that containers name: they could never be started again."""
    containers = legacy["containers"]
    return Refusal(
        "legacy_volume_in_use",
        "the volume%s %s of nvidia-docker 1.0 %s named by the container%s %s, which cannot start without"
        % (
            "" if len(legacy["volumes"]) == 1 else "s",
            ", ".join(legacy["volumes"]),
            "is" if len(legacy["volumes"]) == 1 else "are",
            "" if len(containers) == 1 else "s",
            ", ".join(containers),
        ),
        "save what you need of them and remove them ('docker rm %s'), then make them anew after the migration"
        % " ".join(containers),
    )


def conffile(observed: Dict[str, Any]) -> Notice:
    """Return the warning that dpkg counts daemon.json as a file of the package that goes."""
    path = observed["docker"]["daemon_json"]["path"]
    return Notice(
        "legacy_conffile",
        "%s stays, but dpkg counts it as configuration of nvidia-docker2: purging that package later deletes it" % path,
        "do not purge nvidia-docker2; where you must, keep a copy of the file and put it back",
    )
