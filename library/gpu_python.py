#!/usr/bin/python
"""Decide how modules run on a host without a usable Python: the documentation of plugins/action/gpu_python.py."""

DOCUMENTATION = r"""
---
module: gpu_python
short_description: Decide how Ansible's modules can run on a host without a usable Python
description:
  - Runs on the control node. It parses what a shell on the host printed, and returns the interpreter to use or the
    script that installs one. A host on which neither is possible fails with a message.
  - Changes nothing.
options:
  printed:
    description: What the shell script RV(find) printed on the host. Absent, only RV(find) is returned.
    type: str
  tried:
    description: What the installation printed, once it was tried.
    type: str
  # BEGIN variables: generated from catalog/variables by `make catalog`
  gpu_ready_mirror:
    description: >-
      Base URL of a site mirror that replaces every upstream server. A file of V(https://HOST/PATH) is then
      downloaded from V(MIRROR/HOST/PATH). Empty: the vendors' own servers.
    type: str
    default: ""
  gpu_ready_mirror_keys:
    description: >-
      Fingerprints of the signing keys by repository id, for repositories that the mirror signs with its own key.
      Empty: the vendors' keys.
    type: dict
    default: {}
  gpu_ready_vault:
    description: >-
      Use the archives of ended releases (CentOS 7, Enterprise Linux 8) for kernel headers that the mirrors no
      longer have, and for Python 3 on hosts without one.
    type: bool
    default: false
  # END variables
attributes:
  check_mode:
    description: Reports that a check installs no Python.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Get the script that finds Python
  gpu_ready.nodes.gpu_python:
  register: script

- name: Find Python
  ansible.builtin.raw: "{{ script.find }}"
  register: found

- name: Decide
  gpu_ready.nodes.gpu_python:
    printed: "{{ found.stdout }}"
    gpu_ready_vault: true
"""

RETURN = r"""
find:
  description: Shell script that prints the Pythons and package managers of a host.
  returned: always
  type: str
  sample: "for path in /usr/bin/python3 ..."
interpreter:
  description: The Python to use, V(null) where one is to be installed first.
  returned: when O(printed) is given
  type: str
  sample: /usr/libexec/platform-python
install:
  description: Shell script that installs one, V(null) where there is one.
  returned: when O(printed) is given
  type: str
  sample: "yum -y install python3"
"""

from ..module_utils.gpu_ready.answers.controller import PythonAnswer
from ..module_utils.gpu_ready.base.action_plugins import run_without_plugin

ANSWER = PythonAnswer
ARGUMENT_SPEC = {
    "printed": {"type": "str"},
    "tried": {"type": "str"},
    "gpu_ready_vault": {"type": "bool", "default": False},
    "gpu_ready_mirror": {"type": "str", "default": ""},
    "gpu_ready_mirror_keys": {"type": "dict", "default": {}, "no_log": False},
}


def main():
    run_without_plugin("gpu_python", ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
