#!/usr/bin/python
"""Ask nvidia-detect which driver package it would take, and compare that with what is planned."""

DOCUMENTATION = r"""
---
module: gpu_nvidia_detect
short_description: Compare nvidia-detect's verdict with the planned driver package
description:
  - Runs C(nvidia-detect), ELRepo's or Debian's, and compares the packages that it names with those that the plan would
    install. A disagreement fails and prints both verdicts, device by device where the program tells them.
  - Reads standard output only. ELRepo's exit status is an enum of branches, once renumbered, and the last device's.
  - Installs nothing and changes nothing.
options:
  expect:
    description: Names of packages that may be answered for every NVIDIA device.
    type: list
    elements: str
    required: true
  gpus:
    description: The GPUs that the plan counted, for the message, for example C(["10de:1eb8 Tesla T4"]).
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that the program may take.
    type: int
    default: 60
attributes:
  check_mode:
    description: Does the same in check mode.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Ask nvidia-detect whether it agrees with the plan
  gpu_nvidia_detect:
    expect: [kmod-nvidia-open]

- name: Ask on a host with GPUs from before Turing
  gpu_nvidia_detect:
    expect: [kmod-nvidia-580xx]
    gpus: ["10de:1b38 Tesla P40"]

- name: Ask Debian's program
  gpu_nvidia_detect:
    expect: [nvidia-driver]
"""

RETURN = r"""
packages:
  description: The packages that nvidia-detect names, each once.
  returned: always
  type: list
  elements: str
  sample: [kmod-nvidia-open]
devices:
  description: Verdicts in words, one for each device that the program told of.
  returned: always
  type: list
  elements: str
  sample: ["10de:1eb8 TU104GL [Tesla T4]: kmod-nvidia-open"]
"""

from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.driver import nvidia_detect

ARGUMENT_SPEC = {
    "expect": {"type": "list", "elements": "str", "required": True},
    "gpus": {"type": "list", "elements": "str", "default": []},
    "timeout": {"type": "int", "default": 60},
}


def run(host, params, check):
    verdict = nvidia_detect.ask(host, params["timeout"])
    result = {"packages": verdict.packages, "devices": verdict.words()}
    disagreement = nvidia_detect.disagreement(verdict, params["expect"], params["gpus"])
    if disagreement:
        raise GpuReadyError(disagreement, **result)
    return dict(result, changed=False)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
