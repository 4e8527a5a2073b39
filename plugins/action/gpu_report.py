# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Reports the result of a run, in the process of Ansible itself: there is the Jinja that the page is made with.

It reads what all hosts have registered itself, as texts only, and writes to the operator's directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context

from ..lookup.gpu_ready_run import seconds_since_start
from ..module_utils.gpu_ready.answers.controller import ReportAnswer
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..modules import gpu_report as module
from ..plugin_utils import terminal
from ..plugin_utils.control_node import ControlNodeAction, plain
from ..plugin_utils.fleet_report import audit_table, commands, estimate, store, texts
from ..plugin_utils.fleet_report.model import Report
from ..plugin_utils.fleet_report.read import Parts
from ..plugin_utils.gpu_ready.rollout.fold import UPGRADE
from ..plugin_utils.registered import read_parts, rollout_parts
from ..plugin_utils.rollout_outcomes import RESULTS
from ..plugin_utils.run_report import Destination, earlier_runs, inventories, make_report, with_fault, write_report


class ActionModule(ControlNodeAction):
    """The plugin; Ansible finds it by this name."""

    module = module

    variables: Mapping[str, Any] = {}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Keep the variables for `compute`."""
        self.variables = task_vars or {}
        return super().run(tmp, task_vars)

    def compute(self, given: dict[str, Any]) -> ReportAnswer:
        """Return the report of a run, after writing its files. Raises GpuReadyError."""
        # A report is no state of a host: under --check the screen says what would be done, and no file is written.
        check_mode = bool(self._task.check_mode)
        if given["kind"] == UPGRADE and check_mode:
            return ReportAnswer({}, {}, [])  # the plan of the rollout is on the screen
        kind, hosts, record = self.reported(given["kind"])
        report = make_report(kind, hosts, record, check_mode, seconds_since_start())
        paths: list[str] = []
        fault: GpuReadyError | None = None
        if given["directory"] and given["formats"] and not check_mode:
            try:
                report, paths = write_report(report, Destination(given["directory"], given["formats"], given["keep"]))
            except GpuReadyError as error:
                fault = error
        shown = self.shown(given, report, paths)
        if given["path"] and not check_mode:
            path = Path(given["path"]).expanduser().absolute()
            text = audit_table.text(report, given["format"], terminal.columns(given["width"]), bool(self._task.diff))
            store.write_file(path, text.rstrip("\n") + "\n", "gpu_audit_path")
            shown = "\n\n".join([f"The audit is in {path}", *commands.pages_text(paths)])
        if fault:
            raise with_fault(fault, shown)
        names = {texts.line(name): name for name in hosts}
        bad = {names[name]: why for name, why in commands.bad_hosts(report).items()}
        if shown:
            terminal.show(shown, {host.name: host.state.replace("_", " ") for host in report.hosts})
        return ReportAnswer(report.counts, bad, paths)

    def reported(self, kind: str) -> tuple[str, Parts, str]:
        """Return the kind of the report, what is known of each host, and the record of the rollout, "" without one."""
        if kind == UPGRADE:
            known = plain(self.variables[RESULTS])
            return known["kind"], rollout_parts(known["outcomes"]), known["record"]
        hosts = [str(name) for name in self.variables["ansible_play_hosts_all"]]
        return kind, read_parts(kind, self.variables["hostvars"], hosts), ""

    def shown(self, given: dict[str, Any], report: Report, paths: list[str]) -> str:
        """Return what the screen shows."""
        width = terminal.columns(given["width"])
        states = {host.name: commands.state_of(host) for host in report.hosts if not host.good}
        called = str((context.CLIARGS.get("args") or ("site.yml",))[0])
        variables = bool(context.CLIARGS.get("extra_vars"))
        following = commands.next_command(report.kind, states, len(report.hosts), called, inventories(), variables)
        time = ""
        if report.kind == "site" and report.check_mode:
            forks = int(context.CLIARGS.get("forks") or C.DEFAULT_FORKS)
            time = estimate.estimate_text(report, earlier_runs(given["directory"]), forks)
        return commands.shown_text(report, given["format"], width, bool(self._task.diff), paths, following, time)
