#!/usr/bin/python
"""Have DKMS build NVIDIA's modules for a kernel."""

DOCUMENTATION = r"""
module: gpu_dkms
short_description: Have DKMS build NVIDIA's modules for a kernel
description:
  - For packages that are there while their modules are not, such as after a build that was killed, or for a kernel that
    came later.
  - Modules that a loss of power left unreadable are built anew, although DKMS calls them installed.
  - A build that fails is told with the cause that the compiler's log holds.
options:
  kernel:
    description: Release of the kernel, as C(uname -r) says it.
    type: str
    required: true
attributes:
  check_mode: {support: full, description: Says whether something would be built; changes nothing.}
  diff_mode: {support: none}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Build the module for the kernel that boots next
  gpu_dkms:
    kernel: 6.1.0-40-amd64
"""

RETURN = r"""
damaged:
  description: Files that were no modules and were built anew.
  returned: always
  type: list
modules:
  description: Files of NVIDIA's modules for that kernel.
  returned: always
  type: list
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.driver import dkms

ARGUMENT_SPEC = {"kernel": {"type": "str", "required": True}}


def run(host, params, check):
    """Have the modules there; returns the module's answer."""
    kernel = params["kernel"]
    before = dkms.module_files(host, kernel)
    if check:
        damaged = dkms.unreadable(host, kernel)
        return {"changed": bool(damaged) or not before, "damaged": damaged, "modules": before}
    damaged, there = dkms.build(host, kernel)
    return {"changed": bool(damaged) or there != before, "damaged": damaged, "modules": there}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
