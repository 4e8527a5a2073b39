#!/usr/bin/python
"""Check what NVIDIA's GPU Operator needs of a Kubernetes cluster. Runs where kubectl is."""

DOCUMENTATION = r"""
module: gpu_kubernetes_operator
short_description: Check what NVIDIA's GPU Operator needs of a Kubernetes cluster
description:
  - Fails where objects of gpu-ready serve the same GPUs, and where NVIDIA's DRA driver is asked for and
    something that it needs is missing. Changes nothing.
options:
  dra:
    description: Whether NVIDIA's DRA driver is to be used.
    type: bool
    default: false
  drivers:
    description: Driver version by node.
    type: dict
    default: {}
  has_cdi:
    description: Whether the engines of the nodes have CDI.
    type: bool
    default: false
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
  check_mode: {support: full, description: Changes nothing in any mode.}
  diff_mode: {support: none, description: Has no diff.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Check the cluster for the Operator
  gpu_ready.nodes.gpu_kubernetes_operator:
  delegate_to: localhost

- name: Check the cluster for the DRA driver
  gpu_ready.nodes.gpu_kubernetes_operator: {dra: true, drivers: {gpu1: 580.95.05}, has_cdi: true}
  delegate_to: localhost
"""

RETURN = r"""
server:
  description: Version of the API server.
  returned: success
  type: str
  sample: v1.34.2
refused:
  description: Why nodes cannot use NVIDIA's DRA driver, by node.
  returned: success
  type: dict
  sample: {gpu2: NVIDIA's DRA driver needs driver 580 or newer (found 570.1.2). Upgrade it.}
"""

from ..module_utils.gpu_ready.answers.cluster import KubernetesOperatorAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.cluster import operator
from ..module_utils.gpu_ready.cluster.kubectl import ACCESS_SPEC, Kubectl

ANSWER = KubernetesOperatorAnswer
ARGUMENT_SPEC = dict(
    {
        "dra": {"type": "bool", "default": False},
        "drivers": {"type": "dict", "default": {}},
        "has_cdi": {"type": "bool", "default": False},
    },
    **ACCESS_SPEC,
)


def run(host, params, check):
    server = operator.check(Kubectl.from_params(host, params))
    if params["dra"]:
        operator.check_dra(server, params["has_cdi"])
    drivers = {str(node): str(version) for node, version in params["drivers"].items()}
    refused = operator.refuse_drivers(drivers) if params["dra"] else {}
    return KubernetesOperatorAnswer(server=server, refused=refused)


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
