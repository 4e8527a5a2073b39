#!/usr/bin/python
"""Return the labels of a Kubernetes node for its verified GPUs."""

DOCUMENTATION = r"""
module: gpu_kubernetes_labels
short_description: Return the labels of a Kubernetes node for its verified GPUs
description:
  - Returns the labels that NVIDIA's GPU feature discovery gives a node, with the same names and values. Changes
    nothing.
  - Fails where the GPUs of the host are not verified since its boot.
options:
  sharing:
    description: How pods share a GPU.
    type: str
    choices: [none, time-slicing, mps]
    default: none
  replicas:
    description: Pods for each shared GPU.
    type: int
    default: 2
attributes:
  check_mode: {support: full, description: Changes nothing in any mode.}
  diff_mode: {support: none}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Get the labels
  gpu_ready.nodes.gpu_kubernetes_labels:
  register: gpu_kubernetes_result

- name: Get the labels of a node whose GPUs are shared
  gpu_ready.nodes.gpu_kubernetes_labels:
    sharing: time-slicing
    replicas: 4
"""

RETURN = r"""
labels:
  description: Values by name.
  returned: success
  type: dict
  sample: {nvidia.com/gpu.present: "true", nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "2"}
gpus:
  description: UUIDs of the verified GPUs.
  returned: success
  type: list
  elements: str
"""

from ..module_utils.gpu_ready.answers.cluster import KubernetesLabelsAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.verify import node_labels

ANSWER = KubernetesLabelsAnswer
ARGUMENT_SPEC = {
    "sharing": {"type": "str", "choices": ["none", "time-slicing", "mps"], "default": "none"},
    "replicas": {"type": "int", "default": 2},
}


def run(host, params, check):
    sharing = node_labels.Sharing(params["sharing"], params["replicas"])
    node = node_labels.collect(host, sharing)
    return KubernetesLabelsAnswer(node.labels, node.gpus)


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
