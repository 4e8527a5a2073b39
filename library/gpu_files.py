#!/usr/bin/python
"""Write small files on a node atomically and record their earlier content."""

DOCUMENTATION = r"""
module: gpu_files
short_description: Write small files and record their earlier content
description:
  - Writes a list of files in one call. Each file is replaced atomically. Its earlier content is recorded in the
    manifest on the node first, so that uninstall.yml can restore it.
options:
  files:
    description: The files.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: Absolute path., type: path, required: true}
      content: {description: Complete content., type: str, default: ""}
      mode: {description: Permissions in octal digits., type: str, default: "0644"}
      state: {description: Whether the file exists., type: str, choices: [present, absent], default: present}
  rebuild:
    description:
      - Program and arguments to run when a file changed, such as the rebuild of the initial RAM disk. One that an
        earlier run did not complete, because it was killed or failed, is run too.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Reports what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Disable nouveau
  gpu_ready.nodes.gpu_files:
    files:
      - path: /etc/modprobe.d/gpu-ready-blacklist-nouveau.conf
        content: "blacklist nouveau\n"
    rebuild: [update-initramfs, -u, -k, all]

- name: Write both profile scripts
  gpu_ready.nodes.gpu_files:
    files: "{{ gpu_plan_result.todo['cuda_toolkit.profile']['files'] }}"

- name: Delete a file
  gpu_ready.nodes.gpu_files:
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

from ..module_utils.gpu_ready.answers.system import FilesAnswer
from ..module_utils.gpu_ready.base import managed_files
from ..module_utils.gpu_ready.base.changing_module import run_changing_module

ANSWER = FilesAnswer
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
    files = [managed_files.parse_file(entry) for entry in params["files"]]
    return FilesAnswer(**managed_files.converge(host, files, params["rebuild"], check))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
