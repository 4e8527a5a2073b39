#!/usr/bin/python
"""Stop docker's GPU containers, and start them again."""

DOCUMENTATION = r"""
module: gpu_drain_docker
short_description: Stop docker's GPU containers, and start them again
description:
  - GPU containers are those that requested a GPU (device, runtime, CDI) and those in which a process has a device node
    of the driver open. They are recorded in the journal of the host before they are stopped. Restart policies are not
    changed.
options:
  state:
    description:
      - V(drained) waits for containers that docker deletes when they stop. It returns after a part of O(timeout), so
        that the playbook can report progress, and fails after O(deadline).
    type: str
    required: true
    choices: [drained, undrained]
  grace:
    description: Seconds between SIGTERM and SIGKILL; V(-1) for the container's own.
    type: int
    default: -1
  stop_temporary:
    description: Stop containers too that docker then deletes.
    type: bool
    default: false
  timeout:
    description: Seconds in which these have to end.
    type: int
    default: 1800
  deadline:
    description: RV(deadline) of the earlier call that began this wait; 0 to begin one.
    type: float
    default: 0
attributes:
  check_mode: {support: full, description: Names the containers that would be stopped or started. It does not wait.}
  diff_mode: {support: none, description: Has no diff.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Stop the GPU containers
  gpu_ready.nodes.gpu_drain_docker: {state: drained}

- name: Stop them within five seconds each, those of docker run --rm too
  gpu_ready.nodes.gpu_drain_docker: {state: drained, grace: 5, stop_temporary: true}

- name: Start them again
  gpu_ready.nodes.gpu_drain_docker: {state: undrained}
"""

RETURN = r"""
containers:
  description: Names of the containers that were stopped or started, or would be.
  returned: always
  type: list
  elements: str
  sample: [train]
done:
  description: True if no container is awaited.
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
remaining_s:
  description: Seconds until then.
  returned: drained
  type: int
"""

from ..module_utils.gpu_ready.answers.drain import DrainDockerAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.drain import docker, hook

ANSWER = DrainDockerAnswer
ARGUMENT_SPEC = {
    "state": {"type": "str", "required": True, "choices": ["drained", "undrained"]},
    "grace": {"type": "int", "default": -1},
    "stop_temporary": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 1800},
    "deadline": {"type": "float", "default": 0},
}


def run(host, params, check):
    engine = docker.DockerEngine(host, limit=params["timeout"])
    if params["state"] == "undrained":
        return DrainDockerAnswer(**docker.start_all(host, engine, check))
    temporary = params["stop_temporary"]
    stopped = docker.stop_all(host, engine, temporary, params["grace"], check)
    values = hook.wait_values(lambda: engine.pending_work(temporary), params["timeout"], params["deadline"], check)
    return DrainDockerAnswer(**dict(values, containers=stopped, changed=bool(stopped)))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
