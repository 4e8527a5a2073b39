#!/usr/bin/python
"""Load, reload or unload the NVIDIA modules of the running kernel, without force."""

DOCUMENTATION = r"""
module: gpu_kernel_module
short_description: Load, reload or unload NVIDIA's kernel modules
description:
  - Loads the modules and creates the device nodes, or unloads the modules in the right order. Services of the driver
    that use the GPUs are stopped before and started afterwards.
  - Never forces a module to unload, and ends no process but those of O(kubelet). If a module is in use, RV(held_by)
    says by what, and a reboot is required.
  - Other NVIDIA modules that were loaded before a live reload are loaded again; a warning names one that cannot be.
options:
  state:
    description:
      - V(loaded) or V(reloaded).
      - V(reloaded) unloads the loaded modules and loads the installed ones, unless they are the same.
    type: str
    choices: [loaded, reloaded]
    default: loaded
  modules:
    description: Modules to load, in this order, by their names for modprobe.
    type: list
    elements: str
    default: [nvidia, nvidia-uvm]
  later:
    description: Services that a later task starts, after it has installed the new driver's version of them.
    type: list
    elements: str
    default: []
  force:
    description: Reload also a loaded module that is the installed one, so that it gets the parameters of modprobe.d.
    type: bool
    default: false
  kubelet:
    description:
      - The service of the kubelet on a drained node, without C(.service). Where pods hold a GPU it is stopped, their
        processes are ended, and after the reload it starts their containers again. Empty to end no process.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Reports whether something would change; changes nothing.}
  diff_mode: {support: full, description: Shows the loaded modules.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Load the driver
  gpu_ready.nodes.gpu_kernel_module:
    modules: [nvidia, nvidia-uvm, nvidia-modeset]

- name: Load an upgraded driver
  gpu_ready.nodes.gpu_kernel_module:
    state: reloaded
  register: driver

- name: Unload the driver
  gpu_ready.nodes.gpu_kernel_module:
    state: unloaded
"""

RETURN = r"""
loaded_version:
  description: Version of the loaded driver; empty if none is loaded.
  returned: always
  type: str
  sample: 580.178.04
modules:
  description: NVIDIA's loaded modules.
  returned: always
  type: list
held_by:
  description: What uses the modules and prevents a live reload; empty if nothing does.
  returned: always
  type: str
reboot_required:
  description: Whether the installed driver can be loaded by a reboot only.
  returned: always
  type: bool
services:
  description: Services that were stopped and started again.
  returned: always
  type: list
"""

from ..module_utils.gpu_ready.answers.driver import KernelModuleAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.driver.live_reload import ModuleRequest, change_modules

ANSWER = KernelModuleAnswer
ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["loaded", "reloaded"], "default": "loaded"},
    "modules": {"type": "list", "elements": "str", "default": ["nvidia", "nvidia-uvm"]},
    "later": {"type": "list", "elements": "str", "default": []},
    "force": {"type": "bool", "default": False},
    "kubelet": {"type": "str", "default": ""},
}


def run(host, params, check):
    return KernelModuleAnswer(**change_modules(host, ModuleRequest(**params), check))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
