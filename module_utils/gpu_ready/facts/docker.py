"""The docker engine of a host and what brings GPUs into its containers: parts "docker" and "runtime".

Files and the engine's socket only; ``dockerd --version`` runs only where an installed engine does not answer.
"""

import json
import posixpath
import re
from typing import Any, Dict, List, Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..containers import cdi, docker, driver_volume
from ..containers.daemon_json import merge as daemon_json
from ..containers.daemon_json import write as daemon_json_file
from ..driver.libraries import library_directories

HOOK = "nvidia-container-runtime-hook"
RUNTIME = "nvidia-container-runtime"
PENDING = manifest.DIRECTORY + "/" + daemon_json_file.RESTART_MARK
REFRESH_UNITS = tuple(folder + "/systemd/system/nvidia-cdi-refresh.path" for folder in ("/etc", "/usr/lib", "/lib"))
PLUGIN = "nvidia-docker-plugin"
"""The program of nvidia-docker 1.0 that serves its volumes; nvidia-docker2 has none."""
WANTS = "/etc/systemd/system/multi-user.target.wants/docker.service"
CONFIG_TOML = "/etc/nvidia-container-runtime/config.toml"
SNAPS = ("/snap/docker/current", "/var/lib/snapd/snap/docker/current")
"""Where snapd mounts docker: Debian's family, and the others. Its dockerd is in no folder of programs."""
MOST_CONTAINERS = 64


def look(host: Host) -> Dict[str, Any]:
    """Return the parts ``docker`` (engine, flags, daemon.json) and ``runtime`` (toolkit, CDI specifications)."""
    engine = look_engine(host)
    return {"docker": engine, "runtime": look_runtime(host, engine)}


def look_engine(host: Host) -> Dict[str, Any]:
    """Return the engine: installed, running, version, what it says of itself, its flags and its configuration."""
    program = host.which("dockerd")
    service = read_service(host)
    info, socket = ask(host)
    version = info.version if info else None
    if version is None and program is not None:
        version = docker.read_version(host.run([program, "--version"], timeout=10.0).out)
    pid = running_pid(host, service.pidfile)
    return {
        "installed": program is not None,
        "program": program,
        "version": version,
        "package": package(host),
        "snap": next((path for path in SNAPS if host.isdir(path)), None),
        "active": info is not None,
        "pid": pid,
        "started": host.changed_at(service.pidfile) if pid else None,
        "enabled": host.readlink(WANTS) is not None,
        "socket": socket,
        "info": info._asdict() if info else None,
        "flags": [flag._asdict() for flag in service.flags],
        "daemon_json": configuration(host, service.config),
        "gpu_containers": gpu_containers(host, socket, info),
        "restart_pending": restart_pending(host, service.pidfile, pid),
        "outdated": outdated(host, program, service.pidfile, pid),
        "held_by_us": held_by_us(host),
    }


def read_service(host: Host) -> docker.Service:
    """Return dockerd's flags and files from its unit (the first that exists) and all drop-ins."""
    texts: List[Tuple[str, str]] = []
    for path in docker.unit_files(host.listdir):
        if posixpath.basename(path) == docker.UNIT and texts:
            continue
        text = host.read(path)
        if text is not None:
            texts.append((path, text))
    return docker.read_service(texts, host.read)


def ask(host: Host) -> Tuple[Optional[docker.Info], Optional[str]]:
    """Return the engine's answer to ``GET /info`` and the socket it came from."""
    for socket in docker.SOCKETS[:1] if host.exists(docker.SOCKETS[0]) else docker.SOCKETS[1:]:
        if host.exists(socket):
            return docker.read_info(host.http_unix(socket, "/info")), socket
    return None, None


def running_pid(host: Host, pidfile: str) -> Optional[int]:
    """Return the process id of a running dockerd, None where the pid file is absent or left over."""
    text = (host.read(pidfile) or "").strip()
    if not text.isdigit() or (host.read("/proc/%s/comm" % text) or "").strip() != "dockerd":
        return None
    return int(text)


def package(host: Host) -> Optional[str]:
    """Return the package the engine came from, None where dpkg knows none."""
    for name in ("docker-ce", "docker.io", "moby-engine"):
        if host.exists("/var/lib/dpkg/info/%s.list" % name) and host.which("dockerd"):
            return name
    return None


def configuration(host: Host, path: str) -> Dict[str, Any]:
    """Return daemon.json: its text, and the complaint with line and column where it is not strict JSON."""
    data = host.read_bytes(path)
    found: Dict[str, Any] = {"path": path, "exists": data is not None, "text": None, "error": None}
    if data is None:
        return found
    try:
        found["text"] = daemon_json.parse(data).text
    except daemon_json.DaemonJsonError as error:
        found["error"] = {"problem": error.problem, "line": error.line, "column": error.column}
    return found


def gpu_containers(host: Host, socket: Optional[str], info: Optional[docker.Info]) -> List[str]:
    """Return the names of running containers that hold a GPU (of the first 64: each costs a question)."""
    if info is None or socket is None or not info.running:
        return []
    names = []
    for row in answer(host, socket, "/containers/json?limit=%d" % MOST_CONTAINERS) or []:
        container = answer(host, socket, "/containers/%s/json" % row.get("Id"))
        if isinstance(container, dict) and docker.uses_gpu(container):
            names.append(str(container.get("Name") or row.get("Id")).lstrip("/"))
    return sorted(names)


def answer(host: Host, socket: str, url: str) -> Any:
    """Return the engine's answer to a question, None where it gave none."""
    try:
        return json.loads(host.http_unix(socket, url) or "null")
    except ValueError:
        return None


def restart_pending(host: Host, pidfile: str, pid: Optional[int]) -> bool:
    """Return whether dockerd runs since before a change of ours that needed a restart."""
    noted, started = host.changed_at(PENDING), host.changed_at(pidfile)
    return bool(pid and noted is not None and started is not None and noted > started)


def outdated(host: Host, program: Optional[str], pidfile: str, pid: Optional[int]) -> bool:
    """Return whether the running dockerd is older than its program: packages were exchanged under it."""
    changed, started = host.changed_at(program) if program else None, host.changed_at(pidfile)
    return bool(pid and changed is not None and started is not None and changed > started)


def held_by_us(host: Host) -> List[str]:
    """Return the packages whose hold is ours; none of a damaged manifest, which says so before the next change."""
    try:
        return sorted(manifest.parse(host.read(manifest.PATH) or "{}").get("holds", {}))
    except manifest.ManifestError:
        return []


# ---------------------------------------------------------------------------------------------------------- runtime


def look_runtime(host: Host, engine: Dict[str, Any]) -> Dict[str, Any]:
    """Return what brings GPUs into containers: toolkit, CDI specifications and driver volume with their fitness.

    ``noted``: what of it the manifest calls ours. ``legacy``: what is there of nvidia-docker 1.0.
    """
    programs = {name: host.which(name) for name in (RUNTIME, HOOK, "nvidia-ctk", "nvidia-container-cli")}
    driver = driver_files(host)
    gpus = gpu_list(host)
    return {
        "toolkit": programs[RUNTIME] is not None and programs[HOOK] is not None,
        "programs": programs,
        "hook_known": hook_known(host, programs[HOOK], engine),
        "refresh": refreshed(host),
        "specs": specifications(host, driver, [gpu.node for gpu in gpus]),
        "driver_files": driver.version,
        "refresh_old": host.read(cdi.REFRESH_OLD),
        "boot_nodes": host.read(cdi.BOOT_NODES),
        "volume": volume(host, driver),
        "helper": host.read(driver_volume.HELPER),
        "noted": noted(host, engine["daemon_json"]["path"]),
        "legacy": legacy(host, engine["socket"]),
    }


def refreshed(host: Host) -> bool:
    """Return whether the toolkit keeps a specification fresh by itself (1.18 and newer)."""
    return any(host.exists(path) for path in REFRESH_UNITS)


def volume(host: Host, driver: cdi.DriverFiles) -> Dict[str, Any]:
    """Return the driver volume: whether it is there, the driver it holds, and why it is not that of the host."""
    layout = driver_volume.layout(driver)
    there = host.isdir(driver_volume.ROOT)
    return {
        "exists": there,
        "version": host.readlink(driver_volume.CURRENT),
        "stale": volume_stale(host, layout, driver_volume.ROOT) if there else None,
    }


def volume_stale(host: Host, layout: Optional[driver_volume.Layout], root: str) -> Optional[str]:
    """Return why a driver volume is not that of the installed driver, None where it is."""
    current = host.readlink(posixpath.join(root, driver_volume.LINK))
    return driver_volume.stale(layout, current, host.listdir, host.readlink, host.stamp, root)


def noted(host: Host, config: str) -> Dict[str, Any]:
    """Return what the manifest lists: files, folders, packages, and keys of docker's configuration.

    A damaged one lists nothing here: whatever is changed then notes first, and says that it cannot.
    """
    try:
        known = manifest.parse(host.read(manifest.PATH) or "{}")
    except manifest.ManifestError:
        known = {}
    return {
        "files": sorted(known.get("files", {})),
        "folders": sorted(known.get("folders", {})),
        "packages": sorted(known.get("packages", {})),
        "keys": (known.get("daemon_json", {}).get(config) or {}).get("keys", {}),
    }


def legacy(host: Host, socket: Optional[str]) -> Dict[str, Any]:
    """Return nvidia-docker 1.0: its plugin, its volumes, and the containers (also stopped ones) that name them."""
    plugin = host.which(PLUGIN)
    found: Dict[str, Any] = {"plugin": plugin, "volumes": [], "containers": []}
    if plugin is None or socket is None:
        return found
    rows = answer(host, socket, "/volumes?filters=%7B%22driver%22%3A%5B%22nvidia-docker%22%5D%7D") or {}
    found["volumes"] = sorted(str(row.get("Name")) for row in rows.get("Volumes") or [])
    for row in (answer(host, socket, "/containers/json?all=1") or []) if found["volumes"] else []:
        used = [mount.get("Name") for mount in row.get("Mounts") or []]
        if set(used) & set(found["volumes"]):
            found["containers"].append(str((row.get("Names") or [row.get("Id")])[0]).lstrip("/"))
    return found


def hook_known(host: Host, hook: Optional[str], engine: Dict[str, Any]) -> Optional[bool]:
    """Return whether the hook was there when dockerd started (it looks for it once, at start); None: cannot tell.

    Its pid file and the hook's place on disk have their times from the same clock. dpkg sets mtime back to the time
    of the build, never ctime.
    """
    changed = host.changed_at(hook) if hook else None
    if changed is None or engine["started"] is None:
        return None
    return changed <= float(engine["started"])


def driver_files(host: Host) -> cdi.DriverFiles:
    """Return the driver's files for containers, links resolved."""
    found: List[Tuple[str, str]] = []
    for folder in library_directories(host.uname()[1]):
        for name in host.listdir(folder):
            if cdi.is_library(name):
                path = posixpath.join(folder, name)
                found.append((path, host.realpath(path)))
    version, libraries = cdi.libraries(found)
    programs = {name: host.which(name) for name in cdi.PROGRAMS} if version else {}
    nodes = tuple("/dev/" + name for name in cdi.SHARED_DEVICES if host.exists("/dev/" + name))
    return cdi.DriverFiles(
        version, libraries, {name: host.realpath(path) for name, path in programs.items() if path}, nodes
    )


def gpu_list(host: Host) -> List[cdi.Gpu]:
    """Return the GPUs that have a device node, in NVML's order (PCI address), from the driver's own table."""
    nodes = [name for name in host.listdir("/dev") if re.match(r"nvidia\d+$", name)]
    table = "/proc/driver/nvidia/gpus"
    known: Dict[str, Tuple[str, Optional[str]]] = {}
    for address in host.listdir(table):
        text = host.read("%s/%s/information" % (table, address)) or ""
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        uuid = re.search(r"GPU UUID:\s*(GPU-[0-9a-fA-F-]+)\s*$", text, re.MULTILINE)
        if minor and "nvidia" + minor.group(1) in nodes:
            known["nvidia" + minor.group(1)] = (address, uuid.group(1) if uuid else None)
    ordered = sorted(nodes, key=lambda name: (known.get(name, ("~", None))[0], int(name[6:])))
    return [cdi.Gpu(index, "/dev/" + name, known.get(name, ("", None))[1]) for index, name in enumerate(ordered)]


def specifications(host: Host, driver: cdi.DriverFiles, gpu_nodes: List[str]) -> List[Dict[str, Any]]:
    """Return the specifications of NVIDIA GPUs: where, whose, which devices, and why one no longer fits."""
    found = []
    for folder in cdi.FOLDERS:
        for name in host.listdir(folder):
            if not name.endswith((".json", ".yaml")):
                continue
            path = posixpath.join(folder, name)
            spec = cdi.read(host.read(path) or "")
            if spec is None or spec.kind != cdi.KIND:
                continue
            there = [item for item in spec.files + spec.nodes if host.exists(item)]
            found.append(
                {
                    "path": path,
                    "ours": path == cdi.NATIVE,
                    "devices": list(spec.devices),
                    "format": spec.format,
                    "stale": cdi.stale(spec, driver, gpu_nodes, there),
                }
            )
    return found
