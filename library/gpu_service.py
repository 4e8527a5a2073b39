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
    description:
      - What happens to the running service. V(unchanged) leaves the start to the next boot, V(stopped) is for a unit
        of gpu-ready that is removed next.
    type: str
    choices: [started, restarted, unchanged, stopped]
    default: started
  persistence:
    description:
      - The service is NVIDIA's persistence daemon, and is to turn persistence mode on. Where its unit turns the mode
        off, as that of Ubuntu's archive does, a drop-in of systemd has the unit's own command with the option
        reversed, and the daemon is restarted. An administrator's own command is left as it is.
      - Not with the state V(restarted).
    type: bool
    default: false
attributes:
  check_mode:
    description: Reports whether something would change; changes nothing.
    support: full
  diff_mode:
    description: Shows the drop-in of the persistence daemon before and after.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Run the persistence daemon
  gpu_ready.nodes.gpu_service:
    name: nvidia-persistenced
    persistence: true

- name: Restart docker
  gpu_ready.nodes.gpu_service:
    name: docker
    state: restarted

- name: Let the next boot start the fabric manager
  gpu_ready.nodes.gpu_service:
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

from ..module_utils.gpu_ready.answers.system import ServiceAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.driver import persistence, service

ANSWER = ServiceAnswer
ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "state": {
        "type": "str",
        "choices": [service.STARTED, service.RESTARTED, service.UNCHANGED, service.STOPPED],
        "default": service.STARTED,
    },
    "persistence": {"type": "bool", "default": False},
}


def run(host, params, check):
    act = persistence.run_daemon if params["persistence"] else service.run_service
    return ServiceAnswer(**act(host, params["name"], params["state"], check))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
