"""Services of the driver that hold the GPUs for the system rather than for anybody's work."""

UNITS = (
    "gpu-ready-monitoring.service", "nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service", "dcgm-exporter.service",
    "nvidia-dcgm-exporter.service", "nvidia-dcgm.service", "nvidia-gridd.service", "nvidia-topologyd.service",
    "nvidia-imex.service", "nvidia-fabricmanager.service", "nvidia-persistenced.service",
)  # fmt: skip
"""Units to stop before a live reload, in this order; they are started in reverse order."""
PROGRAMS = (
    "nvidia-persistenced", "nv-fabricmanager", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvidia-gridd", "nvlsm",
    "gpu-ready-monitor",
)  # fmt: skip
"""Programs of these units that open device nodes."""
COMM_LENGTH = 15
"""The kernel cuts /proc/PID/comm to this length (TASK_COMM_LEN, less the final NUL)."""


def is_gpu_service(process_name: str) -> bool:
    """True if a process of that name (possibly cut by the kernel) is one of the driver's own services."""
    return process_name[:COMM_LENGTH] in {name[:COMM_LENGTH] for name in PROGRAMS}
