#!/usr/bin/python
"""Cordon a Kubernetes node, evict its pods, give it back; runs where kubectl is."""

DOCUMENTATION = r"""
module: gpu_drain_kubernetes
short_description: Cordon a Kubernetes node, evict its pods, and give it back
description:
  - A cordon of ours carries the annotation C(gpu-ready/drained) with O(reason); a node that is cordoned without it was
    cordoned by somebody else and stays so.
options:
  state:
    description:
      - V(looked) says what V(cordoned) would do and changes nothing.
      - V(evicted) returns after a share of O(timeout), so that somebody can tell how it goes, and fails past
        O(deadline).
    type: str
    required: true
    choices: [looked, cordoned, evicted, uncordoned]
  node:
    description: Name of the node in Kubernetes.
    type: str
    required: true
  reason:
    description: Value of the annotation.
    type: str
    default: "gpu-ready: driver upgrade"
  noted:
    description: Whether the journal of the host says that the cordon is ours.
    type: bool
    default: false
  timeout:
    description: Seconds that the pods may take to end.
    type: int
    default: 1800
  deadline:
    description: End of a wait that began in an earlier call, as RV(deadline) gave it; 0 for one that begins.
    type: float
    default: 0
  kubectl:
    description: Name or path of kubectl.
    type: str
    default: kubectl
  kubeconfig:
    description: File with the access; empty for kubectl's default.
    type: path
    default: ""
  context:
    description: Context in that file; empty for the current one.
    type: str
    default: ""
  grace_period:
    description: Seconds that each pod gets to end; V(-1) for what the pod names.
    type: int
    default: -1
  delete_emptydir_data:
    description: Whether pods may go that keep data in an emptyDir.
    type: bool
    default: true
  force:
    description: Whether pods may go that no controller starts again.
    type: bool
    default: false
  disable_eviction:
    description: Whether pods are deleted past their disruption budgets.
    type: bool
    default: false
  pod_selector:
    description: Labels of the pods that go; empty for all.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Says whether the node would change; changes nothing and evicts nobody.}
  diff_mode: {support: none, description: Shows none.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: See who cordoned a node
  gpu_drain_kubernetes: {state: looked, node: gpu1}
  delegate_to: localhost

- name: Have its pods evicted, for at most ten minutes
  gpu_drain_kubernetes: {state: evicted, node: gpu1, timeout: 600}
  delegate_to: localhost
  register: evicted

- name: Give it back
  gpu_drain_kubernetes: {state: uncordoned, node: gpu1, noted: true}
  delegate_to: localhost
"""

RETURN = r"""
mine:
  description: Whether the cordon is ours, or would be.
  returned: looked, cordoned
  type: bool
left:
  description: Why the node was left as it is, empty where it was not.
  returned: looked, cordoned, uncordoned
  type: str
  sample: "the Kubernetes node gpu1 is cordoned already: it stays so"
done:
  description: Whether the pods have gone.
  returned: evicted
  type: bool
waiting:
  description: What is awaited.
  returned: evicted
  type: str
  sample: "1 pod on the Kubernetes node gpu1: ml/train-0, held by a disruption budget"
deadline:
  description: End of the wait, in seconds since 1970 on the host where this ran.
  returned: evicted
  type: float
left_s:
  description: Seconds that are left of it.
  returned: evicted
  type: int
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.drain import journal as drain
from ansible.module_utils.gpu_ready.drain import kubernetes as drain_kubernetes

ARGUMENT_SPEC = {
    "state": {"type": "str", "required": True, "choices": ["looked", "cordoned", "evicted", "uncordoned"]},
    "node": {"type": "str", "required": True},
    "reason": {"type": "str", "default": "gpu-ready: driver upgrade"},
    "noted": {"type": "bool", "default": False},
    "timeout": {"type": "int", "default": 1800},
    "deadline": {"type": "float", "default": 0},
    "kubectl": {"type": "str", "default": "kubectl"},
    "kubeconfig": {"type": "path", "default": ""},
    "context": {"type": "str", "default": ""},
    "grace_period": {"type": "int", "default": -1},
    "delete_emptydir_data": {"type": "bool", "default": True},
    "force": {"type": "bool", "default": False},
    "disable_eviction": {"type": "bool", "default": False},
    "pod_selector": {"type": "str", "default": ""},
}


def run(host, params, check):
    access = drain_kubernetes.Access(*[params[name] for name in drain_kubernetes.Access._fields])
    options = drain_kubernetes.Options(*[params[name] for name in drain_kubernetes.Options._fields])
    kubectl = drain_kubernetes.Kubectl(host, params["node"], access)
    share = drain.share(params["timeout"], params["deadline"])
    if params["state"] == "evicted":
        return drain.waited(lambda: kubectl.evict(options, share), params["timeout"], params["deadline"], check)
    if params["state"] == "uncordoned":
        return kubectl.uncordon(params["reason"], check)
    return kubectl.cordon(params["reason"], params["noted"], params["state"] == "cordoned" and not check)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
