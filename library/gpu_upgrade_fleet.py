#!/usr/bin/python
"""Decide on the control node who is upgraded when."""

DOCUMENTATION = r"""
module: gpu_upgrade_fleet
short_description: Decide who is upgraded when, and show it
description:
  - Takes what M(gpu_node_plan) answered for all hosts, and gives order, batches and a table. Runs on the control node.
  - Given O(ended), tells what became of each host instead.
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
    description: Why a host could not be looked at or prepared, by host.
    type: dict
    default: {}
  groups:
    description: The inventory's groups.
    type: dict
    default: {}
  canaries:
    description: Hosts or groups that make the first batch.
    type: list
    elements: str
    default: []
  first:
    description: Hosts or groups that come next, in this order.
    type: list
    elements: str
    default: []
  exclude:
    description: Hosts or groups that stay as they are.
    type: list
    elements: str
    default: []
  batches:
    description: Sizes of batches, numbers or shares of all hosts.
    type: list
    elements: raw
    default: ["100%"]
  drains:
    description: How each host is drained, for the table.
    type: dict
    default: {}
  backwards:
    description: Whether the recorded driver is the goal; hosts that the last rollout did not change keep theirs then.
    type: bool
    default: false
  limited:
    description: Whether the run has a C(--limit); names that are no hosts would be left out by it.
    type: bool
    default: false
  ended:
    description: Results by host; with it the module reports.
    type: dict
  began:
    description: Hosts whose turn began.
    type: list
    elements: str
    default: []
  lost:
    description: Hosts that do not answer any longer.
    type: list
    elements: str
    default: []
  good:
    description: States of results that are as wanted.
    type: list
    elements: str
    default: [current, upgraded]
  budget:
    description: Failures that the rollout may have.
    type: int
    default: 0
attributes:
  check_mode: {support: full, description: Changes nothing anyway.}
  diff_mode: {support: none, description: Nothing is changed.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Decide who comes when
  gpu_upgrade_fleet:
    hosts: "{{ ansible_play_hosts_all }}"
    upgrades: "{{ upgrades }}"
    canaries: [gpu-test]
    batches: [1, "10%", "50%"]
  delegate_to: localhost
  run_once: true

- name: Decide without one rack
  gpu_upgrade_fleet:
    hosts: "{{ ansible_play_hosts_all }}"
    upgrades: "{{ upgrades }}"
    groups: "{{ groups }}"
    exclude: [rack7]
  delegate_to: localhost
  run_once: true

- name: Tell how it came out
  gpu_upgrade_fleet:
    hosts: "{{ ansible_play_hosts_all }}"
    upgrades: "{{ upgrades }}"
    ended: "{{ results }}"
  delegate_to: localhost
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
  description: RV(due) with one more name after each batch, RV(watch), so that no batch can be lost as a whole.
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
  description: Hosts that have the wanted driver.
  returned: without ended
  type: list
  elements: str
done:
  description: Those of them that an earlier run of this rollout brought to their end.
  returned: without ended
  type: list
  elements: str
kept:
  description: Why hosts keep the driver that they have on the way back, by host.
  returned: without ended
  type: dict
  sample: {"gpu4": "nothing to go back to: the last rollout did not change it"}
rollout:
  description: What tells this rollout from others, in seconds since 1970; a run that goes on keeps it.
  returned: without ended
  type: int
  sample: 1767225600
refused:
  description: Why hosts cannot take part, by host.
  returned: without ended
  type: dict
outcomes:
  description: What became of each host.
  returned: with ended
  type: dict
bad:
  description: Hosts that are not as wanted, but for those that the operator excluded.
  returned: with ended
  type: list
  elements: str
table:
  description: The table for a person.
  returned: always
  type: str
"""

import time

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.upgrade import fleet as upgrade_fleet

ARGUMENT_SPEC = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "upgrades": {"type": "dict", "required": True},
    "failures": {"type": "dict", "default": {}},
    "groups": {"type": "dict", "default": {}},
    "canaries": {"type": "list", "elements": "str", "default": []},
    "first": {"type": "list", "elements": "str", "default": []},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "batches": {"type": "list", "elements": "raw", "default": ["100%"]},
    "drains": {"type": "dict", "default": {}},
    "backwards": {"type": "bool", "default": False},
    "limited": {"type": "bool", "default": False},
    "ended": {"type": "dict"},
    "began": {"type": "list", "elements": "str", "default": []},
    "lost": {"type": "list", "elements": "str", "default": []},
    "good": {"type": "list", "elements": "str", "default": ["current", "upgraded"]},
    "budget": {"type": "int", "default": 0},
}


def run(host, params, check):
    if params["ended"] is not None:
        found = upgrade_fleet.results(
            params["hosts"], params["ended"], params["began"], params["upgrades"], params["lost"]
        )
        excluded = upgrade_fleet.members(params["exclude"], params["groups"], params["hosts"], "gpu_upgrade_exclude")
        return {
            "changed": False,
            "outcomes": found,
            "bad": upgrade_fleet.bad(found, params["good"], excluded),
            "table": upgrade_fleet.result_table(found, params["good"], params["budget"]),
        }
    entries = {
        name: {"upgrade": params["upgrades"].get(name), "failure": params["failures"].get(name)}
        for name in params["hosts"]
    }
    roll = upgrade_fleet.rollout(params["hosts"], entries, params)
    line = upgrade_fleet.lined(roll.due, roll.serial, params["limited"])
    return dict(
        roll._asdict(),
        changed=False,
        table=upgrade_fleet.plan_table(roll, entries, params["drains"]),
        rollout=upgrade_fleet.number(entries, int(time.time())),
        **line._asdict(),
    )


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
