"""Who holds the GPUs of a host: processes with a device node of the driver open, their commands and containers."""

import json
from typing import List

from ..base.host import Host
from ..containers import docker
from ..driver import gpu_services
from ..driver.gpu_processes import command_line
from . import driver
from .model import GpuProcess

LONGEST = 200
"""Characters of a command line that are kept."""


def collect(host: Host) -> List[GpuProcess]:
    """Return the processes that hold a GPU, by PID, with command and name of the container.

    ``service`` marks the driver's own services, such as the persistence daemon. The driver counts its open nodes, so
    /proc is only searched if that count is not zero.
    """
    if not driver.is_busy(driver.module_use(host)):
        return []
    return [with_command(host, one) for one in sorted(driver.gpu_processes(host))]


def with_command(host: Host, process: GpuProcess) -> GpuProcess:
    """Add command line, name of the container and whether it is a service of the driver."""
    return process._replace(
        command=command_line(host, process.pid, LONGEST),
        container=container_name(host, process.container) if process.container else None,
        service=gpu_services.is_gpu_service(process.name),
    )


def container_name(host: Host, identity: str) -> str:
    """Return docker's name of a container, the first 12 characters of its id if docker does not know it."""
    for socket in docker.SOCKETS:
        if host.exists(socket):
            try:
                answer = json.loads(host.http_unix(socket, "/containers/%s/json" % identity) or "null")
            except ValueError:
                answer = None
            if isinstance(answer, dict) and answer.get("Name"):
                return str(answer["Name"]).lstrip("/")
    return identity[:12]
