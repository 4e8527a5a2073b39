#!/usr/bin/python
"""Remove CUDA toolkits of .run installers, and the leftovers of packages."""

DOCUMENTATION = r"""
---
module: gpu_cuda_toolkit_absent
short_description: Remove what is left of CUDA toolkits after their packages are removed
description:
  - Runs the uninstaller of a toolkit that NVIDIA's .run installer installed.
  - Removes cuDNN's files in the toolkit, and its directory; any other file is named in an error and not deleted.
  - Removes the toolkit from update-alternatives, and a dangling link to it.
options:
  toolkits:
    description: The toolkits.
    type: list
    elements: dict
    required: true
    suboptions:
      version: {description: "For example V(12.4).", type: str, required: true}
      path: {description: Directory of the toolkit., type: path, required: true}
attributes:
  check_mode: {support: full, description: Reports what would change; changes nothing.}
  diff_mode: {support: full, description: Lists the directories.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Remove CUDA 12.4
  gpu_ready.nodes.gpu_cuda_toolkit_absent:
    toolkits: [{version: "12.4", path: /usr/local/cuda-12.4}]

- name: Remove the toolkits of the plan
  gpu_ready.nodes.gpu_cuda_toolkit_absent:
    toolkits: "{{ gpu_plan_result.todo['cuda_toolkit.remove'].toolkits }}"

- name: Show what would be removed
  gpu_ready.nodes.gpu_cuda_toolkit_absent:
    toolkits: [{version: "12.4", path: /usr/local/cuda-12.4}]
  check_mode: true
"""

RETURN = r"""
removed:
  description: What was removed, for messages.
  returned: always
  type: list
  elements: str
  sample: [CUDA 12.4, /usr/local/cuda-12.4]
"""

from ..module_utils.gpu_ready.answers.cuda import CudaToolkitAbsentAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.cuda import runfile as cuda_runfile

ANSWER = CudaToolkitAbsentAnswer
ARGUMENT_SPEC = {
    "toolkits": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {"version": {"type": "str", "required": True}, "path": {"type": "path", "required": True}},
    }
}


def run(host, params, check):
    paths = cuda_runfile.ToolkitPaths()
    found = [
        entry for entry in params["toolkits"] if cuda_runfile.has_remains(host, entry["version"], entry["path"], paths)
    ]
    removed = []
    for entry in found:
        if check:
            removed.append(entry["path"])
        else:
            removed += cuda_runfile.remove_toolkit(host, entry["version"], entry["path"], paths)
    before = "".join("%s\n" % entry["path"] for entry in found)
    return CudaToolkitAbsentAnswer(bool(found), removed, {"before": before, "after": ""})


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
