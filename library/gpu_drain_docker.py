#!/usr/bin/python
"""Stop the GPU containers of docker, and start again what we stopped."""

DOCUMENTATION = r"""
module: gpu_drain_docker
short_description: Stop docker's GPU containers, and start again those that we stopped
description:
  - GPU containers are those that asked for a GPU (device, runtime, CDI) and those in which a process holds a node of
    the driver. They are noted in the journal of the host before they are stopped; restart policies stay as they are.
options:
  state:
    description:
      - V(drained) waits for containers that docker deletes when they stop; it returns after a share of O(timeout), so
        that somebody can tell how it goes, and fails past O(deadline).
    type: str
    required: true
    choices: [drained, undrained]
  grace:
    description: Seconds between SIGTERM and SIGKILL; V(-1) for what the container names.
    type: int
    default: -1
  stop_temporary:
    description: Whether containers may be stopped that docker then deletes.
    type: bool
    default: false
  timeout:
    description: Seconds that these may take to end.
    type: int
    default: 1800
  deadline:
    description: End of a wait that began in an earlier call, as RV(deadline) gave it; 0 for one that begins.
    type: float
    default: 0
attributes:
  check_mode: {support: full, description: Names the containers that would be stopped or started; does not wait.}
  diff_mode: {support: none, description: Shows none.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Stop the GPU containers
  gpu_drain_docker: {state: drained}

- name: Stop them within five seconds each, those of docker run --rm too
  gpu_drain_docker: {state: drained, grace: 5, stop_temporary: true}

- name: Start again what we stopped
  gpu_drain_docker: {state: undrained}
"""

RETURN = r"""
containers:
  description: Names of the containers that were stopped or started, or would be.
  returned: always
  type: list
  elements: str
  sample: [train]
done:
  description: Whether no container is awaited.
  returned: drained
  type: bool
waiting:
  description: What is awaited.
  returned: drained
  type: str
  sample: "the end of notebook, which docker deletes when stopped (--rm)"
deadline:
  description: End of the wait, in seconds since 1970 on this host.
  returned: drained
  type: float
left_s:
  description: Seconds that are left of it.
  returned: drained
  type: int
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.drain import docker as drain_docker
from ansible.module_utils.gpu_ready.drain import journal as drain

ARGUMENT_SPEC = {
    "state": {"type": "str", "required": True, "choices": ["drained", "undrained"]},
    "grace": {"type": "int", "default": -1},
    "stop_temporary": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 1800},
    "deadline": {"type": "float", "default": 0},
}


def run(host, params, check):
    engine = drain_docker.Engine(host, limit=params["timeout"])
    if params["state"] == "undrained":
        return drain_docker.start_all(host, engine, check)
    stopped = drain_docker.stop_all(host, engine, params["stop_temporary"], params["grace"], check)
    answer = drain.waited(
        lambda: engine.awaited(params["stop_temporary"]), params["timeout"], params["deadline"], check
    )
    return dict(answer, containers=stopped, changed=bool(stopped))


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
