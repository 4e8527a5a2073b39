#!/usr/bin/python
"""Apply objects of gpu-ready to a Kubernetes cluster, and remove them. Runs where kubectl is."""

DOCUMENTATION = r"""
module: gpu_kubernetes_objects
short_description: Apply objects of gpu-ready to a Kubernetes cluster, and remove them
description:
  - Applies objects server-side with the field manager C(gpu-ready), and changes no field that somebody else set to
    another value.
  - Fails where NVIDIA's GPU Operator, another device plugin or GPU feature discovery serves one of the nodes.
options:
  state:
    description:
      - V(absent) removes the labels that gpu-ready applied to O(nodes), and its objects where no other node has such
        labels.
    type: str
    choices: [present, absent]
    default: present
  objects:
    description: Objects to apply; nodes among them have labels only.
    type: list
    elements: dict
    default: []
  nodes:
    description: Names of the nodes in Kubernetes.
    type: list
    elements: str
    required: true
  taints:
    description:
      - Effect of the taint C(nvidia.com/gpu=present) for each node, by its name; V(none) removes it.
      - Other taints stay. One of that key and effect that somebody else set serves as it is, and is never removed.
      - With O(state=absent) the taint is removed from O(nodes).
    type: dict
    default: {}
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
  check_mode: {support: full, description: A dry run of the API server shows what would change.}
  diff_mode: {support: full, description: Shows the objects before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Label a node
  gpu_ready.nodes.gpu_kubernetes_objects:
    nodes: [gpu1]
    objects:
      - {apiVersion: v1, kind: Node, metadata: {name: gpu1, labels: {nvidia.com/gpu.present: "true"}}}
    taints: {gpu1: NoSchedule}
  delegate_to: localhost

- name: Remove everything of gpu-ready from two nodes
  gpu_ready.nodes.gpu_kubernetes_objects: {state: absent, nodes: [gpu1, gpu2]}
  delegate_to: localhost
"""

RETURN = r"""
objects:
  description: Objects that were, or would be, created, changed or removed.
  returned: success
  type: list
  elements: str
  sample: [DaemonSet kube-system/gpu-ready-device-plugin, Node gpu1, Taints of Node gpu1]
kept_for:
  description: Other nodes with labels of gpu-ready, for which its objects stay; with state absent.
  returned: success
  type: list
  elements: str
"""

from ..module_utils.gpu_ready.answers.cluster import KubernetesObjectsAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.cluster import conflicts, objects, taints
from ..module_utils.gpu_ready.cluster.kubectl import ACCESS_SPEC, Kubectl

ANSWER = KubernetesObjectsAnswer
ARGUMENT_SPEC = dict(
    {
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "objects": {"type": "list", "elements": "dict", "default": []},
        "nodes": {"type": "list", "elements": "str", "required": True},
        "taints": {"type": "dict", "default": {}},
    },
    **ACCESS_SPEC,
)


def run(host, params, check):
    kubectl = Kubectl.from_params(host, params)
    kept_for = []
    if params["state"] == "present":
        conflicts.refuse(kubectl, params["nodes"])
        changes = objects.apply(kubectl, params["objects"], check)
        changes += taints.apply(kubectl, params["taints"], check)
    else:
        changes, kept_for = objects.remove(kubectl, params["nodes"], check)
        changes += taints.apply(kubectl, dict.fromkeys(params["nodes"], taints.NONE), check)
    return KubernetesObjectsAnswer(
        changed=bool(changes),
        objects=[one.name for one in changes],
        kept_for=kept_for,
        diff=[objects.diff(one) for one in changes],
    )


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
