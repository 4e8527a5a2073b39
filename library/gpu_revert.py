#!/usr/bin/python
"""Take back single packages, files and folders that gpu-ready brought, as uninstall.yml would."""

DOCUMENTATION = r"""
module: gpu_revert
short_description: Take back packages, files and folders that gpu-ready brought to a node
description:
  - What the manifest on the node lists goes back to what it was before gpu-ready, and the manifest forgets it. What it
    does not list is the work of others and is left.
  - Packages are purged; where others need one of them, nothing is done and they are named.
options:
  packages:
    description: Packages to purge, before the files.
    type: list
    elements: str
    default: []
  paths:
    description: Files and folders to take back.
    type: list
    elements: path
    default: []
  leftovers:
    description: Files that are deleted whoever wrote them, such as those of a service whose package is gone.
    type: list
    elements: path
    default: []
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after; folders by name.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Take our CDI specification and the driver volume back
  gpu_revert:
    paths: [/etc/cdi/gpu-ready.json, /usr/local/nvidia-driver]

- name: See what would go
  gpu_revert:
    paths: [/usr/local/nvidia-driver]
  check_mode: true

- name: Purge the container toolkit, and delete what its service wrote
  gpu_revert:
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
  description: What was taken back or deleted.
  returned: always
  type: list
  elements: str
  sample: [/etc/cdi/gpu-ready.json]
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.lifecycle import revert
from ansible.module_utils.gpu_ready.packaging import select
from ansible.module_utils.gpu_ready.upgrade import journal

ARGUMENT_SPEC = {
    "packages": {"type": "list", "elements": "str", "default": []},
    "paths": {"type": "list", "elements": "path", "default": []},
    "leftovers": {"type": "list", "elements": "path", "default": []},
}


def run(host, params, check):
    manager = select.choose_manager(host, journal.is_open(host))
    return revert.revert(host, manager, revert.RevertRequest(**params), check)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
