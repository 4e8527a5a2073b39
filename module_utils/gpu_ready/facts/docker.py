"""The docker engine of a host and what gives its containers the GPUs: parts "docker" and "runtime".

Read from files and the engine's socket; ``dockerd --version`` runs only where an installed engine does not answer.
"""

import posixpath
import re
from typing import Dict, List, Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..base.json_file import parse_json
from ..containers import cdi, docker, driver_volume
from ..containers.daemon_json import merge as daemon_json
from ..driver.libraries import library_directories
from .model import (
    CdiSpecFacts,
    DaemonJsonFacts,
    DaemonJsonFault,
    DockerFacts,
    DriverVolumeFacts,
    LegacyFacts,
    ManifestFacts,
    RuntimeFacts,
)

HOOK = "nvidia-container-runtime-hook"
RUNTIME = "nvidia-container-runtime"
PENDING = manifest.DIRECTORY + "/" + daemon_json.RESTART_MARK
REFRESH_UNITS = tuple(root + "/systemd/system/nvidia-cdi-refresh.path" for root in ("/etc", "/usr/lib", "/lib"))
PLUGIN = "nvidia-docker-plugin"
"""The program of nvidia-docker 1.0 that serves its volumes; nvidia-docker2 has none."""
WANTS = "/etc/systemd/system/multi-user.target.wants/docker.service"
SNAPS = ("/snap/docker/current", "/var/lib/snapd/snap/docker/current")
"""Where snapd mounts docker, on the Debian family and elsewhere. Its dockerd is in no directory of PATH."""


def collect(host: Host) -> Tuple[DockerFacts, RuntimeFacts]:
    engine = collect_engine(host)
    return engine, collect_runtime(host, engine)


def collect_engine(host: Host) -> DockerFacts:
    program = host.which("dockerd")
    service = read_service(host)
    pid = running_pid(host, service.pidfile)
    info, socket = read_info(host) if pid else (None, None)
    version = info.version if info else None
    if version is None and program is not None:
        version = docker.parse_version(host.run([program, "--version"], timeout=10.0).out)
    return DockerFacts(
        installed=program is not None,
        program=program,
        version=version,
        package=engine_package(host),
        snap=next((path for path in SNAPS if host.isdir(path)), None),
        active=info is not None,
        pid=pid,
        started=host.changed_at(service.pidfile) if pid else None,
        enabled=host.readlink(WANTS) is not None,
        socket=socket,
        info=info,
        flags=list(service.flags),
        daemon_json=read_daemon_json(host, service.config),
        restart_pending=restart_pending(host, service.pidfile, pid),
        outdated=is_outdated(host, program, service.pidfile, pid),
        held_by_us=held_by_us(host),
    )


def read_service(host: Host) -> docker.DockerdService:
    texts: List[Tuple[str, str]] = []
    for path in docker.unit_paths(host.listdir):
        if posixpath.basename(path) == docker.UNIT and texts:
            continue
        text = host.read(path)
        if text is not None:
            texts.append((path, text))
    return docker.parse_service(texts, host.read)


def read_info(host: Host) -> Tuple[Optional[docker.EngineInfo], Optional[str]]:
    """Return the engine's answer to ``GET /info`` and the socket it came from.

    Only for a dockerd that runs: systemd would start it for the request.
    """
    for socket in docker.SOCKETS[:1] if host.exists(docker.SOCKETS[0]) else docker.SOCKETS[1:]:
        if host.exists(socket):
            return docker.parse_info(host.http_unix(socket, "/info")), socket
    return None, None


def running_pid(host: Host, pidfile: str) -> Optional[int]:
    text = (host.read(pidfile) or "").strip()
    if not text.isdigit() or (host.read("/proc/%s/comm" % text) or "").strip() != "dockerd":
        return None
    return int(text)


def engine_package(host: Host) -> Optional[str]:
    for name in ("docker-ce", "docker.io", "moby-engine"):
        if host.exists("/var/lib/dpkg/info/%s.list" % name) and host.which("dockerd"):
            return name
    return None


def read_daemon_json(host: Host, path: str) -> DaemonJsonFacts:
    data = host.read_bytes(path)
    if data is None:
        return DaemonJsonFacts(path)
    try:
        return DaemonJsonFacts(path, True, daemon_json.parse(data).text)
    except daemon_json.DaemonJsonError as error:
        return DaemonJsonFacts(path, True, error=DaemonJsonFault(error.problem, error.line, error.column))


def query(host: Host, socket: str, url: str) -> object:
    """Return the engine's answer as JSON, None where there is none."""
    try:
        answer: object = parse_json(host.http_unix(socket, url) or "null")
    except ValueError:
        return None
    return answer


def objects(value: object) -> List[Dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def restart_pending(host: Host, pidfile: str, pid: Optional[int]) -> bool:
    marked, started = host.changed_at(PENDING), host.changed_at(pidfile)
    return bool(pid and marked is not None and started is not None and marked > started)


def is_outdated(host: Host, program: Optional[str], pidfile: str, pid: Optional[int]) -> bool:
    changed, started = host.changed_at(program) if program else None, host.changed_at(pidfile)
    return bool(pid and changed is not None and started is not None and changed > started)


def held_by_us(host: Host) -> List[str]:
    return sorted(manifest.collect(host).get("holds", {}))


# ---------------------------------------------------------------------------------------------------------- runtime


def collect_runtime(host: Host, engine: DockerFacts) -> RuntimeFacts:
    programs = {name: host.which(name) for name in (RUNTIME, HOOK, "nvidia-ctk", "nvidia-container-cli")}
    driver = driver_files(host)
    gpus = gpu_list(host)
    return RuntimeFacts(
        toolkit=programs[RUNTIME] is not None and programs[HOOK] is not None,
        programs=programs,
        hook_known=hook_known(host, programs[HOOK], engine),
        refresh=has_refresh_service(host),
        specs=read_specifications(host, driver, [gpu.node for gpu in gpus]),
        driver_files=driver.version,
        refresh_old=host.read(cdi.REFRESH_OLD),
        boot_nodes=host.read(cdi.BOOT_NODES),
        volume=read_volume(host, driver),
        helper=host.read(driver_volume.HELPER),
        manifest=read_manifest(host, engine.daemon_json.path),
        legacy=read_legacy(host, engine.socket),
    )


def has_refresh_service(host: Host) -> bool:
    """Return whether the toolkit keeps a specification up to date by itself (1.18 and newer)."""
    return any(host.exists(path) for path in REFRESH_UNITS)


def read_volume(host: Host, driver: cdi.DriverFiles) -> DriverVolumeFacts:
    layout = driver_volume.plan_layout(driver)
    exists = host.isdir(driver_volume.ROOT)
    stale = volume_stale(host, layout, driver_volume.ROOT) if exists else None
    return DriverVolumeFacts(exists, host.readlink(driver_volume.CURRENT), stale)


def volume_stale(host: Host, layout: Optional[driver_volume.VolumeLayout], root: str) -> Optional[str]:
    current = host.readlink(posixpath.join(root, driver_volume.LINK))
    return driver_volume.find_difference(layout, current, host.listdir, host.readlink, host.stamp, root)


def read_manifest(host: Host, config: str) -> ManifestFacts:
    """Return what the manifest lists; ``config``: path of daemon.json."""
    known = manifest.collect(host)
    return ManifestFacts(
        files=sorted(known.get("files", {})),
        directories=sorted(known.get("directories", {})),
        packages=manifest.owned_packages(known),
        keys=(known.get("daemon_json", {}).get(config) or {}).get("keys", {}),
    )


def read_legacy(host: Host, socket: Optional[str]) -> LegacyFacts:
    plugin = host.which(PLUGIN)
    if plugin is None or socket is None:
        return LegacyFacts(plugin)
    answer = query(host, socket, "/volumes?filters=%7B%22driver%22%3A%5B%22nvidia-docker%22%5D%7D")
    rows = objects(answer.get("Volumes")) if isinstance(answer, dict) else []
    volumes = sorted(str(row.get("Name")) for row in rows)
    containers = []
    for row in objects(query(host, socket, "/containers/json?all=1")) if volumes else []:
        used = {str(mount.get("Name")) for mount in objects(row.get("Mounts"))}
        names = row.get("Names")
        if used & set(volumes):
            containers.append(str(names[0] if isinstance(names, list) and names else row.get("Id")).lstrip("/"))
    return LegacyFacts(plugin, volumes, containers)


def hook_known(host: Host, hook: Optional[str], engine: DockerFacts) -> Optional[bool]:
    """Return whether the hook's file is older than dockerd, which looks for one when it starts; None where unknown.

    The times of dockerd's pid file and of the hook's inode are from the same clock. dpkg sets mtime to the time of the
    build, never ctime.
    """
    changed = host.changed_at(hook) if hook else None
    if changed is None or engine.started is None:
        return None
    return changed <= engine.started


def driver_files(host: Host) -> cdi.DriverFiles:
    """Return the driver's files for containers, links resolved."""
    found: List[Tuple[str, str]] = []
    for directory in library_directories(host.uname()[1]):
        for name in host.listdir(directory):
            if cdi.is_library(name):
                path = posixpath.join(directory, name)
                found.append((path, host.realpath(path)))
    version, libraries = cdi.select_libraries(found)
    programs = {name: host.which(name) for name in cdi.PROGRAMS} if version else {}
    nodes = tuple("/dev/" + name for name in cdi.SHARED_DEVICES if host.exists("/dev/" + name))
    return cdi.DriverFiles(
        version, libraries, {name: host.realpath(path) for name, path in programs.items() if path}, nodes
    )


def gpu_list(host: Host) -> List[cdi.CdiGpu]:
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
    return [cdi.CdiGpu(index, "/dev/" + name, known.get(name, ("", None))[1]) for index, name in enumerate(ordered)]


def read_specifications(host: Host, driver: cdi.DriverFiles, gpu_nodes: List[str]) -> List[CdiSpecFacts]:
    found = []
    for directory in cdi.DIRECTORIES:
        for name in host.listdir(directory):
            if not name.endswith((".json", ".yaml")):
                continue
            path = posixpath.join(directory, name)
            spec = cdi.parse_spec(host.read(path) or "")
            if spec is None or spec.kind != cdi.KIND:
                continue
            existing = [item for item in spec.files + spec.nodes if host.exists(item)]
            stale = cdi.find_difference(spec, driver, gpu_nodes, existing)
            found.append(CdiSpecFacts(path, path == cdi.NATIVE, list(spec.devices), spec.format, stale))
    return found
