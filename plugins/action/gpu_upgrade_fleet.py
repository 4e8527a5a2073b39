# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Plans a rollout of driver upgrades, lines up its hosts, and reports its results.

It reads the variables of all hosts itself, in a task that runs once. It keeps the record of the rollout.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.module_utils.parsing.convert_bool import boolean

from ..lookup import gpu_ready_run
from ..module_utils.gpu_ready.answers.controller import UpgradeFleetAnswer
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..modules import gpu_upgrade_fleet as module
from ..plugin_utils import terminal
from ..plugin_utils.control_node import ControlNodeAction, operator, plain, version
from ..plugin_utils.gpu_ready.report import layout
from ..plugin_utils.gpu_ready.rollout import estimate, fold, record, results, rollout, tables
from ..plugin_utils.gpu_ready.rollout.model import HostUpgrade, Rollout, RolloutRequest
from ..plugin_utils.rollout_outcomes import (
    FLEET,
    PLAN,
    PREPARED,
    RESULTS,
    collect_outcomes,
    mapping,
    read_upgrade,
)
from ..plugin_utils.variables.rollout import SETTINGS, read_hosts, read_settings_of_run

REFUSED = (
    "%d of %s cannot be upgraded, see the table (%s). Nothing was changed on any host. Repair them, or set "
    "gpu_upgrade_leave_out to true to continue without them."
)


class ActionModule(ControlNodeAction):
    """The plugin; Ansible finds it by this name."""

    module = module
    variables: Mapping[str, Any] = {}

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Keep the variables for `compute`."""
        self.variables = task_vars or {}
        return super().run(tmp, task_vars)

    def compute(self, given: dict[str, Any]) -> UpgradeFleetAnswer:
        """Return the answer to ``do``. Raises GpuReadyError."""
        actions = {
            "plan": self.plan,
            "stop_if_refused": self.stop_if_refused,
            "line_up": self.line_up,
            "report": self.report,
            "require_desired_state": self.require_desired_state,
        }
        return actions[given["do"]]()

    @property
    def hosts(self) -> list[str]:
        return [str(name) for name in self.variables["ansible_play_hosts_all"]]

    @property
    def reachable(self) -> set[str]:
        return {str(name) for name in self.variables["ansible_play_hosts"]}

    @property
    def groups(self) -> dict[str, list[str]]:
        return mapping(plain(self.variables["groups"]))

    @property
    def backwards(self) -> bool:
        """Set by playbooks/rollback_drivers.yml."""
        value = self._templar.template(self.variables.get("gpu_upgrade_backwards", False))
        return bool(boolean(value, strict=False))

    @property
    def direction(self) -> str:
        return fold.ROLLBACK if self.backwards else fold.UPGRADE

    def plan(self) -> UpgradeFleetAnswer:
        """Decide who takes part, and begin a run in the record unless hosts are refused."""
        names = (*SETTINGS, PLAN, "gpu_upgrade_drain")
        by_host = read_hosts(self.variables["hostvars"], self.hosts, names)
        settings = read_settings_of_run(self.variables, self._templar.template, by_host)
        inventories = [str(one) for one in context.CLIARGS.get("inventory") or ()]
        directory = record.state_directory(settings.state_dir, inventories, Path.cwd())
        record.refuse_stopped(directory)
        upgrades = {name: read_upgrade(by_host[name]) for name in self.hosts}
        request = RolloutRequest(
            groups=self.groups,
            canaries=settings.canaries,
            first=settings.first,
            exclude=settings.exclude,
            batches=settings.batches,
            backwards=self.backwards,
            max_failures=settings.max_failures,
            rollout=settings.rollout,
            pause_after=settings.pause_after,
        )
        records = record.read_records(directory)
        roll = rollout.plan_rollout(self.hosts, upgrades, request, records)
        stop = ""
        if roll.refused and not settings.leave_out:
            refused = layout.names_text(list(roll.refused), layout.MOST_NAMES)
            stop = REFUSED % (len(roll.refused), layout.counted(len(self.hosts), "host"), refused)
        check = bool(self._task.check_mode)
        path = record.record_path(directory, roll.rollout) if roll.due and not check else None
        if path and not stop:
            self.begin_run(path, roll, upgrades)
        drains = {name: by_host[name].get("gpu_upgrade_drain") for name in self.hosts}
        untouched = results.untouched_results(roll, upgrades, results.hosts_rolled_back(records, roll.excluded))
        time_text = estimate.estimate_text(
            records,
            self.direction,
            roll.serial,
            int(context.CLIARGS.get("forks") or C.DEFAULT_FORKS),
            [upgrades[name].download for name in roll.due],
        )
        states = {**dict.fromkeys(roll.due, "due"), **dict.fromkeys(roll.refused, "refused")}
        terminal.show(tables.plan_table(roll, upgrades, drains, terminal.columns(), time_text), states)
        return UpgradeFleetAnswer(
            due=[] if check else roll.due,
            results={name: results.result_to_json(result) for name, result in untouched.items()},
            refused=roll.refused,
            stop=stop,
            serial=roll.serial,
            rollout=roll.rollout,
            undoes=roll.undoes,
            resumed=roll.resumed,
            budget=roll.budget,
            record=str(path or ""),
            canaries=list(roll.canaries),
            canary_passed=roll.canary_passed,
            batches=[str(one) for one in settings.batches],
            pauses=roll.pauses,
        )

    def begin_run(self, path: Path, roll: Rollout, upgrades: Mapping[str, HostUpgrade]) -> None:
        """Append this run to the record of the rollout. Raises GpuReadyError."""
        targets = {name: upgrades[name].to or "" for name in roll.due}
        canaries = [name for name in roll.canaries if name in targets]
        process = gpu_ready_run.run_id()
        run = fold.RecordedRun(int(time.time()), operator(), targets, roll.due, canaries, roll.budget, process)
        header = fold.header_line(roll.rollout, self.direction, roll.undoes, version())
        record.RolloutFile(path).begin_run(header, run, roll.resumed, gpu_ready_run.find_process)

    def stop_if_refused(self) -> UpgradeFleetAnswer:
        """Fail if the plan stops, after its table was shown."""
        stop = mapping(self.variables.get(FLEET)).get("stop")
        if stop:
            raise GpuReadyError(str(stop))
        return UpgradeFleetAnswer()

    def line_up(self) -> UpgradeFleetAnswer:
        """Return the hosts that are prepared and reachable, in batches."""
        fleet = mapping(plain(self.variables[FLEET]))
        by_host = read_hosts(self.variables["hostvars"], fleet["due"], (PLAN, PREPARED))
        reachable = self.reachable
        prepared = {name: by_host[name].get(PREPARED) for name in fleet["due"] if name in reachable}
        ready = [name for name, one in prepared.items() if isinstance(one, dict) and one.get("result") == {}]
        sizes = rollout.plan_batches(ready, fleet["canaries"], fleet["canary_passed"], fleet["batches"])
        lineup = rollout.build_lineup(ready, sizes, "ansible_limit" in self.variables, fleet["pauses"])
        paused = {name: results.paused_result(name, read_upgrade(by_host[name])) for name in lineup.paused}
        return UpgradeFleetAnswer(
            roll=lineup.roll,
            sizes=lineup.sizes,
            watch=lineup.watch,
            results={name: results.result_to_json(result) for name, result in paused.items()},
        )

    def report(self) -> UpgradeFleetAnswer:
        """Return how the rollout ended for each host; nothing under --check."""
        if self._task.check_mode:
            return UpgradeFleetAnswer()
        watch = set(self.groups.get("gpu_upgrade_watch", []))
        hosts = [name for name in self.hosts if name not in watch]
        found = collect_outcomes(self.variables["hostvars"], hosts, self.reachable)
        good = results.good_states(self.direction)
        excluded = [name for name, outcome in found.results.items() if outcome.state == fold.EXCLUDED]
        fault = f"\n\n{found.fault}" if found.fault else ""
        shown = tables.result_table(found.results, good, found.fleet.get("budget", 0), terminal.columns()) + fault
        states = {name: one.state.replace("_", " ") for name, one in found.results.items()}
        if self.direction == fold.UPGRADE:  # a rollback that nobody asked for
            states = {name: "failed" if state == "rolled back" else state for name, state in states.items()}
        terminal.show(shown, states)
        return UpgradeFleetAnswer(
            kind=self.direction,
            outcomes=found.outcomes_json(),
            bad=results.failed_hosts(found.results, good, excluded),
            record=str(found.fleet.get("record") or ""),
        )

    def require_desired_state(self) -> UpgradeFleetAnswer:
        """Fail for a host of which the report says so: on each host, without the answers of the others."""
        host, reported = str(self.variables["inventory_hostname"]), mapping(self.variables.get(RESULTS))
        if host in (reported.get("bad") or ()):
            raise GpuReadyError(str(reported["outcomes"][host]["reason"]))
        return UpgradeFleetAnswer()
