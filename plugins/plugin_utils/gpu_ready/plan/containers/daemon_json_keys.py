"""The keys of daemon.json that the runtime modes add: which ones a mode needs, and which ones are to be reverted."""

from typing import Any, NamedTuple

from .....module_utils.gpu_ready.containers import docker as engines
from .....module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from .....module_utils.gpu_ready.facts.model import DockerFacts
from ..model import Refusal, VariableChange, refuse
from .model import DaemonOptions

POINTERS = ("/runtimes/nvidia", "/default-runtime", "/features/cdi")
"""Keys of daemon.json that some mode adds, as the manifest writes them."""
RUNTIME = {"path": "nvidia-container-runtime"}
TOOLKIT, VOLUME = "toolkit", "volume"


class ActivationReason(NamedTuple):
    """Why docker must reload or restart (``need``) although daemon.json may be right already.

    ``can_wait``: GPUs can be used without it, by --runtime=nvidia.
    """

    text: str
    need: str
    can_wait: bool = False


class RevertedKeys(NamedTuple):
    """Keys of daemon.json that get back their earlier values: values to set, and dotted keys to remove."""

    set_: DaemonOptions
    unset: list[str]


def needed_keys(text: str | None, version: str | None, access: str, default: bool) -> DaemonOptions:
    """Return the keys that containers need on an engine of this version; ``text``: daemon.json as it is."""
    if access == VOLUME:
        return {}
    if access == TOOLKIT:
        found: DaemonOptions = {"runtimes": {"nvidia": dict(RUNTIME)}}
        if default:
            found["default-runtime"] = "nvidia"
        return found
    features = daemon_json.parse(text).value.get("features")
    turned_off = isinstance(features, dict) and features.get("cdi") is False
    if engines.capabilities(version).cdi == "default" and not turned_off:
        return {}
    return {"features": {"cdi": True}}


def keys_to_revert(
    text: str | None,
    recorded: dict[str, DaemonOptions],
    needed: DaemonOptions,
    options: DaemonOptions,
    migrating: bool,
) -> RevertedKeys:
    """Return our keys that neither this mode (``needed``) nor the operator's options need any more.

    ``recorded``: by JSON pointer, what the manifest says of each. ``migrating``: this plan removes the package that
    provides the runtime, whoever added the key.
    """
    value = daemon_json.parse(text).value
    entries = {name: entry for name, entry in recorded.items() if name in POINTERS and "after" in entry}
    if migrating and "nvidia" in (value.get("runtimes") or {}):
        entries.setdefault("/runtimes/nvidia", {"after": value["runtimes"]["nvidia"], "made": ["/runtimes"]})
        if value.get("default-runtime") == "nvidia":
            entries.setdefault("/default-runtime", {"after": "nvidia"})
    found = RevertedKeys({}, [])
    for pointer, entry in sorted(entries.items()):
        path = pointer.strip("/").split("/")
        current = value_at(value, path)
        if current is None or value_at(needed, path) is not None or value_at(options, path) is not None:
            continue
        if not daemon_json.same_value(tuple(path), current, entry["after"]):
            continue  # changed by others since: it is theirs
        if "before" in entry:
            set_at(found.set_, path, entry["before"])
        else:
            parent = "/" + path[0]
            alone = len(path) == 2 and parent in entry.get("made", ()) and len(value[path[0]]) == 1
            found.unset.append(path[0] if alone else ".".join(path))
    return found


def remembered_runtimes(engine: DockerFacts, text: str | None, runtimes: bool) -> list[ActivationReason]:
    """Return what docker still uses although daemon.json no longer names it: only a restart changes that.

    ``runtimes``: also a runtime that no container gets by default.
    """
    if engine.info is None:
        return []
    value = daemon_json.parse(text).value
    flags = {flag.key for flag in engine.flags}
    still_default = engine.info.default_runtime == "nvidia" and value.get("default-runtime") != "nvidia"
    if still_default and "default-runtime" not in flags:
        reason = "docker still uses the default runtime nvidia, which daemon.json no longer names"
        return [ActivationReason(reason, daemon_json.RESTART)]
    known = "nvidia" in engine.info.runtimes and "nvidia" not in (value.get("runtimes") or {})
    if known and runtimes and "runtimes" not in flags:
        reason = "docker still knows the runtime nvidia, which daemon.json no longer names"
        return [ActivationReason(reason, daemon_json.RESTART)]
    return []


def not_applied(engine: DockerFacts, access: str, default: bool, text: str | None) -> list[ActivationReason]:
    """Return what daemon.json says and the running engine does not use yet, as after an interrupted run."""
    info = engine.info
    if info is None:
        return []
    if access == TOOLKIT:
        if "nvidia" not in info.runtimes:
            return [ActivationReason("docker does not know the runtime nvidia of daemon.json yet", daemon_json.RELOAD)]
        if default and info.default_runtime != "nvidia":
            return [ActivationReason("docker does not use the default runtime of daemon.json yet", daemon_json.RELOAD)]
    elif not info.cdi_dirs and needed_keys(text, engine.version, access, default):
        return [ActivationReason("docker does not use CDI yet, although daemon.json says so", daemon_json.RESTART)]
    return remembered_runtimes(engine, text, access != TOOLKIT)


def has_nvidia_default(text: str) -> bool:
    return bool(daemon_json.parse(text).value.get("default-runtime") == "nvidia")


def missing_runtime(path: str) -> Refusal:
    return refuse(
        "default_runtime_impossible",
        "default-runtime is nvidia in %s, and this nvidia_container_runtime_mode has no runtime of that name: no "
        "container could start" % path,
        VariableChange({"nvidia_container_runtime_mode": ["toolkit"]}),
        "take default-runtime out of it (and of docker_engine_daemon_options)",
    )


def is_set(options: DaemonOptions, path: list[str]) -> bool:
    value: Any = options
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True


def value_at(options: DaemonOptions, path: list[str]) -> object:
    value: Any = options
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def set_at(options: DaemonOptions, path: list[str], value: object) -> None:
    for key in path[:-1]:
        options = options.setdefault(key, {})
    options[path[-1]] = value


def merged(first: DaemonOptions, second: DaemonOptions) -> DaemonOptions:
    found = dict(first)
    for key, value in second.items():
        current = found.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            value = merged(current, value)
        found[key] = value
    return found
