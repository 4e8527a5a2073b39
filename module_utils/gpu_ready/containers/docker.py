"""docker's engine: its answer to GET /info, features by version, and the flags in its systemd unit.

dockerd does not start if an option is both a key in daemon.json and a flag. The parsers here find such flags in the
unit, its drop-ins and their environment files.
"""

import posixpath
import re
import shlex
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..base.json_file import parse_json

DAEMON_JSON = "/etc/docker/daemon.json"
PIDFILE = "/run/docker.pid"
SOCKETS = ("/run/docker.sock", "/var/run/docker.sock")
UNIT = "docker.service"
UNIT_DIRECTORIES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)

_SHORT = {
    "b": "bridge",
    "D": "debug",
    "g": "data-root",
    "G": "group",
    "H": "host",
    "l": "log-level",
    "p": "pidfile",
    "s": "storage-driver",
}
_KEYS = {
    "add-runtime": "runtimes",
    "allow-nondistributable-artifacts": "allow-nondistributable-artifacts",
    "authorization-plugin": "authorization-plugins",
    "cdi-spec-dir": "cdi-spec-dirs",
    "cluster-store-opt": "cluster-store-opts",
    "default-address-pool": "default-address-pools",
    "default-ulimit": "default-ulimits",
    "dns-opt": "dns-opts",
    "exec-opt": "exec-opts",
    "feature": "features",
    "graph": "data-root",
    "host": "hosts",
    "insecure-registry": "insecure-registries",
    "label": "labels",
    "log-opt": "log-opts",
    "node-generic-resource": "node-generic-resources",
    "registry-mirror": "registry-mirrors",
    "storage-opt": "storage-opts",
}
"""Flags whose key in daemon.json has another name, mostly the plural."""
_SWITCHES = frozenset(
    (
        "allow-direct-routing",
        "debug",
        "default-network-disabled",
        "experimental",
        "help",
        "http-proxy-insecure",
        "icc",
        "init",
        "ip-forward",
        "ip-forward-no-drop",
        "ip-masq",
        "ip6tables",
        "iptables",
        "ipv6",
        "live-restore",
        "no-new-privileges",
        "raw-logs",
        "rootless",
        "selinux-enabled",
        "tls",
        "tlsverify",
        "userland-proxy",
        "validate",
        "version",
    )
)
"""Flags whose value, if any, is in the same word."""

LOG_DRIVER = "json-file"
"""docker's default log driver."""
LOG_OPTIONS = {
    "json-file": frozenset(("compress", "env", "env-regex", "labels", "labels-regex", "max-file", "max-size", "tag")),
    "local": frozenset(("compress", "max-file", "max-size")),
    "journald": frozenset(("env", "env-regex", "labels", "labels-regex", "tag")),
}
"""Options of the local log drivers (docs.docker.com, "Configure logging drivers"). With any other dockerd exits with
"unknown log opt"."""
ALL_LOG_OPTIONS = frozenset(
    ("cache-compress", "cache-disabled", "cache-max-file", "cache-max-size", "max-buffer-size", "mode")
)
"""Options of the engine for every log driver."""


class EngineInfo(NamedTuple):
    """The needed part of ``GET /info``."""

    version: str
    runtimes: List[str]
    default_runtime: str
    live_restore: bool
    cdi_dirs: Tuple[str, ...]
    running: int


class EngineCapabilities(NamedTuple):
    """``cdi`` is ``none``, ``feature`` (needs features.cdi) or ``default``; ``validate``: ``dockerd --validate``.

    ``gpus_by_cdi``: ``--gpus`` prefers a CDI specification to NVIDIA's hook (moby, devices_nvidia_linux.go, 29.2.0).
    """

    cdi: str
    validate: bool
    gpus_by_cdi: bool = False


class DockerdFlag(NamedTuple):
    """One option of dockerd's command line: its key in daemon.json, the flag as written, its value, and its file."""

    key: str
    flag: str
    value: Optional[str]
    file: str


class DockerdService(NamedTuple):
    """How systemd starts dockerd; ``config`` and ``pidfile`` are paths, by the flags or the default."""

    flags: Tuple[DockerdFlag, ...]
    config: str
    pidfile: str


class FlagConflict(NamedTuple):
    """An option both in daemon.json and among dockerd's flags."""

    key: str
    flag: str
    file: str


def parse_info(text: Optional[str]) -> Optional[EngineInfo]:
    try:
        value = parse_json(text or "")
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("ServerVersion"), str):
        return None
    runtimes, directories, running = (value.get(key) for key in ("Runtimes", "CDISpecDirs", "ContainersRunning"))
    return EngineInfo(
        value["ServerVersion"],
        sorted(runtimes) if isinstance(runtimes, dict) else [],
        str(value.get("DefaultRuntime") or ""),
        bool(value.get("LiveRestoreEnabled")),
        tuple(str(path) for path in directories) if isinstance(directories, list) else (),
        running if isinstance(running, int) else 0,
    )


def parse_version(text: str) -> Optional[str]:
    """Return the version in the output of ``dockerd --version`` ("Docker version 26.1.5+dfsg1, build a72d7cd")."""
    match = re.search(r"version\s+v?(\d[^\s,]*)", text)
    return match.group(1) if match else None


def capabilities(version: Optional[str]) -> EngineCapabilities:
    """Return features of a version; an unknown version counts as a current one."""
    numbers = [int(part) for part in re.findall(r"\d+", (version or "").split("+")[0])[:2]]
    if not numbers:
        return EngineCapabilities("default", True, True)
    major, minor = numbers[0], numbers[1] if len(numbers) > 1 else 0
    cdi = "none" if major < 25 else "feature" if (major, minor) < (28, 2) else "default"
    return EngineCapabilities(cdi, major >= 23, (major, minor) >= (29, 2))


def uses_gpu(container: Dict[str, Any]) -> bool:
    """Return True if a container (an answer to ``GET /containers/ID/json``) requested a GPU."""
    host = container.get("HostConfig") or {}
    environment = (container.get("Config") or {}).get("Env") or []
    visible = [text.split("=", 1)[1] for text in environment if text.startswith("NVIDIA_VISIBLE_DEVICES=")]
    # The engine fills in its default runtime; the toolkit has nvidia, nvidia-cdi and nvidia-legacy.
    if str(host.get("Runtime")).startswith("nvidia") and visible and visible[-1] not in ("", "void", "none"):
        return True
    for request in host.get("DeviceRequests") or []:
        requested = [name for names in request.get("Capabilities") or [] for name in names]
        ids = request.get("DeviceIDs") or []
        if "gpu" in requested or "nvidia" in requested or request.get("Driver") == "nvidia":
            return True
        if any("nvidia.com/" in str(name) for name in ids):
            return True
    return any("/dev/nvidia" in str(device.get("PathOnHost")) for device in host.get("Devices") or [])


def gpu_access(container: Dict[str, Any]) -> str:
    """Return how a container (an answer to ``GET /containers/ID/json``) can reach a GPU, "" if it cannot.

    A privileged container has all device nodes; one that mounts /dev has those that its device rules allow.
    """
    host = container.get("HostConfig") or {}
    if uses_gpu(container):
        return "GPU"
    if host.get("Privileged"):
        return "privileged"
    sources = [str(mount.get("Source")) for mount in container.get("Mounts") or []]
    sources += [str(bind).split(":")[0] for bind in host.get("Binds") or []]
    sources += [str(device.get("PathOnHost")) for device in host.get("Devices") or []]
    if any(source.startswith("/dev/nvidia") for source in sources):
        return "GPU"
    return "/dev" if any(source.rstrip("/") == "/dev" for source in sources) else ""


def oci_access(text: str, spec: Dict[str, Any]) -> str:
    """Return how a container can reach a GPU by its OCI specification, parsed and as text; "" if it cannot.

    A privileged container has a rule that allows all devices: no type, no number.
    """
    if "/dev/nvidia" in text or "NVIDIA_VISIBLE_DEVICES=" in text.replace("DEVICES=void", ""):
        return "GPU"
    rules = ((spec.get("linux") or {}).get("resources") or {}).get("devices") or []
    if any(rule.get("allow") and rule.get("type") in (None, "a") and rule.get("major") is None for rule in rules):
        return "privileged"
    return "/dev" if any(mount.get("source") == "/dev" for mount in spec.get("mounts") or []) else ""


# ---------------------------------------------------------------------------------------------------------- the unit


def parse_service(
    texts: Sequence[Tuple[str, str]], read: Callable[[str], Optional[str]] = lambda path: None
) -> DockerdService:
    """Return flags of dockerd in its unit and drop-ins; ``texts`` are (path, text) in systemd's order.

    ``read`` returns the text of an environment file (None: absent).
    """
    command: Tuple[str, str] = ("", "")
    environment: Dict[str, Tuple[str, str]] = {}
    files: List[str] = []
    for path, text in texts:
        for key, value in _settings(text):
            if key == "ExecStart":
                command = (value, path)
            elif key == "Environment":
                if not value:
                    environment = {}
                for word in _words(value):
                    name, _, content = word.partition("=")
                    environment[name] = (content, path)
            elif key == "EnvironmentFile":
                files = files + [value.lstrip("-")] if value else []
    for path in files:
        for name, value in _environment(read(path) or "").items():
            environment[name] = (value, path)
    return _flags(_expand(command[0], command[1], environment))


def _settings(text: str) -> List[Tuple[str, str]]:
    """Return settings of the section [Service], with continued lines joined and without comments."""
    lines: List[str] = []
    continued = False
    for line in text.splitlines():
        if line.lstrip().startswith(("#", ";")):
            continue
        if continued:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
        continued = lines[-1].endswith("\\")
        if continued:
            lines[-1] = lines[-1][:-1].rstrip()
    section, found = "", []
    for line in lines:
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line:
            key, _, value = line.partition("=")
            found.append((key.strip(), value.strip()))
    return found


LONGEST_COMMAND = 16384
"""Characters of a command line that are split as a shell does; shlex takes the square of the length of a word."""


def _words(text: str) -> List[str]:
    try:
        if len(text) <= LONGEST_COMMAND:
            return shlex.split(text)
    except ValueError:
        pass  # an open quote: systemd rejects the line; its words are still useful
    return text.replace('"', "").replace("'", "").split()


def _environment(text: str) -> Dict[str, str]:
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        match = re.match(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)", line)
        if match:
            value = match.group(2).strip()
            if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            found[match.group(1)] = value
    return found


def _expand(command: str, path: str, environment: Dict[str, Tuple[str, str]]) -> List[Tuple[str, str]]:
    """(word, file) of a command line: ``$NAME`` is split into words, ``${NAME}`` is not."""
    words: List[Tuple[str, str]] = []
    for word in _words(command.lstrip("@-:+!|")):
        alone = re.match(r"^\$([A-Za-z_]\w*)$", word)
        if alone:
            value, origin = environment.get(alone.group(1), ("", path))
            words += [(part, origin) for part in _words(value)]
            continue
        origin = path
        for name in re.findall(r"\$\{([A-Za-z_]\w*)\}", word):
            value, origin = environment.get(name, ("", path))
            word = word.replace("${%s}" % name, value)
        words.append((word, origin))
    return words


def _flags(words: List[Tuple[str, str]]) -> DockerdService:
    flags: List[DockerdFlag] = []
    rest = words[1:]
    while rest:
        (word, path), rest = rest[0], rest[1:]
        value: Optional[str] = None
        if word.startswith("--"):
            name, equals, text = word[2:].partition("=")
            value = text if equals else None
        elif len(word) > 1 and word.startswith("-"):
            name = _SHORT.get(word[1], word[1])
            value = word[2:].lstrip("=") or None
        else:
            continue
        if not name:
            continue
        if value is None and name not in _SWITCHES and rest:
            (value, _), rest = rest[0], rest[1:]
        shown = word.partition("=")[0] if word.startswith("--") else word[:2]
        flags.append(DockerdFlag(_KEYS.get(name, name), shown, value, path))
    options = {flag.key: flag.value for flag in flags}
    return DockerdService(tuple(flags), options.get("config-file") or DAEMON_JSON, options.get("pidfile") or PIDFILE)


def conflicts(flags: Sequence[DockerdFlag], value: Dict[str, Any]) -> List[FlagConflict]:
    """Return options both among the flags and in ``value``, the content of daemon.json.

    docker merges the runtimes of both; only a runtime in both is a conflict.
    """
    found = []
    for flag in flags:
        if flag.key not in value:
            continue
        if flag.key == "runtimes":
            name = (flag.value or "").partition("=")[0]
            if not isinstance(value["runtimes"], dict) or name not in value["runtimes"]:
                continue
            found.append(FlagConflict("runtimes." + name, flag.flag, flag.file))
        else:
            found.append(FlagConflict(flag.key, flag.flag, flag.file))
    return found


def unit_paths(listdir: Callable[[str], List[str]], unit: str = UNIT) -> List[str]:
    """Return paths of a unit in systemd's order: candidates for the unit itself, then its drop-ins."""
    candidates = [posixpath.join(directory, unit) for directory in UNIT_DIRECTORIES]
    drop_ins: Dict[str, str] = {}
    for name in ("service.d", unit + ".d"):
        for directory in reversed(UNIT_DIRECTORIES):
            for file in listdir(posixpath.join(directory, name)):
                if file.endswith(".conf"):
                    drop_ins[file] = posixpath.join(directory, name, file)
    return candidates + [drop_ins[file] for file in sorted(drop_ins)]
