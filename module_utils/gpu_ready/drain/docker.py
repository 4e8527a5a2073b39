"""Docker's GPU containers: find, stop and start them."""

import http.client
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base.host import Host
from ..base.json_file import parse_json
from ..containers import docker
from ..driver.gpu_processes import gpu_process_ids
from . import journal
from .hook import Values
from .journal import DockerDrain, DrainError, DrainJournal, StoppedContainer

GRACE = 10
"""Docker's default seconds between SIGTERM and SIGKILL."""
SLACK = 60.0
"""Seconds for the engine's answer beyond the grace period."""
AT_ONCE = 8
SWARM = "com.docker.swarm.service.id"
KUBERNETES = "io.kubernetes.pod.name"
PATH = "/containers/%s/%s"


class GpuContainer(NamedTuple):
    """``temporary``: docker deletes it when it stops (``--rm``). ``grace``: seconds between SIGTERM and SIGKILL.

    ``manager``: what starts it again when it stops: swarm, kubernetes or nothing ("").
    """

    id: str
    name: str
    running: bool
    paused: bool
    temporary: bool
    manager: str
    grace: int


class DockerWork(NamedTuple):
    """Containers to stop now, and those whose end is awaited."""

    stop: List[GpuContainer]
    wait: List[GpuContainer]


def parse_container(answer: Dict[str, Any]) -> GpuContainer:
    """Parse the answer of ``GET /containers/ID/json``."""
    state, config = answer.get("State") or {}, answer.get("Config") or {}
    labels = config.get("Labels") or {}
    manager = "swarm" if labels.get(SWARM) else "kubernetes" if labels.get(KUBERNETES) else ""
    grace = config.get("StopTimeout")
    return GpuContainer(
        str(answer["Id"]),
        str(answer.get("Name") or answer["Id"][:12]).lstrip("/"),
        bool(state.get("Running") or state.get("Restarting")),
        bool(state.get("Paused")),
        bool((answer.get("HostConfig") or {}).get("AutoRemove")),
        manager,
        GRACE if grace is None else int(grace),
    )


def cgroup_lines(host: Host, pid: int) -> List[str]:
    """Return one line for each hierarchy of cgroups (cgroups(7)); none of a process that has ended."""
    return (host.read("/proc/%d/cgroup" % pid) or "").splitlines()


def holds_gpu(host: Host, answer: Dict[str, Any], held: List[str]) -> bool:
    """Return True if one of the cgroups ``held`` is in a container, an answer of ``GET /containers/ID/json``.

    The container has the cgroup of the process that docker started. The id alone is not enough: below a unit with
    Delegate= a user makes cgroups of any name (systemd.resource-control(5)).
    """
    identity = str(answer["Id"])
    lines = cgroup_lines(host, int((answer.get("State") or {}).get("Pid") or 0))
    own = tuple(line.partition(identity)[0] + identity for line in lines if identity in line)
    return any(line.startswith(own) for line in held)


def split_work(found: List[GpuContainer], stop_temporary: bool) -> DockerWork:
    """DrainError for containers that an orchestrator would start again."""
    for manager, remedy in (
        ("swarm", "Drain the node with `docker node update --availability drain`, or by a task file"),
        ("kubernetes", "Use gpu_upgrade_drain: kubernetes"),
    ):
        names = ", ".join(one.name for one in found if one.manager == manager)
        if names:
            raise DrainError("GPU containers %s: %s would start them again. %s." % (names, manager, remedy))
    wait = [one for one in found if one.temporary and not stop_temporary]
    return DockerWork([one for one in found if one not in wait], wait)


def describe_temporary(found: List[GpuContainer]) -> str:
    names = ", ".join(one.name for one in found)
    return "the end of %s, which docker deletes when stopped (--rm)" % names if found else ""


class DockerEngine:
    """Docker's engine through its socket. ``limit``: seconds in which a container has to end."""

    def __init__(self, host: Host, path: Optional[str] = None, limit: float = 1800.0) -> None:
        self.host = host
        self.limit = limit
        self.socket = path or next((one for one in docker.SOCKETS if host.exists(one)), None)

    def ask(self, method: str, url: str, timeout: float = SLACK) -> Tuple[int, Any]:
        """Return the status and JSON of an answer; DrainError if the engine does not answer."""
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.sock = sock
            sock.settimeout(timeout)
            sock.connect(str(self.socket))
            connection.request(method, url, headers={"Content-Length": "0"} if method == "POST" else {})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return answer.status, parse_json(text) if text.strip() else None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DrainError(
                "docker: it does not answer at %s (%s). See `systemctl status docker`, then run again."
                % (self.socket, error)
            ) from None
        finally:
            connection.close()

    def inspect(self, identity: str) -> Optional[Dict[str, Any]]:
        """Return None if docker has no such container."""
        status, value = self.ask("GET", PATH % (identity, "json"))
        if status == 404:
            return None
        if status != 200 or not isinstance(value, dict):
            raise DrainError(
                "docker: it did not describe the container %s (%s). Run again." % (identity, error_message(value))
            )
        return value

    def gpu_containers(self) -> List[GpuContainer]:
        """Return running containers that requested a GPU or in which a process has a device node of the driver open."""
        if self.socket is None:
            return []
        _, rows = self.ask("GET", "/containers/json")
        if not isinstance(rows, list):
            raise DrainError("docker: it did not list its containers (%s). Run again." % error_message(rows))
        held = [line for pid in gpu_process_ids(self.host) for line in cgroup_lines(self.host, pid)]
        found = []
        for row in rows:
            value = self.inspect(str(row.get("Id")))
            if value is not None and (docker.uses_gpu(value) or holds_gpu(self.host, value, held)):
                found.append(parse_container(value))
        return sorted((one for one in found if one.running), key=lambda one: one.name)

    def pending_work(self, stop_temporary: bool) -> str:
        """Return GPU containers that still run, "" for none. Called after all that may be stopped were."""
        work = split_work(self.gpu_containers(), stop_temporary)
        started = ", ".join(one.name for one in work.stop)
        parts = [describe_temporary(work.wait)]
        parts += ["the end of %s, which was started again (by a systemd unit?)" % started] if started else []
        return "; ".join(part for part in parts if part)

    def stop(self, container: GpuContainer, grace: int) -> str:
        """Stop a container; returns the problem, "" for none. ``grace``: seconds, -1 for the container's own."""
        seconds = container.grace if grace < 0 else grace  # still below 0: docker waits without a limit
        limit = (self.limit if seconds < 0 else min(seconds, self.limit)) + SLACK
        try:
            status, value = self.ask("POST", PATH % (container.id, "stop?t=%d" % seconds), limit)
        except DrainError as error:
            if 0 <= seconds <= self.limit:
                return str(error)
            killed = "never" if seconds < 0 else "only after %d s" % seconds
            return "%s did not end within %d s, and docker kills it %s (gpu_drain_docker_grace sets another time)" % (
                container.name, limit, killed
            )  # fmt: skip
        return "" if status in (204, 304, 404) else "%s did not stop (%s)" % (container.name, error_message(value))

    def start(self, identity: str, stopped: StoppedContainer) -> str:
        """Start a container that was stopped; returns the problem, "" for none."""
        value = self.inspect(identity)
        if value is None or parse_container(value).running:
            return ""
        status, answer = self.ask("POST", PATH % (identity, "start"))
        if status in (204, 304) and stopped.paused:
            status, answer = self.ask("POST", PATH % (identity, "pause"))
        return "" if status in (204, 304, 404) else "%s does not start (%s)" % (stopped.name, error_message(answer))


def error_message(value: object) -> str:
    """Return the message in an answer of docker."""
    return str(value.get("message") if isinstance(value, dict) else value or "no reason given").strip()


def stopped_containers(host: Host, path: str) -> Dict[str, StoppedContainer]:
    found = journal.read(host, path).docker
    return dict(found.containers) if found else {}


def record_containers(host: Host, containers: List[GpuContainer], path: str) -> None:
    """Record containers before they are stopped, in addition to earlier runs' records."""
    known = stopped_containers(host, path)
    for one in containers:
        known.setdefault(one.id, StoppedContainer(one.name, one.paused))
    journal.record_entries(host, DrainJournal(docker=DockerDrain(known)), path)


def stop_all(
    host: Host, engine: DockerEngine, temporary: bool, grace: int, check: bool, path: str = journal.PATH
) -> List[str]:
    """Record and stop the GPU containers; returns their names. DrainError if one does not stop."""
    found = split_work(engine.gpu_containers(), temporary).stop
    if found and not check:
        lasting = [one for one in found if not one.temporary]
        if lasting:  # temporary ones cannot be started again, so an entry of them would never be removed
            record_containers(host, lasting, path)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            problems = [problem for problem in pool.map(lambda one: engine.stop(one, grace), found) if problem]
        if problems:
            raise DrainError("docker: GPU containers still run: %s. Stop them, then run again." % "; ".join(problems))
    return [one.name for one in found]


def start_all(host: Host, engine: DockerEngine, check: bool, path: str = journal.PATH) -> Values:
    """Start the recorded containers and remove their entry. DrainError if one does not start; it stays recorded."""
    containers = stopped_containers(host, path)
    names = sorted(stopped.name for stopped in containers.values())
    if check or not containers:
        return {"changed": bool(containers), "containers": names}
    if engine.socket is None:
        raise DrainError("docker: it is not running. Start it, then run again to start %s." % ", ".join(names))
    problems: Dict[str, str] = {}
    failed = dict(containers)
    while failed:
        # Repeated as long as it helps: a container may use the network of another one, which has to run first.
        problems = {identity: engine.start(identity, stopped) for identity, stopped in sorted(failed.items())}
        still = {identity: containers[identity] for identity, problem in problems.items() if problem}
        if len(still) == len(failed):
            break
        failed = still
    if failed:
        journal.record_entries(host, DrainJournal(docker=DockerDrain(failed)), path)
        raise DrainError(
            "docker: containers did not start: %s. See `docker logs`, then run again."
            % "; ".join(problem for problem in problems.values() if problem)
        )
    journal.remove_entries(host, ["docker"], path)
    return {"changed": True, "containers": names}
