#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Compare a GPU host with its desired state."""

DOCUMENTATION = r"""
module: gpu_audit
short_description: Compare a GPU host with its desired state
description:
  - The facts and the plan of M(gpu_node_plan) in one call, reported as checks with the desired and the actual value.
  - Adds the module of the kernel that boots next, pending reboots, and the processes that use the GPUs.
  - Changes nothing, with and without check mode.
options:
  settings:
    description:
      - The public variables by name, as for M(gpu_node_plan).
      - A name that is not given has the value of the host's variable, or the default of its role.
    type: dict
    default: {}
  updates:
    description:
      - Whether the package sources of the host are asked for newer versions of what it has, which is a second call and
        takes some seconds. They are reported as checks whose names begin with C(newer_).
    type: bool
    default: false
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Changes nothing; M(gpu_report) shows differences.
    support: none
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Audit against the defaults
  gpu_ready.nodes.gpu_audit:
  register: gpu_audit_result

- name: Audit against a branch
  gpu_ready.nodes.gpu_audit:
    settings: {nvidia_driver_branch: "580"}
  register: gpu_audit_result

- name: List the processes that use the GPUs
  gpu_ready.nodes.gpu_audit:
    settings: {nvidia_driver_source: none}
  register: gpu_audit_result
"""

RETURN = r"""
audit:
  description: State, reasons, checks, holders of the GPUs, steps that site.yml would do, columns of the table.
  returned: always
  type: dict
  sample:
    state: drift
    why: ["loaded: the loaded module is 580.95.05 open, on disk is 580.178.04 open"]
    checks: [{name: loaded, desired: 580.178.04 open, found: 580.95.05 open, ok: false, why: "the loaded ..."}]
    holders: [{pid: 4711, name: python3, command: python3 train.py, container: trainer, service: false}]
"""

import gc

gc.disable()  # the process ends before there is much to collect
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.facts.collected import CollectedFacts, collect_answer

ANSWER = CollectedFacts
ARGUMENT_SPEC = {"probes": {"type": "dict", "required": True}}


def run(host, params, check):
    return collect_answer(host, params["probes"])


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
