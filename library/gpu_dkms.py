#!/usr/bin/python
"""Build NVIDIA's modules for a kernel with DKMS."""

DOCUMENTATION = r"""
module: gpu_dkms
short_description: Build NVIDIA's modules for a kernel with DKMS
description:
  - For installed packages without built modules, for example after a killed build or for a kernel installed later.
  - Modules that a loss of power damaged are built again, although DKMS reports them as installed.
  - The message of a failed build has the cause from the compiler's log.
options:
  kernel:
    description: Release of the kernel, as C(uname -r) prints it.
    type: str
    required: true
attributes:
  check_mode: {support: full, description: Reports whether something would be built; changes nothing.}
  diff_mode: {support: none}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Build the module for the kernel of the next boot
  gpu_ready.nodes.gpu_dkms:
    kernel: 6.1.0-40-amd64
"""

RETURN = r"""
damaged:
  description: Damaged files that were built again.
  returned: always
  type: list
modules:
  description: Files of NVIDIA's modules for that kernel.
  returned: always
  type: list
"""

from ..module_utils.gpu_ready.answers.driver import DkmsAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.driver import dkms

ANSWER = DkmsAnswer
ARGUMENT_SPEC = {"kernel": {"type": "str", "required": True}}


def run(host, params, check):
    kernel = params["kernel"]
    before = dkms.module_files(host, kernel)
    if check:
        damaged = dkms.damaged_modules(host, kernel)
        return DkmsAnswer(bool(damaged) or not before, damaged, before)
    damaged, after = dkms.build(host, kernel)
    return DkmsAnswer(bool(damaged) or after != before, damaged, after)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
