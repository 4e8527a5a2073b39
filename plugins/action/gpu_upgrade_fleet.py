# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Plans a rollout of driver upgrades, and reports its results."""

from __future__ import annotations

from typing import Any

from ..module_utils.gpu_ready.answers.controller import UpgradeFleetAnswer
from ..modules import gpu_upgrade_fleet as module
from ..plugin_utils.control_node import ControlNodeAction
from ..plugin_utils.gpu_ready.rollout import answers, results, rollout, tables
from ..plugin_utils.gpu_ready.rollout.model import RolloutRequest


class ActionModule(ControlNodeAction):
    """The plugin; Ansible finds it by this name."""

    module = module

    def compute(self, given: dict[str, Any]) -> UpgradeFleetAnswer:
        """Return the rollout, or with ``ended`` the result of each host. Raises GpuReadyError."""
        hosts = given["hosts"]
        upgrades = {name: answers.read_host(given["upgrades"].get(name), given["failures"].get(name)) for name in hosts}
        if given["ended"] is not None:
            ended = results.host_results(hosts, given["ended"], given["began"], upgrades, given["lost"])
            excluded = rollout.resolve_hosts(given["exclude"], given["groups"], hosts, "gpu_upgrade_exclude")
            return UpgradeFleetAnswer(
                outcomes={name: results.result_to_json(result) for name, result in ended.items()},
                bad=results.failed_hosts(ended, given["good"], excluded),
                table=tables.result_table(ended, given["good"], given["budget"]),
            )
        rollout.require_equal_settings(given["settings"])
        request = RolloutRequest(**{name: given[name] for name in RolloutRequest._fields})
        roll = rollout.plan_rollout(hosts, upgrades, request)
        lineup = rollout.build_lineup(roll.due, roll.serial, given["limited"])
        table = tables.plan_table(roll, upgrades, given["drains"], backwards=request.backwards)
        reasons = {name: tables.current_text(roll, name, upgrades[name]) for name in roll.current}
        planned = dict(roll._asdict(), **lineup._asdict())
        del planned["excluded"]
        return UpgradeFleetAnswer(table=table, reasons=reasons, **planned)
