#!/usr/bin/python
"""Enable and start a service, and record its former state."""

DOCUMENTATION = r"""
module: gpu_service
short_description: Enable and start a service
description:
  - Enables a service for the next boot, and starts or restarts it.
  - Records in the manifest whether it was enabled and active before, which C(uninstall.yml) restores.
  - A service that does not run is a failure with the cause from its journal.
options:
  name:
    description: The service.
    type: str
    required: true
  state:
    description: What happens to the running service. V(unchanged) leaves the start to the next boot.
    type: str
    choices: [started, restarted, unchanged]
    default: started
attributes:
  check_mode:
    description: Reports whether something would change; changes nothing.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Run the persistence daemon
  gpu_service:
    name: nvidia-persistenced

- name: Restart docker
  gpu_service:
    name: docker
    state: restarted

- name: Let the next boot start the fabric manager
  gpu_service:
    name: nvidia-fabricmanager
    state: unchanged
"""

RETURN = r"""
msg:
  description: Cause and remedy where the service does not run.
  returned: failed
  type: str
  sample: "the service docker does not run: docker's daemon.json is not valid (...): repair what it names; ..."
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.driver import service

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "state": {
        "type": "str",
        "choices": [service.STARTED, service.RESTARTED, service.UNCHANGED],
        "default": service.STARTED,
    },
}


def run(host, params, check):
    return service.run_service(host, params["name"], params["state"], check)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
