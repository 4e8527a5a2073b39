# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Collects what a report says of its run, and writes its files; what they contain is in fleet_report."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ansible import __version__ as ansible_version
from ansible import constants as C
from ansible import context

from ..module_utils.gpu_ready.base.errors import GpuReadyError
from .control_node import operator, version
from .fleet_report import changes, estimate, index, metrics, page, read, store
from .fleet_report.command_line import command_text
from .fleet_report.model import Report, Run, as_json
from .gpu_ready.catalog.data import DATE
from .gpu_ready.rollout.record import RolloutFile
from .variables.names import NAMES

DIRECTORY = "gpu_report_directory"
RENDER: dict[str, Callable[[Report], str]] = {
    "json": as_json,
    "html": lambda report: page.page(report, index=True),
    "prometheus": metrics.metrics,
}


class Destination(NamedTuple):
    """Where reports are written: ``directory`` is empty for none; ``keep`` runs of each kind stay, 0 for all."""

    directory: str
    formats: Sequence[str]
    keep: int


def timestamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def inventories() -> list[str]:
    """Return the inventories that the command line named, as short as this directory allows."""
    named = [str(one) for one in context.CLIARGS.get("inventory") or ()]
    if named == [str(one) for one in C.DEFAULT_HOST_LIST]:
        return []
    here = f"{Path.cwd()}/"
    return [one.removeprefix(here) for one in named]


def earlier_runs(directory: str) -> list[Report]:
    """Return the newest reports of site.yml in a directory that exists. Raises GpuReadyError."""
    path = Path(directory).expanduser().absolute()
    if not directory or not path.is_dir():
        return []
    with store.opened(path, DIRECTORY) as opened:
        names = sorted((name for name in opened.names() if store.is_report_of("site", name)), reverse=True)
        found = [index.read_report(opened.read(name)) for name in names[: estimate.RUNS]]
    return [report for report in found if report]


def describe_run(now: float, age: int | str) -> Run:
    """Return who runs what, in the process of ansible-playbook or in one of its workers."""
    took = age if isinstance(age, int) else None
    return Run(
        command=command_text(sys.argv, NAMES.known),
        operator=operator(),
        inventories=inventories() or [str(one) for one in C.DEFAULT_HOST_LIST],
        limit=str(context.CLIARGS.get("subset") or ""),
        began="" if took is None else timestamp(now - took),
        seconds=took,
        gpu_ready=version(),
        ansible=str(ansible_version),
        catalog=DATE,
    )


def write_report(report: Report, to: Destination) -> tuple[Report, list[str]]:
    """Write a report in every format, and the index; remove old ones. Return it with what changed, and the paths.

    Raises GpuReadyError.
    """
    with store.opened(Path(to.directory).expanduser().absolute(), DIRECTORY) as directory:
        known = index.parse(directory.read(index.FILE))
        before = index.previous(known, report, directory.read)
        report = changes.compare(before, report)
        name = store.free_name(directory.names(), store.base(report.kind, report.time.replace(":", "-")))
        written = store.write_run(directory, report.kind, name, {form: RENDER[form](report) for form in to.formats})
        store.prune(directory, report.kind, to.keep)
        if "html" in to.formats:
            entries = index.update(known, directory.names(), name, report, directory.read)
            directory.write(index.FILE, index.as_json(entries).encode("utf-8"))
            directory.write(index.PAGE, index.index_page(entries).encode("utf-8"))
    return report, [str(path) for path in written]


def make_report(kind: str, hosts: read.Parts, record: str, check_mode: bool, age: int | str) -> Report:
    """Return the report of the run so far, with what is known of the run.

    ``hosts``: see plugin_utils/registered.py. ``record``: of the rollout, "" for none; one that cannot be read is left
    out, since gpu_upgrade_fleet shows that. ``age``: of this run, as the lookup plugin gpu_ready_run has it.
    """
    now = time.time()
    report = read.read(kind, hosts, timestamp(now), check_mode)._replace(run=describe_run(now, age))
    with contextlib.suppress(GpuReadyError):
        return read.with_rollout(report, RolloutFile(Path(record)).read()) if record else report
    return report


def write_interrupted(kind: str, hosts: read.Parts, to: Destination, record: str, age: int | str) -> list[str]:
    """Write the report of a run that the operator interrupted, and return the paths; none for no directory.

    For the callback, in Ansible's own process. The arguments are as in `make_report`. Raises GpuReadyError.
    """
    check_mode = bool(context.CLIARGS.get("check"))
    if check_mode or not to.directory or not to.formats:
        return []
    return write_report(make_report(kind, hosts, record, check_mode, age)._replace(interrupted=True), to)[1]


def with_fault(error: GpuReadyError, shown: str) -> GpuReadyError:
    """Return an error of the files with what they would have shown: hours of work are reported all the same."""
    return GpuReadyError(f"The report cannot be written. {error}" + (f" The report:\n\n{shown}" if shown else ""))
