# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""How a rollout has ended for each host so far, from what its hosts registered and from the record of the rollout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..module_utils.gpu_ready.base.errors import GpuReadyError
from .gpu_ready.rollout import answers, record, results
from .gpu_ready.rollout.model import HostResult, HostUpgrade
from .variables.rollout import first_with, read_hosts

# What the plays of the hosts register:
PLAN = "gpu_upgrade_plan"  # upgrade, plan_warnings, failure
PREPARED = "gpu_upgrade_prepared"  # result
TURN = "gpu_drain_turn"  # result
# What the tasks of this plugin register:
FLEET = "gpu_upgrade_fleet"
LINEUP = "gpu_upgrade_lineup"
RESULTS = "gpu_upgrade_results"


def mapping(value: Any) -> dict[str, Any]:
    """Return a registered answer, or a part of one; {} for what is none."""
    return value if isinstance(value, dict) else {}


def read_upgrade(variables: Mapping[str, Any]) -> HostUpgrade:
    """Return what the first play found out about a host."""
    plan = mapping(variables.get(PLAN))
    silent = not plan or plan.get("unreachable")
    failure = plan.get("failure") or ("the host is unreachable" if silent else plan.get("msg"))
    return answers.read_host(plan.get("upgrade"), failure)._replace(warnings=plan.get("plan_warnings") or ())


class Outcomes(NamedTuple):
    """How a rollout ended for each host. ``fault``: why the record could not be read."""

    fleet: Mapping[str, Any]
    results: Mapping[str, HostResult]
    fault: str = ""

    def outcomes_json(self) -> dict[str, object]:
        """Return the results as JSON."""
        return {name: results.result_to_json(one) for name, one in self.results.items()}


def collect_outcomes(
    hostvars: Mapping[str, Mapping[str, Any]], hosts: list[str], reachable: set[str], interrupted: bool = False
) -> Outcomes:
    """Return how the rollout has ended for each host so far; ``interrupted``: the run ends early."""
    fleet = first_with(hostvars, hosts, FLEET)
    lineup = first_with(hostvars, fleet.get("due", []), LINEUP)
    by_host = read_hosts(hostvars, hosts, (PLAN, PREPARED, TURN))
    ended = {
        name: mapping(fleet.get("results")).get(name)
        or mapping(mapping(by_host[name].get(PREPARED)).get("result"))
        or mapping(lineup.get("results")).get(name)
        or mapping(mapping(by_host[name].get(TURN)).get("result"))
        for name in hosts
    }
    lost = [name for name in hosts if name not in reachable]
    began, fault = lost, ""
    try:
        began = record.RolloutFile(Path(fleet["record"])).read().begun if fleet.get("record") else []
    except GpuReadyError as error:  # hours of work are reported all the same
        fault = str(error)
    upgrades = {name: read_upgrade(by_host[name]) for name in hosts}
    outcomes = results.host_results(hosts, ended, began, upgrades, lost, interrupted)
    return Outcomes(fleet, outcomes, fault)
