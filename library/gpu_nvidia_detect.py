#!/usr/bin/python
"""Compare the driver package that nvidia-detect names with the planned one."""

DOCUMENTATION = r"""
---
module: gpu_nvidia_detect
short_description: Compare nvidia-detect's choice with the planned driver package
description:
  - Runs C(nvidia-detect), ELRepo's or Debian's, and compares the packages that it names with those that the plan would
    install. A disagreement fails the task with both choices, by device if the program lists devices.
  - Ignores the exit status. ELRepo's is a number for the branch of the last device only, and these numbers have changed
    once.
  - Installs nothing and changes nothing.
options:
  expect:
    description: Package names that are accepted for every NVIDIA device.
    type: list
    elements: str
    required: true
  gpus:
    description: The GPUs of the plan, for the message, for example C(["10de:1eb8 Tesla T4"]).
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Does the same in check mode.
    support: full
  diff_mode:
    description: There is no diff.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Compare nvidia-detect with the plan
  gpu_ready.nodes.gpu_nvidia_detect:
    expect: [kmod-nvidia-open]

- name: Compare on a host with GPUs older than Turing
  gpu_ready.nodes.gpu_nvidia_detect:
    expect: [kmod-nvidia-580xx]
    gpus: ["10de:1b38 Tesla P40"]

- name: Compare with Debian's program
  gpu_ready.nodes.gpu_nvidia_detect:
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
  description: One line per device that the program lists.
  returned: always
  type: list
  elements: str
  sample: ["10de:1eb8 TU104GL [Tesla T4]: kmod-nvidia-open"]
"""

from ..module_utils.gpu_ready.answers.driver import NvidiaDetectAnswer
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.driver import nvidia_detect

ANSWER = NvidiaDetectAnswer
ARGUMENT_SPEC = {
    "expect": {"type": "list", "elements": "str", "required": True},
    "gpus": {"type": "list", "elements": "str", "default": []},
}


def run(host, params, check):
    detected = nvidia_detect.run_nvidia_detect(host)
    result = {"packages": detected.packages, "devices": detected.lines()}
    disagreement = nvidia_detect.find_disagreement(detected, params["expect"], params["gpus"])
    if disagreement:
        raise GpuReadyError(disagreement, **result)
    return NvidiaDetectAnswer(**result)


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
