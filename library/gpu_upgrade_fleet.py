#!/usr/bin/python
"""Plan a rollout of driver upgrades: the documentation. plugins/action/gpu_upgrade_fleet.py does it."""

DOCUMENTATION = r"""
module: gpu_upgrade_fleet
short_description: Plan a rollout of driver upgrades, line up its hosts, report its results
description:
  - Runs on the control node, once for all hosts of a play. It reads the hosts' variables and registered answers itself.
  - Prints the plan, and the results.
  - Keeps the record of the rollout, one file in C(gpu_ready_state_dir), by which a rollout is resumed and undone.
  - C(gpu_upgrade_backwards), which C(playbooks/rollback_drivers.yml) sets, makes it a rollback.
options:
  do:
    description:
      - V(plan) - Decide from C(gpu_upgrade_plan) of each host who takes part, in which order and batches.
      - V(stop_if_refused) - Fail if hosts are refused and C(gpu_upgrade_leave_out) is not set.
      - V(line_up) - Put the hosts that are prepared, by C(gpu_upgrade_prepared), into batches.
      - V(report) - Return the result of each host, from C(gpu_upgrade_prepared), C(gpu_drain_turn) and the record.
      - V(require_desired_state) - Fail if the report says that this host is not in the desired state.
    type: str
    required: true
    choices: [plan, stop_if_refused, line_up, report, require_desired_state]
attributes:
  check_mode: {support: full, description: It makes the plan and writes no record.}
  diff_mode: {support: none, description: It changes nothing but the record.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Plan the rollout
  gpu_ready.nodes.gpu_upgrade_fleet: {do: plan}
  run_once: true
  register: gpu_upgrade_fleet

- name: Line up the hosts that are prepared
  gpu_ready.nodes.gpu_upgrade_fleet: {do: line_up}
  run_once: true
  register: gpu_upgrade_lineup

- name: Report the results
  gpu_ready.nodes.gpu_upgrade_fleet: {do: report}
  run_once: true
  register: gpu_upgrade_results
"""

RETURN = r"""
due:
  description: Hosts to upgrade, in order; none under C(--check).
  returned: for V(plan)
  type: list
  elements: str
results:
  description: >-
    Results by host, with C(host), C(state), C(from), C(to), C(way), C(seconds_unavailable) and C(reason): of the hosts
    that take no part (V(current), V(left_out), V(excluded)), or of those that wait for the next run (V(paused)).
  returned: for V(plan) and V(line_up)
  type: dict
refused:
  description: Why hosts cannot take part, by host.
  returned: for V(plan)
  type: dict
stop:
  description: Why nothing is begun, empty where it is.
  returned: for V(plan)
  type: str
serial:
  description: Sizes of the batches, if all hosts can be prepared.
  returned: for V(plan)
  type: list
  elements: int
  sample: [1, 2, 21]
rollout:
  description: The id of this rollout, in seconds since 1970; a resumed run keeps it. A rollback has an id of its own.
  returned: for V(plan)
  type: int
  sample: 1767225600
undoes:
  description: The id of the rollout that a rollback undoes; 0 for an upgrade.
  returned: for V(plan)
  type: int
resumed:
  description: An earlier run began this rollout.
  returned: for V(plan)
  type: bool
budget:
  description: The number of hosts that may fail in this run.
  returned: for V(plan)
  type: int
  sample: 2
record:
  description: The file with the record of this rollout; empty under C(--check), or if there is nothing to do.
  returned: for V(plan) and V(report)
  type: str
  sample: /srv/inventory/.gpu-ready/rollout-1767225600.jsonl
canaries:
  description: The hosts of C(gpu_upgrade_canaries).
  returned: for V(plan)
  type: list
  elements: str
canary_passed:
  description: An earlier run of this rollout upgraded one of them.
  returned: for V(plan)
  type: bool
batches:
  description: The sizes in C(gpu_upgrade_batches).
  returned: for V(plan)
  type: list
  elements: str
pauses:
  description: This run ends after its first batch.
  returned: for V(plan)
  type: bool
roll:
  description: Hosts in order, with one more name after each batch (RV(watch)), so that no whole batch can be lost.
  returned: for V(line_up)
  type: list
  elements: str
  sample: ["gpu1", "gpu_upgrade_batch_1", "gpu2", "gpu3", "gpu_upgrade_batch_2"]
sizes:
  description: Sizes of these batches.
  returned: for V(line_up)
  type: list
  elements: int
  sample: [2, 3]
watch:
  description: The names that stand for the control node; none with a C(--limit), which would leave them out.
  returned: for V(line_up)
  type: list
  elements: str
kind:
  description: V(upgrade) or V(rollback).
  returned: for V(report)
  type: str
outcomes:
  description: The result of each host.
  returned: for V(report)
  type: dict
bad:
  description: Hosts that are not in the desired state, except those that the operator excluded.
  returned: for V(report)
  type: list
  elements: str
"""

from ..module_utils.gpu_ready.answers.controller import UpgradeFleetAnswer
from ..module_utils.gpu_ready.base.action_plugins import run_without_plugin

ANSWER = UpgradeFleetAnswer
ARGUMENT_SPEC = {
    "do": {
        "type": "str",
        "required": True,
        "choices": ["plan", "stop_if_refused", "line_up", "report", "require_desired_state"],
    },
}


def main():
    run_without_plugin("gpu_upgrade_fleet", ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
