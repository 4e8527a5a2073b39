#!/usr/bin/python
"""Take CUDA toolkits away that an installer brought, and what packages left of theirs."""

DOCUMENTATION = r"""
---
module: gpu_cuda_toolkit_absent
short_description: Take away what is left of CUDA toolkits when their packages are gone
description:
  - Runs the uninstaller of a toolkit that NVIDIA's .run installer brought.
  - Takes cuDNN's files in the toolkit away with it, and the folder; files of somebody else are named, not deleted.
  - Takes the toolkit out of update-alternatives, and a link to it that leads nowhere by then.
options:
  toolkits:
    description: The toolkits.
    type: list
    elements: dict
    required: true
    suboptions:
      version: {description: "For example V(12.4).", type: str, required: true}
      path: {description: Folder of the toolkit., type: path, required: true}
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Lists the folders.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Take CUDA 12.4 away
  gpu_cuda_toolkit_absent:
    toolkits: [{version: "12.4", path: /usr/local/cuda-12.4}]

- name: Take away what the plan names
  gpu_cuda_toolkit_absent:
    toolkits: "{{ gpu_plan_result.todo['cuda_toolkit.remove'].toolkits }}"

- name: Show what would go
  gpu_cuda_toolkit_absent:
    toolkits: [{version: "12.4", path: /usr/local/cuda-12.4}]
  check_mode: true
"""

RETURN = r"""
removed:
  description: What went, in words.
  returned: always
  type: list
  elements: str
  sample: [CUDA 12.4, /usr/local/cuda-12.4]
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.cuda import runfile as cuda_runfile

ARGUMENT_SPEC = {
    "toolkits": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {"version": {"type": "str", "required": True}, "path": {"type": "path", "required": True}},
    }
}


def run(host, params, check):
    where = cuda_runfile.Where()
    there = [entry for entry in params["toolkits"] if cuda_runfile.rests(host, entry["version"], entry["path"], where)]
    removed = []
    for entry in there:
        if check:
            removed.append(entry["path"])
        else:
            removed += cuda_runfile.remove(host, entry["version"], entry["path"], where)
    before = "".join("%s\n" % entry["path"] for entry in there)
    return {"changed": bool(there), "removed": removed, "diff": {"before": before, "after": ""}}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
