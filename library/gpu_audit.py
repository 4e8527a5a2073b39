#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Say how a GPU host differs from what is wanted."""

DOCUMENTATION = r"""
module: gpu_audit
short_description: Say how a GPU host differs from what is wanted
description:
  - The look and the decision of M(gpu_node_plan) in one call, told as checks with what is wanted and what is there.
  - Adds the module of the kernel that boots next, what waits for a reboot, and who holds the GPUs.
  - Changes nothing, with and without check mode.
options:
  wishes:
    description:
      - The public variables by name, as M(gpu_node_plan) takes them.
      - One that is not given has the default of the role that it belongs to.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Changes nothing; M(gpu_audit_report) shows differences.
    support: none
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Audit against the catalog's choice
  gpu_audit:
  register: gpu_audit_result

- name: Audit against a branch
  gpu_audit:
    wishes: {nvidia_driver_branch: "580"}
  register: gpu_audit_result

- name: Ask who holds the GPUs
  gpu_audit:
    wishes: {nvidia_driver_source: none}
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
    checks: [{name: loaded, wanted: 580.178.04 open, found: 580.95.05 open, ok: false, why: "the loaded module is ..."}]
    holders: [{pid: 4711, name: python3, command: python3 train.py, container: trainer, service: false}]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready.base.host import Host
from ansible.module_utils.gpu_ready.lifecycle import audit

ARGUMENT_SPEC = {"wishes": {"type": "dict", "default": {}}}


def main():
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(changed=False, audit=audit.host(Host(), module.params["wishes"]))


if __name__ == "__main__":
    main()
