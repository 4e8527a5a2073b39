"""Installs, updates and removes the service that writes metrics of the GPUs."""

import os
import pkgutil
from typing import Any, Dict, List, Sequence

from ..base import files as written
from ..base import managed_files, manifest_notes
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..check import judge, kmsg, model, node, nvlink, nvml, pci, program, reading, rules, slurm, worker, xids
from ..driver import service
from ..monitor import containers, kernel_log, metrics, textfile
from ..monitor import service as monitor_service
from ..packaging import select
from ..system import check_files
from ..system import monitoring_files as files
from . import revert

CHECK = (judge, kmsg, model, node, nvlink, nvml, pci, program, reading, rules, slurm, worker, xids)
MONITOR = (containers, kernel_log, metrics, monitor_service, textfile)
"""The program: what this module travels with is written to the host as it is."""
LIMIT = 120.0


def program_files(subjects: Sequence[str]) -> Dict[str, bytes]:
    """Return the source of a program by the names of its files; ``subjects``: its packages."""
    found = {"__init__.py": b""}
    for modules in (CHECK, MONITOR):
        package, _, _ = modules[0].__name__.rpartition(".")
        subject = package.rpartition(".")[2]
        names = ["__init__.py"] + [module.__name__.rpartition(".")[2] + ".py" for module in modules]
        if subject in subjects:
            found.update({subject + "/" + name: pkgutil.get_data(package, name) or b"" for name in names})
    return found


def write_program(host: Host, directory: str, package: str, subjects: Sequence[str], check: bool) -> bool:
    """Write what differs of a program into the package below its directory; returns whether anything does."""
    program = {package + "/" + name: data for name, data in program_files(subjects).items()}
    old = [path for path, data in program.items() if host.read_bytes(path) != data]
    present = [package + "/" + name for name in files.list_program(package, host.listdir)]
    extra = [path for path in present if path not in program]
    if not check:
        manifest_notes.note("directories", {directory: {}})
        for subject in subjects:
            os.makedirs(package + "/" + subject, mode=0o755, exist_ok=True)
        for path in old:
            written.write_atomic(path, program[path], 0o644)
        for path in extra:
            os.unlink(path)
    return bool(old or extra)


def install_check(host: Host, check: bool) -> Dict[str, Any]:
    """Write the program of gpu-ready-check; gpu_files writes what belongs to a host."""
    changed = write_program(host, check_files.DIRECTORY, check_files.PACKAGE, files.SUBJECTS[:1], check)
    return {"changed": changed, "paths": [], "diff": []}


def install(host: Host, params: files.MonitoringParams, check: bool) -> Dict[str, Any]:
    """Write what differs, then start or restart the service; one that does not run is an error with its cause."""
    texts = files.format_files(params)
    desired = [managed_files.ManagedFile(path, text.encode("utf-8"), 0o644) for path, text in sorted(texts.items())]
    program = write_program(host, files.DIRECTORY, files.PROGRAM, files.SUBJECTS, check)
    if not check:
        manifest_notes.make_parents(os.path.join(params.directory, files.FILE))
    result = managed_files.converge(host, desired, [], check)
    changed = bool(result["changed"] or program)
    if params.reload and not check:
        reread(host)
    started = service.run_service(host, files.NAME, service.RESTARTED if changed else service.STARTED, check)
    return {"changed": bool(changed or started["changed"]), "paths": result["paths"], "diff": result["diff"]}


def remove(host: Host, check: bool) -> Dict[str, Any]:
    """Stop the service, which deletes the metrics, and revert its files."""
    active = service.is_active(host, files.NAME) or host.exists(files.UNIT)  # one that fails is between two starts
    if active and not check:
        answer = host.run(["systemctl", "stop", files.NAME], LIMIT)
        if answer.rc != 0:
            raise GpuReadyError(
                "the service %s does not stop: %s. See `journalctl -u %s`, then run again"
                % (files.NAME, answer.err.strip()[-300:], files.NAME)
            )
    paths: List[str] = [files.UNIT, files.AT_BOOT, files.SETTINGS, files.MAIN, files.DIRECTORY]
    result = revert.revert(host, select.choose_manager(host, False), revert.RevertRequest([], paths, []), check)
    if not check:
        manifest_notes.drop("services", [files.NAME])
    return {
        "changed": bool(active or result["changed"]),
        "paths": result["paths"],
        "diff": result["diff"],
        "warnings": result["warnings"],
    }


def reread(host: Host) -> None:
    """Let systemd read its units again."""
    answer = host.run(["systemctl", "daemon-reload"], LIMIT)
    if answer.rc != 0:
        raise GpuReadyError(
            "systemd does not read its units (%s). See `systemctl status`, then run again" % answer.err.strip()[-300:]
        )
