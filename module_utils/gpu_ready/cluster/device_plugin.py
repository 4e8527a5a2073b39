"""The device plugin of gpu-ready on each node.

What a node offers does not say whether the applied plugin runs there. A rolling update of a DaemonSet replaces one pod
after the other and waits until each is available (kubernetes.io/docs/tasks/manage-daemon/update-daemon-set). Until
then, and behind a pod that never starts, the earlier plugins offer their GPUs as before.
"""

from typing import List, NamedTuple, Optional

from .kubectl import Kubectl, Value
from .pods import is_ending, is_ready, reason, short

NAMESPACE = "kube-system"
NAME = "gpu-ready-device-plugin"
NAME_LABEL = "app.kubernetes.io/name"
GENERATION = "deprecated.daemonset.template.generation"
POD_GENERATION = "pod-template-generation"
"""An annotation of DaemonSets and a label of their pods, equal for pods of the present template (IsPodUpdated in
pkg/controller/daemon/util/daemonset_util.go of Kubernetes)."""
REMEDY = "Correct gpu_kubernetes_plugin_image, or what `kubectl logs` shows of that pod"


class DevicePlugin(NamedTuple):
    """``daemonset``: None if it does not exist."""

    daemonset: Optional[Value]
    pods: List[Value]

    @classmethod
    def read(cls, kubectl: Kubectl) -> "DevicePlugin":
        """Return what the API server has."""
        found = kubectl.get("daemonset.apps", NAME, "--namespace=" + NAMESPACE)
        pods = kubectl.get("pods", "--namespace=" + NAMESPACE, "--selector=%s=%s" % (NAME_LABEL, NAME))
        return cls(found[0] if found else None, pods)


def what_is_missing(plugin: DevicePlugin, node: str) -> str:
    """Return what keeps the applied device plugin from running on a node; "" for nothing."""
    place = "%s/%s" % (NAMESPACE, NAME)
    if plugin.daemonset is None:
        return "the cluster has no DaemonSet %s: run this playbook again" % place
    here = [one for one in plugin.pods if one.get("spec", {}).get("nodeName") == node]
    own = [one for one in here if not is_ending(one)]
    if here and not own:
        return "the %s still ends" % describe(here[0])
    if not own:
        return "the device plugin has no pod there: `kubectl describe daemonset -n %s %s` shows why" % (NAMESPACE, NAME)
    if not is_current(plugin.daemonset, own[0]):
        blocking = [one for one in plugin.pods if is_ending(one) or not is_ready(one)]
        cause = " for the %s" % describe(blocking[0]) if blocking else ""
        return "its device plugin is still the one from before this change: the update waits%s" % cause
    if not is_ready(own[0]):
        return "the device plugin does not run: the %s" % describe(own[0])
    return ""


def is_current(daemonset: Value, pod: Value) -> bool:
    """Return True for a pod of the DaemonSet's present template."""
    annotations, labels = daemonset["metadata"].get("annotations") or {}, pod["metadata"].get("labels") or {}
    return bool(annotations.get(GENERATION) == labels.get(POD_GENERATION))


def describe(pod: Value) -> str:
    """Return a pod of the device plugin, with the reason for which it does not run and what to do."""
    name = "pod %s/%s on %s" % (
        NAMESPACE,
        pod["metadata"]["name"],
        short(pod.get("spec", {}).get("nodeName", "no node")),
    )
    if is_ending(pod):
        return name + " (it was deleted)"
    return "%s (%s). %s" % (name, reason(pod) or "no reason given", REMEDY)
