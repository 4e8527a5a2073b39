#!/usr/bin/python
"""Drain a node of slurm, wait for its jobs, resume it; runs where scontrol and squeue are."""

DOCUMENTATION = r"""
module: gpu_drain_slurm
short_description: Drain a node of slurm, wait for its jobs, and resume it
description:
  - A node that is drained or down for another reason than O(reason) is left as it is, with its reason.
options:
  state:
    description:
      - V(looked) says what V(drained) would do and changes nothing.
      - V(waited) returns after a share of O(timeout), so that somebody can tell how it goes; it fails past O(deadline).
      - V(resumed) does so, too, where slurmd does not answer yet after a reboot; it has 300 s.
    type: str
    required: true
    choices: [looked, drained, waited, resumed]
  node:
    description: Name of the node in slurm.
    type: str
    required: true
  reason:
    description: The reason, by which the drain is known to be ours.
    type: str
    default: "gpu-ready: driver upgrade"
  noted:
    description: Whether the journal of the host says that its drain is ours.
    type: bool
    default: false
  timeout:
    description: Seconds that the jobs may take to end.
    type: int
    default: 1800
  deadline:
    description: End of a wait that began in an earlier call, as RV(deadline) gave it; 0 for one that begins.
    type: float
    default: 0
  folder:
    description: Folder of scontrol and squeue; empty for root's usual PATH.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Says whether the node would change; changes nothing and does not wait.}
  diff_mode: {support: none, description: Shows none.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: See whose drain a node has
  gpu_drain_slurm: {state: looked, node: gpu1}
  register: looked

- name: Drain it, on a controller
  gpu_drain_slurm: {state: drained, node: gpu1, reason: "new driver", noted: true}
  delegate_to: slurmctl1

- name: Resume it
  gpu_drain_slurm: {state: resumed, node: gpu1, reason: "new driver", noted: true}
  delegate_to: slurmctl1
"""

RETURN = r"""
mine:
  description: Whether the drain is ours, or would be.
  returned: looked, drained
  type: bool
left:
  description: Why the node was left as it is, empty where it was not.
  returned: looked, drained, resumed
  type: str
  sample: "slurm's node gpu1 is drained already (bad fan): it stays so"
done:
  description: Whether nothing is awaited any longer; the node is resumed only then.
  returned: waited, resumed
  type: bool
waiting:
  description: What is awaited.
  returned: waited, resumed where it waited
  type: str
  sample: "1 job on slurm's node gpu1: 17 of alice (running)"
deadline:
  description: End of the wait, in seconds since 1970 on the host where this ran.
  returned: waited, resumed where it waited
  type: float
left_s:
  description: Seconds that are left of it.
  returned: waited, resumed where it waited
  type: int
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.drain import journal as drain
from ansible.module_utils.gpu_ready.drain import slurm as drain_slurm

ARGUMENT_SPEC = {
    "state": {"type": "str", "required": True, "choices": ["looked", "drained", "waited", "resumed"]},
    "node": {"type": "str", "required": True},
    "reason": {"type": "str", "default": "gpu-ready: driver upgrade"},
    "noted": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 1800},
    "deadline": {"type": "float", "default": 0},
    "folder": {"type": "str", "default": ""},
}


def run(host, params, check):
    slurm = drain_slurm.Slurm(host, params["node"], params["folder"])
    if params["state"] == "waited":
        return drain.waited(slurm.awaited, params["timeout"], params["deadline"], check)
    reason = drain_slurm.reason_of(params["reason"])
    if params["state"] == "resumed":
        return slurm.resume(reason, check, params["deadline"])
    return slurm.drain(reason, params["noted"], params["state"] == "drained" and not check)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
