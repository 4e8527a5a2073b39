#!/usr/bin/python
"""Fetch the packages of a driver upgrade and of the way back, without installing any."""

DOCUMENTATION = r"""
module: gpu_upgrade_stage
short_description: Fetch the packages of a driver upgrade and of the way back
description:
  - Reads the package lists again and fills the package manager's cache, so that neither the upgrade nor the way back
    needs the network. Installs, removes and configures nothing.
options:
  todo:
    description: RV(gpu_node_plan#module:todo) of the host.
    type: dict
    required: true
attributes:
  check_mode: {support: full, description: Fetches nothing.}
  diff_mode: {support: none, description: Nothing is changed.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Fetch what the upgrade and the way back need
  gpu_upgrade_stage:
    todo: "{{ gpu_plan_result.todo }}"

- name: Ask only what would be fetched
  gpu_upgrade_stage:
    todo: "{{ gpu_plan_result.todo }}"
  check_mode: true

- name: Fetch for a plan that was saved
  gpu_upgrade_stage:
    todo: "{{ lookup('file', 'plan.json') | from_json }}"
"""

RETURN = r"""
coming:
  description: Packages that will come, which lie in the cache now.
  returned: always
  type: list
  elements: str
  sample: ["libcuda1=595.91.07-1"]
kept:
  description: Packages of now, which lie in the cache for the way back.
  returned: always
  type: list
  elements: str
  sample: ["libcuda1=580.95.05-1"]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready import package_manager, packages, upgrade, upgrade_stage
from ansible.module_utils.gpu_ready.host import Host

ARGUMENT_SPEC = {"todo": {"type": "dict", "required": True}}


def main():
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    wanted = upgrade.downloads(module.params["todo"])
    if module.check_mode:
        module.exit_json(changed=False, coming=[str(one) for one in wanted["pins"] + wanted["names"]], kept=[])
    try:
        staged = upgrade_stage.stage(package_manager.choose(Host()), wanted)
    except packages.PackageError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(staged.coming), coming=staged.coming, kept=staged.kept)


if __name__ == "__main__":
    main()
