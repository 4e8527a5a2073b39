#!/usr/bin/python
"""Point /usr/local/cuda to one CUDA toolkit."""

DOCUMENTATION = r"""
---
module: gpu_cuda_toolkit_default
short_description: Point /usr/local/cuda to one CUDA toolkit
description:
  - Sets the update-alternatives group C(cuda) of NVIDIA's packages to one toolkit, by hand, so that another toolkit
    does not take its place when it is installed. Registers a toolkit that the group does not offer.
  - Without that group (toolkits of the .run installer) it exchanges the plain link.
  - Notes in the manifest on the node what the link was before.
options:
  version:
    description: Version of the toolkit, for example V(12.9).
    type: str
    required: true
  path:
    description: Folder of the toolkit.
    type: path
    required: true
attributes:
  check_mode:
    description: Says what would change; changes nothing.
    support: full
  diff_mode:
    description: Shows where the link leads.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Make CUDA 12.9 the default
  gpu_cuda_toolkit_default:
    version: "12.9"
    path: /usr/local/cuda-12.9

- name: Make the toolkit of the plan the default
  gpu_cuda_toolkit_default:
    version: "{{ gpu_plan_result.todo['cuda_toolkit.default'].version }}"
    path: "{{ gpu_plan_result.todo['cuda_toolkit.default'].path }}"

- name: Show what would change
  gpu_cuda_toolkit_default:
    version: "13.0"
    path: /usr/local/cuda-13.0
  check_mode: true
"""

RETURN = r"""
target:
  description: The folder that the link leads to after the run.
  returned: always
  type: str
  sample: /usr/local/cuda-12.9
kept_by:
  description: Who keeps the link, V(alternatives) or V(link).
  returned: always
  type: str
  sample: alternatives
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.cuda import default as cuda_default

ARGUMENT_SPEC = {
    "version": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
}


def run(host, params, check):
    where = cuda_default.Where()
    change = cuda_default.plan(host, params["path"], where, check)
    if change.changed and not check:
        cuda_default.act(host, change, params["version"], where)
    return {
        "changed": change.changed,
        "target": change.path,
        "kept_by": "alternatives" if change.group else "link",
        "diff": {"before": cuda_default.text(change.before, where), "after": cuda_default.text(change.after, where)},
    }


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
