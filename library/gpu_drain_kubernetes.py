#!/usr/bin/python
"""Cordon a Kubernetes node, evict its pods, uncordon it. Runs where kubectl is."""

DOCUMENTATION = r"""
module: gpu_drain_kubernetes
short_description: Cordon a Kubernetes node, evict its pods, and uncordon it
description:
  - A node that gpu-ready cordoned has the annotation C(gpu-ready/drained) with O(reason). A node that is cordoned
    without it is not changed.
options:
  state:
    description:
      - Each returns after a part of O(timeout), so that the playbook can report progress - V(evicted) while pods
        run, all of them while the API server does not answer. They fail after O(deadline).
    type: str
    required: true
    choices: [cordoned, evicted, uncordoned]
  node:
    description: Name of the node in Kubernetes.
    type: str
    required: true
  reason:
    description: Value of the annotation.
    type: str
    default: "gpu-ready: driver upgrade"
  recorded:
    description: The journal of the host lists this cordon.
    type: bool
    default: false
  timeout:
    description: Seconds in which the pods have to end, and the API server has to answer.
    type: int
    default: 1800
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
  grace_period:
    description: Seconds in which each pod has to end; V(-1) for the pod's own.
    type: int
    default: -1
  delete_emptydir_data:
    description: Evict pods with data in an emptyDir too.
    type: bool
    default: true
  force:
    description: Evict pods without a controller too, which nothing starts again.
    type: bool
    default: false
  disable_eviction:
    description: Delete pods regardless of their disruption budgets.
    type: bool
    default: false
  pod_selector:
    description: Labels of the pods to evict; empty for all.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Reports whether the node would change. It evicts nothing.}
  diff_mode: {support: none, description: Has no diff.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: See who cordoned a node
  gpu_ready.nodes.gpu_drain_kubernetes: {state: cordoned, node: gpu1}
  check_mode: true
  delegate_to: localhost

- name: Evict its pods, for at most ten minutes
  gpu_ready.nodes.gpu_drain_kubernetes: {state: evicted, node: gpu1, timeout: 600}
  delegate_to: localhost
  register: evicted

- name: Uncordon it
  gpu_ready.nodes.gpu_drain_kubernetes: {state: uncordoned, node: gpu1, recorded: true}
  delegate_to: localhost
"""

RETURN = r"""
owned:
  description: True if the cordon is, or would be, that of gpu-ready.
  returned: cordoned
  type: bool
kept:
  description: Why the node was not changed; empty if it was.
  returned: cordoned, uncordoned
  type: str
  sample: "the Kubernetes node gpu1 is already cordoned and stays so"
done:
  description: False if the end of pods or an answer of the API server is still awaited.
  returned: always
  type: bool
waiting:
  description: What is awaited.
  returned: always
  type: str
  sample: "1 pod on the Kubernetes node gpu1: ml/train-0, held by a disruption budget"
deadline:
  description: End of the wait, in seconds since 1970 on the host where the module ran.
  returned: always
  type: float
remaining_s:
  description: Seconds until then.
  returned: always
  type: int
"""

from ..module_utils.gpu_ready.answers.drain import DrainKubernetesAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.cluster.kubectl import ACCESS_SPEC, Kubectl
from ..module_utils.gpu_ready.drain import hook
from ..module_utils.gpu_ready.drain.kubernetes import EvictionOptions, KubernetesHook

ACTIONS = {"cordoned": hook.DRAIN, "evicted": hook.WAIT, "uncordoned": hook.UNDRAIN}

ANSWER = DrainKubernetesAnswer
ARGUMENT_SPEC = dict(
    {
        "state": {"type": "str", "required": True, "choices": list(ACTIONS)},
        "node": {"type": "str", "required": True},
        "reason": {"type": "str", "default": "gpu-ready: driver upgrade"},
        "recorded": {"type": "bool", "default": False},
        "timeout": {"type": "int", "default": 1800},
        "deadline": {"type": "float", "default": 0},
        "grace_period": {"type": "int", "default": -1},
        "delete_emptydir_data": {"type": "bool", "default": True},
        "force": {"type": "bool", "default": False},
        "disable_eviction": {"type": "bool", "default": False},
        "pod_selector": {"type": "str", "default": ""},
    },
    **ACCESS_SPEC,
)


def run(host, params, check):
    kubectl = Kubectl.from_params(host, params, "gpu_drain_kubernetes_host or gpu_drain_kubernetes_kubectl")
    options = EvictionOptions(*[params[name] for name in EvictionOptions._fields])
    seconds = hook.call_duration(params["timeout"], params["deadline"])
    node = KubernetesHook(kubectl, params["node"], options, seconds)
    return DrainKubernetesAnswer(**hook.run_action(node, ACTIONS[params["state"]], params, check))


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
