"""Processes that have a GPU open."""

import re
from typing import Dict, List, Optional

from ..base import validation
from ..base.host import Host
from ..system import open_files

DEVICE_NODES = "/dev/nvidia"
"""Prefix of all nodes of the driver: GPUs, nvidiactl, UVM, capabilities, NVSwitches, IMEX channels, nvidia-fs."""
CONTAINER = r"(?m)^(.*?)[/:-]([0-9a-f]{64})(?:\.scope)?(?:/|$)"
"""A container's id in /proc/PID/cgroup: docker-ID.scope, /docker/ID, libpod-ID.scope, cri-containerd-ID.scope."""
ROOTLESS = "(rootless)"
"""In place of the id below user@UID.service: there users name cgroups as they like, also like another container."""


def gpu_process_ids(host: Host) -> List[int]:
    return open_files.processes_with_open_file(host, lambda path: path.startswith(DEVICE_NODES))


def describe_commands(host: Host, pids: List[int], limit: int) -> Dict[int, str]:
    """Return command lines of processes, at most ``limit`` characters, with secrets masked.

    The name where there is none.
    """
    lines = host.command_lines(pids)
    words = {pid: validation.mask_command([word for word in lines.get(pid, []) if word]) for pid in pids}
    return {
        pid: " ".join(" ".join(words[pid]).split())[:limit] or (host.read("/proc/%d/comm" % pid) or "?").strip()
        for pid in pids
    }


def container_id(host: Host, pid: int) -> Optional[str]:
    """Return the id of a process's outermost container, which the host's engine knows; None outside of any."""
    found = re.search(CONTAINER, host.read("/proc/%d/cgroup" % pid) or "")
    return found and (ROOTLESS if "/user@" in found.group(1) else found.group(2))
