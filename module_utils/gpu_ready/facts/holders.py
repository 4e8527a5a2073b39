"""Who holds the GPUs of a host: processes with a device node of the driver open, their commands and containers."""

import json
from typing import Any, Dict, List

from ..base import validation
from ..base.host import Host
from ..containers import docker
from ..driver import gpu_services
from . import driver

LONGEST = 200
"""Characters kept of a command line; those of some programs are very long."""


def look(host: Host) -> List[Dict[str, Any]]:
    """Return the processes that hold a GPU, by pid: ``pid``, ``name``, ``command``, ``container`` (or None).

    ``service``: one of the driver's own services, such as the persistence daemon, which is no work of anybody.
    The driver counts who has its nodes open, so the walk through /proc is made only where that count is not zero.
    """
    if not driver.busy(driver.use(host)):
        return []
    return [holder(host, one) for one in sorted(driver.clients(host), key=lambda one: int(one["pid"]))]


def holder(host: Host, client: Dict[str, Any]) -> Dict[str, Any]:
    """Return a process with its command line and its container."""
    folder = "/proc/%d" % client["pid"]
    words = [word for word in (host.read(folder + "/cmdline") or "").split("\0") if word]
    command = " ".join(" ".join(validation.mask_command(words)).split())[:LONGEST]
    identity = client["container"]
    return {
        "pid": client["pid"],
        "name": client["name"],
        "command": command or client["name"],
        "container": container_name(host, identity) if identity else None,
        "service": gpu_services.is_gpu_service(client["name"]),
    }


def container_name(host: Host, identity: str) -> str:
    """Return docker's name of a container, and the first 12 characters of its id where docker does not know it."""
    for socket in docker.SOCKETS:
        if host.exists(socket):
            try:
                answer = json.loads(host.http_unix(socket, "/containers/%s/json" % identity) or "null")
            except ValueError:
                answer = None
            if isinstance(answer, dict) and answer.get("Name"):
                return str(answer["Name"]).lstrip("/")
    return identity[:12]
