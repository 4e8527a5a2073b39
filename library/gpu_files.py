#!/usr/bin/python
"""Write small files on a node, atomically, with a manifest of what was there before."""

DOCUMENTATION = r"""
module: gpu_files
short_description: Write files of our own and note what was there before
description:
  - Brings a list of files to their wanted content in one call. Each file is replaced atomically; its earlier content is
    noted in the manifest on the node before it is touched, so that uninstall.yml can restore it.
options:
  files:
    description: The files.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: Absolute path., type: path, required: true}
      content: {description: Whole content., type: str, default: ""}
      mode: {description: Permissions in octal digits., type: str, default: "0644"}
      state: {description: Whether it is there., type: str, choices: [present, absent], default: present}
  rebuild:
    description:
      - Program and arguments to run when a file changed, such as the rebuild of the initial RAM disk. One that an
        earlier run left out, because it was killed or failed, is made up for.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Keep nouveau off
  gpu_files:
    files:
      - path: /etc/modprobe.d/gpu-ready-blacklist-nouveau.conf
        content: "blacklist nouveau\n"
    rebuild: [update-initramfs, -u, -k, all]

- name: Write both profile scripts
  gpu_files:
    files: "{{ gpu_plan_result.todo['cuda_toolkit.profile']['files'] }}"

- name: Take a file away
  gpu_files:
    files: [{path: /etc/profile.d/cuda.sh, state: absent}]
"""

RETURN = r"""
paths:
  description: Files that changed.
  returned: always
  type: list
rebuilt:
  description: Whether the rebuild ran.
  returned: always
  type: bool
"""

from ansible.module_utils.gpu_ready.base import managed_files
from ansible.module_utils.gpu_ready.base.module import run_module

ARGUMENT_SPEC = {
    "files": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "default": ""},
            "mode": {"type": "str", "default": "0644"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
    },
    "rebuild": {"type": "list", "elements": "str", "default": []},
}


def run(host, params, check):
    wanted = [managed_files.parse_file(entry) for entry in params["files"]]
    return managed_files.converge(host, wanted, params["rebuild"], check)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
