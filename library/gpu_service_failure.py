#!/usr/bin/python
"""Report why a service does not run."""

DOCUMENTATION = r"""
module: gpu_service_failure
short_description: Fail with the reason why a service does not run
description:
  - For the C(rescue) of a task that starts, restarts or reloads a service.
  - Reads what the service wrote to the journal since its last start.
  - Fails with a message that names cause, remedy and the complete log.
options:
  name:
    description: The service.
    type: str
    required: true
  message:
    description: Message of the failed task, for a service that wrote nothing.
    type: str
    default: ""
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Start docker
  block:
    - name: Start docker
      ansible.builtin.systemd_service:
        name: docker
        state: started
  rescue:
    - name: Report why docker does not run
      gpu_ready.nodes.gpu_service_failure:
        name: docker
        message: "{{ ansible_failed_result.msg }}"

- name: Report why the fabric manager does not run
  gpu_ready.nodes.gpu_service_failure:
    name: nvidia-fabricmanager

- name: Report why the persistence daemon does not run
  gpu_ready.nodes.gpu_service_failure:
    name: nvidia-persistenced
    message: it ended at once
"""

RETURN = r"""
msg:
  description: Cause, remedy and log.
  returned: always
  type: str
  sample: "the service docker does not run: docker's daemon.json is not valid (...): repair what it names; ..."
"""

from ..module_utils.gpu_ready.answers.system import ServiceFailureAnswer
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.driver import service

ANSWER = ServiceFailureAnswer
ARGUMENT_SPEC = {"name": {"type": "str", "required": True}, "message": {"type": "str", "default": ""}}


def run(host, params, check):
    raise GpuReadyError(service.describe_service(host, params["name"], params["message"]))


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
