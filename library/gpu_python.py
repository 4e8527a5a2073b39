#!/usr/bin/python
"""Decide on the control node how modules can run on a host that has no usable Python."""

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
  core:
    description: Version of ansible-core, C(ansible_version.full).
    type: str
    required: true
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
    core: "{{ ansible_version.full }}"
  delegate_to: localhost
  register: script

- name: Find Python
  ansible.builtin.raw: "{{ script.find }}"
  register: found

- name: Decide
  gpu_ready.nodes.gpu_python:
    core: "{{ ansible_version.full }}"
    printed: "{{ found.stdout }}"
    gpu_ready_vault: true
  delegate_to: localhost
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
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.lifecycle import bootstrap, python_scripts

ANSWER = PythonAnswer
ARGUMENT_SPEC = {
    "printed": {"type": "str"},
    "core": {"type": "str", "required": True},
    "tried": {"type": "str"},
    "gpu_ready_vault": {"type": "bool", "default": False},
    "gpu_ready_mirror": {"type": "str", "default": ""},
    "gpu_ready_mirror_keys": {"type": "dict", "default": {}, "no_log": False},
}


def run(host, params, check):
    if params["printed"] is None:
        return PythonAnswer(python_scripts.FIND, None, None)
    found = bootstrap.parse_found(params["printed"])
    try:
        choice = bootstrap.choose_python(found, params["core"], params, params["tried"], check)
    except bootstrap.BootstrapError as error:
        error.result["find"] = python_scripts.FIND
        raise
    return PythonAnswer(python_scripts.FIND, choice.interpreter, choice.install)


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
