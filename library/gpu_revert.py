#!/usr/bin/python
"""Revert single packages, files and directories of gpu-ready, as uninstall.yml would."""

DOCUMENTATION = r"""
module: gpu_revert
short_description: Revert packages, files and directories that gpu-ready added to a node
description:
  - Files in the manifest of the node get their earlier content, packages and directories in it are removed, and the
    manifest forgets them. What it does not list belongs to others and is kept.
  - Where another package needs one of these packages, nothing is done and the module fails with its name.
options:
  packages:
    description: Packages to purge, before the files are reverted.
    type: list
    elements: str
    default: []
  paths:
    description: Files and directories to revert.
    type: list
    elements: path
    default: []
  leftovers:
    description: Files that are deleted whoever wrote them, such as those of a service whose package is removed.
    type: list
    elements: path
    default: []
attributes:
  check_mode: {support: full, description: Predicts the change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after; directories by name.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Remove our CDI specification and the driver volume
  gpu_ready.nodes.gpu_revert:
    paths: [/etc/cdi/gpu-ready.json, /usr/local/nvidia-driver]

- name: See what would be removed
  gpu_ready.nodes.gpu_revert:
    paths: [/usr/local/nvidia-driver]
  check_mode: true

- name: Purge the container toolkit, and delete what its service wrote
  gpu_ready.nodes.gpu_revert:
    packages: [nvidia-container-toolkit, nvidia-container-toolkit-base]
    paths: [/etc/cdi/nvidia.yaml]
    leftovers: [/var/run/cdi/nvidia.yaml]
"""

RETURN = r"""
packages:
  description: Packages that were purged.
  returned: always
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
paths:
  description: What was reverted or deleted.
  returned: always
  type: list
  elements: str
  sample: [/etc/cdi/gpu-ready.json]
"""

from ..module_utils.gpu_ready.answers.packages import RevertAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.lifecycle import revert
from ..module_utils.gpu_ready.packaging import select
from ..module_utils.gpu_ready.upgrade import journal

ANSWER = RevertAnswer
ARGUMENT_SPEC = {
    "packages": {"type": "list", "elements": "str", "default": []},
    "paths": {"type": "list", "elements": "path", "default": []},
    "leftovers": {"type": "list", "elements": "path", "default": []},
}


def run(host, params, check):
    manager = select.choose_manager(host, journal.is_open(host))
    return RevertAnswer(**revert.revert(host, manager, revert.RevertRequest(**params), check))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
