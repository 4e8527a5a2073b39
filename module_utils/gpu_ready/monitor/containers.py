"""Which container and pod a process belongs to, by its cgroup, and their names.

Forms of cgroups: moby daemon/oci_linux.go, podman libpod/container_internal_linux.go, containerd
internal/cri/server/helpers.go, cri-o internal/config/cgmgr, kubelet pkg/kubelet/cm/cgroup_manager_linux.go.
"""

import json
import os
import re
import socket
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

DOCKER_SOCKET = "/run/docker.sock"
DOCKER_PID = "/run/docker.pid"
"""Where docker does not run, a connection would start it through its socket unit."""
STORAGE = "/var/lib/containers/storage/overlay-containers/containers.json"
"""Containers of podman and CRI-O by id and names (github.com/containers/storage, containers.go)."""
POD_LOGS = "/var/log/pods"
"""Directories NAMESPACE_POD_UID, made by the kubelet (pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory)."""
CONTAINER_LOGS = "/var/log/containers"
"""Links POD_NAMESPACE_CONTAINER-ID.log, made by the kubelet (pkg/kubelet/kuberuntime/legacy.go)."""
MOST_BYTES = 4 << 20
TIMEOUT = 3.0
"""Seconds for an answer of docker."""
ID = re.compile(r"(?P<prefix>(?:^|/)(?:[a-z][a-z-]*-)?|:)(?P<id>[0-9a-f]{64})(?:\.scope)?(?=/|$)")
POD = re.compile(r"(?:[/-]|^)pod([0-9a-f][0-9a-f_-]{31,63})(?:\.slice)?(?=/|$)")
ENGINES = {"docker-": "docker", "libpod-": "podman", "cri-containerd-": "containerd", "crio-": "cri-o"}
MONITORS = ("conmon-",)
ROOTLESS = "/user@"
"""Below user@UID.service users name cgroups as they like, also like somebody else's container."""


class CgroupPlace(NamedTuple):
    """Where a process runs. ``engine``: "host" outside of containers, "" where the cgroup does not name it.

    ``id``: of the innermost container; ``outer``: of those around it.
    """

    engine: str = "host"
    id: str = ""
    outer: Tuple[str, ...] = ()
    pod_uid: str = ""


class Names(NamedTuple):
    """Names for the labels; "" where they are not known."""

    container: str = ""
    image: str = ""
    pod: str = ""
    namespace: str = ""
    engine: str = ""


def place_of(cgroup: str) -> CgroupPlace:
    """Return the place by the text of /proc/PID/cgroup, of version 1 (a line for each controller) or 2 (one line)."""
    best = CgroupPlace()
    for line in cgroup.splitlines():
        parts = line.split(":", 2)
        found = place_of_path(parts[2]) if len(parts) == 3 else CgroupPlace()
        if (len(found.outer), bool(found.id), bool(found.pod_uid)) > (
            len(best.outer), bool(best.id), bool(best.pod_uid)
        ):  # fmt: skip
            best = found
    return best


def place_of_path(path: str) -> CgroupPlace:
    matches = [match for match in ID.finditer(path) if not match.group("prefix").endswith(MONITORS)]
    pods = [match.group(1).replace("_", "-") for match in POD.finditer(path)]
    if not matches:
        return CgroupPlace(pod_uid=pods[-1]) if pods else CgroupPlace()
    last = matches[-1]
    prefix = last.group("prefix").lstrip("/:")
    before = path[: last.start()]
    engine = ENGINES.get(prefix, "")
    if not engine and before.endswith("/docker") and not pods:
        engine = "docker"
    if not engine and before.endswith("/libpod_parent"):
        engine = "podman"
    if ROOTLESS in before:
        engine = "rootless"
    return CgroupPlace(
        engine, last.group("id"), tuple(match.group("id") for match in matches[:-1]), pods[-1] if pods else ""
    )


def place_of_process(pid: int, proc: str = "/proc") -> Optional[CgroupPlace]:
    """Return None for a process that has ended, and for one that is not visible here."""
    try:
        with open("%s/%d/cgroup" % (proc, pid), "rb") as stream:
            return place_of(stream.read(1 << 16).decode("utf-8", "replace"))
    except OSError:
        return None


class Directory:
    """Names of containers and pods. What was found is kept while the container holds a GPU."""

    def __init__(
        self,
        docker: str = DOCKER_SOCKET,
        docker_pid: str = DOCKER_PID,
        storage: str = STORAGE,
        pod_logs: str = POD_LOGS,
        container_logs: str = CONTAINER_LOGS,
    ) -> None:
        self.docker = docker
        self.docker_pid = docker_pid
        self.storage = storage
        self.pod_logs = pod_logs
        self.container_logs = container_logs
        self.known: Dict[CgroupPlace, Names] = {}

    def names(self, places: List[CgroupPlace]) -> Dict[CgroupPlace, Names]:
        """Return names by place, of those that have any."""
        asked = {place for place in places if place.id or place.pod_uid}
        self.known = {place: names for place, names in self.known.items() if place in asked}
        missing = [place for place in asked if place not in self.known and place.engine != "rootless"]
        if missing:
            pods, links = self.read_pods(missing), self.read_container_logs(missing)
            engines = self.read_engines([place for place in missing if not place.pod_uid])
            for place in missing:
                found = self.name(place, pods, links, engines)
                if found != Names():
                    self.known[place] = found
        return dict(self.known)

    def name(
        self,
        place: CgroupPlace,
        pods: Dict[str, Tuple[str, str]],
        links: Dict[str, Names],
        engines: Dict[str, Names],
    ) -> Names:
        if place.pod_uid:
            namespace, pod = pods.get(place.pod_uid, ("", ""))
            of_link = links.get(place.id, Names())
            return Names(of_link.container, "", of_link.pod or pod, of_link.namespace or namespace)
        for one in (place.id,) + place.outer[::-1]:
            if one in engines:
                return engines[one]
        return Names()

    def read_pods(self, places: List[CgroupPlace]) -> Dict[str, Tuple[str, str]]:
        """Return the namespace and name by the pod's uid."""
        if not any(place.pod_uid for place in places):
            return {}
        parts = [name.split("_") for name in listdir(self.pod_logs)]
        return {part[2]: (part[0], part[1]) for part in parts if len(part) == 3}

    def read_container_logs(self, places: List[CgroupPlace]) -> Dict[str, Names]:
        """Return names by the container's id; a long file name is cut, and with it the id.

        Such a container has no name.
        """
        if not any(place.pod_uid for place in places):
            return {}
        found = {}
        for name in listdir(self.container_logs):
            match = re.match(r"([^_]+)_([^_]+)_(.+)-([0-9a-f]{64})\.log$", name)
            if match:
                found[match.group(4)] = Names(match.group(3), "", match.group(1), match.group(2))
        return found

    def read_engines(self, places: List[CgroupPlace]) -> Dict[str, Names]:
        """Return names by id from docker's socket and podman's file, each only if that engine may have containers."""
        engines = {place.engine for place in places if place.id}
        found: Dict[str, Names] = {}
        if engines & {"podman", "cri-o", ""}:
            found.update(self.read_storage())
        if engines & {"docker", ""}:
            found.update(self.ask_docker())
        return found

    def read_storage(self) -> Dict[str, Names]:
        try:
            with open(self.storage, "rb") as stream:
                rows = json.loads(stream.read(MOST_BYTES).decode("utf-8", "replace"))
        except (OSError, ValueError):
            return {}
        found = {}
        for row in rows if isinstance(rows, list) else []:
            names = row.get("names") if isinstance(row, dict) else None
            if isinstance(names, list) and names:
                found[str(row.get("id"))] = Names(str(names[0]), image_of(row.get("metadata")), engine="podman")
        return found

    def ask_docker(self) -> Dict[str, Names]:
        if not os.path.exists(self.docker_pid):
            return {}
        try:
            rows = json.loads(get(self.docker, "/containers/json").decode("utf-8", "replace"))
        except (OSError, ValueError):
            return {}
        found = {}
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict) and isinstance(row.get("Names"), list):
                names = [str(name).lstrip("/") for name in row["Names"]]
                own = [name for name in names if "/" not in name]  # the others are links of other containers to it
                found[str(row.get("Id"))] = Names(
                    (own or names or [""])[0], str(row.get("Image") or ""), engine="docker"
                )
        return found


def image_of(metadata: Any) -> str:
    """Return the image in the metadata that podman keeps as JSON in a text."""
    try:
        return str(json.loads(metadata).get("image-name") or "")
    except (ValueError, TypeError, AttributeError):
        return ""


def get(path: str, url: str) -> bytes:
    """Return the body of an answer over a UNIX socket; OSError without one.

    HTTP 1.0 has no chunks and ends the connection.
    """
    end = time.monotonic() + TIMEOUT
    data = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        stream.settimeout(TIMEOUT)
        stream.connect(path)
        stream.sendall(("GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n" % url).encode("ascii"))
        while len(data) <= MOST_BYTES:
            left = end - time.monotonic()
            if left <= 0:
                raise OSError("no answer within %g s" % TIMEOUT)
            stream.settimeout(left)
            part = stream.recv(1 << 16)
            if not part:
                break
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0] + b" ":
        raise OSError("another answer than 200")
    return body


def listdir(path: str) -> List[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
