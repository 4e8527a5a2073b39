#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Look at a GPU host."""

DOCUMENTATION = r"""
module: gpu_node_facts
short_description: Look at a GPU host in one call
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
- name: Look at the host
  gpu_node_facts:

- name: Look at a derivative as at Debian 12
  gpu_node_facts:
    treat_as: debian12

- name: Show the loaded driver
  ansible.builtin.debug:
    var: ansible_facts['gpu_node']['driver']['loaded']
"""

RETURN = r"""
ansible_facts:
  description: The parts of the look under one key.
  returned: always
  type: dict
  contains:
    gpu_node:
      description: Parts V(base), V(packages), V(driver), V(docker), V(runtime), V(cuda), V(cudnn), V(verified).
      type: dict
      returned: always
      sample: {"driver": {"loaded": {"version": "535.261.03", "flavour": "proprietary"}}}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready.base import validation
from ansible.module_utils.gpu_ready.base.host import Host
from ansible.module_utils.gpu_ready.facts import collect

ARGUMENT_SPEC = {"treat_as": {"type": "str"}}


def main():
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    facts = validation.hidden(collect.public(collect.look(Host(), module.params["treat_as"])))
    module.exit_json(changed=False, ansible_facts={"gpu_node": facts})


if __name__ == "__main__":
    main()
