"""Other programs of a cluster that offer or label the same GPUs. Two of them break each other."""

import re
from typing import List, Optional

from ..base.errors import GpuReadyError
from .kubectl import Kubectl, Value
from .objects import is_owned

POLICY = "clusterpolicies.nvidia.com"
"""What the GPU Operator acts on; its definition stays in the cluster after the Operator was removed."""
KINDS = (
    (re.compile(r"k8s-device-plugin|nvidia-device-plugin|nvidia-gpu-device-plugin"), "a device plugin of NVIDIA"),
    (re.compile(r"gpu-feature-discovery"), "GPU feature discovery"),
    (re.compile(r"dra-driver"), "NVIDIA's DRA driver"),
)


def refuse(kubectl: Kubectl, nodes: List[str]) -> None:
    """GpuReadyError where something else manages the GPUs of these nodes."""
    policies = kubectl.get(POLICY) if kubectl.get("customresourcedefinition", POLICY) else []
    if policies:
        raise GpuReadyError(
            "NVIDIA's GPU Operator manages this cluster (ClusterPolicy %s): its device plugin and labels are its own. "
            "Use gpu_kubernetes: operator, or remove the Operator, then run again."
            % policies[0].get("metadata", {}).get("name", "")
        )
    for daemonset in kubectl.get("daemonsets", "--all-namespaces"):
        what = describe(daemonset)
        if what and not is_owned(daemonset):
            found = sorted(set(running_nodes(kubectl, daemonset)) & set(nodes))
            if found:
                raise GpuReadyError(message(daemonset, what, found))


def message(daemonset: Value, what: str, nodes: List[str]) -> str:
    metadata = daemonset["metadata"]
    return (
        "DaemonSet %s/%s: it is %s and runs on %s. Two owners of a resource or label overwrite each other: remove it, "
        "or use gpu_kubernetes: render." % (metadata.get("namespace"), metadata.get("name"), what, ", ".join(nodes[:5]))
    )


def describe(daemonset: Value) -> Optional[str]:
    """Return what of NVIDIA's a DaemonSet runs, by its images and name; None for anything else."""
    spec = daemonset.get("spec", {}).get("template", {}).get("spec", {})
    images = [str(one.get("image", "")) for one in spec.get("containers") or []]
    # The registry may be a mirror, so only the end of the name counts.
    text = " ".join(
        [image.rpartition("/")[2] for image in images] + [str(daemonset.get("metadata", {}).get("name", ""))]
    )
    return next((what for pattern, what in KINDS if pattern.search(text)), None)


def running_nodes(kubectl: Kubectl, daemonset: Value) -> List[str]:
    labels = daemonset.get("spec", {}).get("selector", {}).get("matchLabels") or {}
    selector = ",".join("%s=%s" % pair for pair in sorted(labels.items()))
    if not selector:
        return []
    pods = kubectl.get("pods", "--namespace=%s" % daemonset["metadata"].get("namespace", ""), "--selector=" + selector)
    return [str(pod.get("spec", {}).get("nodeName", "")) for pod in pods]
