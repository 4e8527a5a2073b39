# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Reports the result of a run, in the process of Ansible itself: there is the Jinja that the page is made with.

It reads answers of hosts as texts only, and writes to the operator's directory.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible import context

from ..module_utils.gpu_ready.answers.controller import ReportAnswer
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..modules import gpu_report as module
from ..plugin_utils import terminal
from ..plugin_utils.control_node import ControlNodeAction
from ..plugin_utils.fleet_report import commands, model
from ..plugin_utils.run_report import inventories, write_report


class ActionModule(ControlNodeAction):
    """The plugin; Ansible finds it by this name."""

    module = module

    def compute(self, given: dict[str, Any]) -> ReportAnswer:
        """Return the report of a run, after writing its files. Raises GpuReadyError."""
        check_mode = bool(self._task.check_mode)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        fleet = model.read(given["kind"], given["parts"], moment, check_mode)
        states = {host.name: commands.state_of(host) for host in fleet.hosts if not host.good}
        called = str((context.CLIARGS.get("args") or ("site.yml",))[0])
        following = commands.next_command(
            fleet.kind, states, len(fleet.hosts), called, inventories(), bool(context.CLIARGS.get("extra_vars"))
        )
        paths: list[str] = []
        # A report is no state of a host: under --check the table says what would be done, and no file is written.
        if not check_mode and given["directory"]:
            try:
                paths = write_report(fleet, given)
            except OSError as error:
                raise GpuReadyError(
                    f"The report cannot be written to {given['directory']} ({error.strerror}): set gpu_report_directory"
                    " to a writable directory, or to an empty text for none."
                    + (f" The report:\n\n{fleet.table(terminal.columns(given['width']), '')}" if fleet.table else "")
                ) from None
        if fleet.table is not None:
            complete = [Path(path).name for path in paths if path.endswith((".json", ".html"))]
            table = fleet.table(terminal.columns(given["width"]), sorted(complete, reverse=True)[0] if complete else "")
            pages = [f"Report: {path}" for path in paths if path.endswith(".html")]
            states = {host.name: host.state.replace("_", " ") for host in fleet.hosts}
            terminal.show("\n\n".join([table, *pages, *([following] if following else [])]), states)
        return ReportAnswer(fleet.counts, dict(fleet.bad), following, paths)
