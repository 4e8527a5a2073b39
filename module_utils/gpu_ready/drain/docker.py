"""Docker's GPU containers: found by what they hold and what they asked for, stopped, and started again."""

import http.client
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base.host import Host
from ..containers import docker
from ..facts import driver
from . import journal as drain
from .journal import DrainError

GRACE = 10
"""Seconds that docker gives a container where nothing names a time."""
SLACK = 60.0
"""Seconds that the engine may need to answer beyond the grace."""
AT_ONCE = 8
SWARM = "com.docker.swarm.service.id"
KUBERNETES = "io.kubernetes.pod.name"
PATH = "/containers/%s/%s"


class Container(NamedTuple):
    """A container of docker: what matters to stop and start it."""

    id: str
    name: str
    running: bool
    paused: bool
    temporary: bool
    """docker deletes it when it stops (``--rm``)"""
    manager: str
    """who starts it anew when it stops: swarm, kubernetes or nobody ("")"""
    grace: int
    """seconds between SIGTERM and SIGKILL that the container names"""


class Work(NamedTuple):
    """What a drain does: containers to stop now, and those whose end is awaited."""

    stop: List[Container]
    wait: List[Container]


def read(answer: Dict[str, Any]) -> Container:
    """Return the container in the answer of ``GET /containers/ID/json``."""
    state, config = answer.get("State") or {}, answer.get("Config") or {}
    labels = config.get("Labels") or {}
    manager = "swarm" if labels.get(SWARM) else "kubernetes" if labels.get(KUBERNETES) else ""
    grace = config.get("StopTimeout")
    return Container(
        str(answer["Id"]),
        str(answer.get("Name") or answer["Id"][:12]).lstrip("/"),
        bool(state.get("Running") or state.get("Restarting")),
        bool(state.get("Paused")),
        bool((answer.get("HostConfig") or {}).get("AutoRemove")),
        manager,
        GRACE if grace is None else int(grace),
    )


def decide(found: List[Container], stop_temporary: bool) -> Work:
    """Return what to do with running GPU containers. Raises DrainError for those that somebody would start anew."""
    for manager, remedy in (
        ("swarm", "drain the node with `docker node update --availability drain`, or by a task file of your own"),
        ("kubernetes", "use gpu_upgrade_drain: kubernetes"),
    ):
        names = ", ".join(one.name for one in found if one.manager == manager)
        if names:
            raise DrainError("%s started the GPU containers %s, and would again: %s." % (manager, names, remedy))
    wait = [one for one in found if one.temporary and not stop_temporary]
    return Work([one for one in found if one not in wait], wait)


def awaited(found: List[Container]) -> str:
    """Return what is awaited, "" for nothing."""
    names = ", ".join(one.name for one in found)
    return "the end of %s, which docker deletes when stopped (--rm)" % names if found else ""


class Engine:
    """Docker's engine on this host, through its socket; ``limit``: seconds that the end of a container may take."""

    def __init__(self, host: Host, path: Optional[str] = None, limit: float = 1800.0) -> None:
        self.host = host
        self.limit = limit
        self.socket = path or next((one for one in docker.SOCKETS if host.exists(one)), None)

    def ask(self, method: str, url: str, timeout: float = SLACK) -> Tuple[int, Any]:
        """Return status and value of an answer; DrainError where the engine gives none."""
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.sock = sock
            sock.settimeout(timeout)
            sock.connect(str(self.socket))
            connection.request(method, url, headers={"Content-Length": "0"} if method == "POST" else {})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return answer.status, json.loads(text) if text.strip() else None
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise DrainError(
                "docker does not answer at %s (%s): see `systemctl status docker`, then run again."
                % (self.socket, error)
            ) from None
        finally:
            connection.close()

    def inspect(self, identity: str) -> Optional[Dict[str, Any]]:
        """Return what docker says of a container, None where it has none of this name."""
        status, value = self.ask("GET", PATH % (identity, "json"))
        if status == 404:
            return None
        if status != 200 or not isinstance(value, dict):
            raise DrainError("docker did not tell of the container %s (%s): run again." % (identity, said(value)))
        return value

    def holding(self) -> List[Container]:
        """Return the running containers that asked for a GPU or in which a process holds one."""
        if self.socket is None:
            return []
        _, rows = self.ask("GET", "/containers/json")
        if not isinstance(rows, list):
            raise DrainError("docker did not list its containers (%s): run again." % said(rows))
        held = {client["container"] for client in driver.clients(self.host)}
        found = []
        for row in rows:
            value = self.inspect(str(row.get("Id")))
            if value is not None and (value["Id"] in held or docker.uses_gpu(value)):
                found.append(read(value))
        return sorted((one for one in found if one.running), key=lambda one: one.name)

    def awaited(self, stop_temporary: bool) -> str:
        """Return which GPU containers are still awaited, "" for none. Called once all that may be stopped were."""
        work = decide(self.holding(), stop_temporary)
        anew = ", ".join(one.name for one in work.stop)
        told = [awaited(work.wait)]
        told += ["the end of %s, which somebody (a unit of systemd?) started meanwhile" % anew] if anew else []
        return "; ".join(part for part in told if part)

    def stop(self, container: Container, grace: int) -> str:
        """Stop a container; returns what went wrong, "" for nothing."""
        seconds = container.grace if grace < 0 else grace  # below 0 still: docker waits for ever
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
        return "" if status in (204, 304, 404) else "%s did not stop (%s)" % (container.name, said(value))

    def start(self, identity: str, entry: Dict[str, Any]) -> str:
        """Start a container that we stopped; returns what went wrong, "" for nothing."""
        value = self.inspect(identity)
        if value is None or read(value).running:
            return ""
        status, answer = self.ask("POST", PATH % (identity, "start"))
        if status in (204, 304) and entry.get("paused"):
            status, answer = self.ask("POST", PATH % (identity, "pause"))
        return "" if status in (204, 304, 404) else "%s does not start (%s)" % (entry.get("name"), said(answer))


def said(value: Any) -> str:
    """Return docker's own words in an answer."""
    return str(value.get("message") if isinstance(value, dict) else value or "no reason given").strip()


def note(host: Host, containers: List[Container], path: str) -> None:
    """Note containers that are about to be stopped, beside those of earlier runs."""
    known = dict((drain.read(host, path).get("docker") or {"containers": {}})["containers"])
    for one in containers:
        known.setdefault(one.id, {"name": one.name, "paused": one.paused})
    drain.note(host, {"docker": {"containers": known}}, path)


def stop_all(host: Host, engine: Engine, temporary: bool, grace: int, check: bool, path: str = drain.PATH) -> List[str]:
    """Note and stop the GPU containers; returns their names. ``check``: only say which. DrainError when one stays."""
    found = decide(engine.holding(), temporary).stop
    if found and not check:
        lasting = [one for one in found if not one.temporary]
        if lasting:  # of the others nothing comes back, and an entry without containers would stay for ever
            note(host, lasting, path)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            problems = [problem for problem in pool.map(lambda one: engine.stop(one, grace), found) if problem]
        if problems:
            raise DrainError(
                "docker could not stop every GPU container: %s; stop them, then run again." % "; ".join(problems)
            )
    return [one.name for one in found]


def start_all(host: Host, engine: Engine, check: bool, path: str = drain.PATH) -> Dict[str, Any]:
    """Start what the journal says that we stopped, and forget it; returns which (``check``: it only says so).

    Raises DrainError where one does not start; it stays in the journal.
    """
    containers = dict((drain.read(host, path).get("docker") or {"containers": {}})["containers"])
    names = sorted(str(entry["name"]) for entry in containers.values())
    if check or not containers:
        return {"changed": bool(containers), "containers": names}
    if engine.socket is None:
        raise DrainError("docker is not running: start it, then run again, so that %s come back." % ", ".join(names))
    problems = {}  # type: Dict[str, str]
    failed = dict(containers)
    while failed:
        # Again those that failed, as long as that helps: one may use the network of another, which has to run first.
        problems = {identity: engine.start(identity, entry) for identity, entry in sorted(failed.items())}
        still = {identity: containers[identity] for identity, problem in problems.items() if problem}
        if len(still) == len(failed):
            break
        failed = still
    if failed:
        drain.note(host, {"docker": {"containers": failed}}, path)
        raise DrainError(
            "docker could not start every container again: %s; see `docker logs`, then run again."
            % "; ".join(problem for problem in problems.values() if problem)
        )
    drain.forget(host, ["docker"], path)
    return {"changed": True, "containers": names}
