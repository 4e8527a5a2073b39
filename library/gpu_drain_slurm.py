#!/usr/bin/python
"""Drain a Slurm node, wait for its jobs, resume it. Runs where scontrol and squeue are."""

DOCUMENTATION = r"""
module: gpu_drain_slurm
short_description: Drain a Slurm node, wait for its jobs, and resume it
description:
  - A node that is drained or down for another reason than O(reason) is not changed.
options:
  state:
    description:
      - V(waited) returns after a part of O(timeout), so that the playbook can report progress. It fails after
        O(deadline).
      - V(undrained) does the same while slurmd does not answer after a reboot, for at most 300 s.
    type: str
    required: true
    choices: [drained, waited, undrained]
  node:
    description: Name of the node in Slurm.
    type: str
    required: true
  reason:
    description: The reason by which gpu-ready recognises its own drain.
    type: str
    default: "gpu-ready: driver upgrade"
  recorded:
    description: The journal of the host lists this drain.
    type: bool
    default: false
  timeout:
    description: Seconds in which the jobs have to end.
    type: int
    default: 1800
  deadline:
    description: RV(deadline) of the earlier call that began this wait; 0 to begin one.
    type: float
    default: 0
  directory:
    description: Directory of scontrol and squeue; empty for PATH.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Reports whether the node would change. It does not wait.}
  diff_mode: {support: none, description: Has no diff.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: See who drained a node
  gpu_ready.nodes.gpu_drain_slurm: {state: drained, node: gpu1}
  check_mode: true
  register: drain

- name: Drain it, on a controller
  gpu_ready.nodes.gpu_drain_slurm: {state: drained, node: gpu1, reason: "new driver", recorded: true}
  delegate_to: slurmctl1

- name: Resume it
  gpu_ready.nodes.gpu_drain_slurm: {state: undrained, node: gpu1, reason: "new driver", recorded: true}
  delegate_to: slurmctl1
"""

RETURN = r"""
owned:
  description: True if the drain is, or would be, that of gpu-ready.
  returned: drained
  type: bool
kept:
  description: Why the node was not changed; empty if it was.
  returned: drained, undrained
  type: str
  sample: "slurm's node gpu1 is already drained (bad fan) and stays so"
done:
  description: True if nothing is awaited any more; the node is resumed only then.
  returned: always
  type: bool
waiting:
  description: What is awaited.
  returned: always
  type: str
  sample: "1 job on slurm's node gpu1: 17 of alice (running)"
deadline:
  description: End of the wait, in seconds since 1970 on the host where the module ran.
  returned: always
  type: float
remaining_s:
  description: Seconds until then.
  returned: always
  type: int
"""

from ..module_utils.gpu_ready.answers.drain import DrainSlurmAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.drain import hook
from ..module_utils.gpu_ready.drain.slurm import SlurmHook

ACTIONS = {"drained": hook.DRAIN, "waited": hook.WAIT, "undrained": hook.UNDRAIN}

ANSWER = DrainSlurmAnswer
ARGUMENT_SPEC = {
    "state": {"type": "str", "required": True, "choices": list(ACTIONS)},
    "node": {"type": "str", "required": True},
    "reason": {"type": "str", "default": "gpu-ready: driver upgrade"},
    "recorded": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 1800},
    "deadline": {"type": "float", "default": 0},
    "directory": {"type": "str", "default": ""},
}


def run(host, params, check):
    node = SlurmHook(host, params["node"], params["directory"])
    return DrainSlurmAnswer(**hook.run_action(node, ACTIONS[params["state"]], params, check))


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
