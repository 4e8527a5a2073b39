# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Reports the result of a run, in the process of Ansible itself: there is the Jinja that the page is made with.

It reads answers of hosts as texts only, and writes to the operator's directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import context

from ..lookup.gpu_ready_run import seconds_since_start
from ..module_utils.gpu_ready.answers.controller import ReportAnswer
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..modules import gpu_report as module
from ..plugin_utils import terminal
from ..plugin_utils.control_node import ControlNodeAction
from ..plugin_utils.fleet_report import audit_table, commands, read, store, texts
from ..plugin_utils.fleet_report.model import Report
from ..plugin_utils.gpu_ready.execute import steps
from ..plugin_utils.run_report import Destination, inventories, make_report, with_fault, write_report
from ..plugin_utils.variables.rollout import read_hosts

EXECUTED = tuple(f"{part}_{'result' if part == 'gpu_verify' else 'executed'}" for part in steps.PARTS)
"""What the roles of a plan register (tasks/steps.yml)."""


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
        parts = given["parts"]
        if given["kind"] == "site":
            parts |= {"seconds": seconds_of_steps(self.variables["hostvars"], parts.get("steps") or {})}
        report = make_report(given["kind"], parts, given["record"], check_mode, seconds_since_start())
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
        names = {texts.line(name): name for name in read.entries(given["parts"])}
        bad = {names[name]: why for name, why in commands.bad_hosts(report).items()}
        if shown:
            terminal.show(shown, {host.name: host.state.replace("_", " ") for host in report.hosts})
        return ReportAnswer(report.counts, bad, paths)

    def shown(self, given: dict[str, Any], report: Report, paths: list[str]) -> str:
        """Return what the screen shows."""
        width = terminal.columns(given["width"])
        states = {host.name: commands.state_of(host) for host in report.hosts if not host.good}
        called = str((context.CLIARGS.get("args") or ("site.yml",))[0])
        variables = bool(context.CLIARGS.get("extra_vars"))
        following = commands.next_command(report.kind, states, len(report.hosts), called, inventories(), variables)
        return commands.shown_text(report, given["format"], width, bool(self._task.diff), paths, following)


def seconds_of_steps(
    hostvars: Mapping[str, Mapping[str, Any]], planned: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return how long the steps of each host took that has any, also of the part that failed."""
    hosts = [host for host, of_host in planned.items() if of_host and host in hostvars]
    return {
        host: {
            step: seconds
            for one in registered.values()
            for step, seconds in texts.mapping(texts.mapping(one).get("seconds")).items()
        }
        for host, registered in read_hosts(hostvars, hosts, EXECUTED).items()
    }
