"""Services of the driver that hold the GPUs for the system rather than for anybody's work."""

import posixpath

from ..base.host import Host, process_user
from ..system.process_identity import unit_of
from . import persistence_state

UNITS = (
    "gpu-ready-monitoring.service", "gpu-ready-check.timer", "gpu-ready-check.service", "nvidia-cdi-refresh.path",
    "nvidia-cdi-refresh.service", "dcgm-exporter.service", "nvidia-dcgm-exporter.service", "nvidia-dcgm.service",
    "nvidia-gridd.service", "nvidia-topologyd.service", "nvidia-imex.service", "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
)  # fmt: skip
"""Units to stop before a live reload, in this order; they are started in reverse order."""
PROGRAMS = (
    "nvidia-persistenced", "nv-fabricmanager", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvidia-gridd", "nvlsm",
    "gpu-ready-monitor",
)  # fmt: skip
"""Programs of these units that open device nodes."""


def is_gpu_service(host: Host, pid: int, cgroup: str) -> bool:
    """Return True if a process is one of these services, run by its unit or started by root without systemd.

    Its name does not count, and neither does the program that another user runs: LD_PRELOAD puts any code into it. The
    persistence daemon changes its user (nvidia-persistenced(1), --user), and only root can make the directory of its
    PID file. ``cgroup``: text of /proc/PID/cgroup.
    """
    if unit_of(cgroup) in UNITS:
        return True
    program = "/proc/%d/exe" % pid
    name = posixpath.basename(host.readlink(program) or "")
    if name.partition(" (deleted)")[0] not in PROGRAMS or host.owner(program) != 0:
        return False
    return process_user(host, pid) == 0 or (host.read(persistence_state.PID) or "").strip() == str(pid)
