# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of monitoring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ....module_utils.gpu_ready.system import check_files
from ....module_utils.gpu_ready.system.monitoring_files import (
    DIRECTORY,
    NODE_EXPORTER_DIRECTORY,
    MonitoringParams,
    format_files,
)
from ..catalog import model as catalog
from ..catalog.data import MONITOR
from ..plan import health_check
from ..plan.changes import FactChange, add, drop, set_to
from .effects import Before, Declared, revert_effects, standard_effects
from .model import INSTALL, Execution, Parameters
from .repository import add_repositories, repository_effects

FILES = Path(__file__).resolve().parents[4] / "roles/gpu_monitoring/files"
DCGM_FILES = {
    "gpu-ready-counters.csv": "/etc/dcgm-exporter/gpu-ready-counters.csv",
    "gpu-ready.conf": "/etc/systemd/system/nvidia-dcgm-exporter.service.d/gpu-ready.conf",
}
"""Metrics of the exporter and its command, and where they are written."""
EXPORTER = {"monitoring.exporter_runs": True, "monitoring.exporter": NODE_EXPORTER_DIRECTORY}
NO_EXPORTER = {"monitoring.exporter_runs": False, "monitoring.exporter": ""}
NO_CHECK = {"monitoring.check": {}, "monitoring.check_running": False}
NO_SERVICE = {"monitoring.files": {}, "monitoring.program": "", "monitoring.running": False}


def node_exporter(step: Parameters, part: Execution) -> None:
    """Run node_exporter."""
    package = {"names": step["packages"], "update_cache": True, "purpose": "node_exporter"}
    part.run("gpu_packages", package, INSTALL)
    part.run("gpu_service", {"name": step["service"]})


def textfile(step: Parameters, part: Execution) -> None:
    """Run the service that writes metrics."""
    names = ("python", "directory", "interval", "old_names", "branch_ends", "reload")
    part.run("gpu_monitoring", {name: step[name] for name in names}, INSTALL)


def textfile_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the service, its program and its files."""
    files = format_files(MonitoringParams(**step))
    yield set_to("monitoring.files", files)
    yield set_to("monitoring.program", MONITOR)
    yield set_to("monitoring.running", True)
    yield set_to("monitoring.python", step["python"])
    yield add("runtime.manifest.files", files)
    yield add("runtime.manifest.directories", [DIRECTORY])


def remove_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    yield drop("runtime.manifest.files", before.facts.monitoring.files)
    yield drop("runtime.manifest.directories", [DIRECTORY])


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


def dcgm_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the packages, the files, and that both run."""
    yield from standard_effects(step, before)
    yield set_to("monitoring.dcgm", dict(catalog.dcgm()["files"]))
    yield set_to("monitoring.dcgm_running", True)
    yield add("runtime.manifest.files", DCGM_FILES.values())


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


def check(step: Parameters, part: Execution) -> None:
    """Install the health check and its wirings."""
    given = check_files.CheckParams(*(step[name] for name in check_files.CheckParams._fields))
    if step["timer"]:
        part.run("gpu_service", {"name": check_files.TIMER, "state": "stopped"})
    part.run("gpu_monitoring", {"state": "check"}, INSTALL)
    texts = check_files.format_files(given)
    files = [{"path": path, "content": text, "mode": check_files.mode(path)} for path, text in sorted(texts.items())]
    part.run("gpu_files", {"files": files})
    if step["leftovers"]:
        part.run("gpu_revert", {"paths": step["leftovers"]}, INSTALL)
    if check_files.SYSTEMD in given.wirings:
        part.run("gpu_service", {"name": check_files.TIMER})


def check_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield its files, and that its timer runs."""
    given = check_files.CheckParams(*(step[name] for name in check_files.CheckParams._fields))
    yield set_to("monitoring.check", health_check.digests(given))
    yield set_to("monitoring.check_running", check_files.SYSTEMD in given.wirings)
    yield add("runtime.manifest.files", check_files.format_files(given))
    yield add("runtime.manifest.directories", [check_files.DIRECTORY])
    yield drop("runtime.manifest.files", step["leftovers"])


def remove_check_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    yield drop("runtime.manifest.files", step["paths"])
    yield drop("runtime.manifest.directories", [check_files.DIRECTORY])


def remove_check(step: Parameters, part: Execution) -> None:
    """Remove the health check and its wirings."""
    if step["timer"]:
        part.run("gpu_service", {"name": check_files.TIMER, "state": "stopped"})
    part.run("gpu_revert", {"paths": step["paths"]}, INSTALL)


STEPS: dict[str, Declared] = {
    "gpu_monitoring.node_exporter": Declared(node_exporter, standard_effects, EXPORTER),
    "gpu_monitoring.textfile": Declared(textfile, textfile_effects),
    "gpu_monitoring.check": Declared(check, check_effects),
    "gpu_monitoring.remove_check": Declared(remove_check, remove_check_effects, NO_CHECK),
    "gpu_monitoring.repository": Declared(add_repositories, repository_effects),
    "gpu_monitoring.dcgm": Declared(dcgm, dcgm_effects),
    "gpu_monitoring.remove_dcgm": Declared(
        remove_dcgm, revert_effects, {"monitoring.dcgm": {}, "monitoring.dcgm_running": False}
    ),
    "gpu_monitoring.remove": Declared(remove, remove_effects, NO_SERVICE),
    "gpu_monitoring.remove_node_exporter": Declared(remove_node_exporter, revert_effects, NO_EXPORTER),
}
