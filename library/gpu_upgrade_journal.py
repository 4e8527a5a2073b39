#!/usr/bin/python
"""Record the phase of an upgrade on the host."""

DOCUMENTATION = r"""
module: gpu_upgrade_journal
short_description: Record the phase of an upgrade on the host
description:
  - Writes C(/var/lib/gpu-ready/upgrade.json), with the driver to roll back to and the time at which the host went out
    of service.
  - The driver to roll back to is recorded when the host is drained for an upgrade, and when its first upgrade is
    prepared. A resumed run keeps it, and so does a rollout that prepares a host but never reaches it.
options:
  phase:
    description: The phase that begins.
    type: str
    choices: [staged, draining, switching, verified, done, going_back, back, stuck, untouched]
    required: true
  driver:
    description: The installed driver, RV(gpu_node_plan#module:upgrade.installed).
    type: dict
  target:
    description: The version of the new driver; empty keeps the recorded one.
    type: str
    default: ""
  reason:
    description: The reason of a failure.
    type: str
    default: ""
  rollout:
    description: The rollout, RV(gpu_upgrade_fleet#module:rollout); 0 keeps the recorded one.
    type: int
    default: 0
attributes:
  check_mode: {support: full, description: Writes nothing.}
  diff_mode: {support: none, description: The journal is no configuration.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Record the installed driver before anything changes
  gpu_ready.nodes.gpu_upgrade_journal:
    phase: staged
    driver: "{{ gpu_plan_result.upgrade.installed }}"
    target: "595"
    rollout: "{{ gpu_upgrade_fleet.rollout }}"

- name: Record that the host is taken out of service
  gpu_ready.nodes.gpu_upgrade_journal:
    phase: draining

- name: Record that it is in service again
  gpu_ready.nodes.gpu_upgrade_journal:
    phase: done
  register: gpu_upgrade_recorded
"""

RETURN = r"""
journal:
  description: The journal. RV(journal.seconds) is the time out of service.
  returned: always
  type: dict
  sample: {"phase": "done", "to": "595.91.07", "seconds": 74}
"""

import time

from ..module_utils.gpu_ready.answers.upgrade import UpgradeJournalAnswer
from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.upgrade import journal, phases
from ..module_utils.gpu_ready.upgrade.model import PHASES, RecordedDriver

ANSWER = UpgradeJournalAnswer
ARGUMENT_SPEC = {
    "phase": {"type": "str", "choices": list(PHASES), "required": True},
    "driver": {"type": "dict"},
    "target": {"type": "str", "default": ""},
    "reason": {"type": "str", "default": ""},
    "rollout": {"type": "int", "default": 0},
}


def run(host, params, check):
    advanced = phases.advance(
        journal.read(host),
        params["phase"],
        int(time.time()),
        records.from_json(RecordedDriver, params["driver"]) if params["driver"] else None,
        params["target"],
        params["reason"],
        params["rollout"],
    )
    if not check:
        phases.write(advanced)
    return UpgradeJournalAnswer(advanced, changed=True)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
