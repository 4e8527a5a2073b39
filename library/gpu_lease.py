#!/usr/bin/python
"""Take, extend or release the lease of the run that changes a host."""

DOCUMENTATION = r"""
module: gpu_lease
short_description: Let one run at a time change a host
description:
  - The lease is C(/var/lib/gpu-ready/lease.json). The run is that in the environment variable C(GPU_READY_RUN), which
    the playbooks set. Without it the module does nothing.
  - Modules that change the host renew the lease. That of a run that died ends by itself. A released lease says which
    run changed the host last.
options:
  state:
    description:
      - V(taken) takes the lease, and fails if another run has it.
      - V(extended) makes it last longer until the next step of this run, which takes long.
      - V(released) ends it if this run has it.
    type: str
    choices: [taken, extended, released]
    required: true
  lasts:
    description: Seconds for which it lasts without a step of the run.
    type: int
    default: 600
  living:
    description:
      - Processes of this user on the control node, as PID.START. The lease of a run of the same user on the same
        control node that is not among them is taken at once.
      - Without it nothing is known about them.
    type: list
    elements: str
  take_over:
    description: Take the lease although another run has it, or although it is damaged.
    type: bool
    default: false
  age:
    description:
      - Seconds since this run began and planned the host. V(taken) fails if another run had the lease since.
      - Without it another run may have had it.
    type: int
  resumes:
    description: This run had the lease before. V(taken) fails if another run had it since.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Writes nothing and does not fail.}
  diff_mode: {support: none, description: The lease is no configuration.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Refuse a host on which another run works
  gpu_ready.nodes.gpu_lease:
    state: taken

- name: Reserve the host for a reboot
  gpu_ready.nodes.gpu_lease:
    state: extended
    lasts: 1500

- name: Release the host
  gpu_ready.nodes.gpu_lease:
    state: released
"""

RETURN = r"""
held_by:
  description: Which other run works on this host, with the remedy; empty if none does.
  returned: success
  type: str
before:
  description:
    - Mark of the lease before it was taken, empty without one. Where it differs from V(lease) of M(gpu_node_plan),
      another run had the host since that plan.
  returned: with O(state=taken), except in check mode
  type: str
another_run:
  description: The module failed because another run works on this host.
  returned: failure
  type: bool
last_step_running:
  description:
    - That run has died, as V(living) says, but its last step still runs on the host. The host is free once it ends.
  returned: failure
  type: bool
"""

from ..module_utils.gpu_ready.answers.system import LeaseAnswer
from ..module_utils.gpu_ready.base import lease
from ..module_utils.gpu_ready.base.module import run_module

ANSWER = LeaseAnswer
ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["taken", "extended", "released"], "required": True},
    "lasts": {"type": "int", "default": lease.USUAL},
    "living": {"type": "list", "elements": "str"},
    "take_over": {"type": "bool", "default": False},
    "age": {"type": "int"},
    "resumes": {"type": "bool", "default": False},
}


def run(host, params, check):
    work = lease.current_run()
    held_by = ""
    if work is None:
        return LeaseAnswer()
    claim = lease.Claim(work, params["living"], params["take_over"], params["age"], params["resumes"])
    if check:
        try:
            held_by = lease.describe_holder(host, lease.read(host), claim)
        except lease.LeaseError as error:
            held_by = "" if params["take_over"] else str(error)
    elif params["state"] == "taken":
        return LeaseAnswer(before=lease.take(host, claim, params["lasts"]))
    elif params["state"] == "extended":
        lease.extend(host, work, params["lasts"])
    else:
        lease.release(host, work)
    # The lease is no state that the operator asked for: it is deleted when the run ends.
    return LeaseAnswer(held_by=held_by)


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
