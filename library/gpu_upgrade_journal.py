#!/usr/bin/python
"""Note on a host how far its upgrade is."""

DOCUMENTATION = r"""
module: gpu_upgrade_journal
short_description: Note on a host how far its upgrade is
description:
  - Writes C(/var/lib/gpu-ready/upgrade.json), with the driver to go back to and since when the host serves nobody.
  - The driver to go back to is noted where an upgrade begins; a run that goes on with an open one keeps it.
options:
  phase:
    description: What begins now.
    type: str
    choices: [staged, draining, switching, verified, done, going_back, back, stuck, untouched]
    required: true
  driver:
    description: The driver that is installed, as RV(gpu_node_plan#module:upgrade) says it.
    type: dict
  target:
    description: The version that is wanted; empty leaves what is noted.
    type: str
    default: ""
  reason:
    description: Why, for whoever reads the journal on the host.
    type: str
    default: ""
  rollout:
    description: The rollout that this belongs to, RV(gpu_upgrade_fleet#module:rollout); 0 leaves what is noted.
    type: int
    default: 0
attributes:
  check_mode: {support: full, description: Writes nothing.}
  diff_mode: {support: none, description: The journal is no configuration.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Note what is installed before anything changes
  gpu_upgrade_journal:
    phase: staged
    driver: "{{ gpu_plan_result.upgrade.installed }}"
    target: "595"
    rollout: "{{ gpu_upgrade_fleet.rollout }}"

- name: Note that the host leaves service
  gpu_upgrade_journal:
    phase: draining

- name: Note that it is back in service
  gpu_upgrade_journal:
    phase: done
  register: gpu_upgrade_noted
"""

RETURN = r"""
journal:
  description: What the journal says now; seconds is the time in which the host served nobody.
  returned: always
  type: dict
  sample: {"phase": "done", "to": "595.91.07", "seconds": 74}
"""

import time

from ansible.module_utils.gpu_ready.base import records
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.upgrade import journal
from ansible.module_utils.gpu_ready.upgrade.model import PHASES, RecordedDriver

ARGUMENT_SPEC = {
    "phase": {"type": "str", "choices": list(PHASES), "required": True},
    "driver": {"type": "dict"},
    "target": {"type": "str", "default": ""},
    "reason": {"type": "str", "default": ""},
    "rollout": {"type": "int", "default": 0},
}


def run(host, params, check):
    advanced = journal.advance(
        journal.read(host),
        params["phase"],
        int(time.time()),
        records.from_json(RecordedDriver, params["driver"]) if params["driver"] else None,
        params["target"],
        params["reason"],
        params["rollout"],
    )
    if not check:
        journal.write(advanced)
    return {"changed": True, "journal": journal.to_json(advanced)}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
