#!/usr/bin/python
"""Point /usr/local/cuda to one CUDA toolkit."""

DOCUMENTATION = r"""
---
module: gpu_cuda_toolkit_default
short_description: Point /usr/local/cuda to one CUDA toolkit
description:
  - Sets the update-alternatives group C(cuda) of NVIDIA's packages to one toolkit in manual mode, so that the
    installation of another toolkit does not change it. Registers a toolkit that is not in the group.
  - Without that group (toolkits of the .run installer) it replaces the plain link.
  - Records the previous link in the manifest on the node.
options:
  version:
    description: Version of the toolkit, for example V(12.9).
    type: str
    required: true
  path:
    description: Directory of the toolkit.
    type: path
    required: true
attributes:
  check_mode:
    description: Reports what would change; changes nothing.
    support: full
  diff_mode:
    description: Shows the target of the link.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Make CUDA 12.9 the default
  gpu_ready.nodes.gpu_cuda_toolkit_default:
    version: "12.9"
    path: /usr/local/cuda-12.9

- name: Make the toolkit of the plan the default
  gpu_ready.nodes.gpu_cuda_toolkit_default:
    version: "{{ gpu_plan_result.todo['cuda_toolkit.default'].version }}"
    path: "{{ gpu_plan_result.todo['cuda_toolkit.default'].path }}"

- name: Show what would change
  gpu_ready.nodes.gpu_cuda_toolkit_default:
    version: "13.0"
    path: /usr/local/cuda-13.0
  check_mode: true
"""

RETURN = r"""
target:
  description: Target of the link after the run.
  returned: always
  type: str
  sample: /usr/local/cuda-12.9
kept_by:
  description: How the link is managed, V(alternatives) or V(link).
  returned: always
  type: str
  sample: alternatives
"""

from ..module_utils.gpu_ready.answers.cuda import CudaToolkitDefaultAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.cuda import default as cuda_default

ANSWER = CudaToolkitDefaultAnswer
ARGUMENT_SPEC = {
    "version": {"type": "str", "required": True},
    "path": {"type": "path", "required": True},
}


def run(host, params, check):
    paths = cuda_default.DefaultPaths()
    change = cuda_default.plan_change(host, params["path"], paths, check)
    if change.changed and not check:
        cuda_default.apply_change(host, change, params["version"], paths)
    return CudaToolkitDefaultAnswer(
        changed=change.changed,
        target=change.path,
        kept_by="alternatives" if change.group else "link",
        diff={
            "before": cuda_default.format_link(change.before, paths),
            "after": cuda_default.format_link(change.after, paths),
        },
    )


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
