#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Collect facts about a GPU host."""

DOCUMENTATION = r"""
module: gpu_node_facts
short_description: Collect facts about a GPU host in one call
description:
  - Gathers system, kernels, Secure Boot, GPUs, driver (loaded, on disk, userspace, origin), CUDA, cuDNN, docker,
    container runtime and the last verification. Reads files and changes nothing.
options:
  treat_as:
    description: Name of the catalog's distribution to treat an unknown derivative as.
    type: str
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Changes nothing.
    support: none
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Collect facts
  gpu_ready.nodes.gpu_node_facts:

- name: Treat a derivative as Debian 12
  gpu_ready.nodes.gpu_node_facts:
    treat_as: debian12

- name: Show the loaded driver
  ansible.builtin.debug:
    var: ansible_facts['gpu_node']['driver']['loaded']
"""

RETURN = r"""
ansible_facts:
  description: All facts under one key.
  returned: always
  type: dict
  contains:
    gpu_node:
      description:
        - Parts V(base), V(packages), V(driver), V(docker), V(runtime), V(engines), V(cuda), V(cudnn), V(verified),
          V(upgrade).
        - V(schema) is the version of their form.
      type: dict
      returned: always
      sample: {"schema": 1, "driver": {"loaded": {"version": "535.261.03", "flavour": "proprietary"}}}
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
