"""End processes of pods that hold the GPUs while the kubelet is stopped, which starts their containers again later."""

import contextlib
import os
import re
import signal
import time
from typing import List

from ..base.host import Host
from . import gpu_processes

GRACE = 10.0
"""Seconds for processes to end after each signal."""
CGROUP = re.compile(r"/kubepods[./]")
"""The kubelet's cgroup of all pods, with its drivers cgroupfs and systemd (its pkg/kubelet/cm)."""


def holders(host: Host) -> List[int]:
    """Return the processes of pods with a device node of NVIDIA open."""
    pids = gpu_processes.gpu_process_ids(host)
    return [pid for pid in pids if CGROUP.search(host.read("/proc/%d/cgroup" % pid) or "")]


def end(host: Host) -> None:
    """End these processes; what does not end is found by whoever unloads the module.

    The first process of a container ignores SIGTERM unless it handles it (pid_namespaces(7)); SIGKILL always works.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in holders(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        limit = time.monotonic() + GRACE
        while holders(host) and time.monotonic() < limit:
            time.sleep(0.2)
