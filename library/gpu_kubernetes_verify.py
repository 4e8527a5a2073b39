#!/usr/bin/python
"""Run test pods on GPU nodes of a Kubernetes cluster. Runs where kubectl is."""

DOCUMENTATION = r"""
module: gpu_kubernetes_verify
short_description: Run test pods on GPU nodes of a Kubernetes cluster
description:
  - A node is verified if it offers exactly its verified GPUs, and each of up to two test pods, which run at the same
    time, sees exactly one of them; a different one each, unless GPUs are shared.
options:
  state:
    description:
      - V(checked) returns after some seconds, so that the playbook can report progress. It ends the wait at
        O(deadline).
      - V(absent) removes all test pods.
    type: str
    required: true
    choices: [checked, absent]
  nodes:
    description:
      - Of each, C(node) (its name in Kubernetes), C(gpus) (verified UUIDs) and C(labels).
    type: list
    elements: dict
    default: []
  replicas:
    description: Pods for each GPU.
    type: int
    default: 1
  image:
    description: Image of the test pods.
    type: str
    default: ubuntu:24.04
  runtime_class:
    description: RuntimeClass of the test pods; empty for the engine's default.
    type: str
    default: ""
  timeout:
    description: Seconds that all nodes have together.
    type: int
    default: 600
  deadline:
    description: RV(deadline) of the earlier call that began this wait; 0 to begin one.
    type: float
    default: 0
  kubectl:
    description: Name or path of kubectl.
    type: str
    default: kubectl
  kubeconfig:
    description: File with the credentials; empty for kubectl's default.
    type: path
    default: ""
  context:
    description: Context in that file; empty for the current one.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Starts and removes no pod.}
  diff_mode: {support: none, description: Has no diff.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Verify a node
  gpu_ready.nodes.gpu_kubernetes_verify:
    state: checked
    nodes:
      - node: gpu1
        gpus: [GPU-11111111-2222-3333-4444-555555555555]
        labels: {nvidia.com/gpu.product: Tesla-T4}
  delegate_to: localhost

- name: Remove the test pods
  gpu_ready.nodes.gpu_kubernetes_verify: {state: absent}
  delegate_to: localhost
"""

RETURN = r"""
nodes:
  description: State (verified, waiting, busy or failed) and message by node.
  returned: checked
  type: dict
  sample: {gpu1: {state: verified, message: "2 GPUs allocatable, 2 test pods see one verified GPU each: GPU-1, GPU-2"}}
done:
  description: True if no node is awaited any longer.
  returned: checked
  type: bool
waiting:
  description: What is awaited.
  returned: checked
  type: str
deadline:
  description: End of the wait, in seconds since 1970 on the host where the module ran.
  returned: checked
  type: float
remaining_s:
  description: Seconds until then.
  returned: checked
  type: int
"""

import time

from ..module_utils.gpu_ready.answers.cluster import KubernetesVerifyAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.cluster import verify_pods
from ..module_utils.gpu_ready.cluster.kubectl import ACCESS_SPEC, Kubectl

PAUSE = 2.0
ROUND = 20.0
"""Seconds after which a call returns, so that progress is shown."""

ANSWER = KubernetesVerifyAnswer
ARGUMENT_SPEC = dict(
    {
        "state": {"type": "str", "required": True, "choices": ["checked", "absent"]},
        "nodes": {"type": "list", "elements": "dict", "default": []},
        "replicas": {"type": "int", "default": 1},
        "image": {"type": "str", "default": "ubuntu:24.04"},
        "runtime_class": {"type": "str", "default": ""},
        "timeout": {"type": "int", "default": 600},
        "deadline": {"type": "float", "default": 0},
    },
    **ACCESS_SPEC,
)


def run(host, params, check):
    kubectl = Kubectl.from_params(host, params)
    if params["state"] == "absent":
        return KubernetesVerifyAnswer(False if check else verify_pods.remove(kubectl))
    if check:
        return KubernetesVerifyAnswer(nodes={}, done=True, waiting="", deadline=0.0, remaining_s=0)
    deadline = params["deadline"] or time.time() + params["timeout"]
    nodes = verify_pods.read_nodes(params["nodes"], params["replicas"])
    options = verify_pods.PodOptions(params["image"], params["runtime_class"], params["timeout"] + 60)
    verdicts = wait(kubectl, nodes, options, min(ROUND, deadline - time.time()))
    if time.time() >= deadline:
        verdicts = verify_pods.give_up(verdicts, params["timeout"])
    waiting = verify_pods.summary(verdicts)
    return KubernetesVerifyAnswer(
        changed=False,  # the test pods are removed again
        nodes=verdicts,
        done=not waiting,
        waiting=waiting,
        deadline=deadline,
        remaining_s=max(int(deadline - time.time()), 0),
    )


def wait(kubectl, nodes, options, seconds):
    """Look until nothing is awaited or the time is over; return the last verdicts."""
    end = time.monotonic() + seconds
    while True:
        verdicts = verify_pods.check(kubectl, nodes, options)
        if not verify_pods.summary(verdicts) or time.monotonic() + PAUSE >= end:
            return verdicts
        time.sleep(PAUSE)


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
