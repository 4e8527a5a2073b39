#!/usr/bin/python
"""Plan a rollout of driver upgrades: the documentation. plugins/action/gpu_upgrade_fleet.py does it."""

DOCUMENTATION = r"""
module: gpu_upgrade_fleet
short_description: Plan a rollout of driver upgrades, or report its results
description:
  - Takes the answers of M(gpu_node_plan) for all hosts, and returns order, batches and a table.
  - Runs on the control node.
  - With O(ended) it returns the result of each host instead.
options:
  hosts:
    description: All hosts in the order of the inventory.
    type: list
    elements: str
    required: true
  upgrades:
    description: RV(gpu_node_plan#module:upgrade) by host.
    type: dict
    required: true
  failures:
    description: Why no facts of a host were collected, or why it was not prepared, by host.
    type: dict
    default: {}
  groups:
    description: The inventory's groups.
    type: dict
    default: {}
  canaries:
    description: Hosts or groups of the first batch.
    type: list
    elements: str
    default: []
  first:
    description: Hosts or groups that follow, in this order.
    type: list
    elements: str
    default: []
  exclude:
    description: Hosts or groups that are not upgraded.
    type: list
    elements: str
    default: []
  batches:
    description: Sizes of batches, numbers or shares of all hosts.
    type: list
    elements: raw
    default: ["100%"]
  rollout:
    description: With O(backwards), the rollout to undo; 0 for the last one.
    type: int
    default: 0
  max_failures:
    description: Failures that the rollout tolerates, a number or a share of its hosts such as V(10%).
    type: raw
    default: 0
  settings:
    description: Settings of the whole rollout by variable and host. They must not differ.
    type: dict
    default: {}
  drains:
    description: How each host is drained, for the table.
    type: dict
    default: {}
  backwards:
    description: Roll back to the recorded driver. Hosts of other rollouts keep theirs.
    type: bool
    default: false
  limited:
    description: The run has a C(--limit), which excludes the names of RV(watch).
    type: bool
    default: false
  ended:
    description: Results by host. With it the module reports.
    type: dict
  began:
    description: Hosts whose upgrade began.
    type: list
    elements: str
    default: []
  lost:
    description: Hosts that became unreachable.
    type: list
    elements: str
    default: []
  good:
    description: States of results that are no failure.
    type: list
    elements: str
    default: [current, upgraded]
  budget:
    description: For the report, RV(budget) of the plan.
    type: int
    default: 0
attributes:
  check_mode: {support: full, description: It never changes anything.}
  diff_mode: {support: none, description: It never changes anything.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Plan the rollout
  gpu_ready.nodes.gpu_upgrade_fleet:
    hosts: "{{ ansible_play_hosts_all }}"
    upgrades: "{{ upgrades }}"
    canaries: [gpu-test]
    batches: [1, "10%", "50%"]
  run_once: true

- name: Decide without one rack
  gpu_ready.nodes.gpu_upgrade_fleet:
    hosts: "{{ ansible_play_hosts_all }}"
    upgrades: "{{ upgrades }}"
    groups: "{{ groups }}"
    exclude: [rack7]
  run_once: true

- name: Report the results
  gpu_ready.nodes.gpu_upgrade_fleet:
    hosts: "{{ ansible_play_hosts_all }}"
    upgrades: "{{ upgrades }}"
    ended: "{{ results }}"
  run_once: true
"""

RETURN = r"""
due:
  description: Hosts to upgrade, in order.
  returned: without ended
  type: list
  elements: str
serial:
  description: Sizes of the batches.
  returned: without ended
  type: list
  elements: int
  sample: [1, 2, 21]
roll:
  description: RV(due) with one more name after each batch, RV(watch), so that no whole batch can become unreachable.
  returned: without ended
  type: list
  elements: str
  sample: ["gpu1", "gpu_upgrade_batch_1", "gpu2", "gpu3", "gpu_upgrade_batch_2"]
sizes:
  description: Sizes of these batches.
  returned: without ended
  type: list
  elements: int
  sample: [2, 3]
watch:
  description: The names that stand for the control node.
  returned: without ended
  type: list
  elements: str
current:
  description: Hosts with the desired driver.
  returned: without ended
  type: list
  elements: str
done:
  description: Those of them that an earlier run of this rollout upgraded.
  returned: without ended
  type: list
  elements: str
reasons:
  description: Why hosts need no upgrade, by host.
  returned: without ended
  type: dict
kept:
  description: Why hosts keep their driver in a rollback, by host.
  returned: without ended
  type: dict
  sample: {"gpu4": "no rollback: another rollout changed this host last"}
rollout:
  description: The id of this rollout, in seconds since 1970; a resumed run keeps it.
  returned: without ended
  type: int
  sample: 1767225600
resumed:
  description: An earlier run began this rollout.
  returned: without ended
  type: bool
budget:
  description: The number of hosts that may fail in the rollout.
  returned: without ended
  type: int
  sample: 2
refused:
  description: Why hosts cannot take part, by host.
  returned: without ended
  type: dict
outcomes:
  description: The result of each host.
  returned: with ended
  type: dict
bad:
  description: Hosts that are not in the desired state, except those that the operator excluded.
  returned: with ended
  type: list
  elements: str
table:
  description: The table to print.
  returned: always
  type: str
"""

from ..module_utils.gpu_ready.answers.controller import UpgradeFleetAnswer
from ..module_utils.gpu_ready.base.action_plugins import run_without_plugin

ANSWER = UpgradeFleetAnswer
ARGUMENT_SPEC = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "upgrades": {"type": "dict", "required": True},
    "failures": {"type": "dict", "default": {}},
    "groups": {"type": "dict", "default": {}},
    "canaries": {"type": "list", "elements": "str", "default": []},
    "first": {"type": "list", "elements": "str", "default": []},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "batches": {"type": "list", "elements": "raw", "default": ["100%"]},
    "rollout": {"type": "int", "default": 0},
    "max_failures": {"type": "raw", "default": 0},
    "settings": {"type": "dict", "default": {}},
    "drains": {"type": "dict", "default": {}},
    "backwards": {"type": "bool", "default": False},
    "limited": {"type": "bool", "default": False},
    "ended": {"type": "dict"},
    "began": {"type": "list", "elements": "str", "default": []},
    "lost": {"type": "list", "elements": "str", "default": []},
    "good": {"type": "list", "elements": "str", "default": ["current", "upgraded"]},
    "budget": {"type": "int", "default": 0},
}


def main():
    run_without_plugin("gpu_upgrade_fleet", ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
