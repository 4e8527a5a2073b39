# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The report and the next commands of a run that ended early, from the variables that its hosts have registered so far.

Imported when that happens: no other run needs it in Ansible's own process.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import context

from .control_node import is_own
from .fleet_report.commands import sibling_command
from .fleet_report.read import Parts
from .gpu_ready.report import layout
from .gpu_ready.rollout import fold, record
from .gpu_ready.rollout.model import HostUpgrade
from .gpu_ready.rollout.tables import LONGEST_ANSWER
from .gpu_ready.turn import table
from .progress.interrupted import NextSteps
from .progress.words import doing_text
from .registered import read_parts, rollout_parts
from .rollout_outcomes import FLEET, collect_outcomes, read_upgrade
from .run_report import Destination, inventories, write_interrupted
from .variables.rollout import first_with, read_hosts
from .variables.settings import rules

EARLIER = "begun by an earlier run"
PHASES = {"draining": "drain", "switching": "switch", "verified": "return", "going_back": "rollback drain"}
PHASES |= {phase: phase for phase in table.RECORDED}
"""The phases of a turn by those that the record of a rollout has: of the host's journal, and of its own."""
REPORT = ("gpu_report_directory", "gpu_report_formats", "gpu_report_keep")
"""What a Destination of reports consists of."""


class InterruptedRun:
    """What hosts have registered. ``hostvars``: as Ansible has them; ``kind``: of the report; ``age``: in seconds."""

    def __init__(
        self, kind: str, hostvars: Mapping[str, Mapping[str, Any]], hosts: list[str], check: bool, age: int = 0
    ) -> None:
        self.age = age
        self.kind, self.hostvars, self.hosts, self.check = kind, hostvars, hosts, check
        self.fleet = first_with(hostvars, hosts, FLEET) if self.is_rollout else {}

    @property
    def is_rollout(self) -> bool:
        return self.kind in (fold.UPGRADE, fold.ROLLBACK)

    def rollout(self) -> fold.RolloutRecord | None:
        """Return the record of the rollout, None without one. Raises GpuReadyError."""
        path = self.fleet.get("record")
        return record.RolloutFile(Path(path)).read() if path else None

    def earlier(self) -> dict[str, str]:
        """Return the hosts that an earlier run left in the middle of their turn, with what it did there last.

        By the record of the rollout, and by the journals of the hosts.
        """
        if not self.is_rollout:
            return {}
        known = self.rollout()
        phases = {name: plan.phase for name, plan in self.plans().items() if plan.is_unfinished}
        for name, host in (known.hosts if known else {}).items():
            if name in self.hosts and host.may_be_changed and not host.state:
                phases[name] = host.phases[-1][0] if host.phases else ""
        words = {name: doing_text(PHASES.get(phase, "")) for name, phase in phases.items()}
        return {name: ", ".join(part for part in (text, EARLIER) if part) for name, text in words.items()}

    def plans(self) -> dict[str, HostUpgrade]:
        """Return what a rollout planned for each host."""
        return {name: read_upgrade(self.hostvars[name]) for name in self.hosts}

    def targets(self) -> dict[str, str]:
        """Return the change of the driver of each host: its version before, and the one that it gets."""
        found = {}
        for name, plan in (self.plans() if self.is_rollout else {}).items():
            if plan.from_ and plan.to:
                old, new = (layout.shortened(one, LONGEST_ANSWER) for one in (plan.from_, plan.to))
                found[name] = f"{old} -> {new}"
        return found

    def undo(self, changed: list[str]) -> str:
        """Return the command that undoes this run, or the rollout that it resumed; "" if no host was changed."""
        known = self.rollout()
        if not changed and not any(host.may_be_changed for host in (known.hosts.values() if known else ())):
            return ""
        called, named = str((context.CLIARGS.get("args") or ("site.yml",))[0]), inventories()
        given = bool(context.CLIARGS.get("extra_vars"))
        called = called if is_own(called) else ""
        if self.kind == fold.UPGRADE:
            return sibling_command(called, "rollback_drivers", named, [], given)
        if self.kind == fold.ROLLBACK:
            return f"{sibling_command(called, 'upgrade_drivers', named, [], False)}, with the variables of that upgrade"
        command = sibling_command(called, "uninstall", named, changed, given)
        return f"{command}, which lists what gpu-ready added there"

    def write(self) -> str:
        """Write the report so far; return the path of its page, "" without one. Raises GpuReadyError."""
        if self.check:
            return ""
        to = Destination(*(self.setting(name) for name in REPORT))
        paths = write_interrupted(self.kind, self.parts(), to, str(self.fleet.get("record") or ""), self.age)
        return next((path for path in paths if path.endswith(".html")), "")

    def setting(self, name: str) -> Any:
        """Return a setting of the run, from the first host that has one."""
        found = read_hosts(self.hostvars, [name for name in self.hosts if name in self.hostvars][:1], [name])
        return next((one[name] for one in found.values() if name in one), rules()[name][0])

    def parts(self) -> Parts:
        """Return what is known of each host for the report."""
        if self.is_rollout:
            ended = collect_outcomes(self.hostvars, self.hosts, set(self.hosts), interrupted=True)
            return rollout_parts(ended.outcomes_json())
        return read_parts(self.kind, self.hostvars, self.hosts)

    def next_steps(self, changed: list[str]) -> NextSteps:
        """Write the report and return what the operator does next; a report that cannot be written stops nothing."""
        try:
            report = self.write()
        except Exception as error:
            report = f"it cannot be written ({layout.one_line(error)[:200]})"
        return NextSteps(self.undo(changed), report)
