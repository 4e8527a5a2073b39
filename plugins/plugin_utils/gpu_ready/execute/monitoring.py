# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of monitoring."""

from __future__ import annotations

from pathlib import Path

from .model import INSTALL, Execution, Parameters, Step
from .repository import add_repositories

FILES = Path(__file__).resolve().parents[4] / "roles/gpu_monitoring/files"
DCGM_FILES = {
    "gpu-ready-counters.csv": "/etc/dcgm-exporter/gpu-ready-counters.csv",
    "gpu-ready.conf": "/etc/systemd/system/nvidia-dcgm-exporter.service.d/gpu-ready.conf",
}
"""Metrics of the exporter and its command, and where they are written."""


def node_exporter(step: Parameters, part: Execution) -> None:
    """Run node_exporter."""
    package = {"names": step["packages"], "update_cache": True, "purpose": "node_exporter"}
    part.run("gpu_packages", package, INSTALL)
    part.run("gpu_service", {"name": step["service"]})


def textfile(step: Parameters, part: Execution) -> None:
    """Run the service that writes metrics."""
    names = ("python", "directory", "interval", "old_names", "branch_ends", "reload")
    part.run("gpu_monitoring", {name: step[name] for name in names}, INSTALL)


def dcgm(step: Parameters, part: Execution) -> None:
    """Run DCGM and its exporter."""
    # Before the packages: their scripts let systemd read its units, and start them.
    files = [{"path": path, "content": (FILES / name).read_text(encoding="utf-8")} for name, path in DCGM_FILES.items()]
    written = part.run("gpu_files", {"files": files})
    packages = {"names": step["packages"], "hold": step["hold"], "update_cache": True}
    part.run("gpu_packages", {**packages, "purpose": "DCGM and its exporter"}, INSTALL)
    part.run("gpu_service", {"name": "nvidia-dcgm"})
    state = "restarted" if written.get("changed") else "started"
    part.run("gpu_service", {"name": "nvidia-dcgm-exporter", "state": state})


def remove_dcgm(step: Parameters, part: Execution) -> None:
    """Release DCGM and its exporter, and remove them."""
    part.run("gpu_packages", {"unhold": step["packages"], "purpose": "the release of DCGM"}, INSTALL)
    part.run("gpu_revert", {"packages": step["packages"], "paths": step["paths"]}, INSTALL)


def remove(step: Parameters, part: Execution) -> None:
    """Stop and remove the service that writes metrics."""
    part.run("gpu_monitoring", {"state": "absent"}, INSTALL)


def remove_node_exporter(step: Parameters, part: Execution) -> None:
    """Remove node_exporter."""
    part.run("gpu_revert", {"packages": step["packages"]}, INSTALL)


STEPS: dict[str, Step] = {
    "gpu_monitoring.node_exporter": node_exporter,
    "gpu_monitoring.textfile": textfile,
    "gpu_monitoring.repository": add_repositories,
    "gpu_monitoring.dcgm": dcgm,
    "gpu_monitoring.remove_dcgm": remove_dcgm,
    "gpu_monitoring.remove": remove,
    "gpu_monitoring.remove_node_exporter": remove_node_exporter,
}
