"""Test pods: each asks for one GPU of one node, and the UUID that its nvidia-smi lists must be a verified one.

They stay until all of a node run at the same time, so that two pods with the same GPU are noticed.
"""

import hashlib
import re
from typing import Dict, List, NamedTuple, Optional

from .device_plugin import NAME_LABEL, NAMESPACE, DevicePlugin, what_is_missing
from .kubectl import Kubectl, Value, failure
from .objects import MANAGER, OWNER_LABEL
from .pods import is_ending, reason, short

RESOURCE = "nvidia.com/gpu"
PRODUCT_LABEL = "nvidia.com/gpu.product"
NAME = "gpu-ready-verify"
NODE_ANNOTATION = "gpu-ready/node"
NOT_ADMITTED = "UnexpectedAdmissionError"
"""Reason of a pod whose devices the kubelet could not allocate (pkg/kubelet/lifecycle/predicate.go of Kubernetes), like
one that comes before a new device plugin is registered, while the node still offers what the earlier one had."""
PODS = 2
"""Test pods for each node with that many GPUs that no pod uses: one alone cannot show that two get different GPUs."""
UUID = re.compile(r"\(UUID: (GPU-[0-9a-f-]{36})\)")
FULL_UUID = re.compile(r"GPU-[0-9a-f-]{36}\Z")
LABEL_VALUE = re.compile(r"[A-Za-z0-9._-]{1,63}\Z")
LISTED = 5
LONGEST_LOG = 1 << 16
"""Bytes of a test pod's log, which lists a GPU."""


class NodeRequest(NamedTuple):
    """A node to verify. ``gpus``: verified UUIDs; ``product``: label of the model; ``replicas``: pods for each GPU."""

    name: str
    gpus: List[str]
    product: str
    replicas: int


class PodOptions(NamedTuple):
    """``runtime_class``: "" for the engine's default. ``seconds``: after which the pod ends by itself."""

    image: str
    runtime_class: str
    seconds: int


class NodeVerdict(NamedTuple):
    """``state``: verified, waiting, busy (all GPUs are in use, nothing was tried) or failed."""

    state: str
    message: str


def pod(node: NodeRequest, number: int, options: PodOptions) -> Value:
    """Return a test pod that only this node, with GPUs of this model, can run."""
    digest = hashlib.sha256(node.name.encode("utf-8")).hexdigest()[:10]
    here = [{"key": "metadata.name", "operator": "In", "values": [node.name]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": here}]}}
    script = "nvidia-smi -L && exec sleep %d" % options.seconds
    container = {
        "name": "nvidia-smi",
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "resources": {"limits": {RESOURCE: "1"}},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": options.seconds,
        "automountServiceAccountToken": False,
        "nodeSelector": {PRODUCT_LABEL: node.product},
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [{"key": RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [container],
    }  # type: Value
    if options.runtime_class:
        spec["runtimeClassName"] = options.runtime_class
    metadata = {
        "name": "%s-%s-%d" % (NAME, digest, number),
        "namespace": NAMESPACE,
        "labels": {OWNER_LABEL: MANAGER, NAME_LABEL: NAME},
        "annotations": {NODE_ANNOTATION: node.name},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def check(kubectl: Kubectl, nodes: List[NodeRequest], options: PodOptions) -> Dict[str, NodeVerdict]:
    """Return the present verdict on each node; creates the test pods of a node as soon as it offers its GPUs."""
    states = {str(one["metadata"]["name"]): one for one in kubectl.get("nodes")}
    existing = kubectl.get("pods", "--namespace=" + NAMESPACE, "--selector=%s=%s" % (NAME_LABEL, NAME))
    plugin = DevicePlugin.read(kubectl)
    verdicts = {}
    for node in nodes:
        own = [one for one in existing if (one["metadata"].get("annotations") or {}).get(NODE_ANNOTATION) == node.name]
        early = check_node(node, states.get(node.name), what_is_missing(plugin, node.name))
        verdicts[node.name] = early or (check_pods(kubectl, node, own) if own else create(kubectl, node, options))
    return verdicts


def check_node(node: NodeRequest, state: Optional[Value], missing: str) -> Optional[NodeVerdict]:
    """Return what keeps a node from running test pods; None if nothing does. ``missing``: of its device plugin."""
    if not node.gpus or not LABEL_VALUE.match(node.product):
        return NodeVerdict(
            "failed", "the host named no verified GPU or no model: run site.yml, then this playbook again"
        )
    if state is None:
        return NodeVerdict("failed", "the cluster has no such node: set gpu_kubernetes_node")
    conditions = state.get("status", {}).get("conditions") or []
    if not [one for one in conditions if one.get("type") == "Ready" and one.get("status") == "True"]:
        return NodeVerdict("waiting", "the node is not Ready")
    if state.get("spec", {}).get("unschedulable"):
        return NodeVerdict("failed", "the node is cordoned: uncordon it, then run again")
    if missing:
        return NodeVerdict("waiting", missing)
    offered = str((state.get("status", {}).get("allocatable") or {}).get(RESOURCE, "0"))
    expected = len(node.gpus) * node.replicas
    if offered != str(expected):
        return NodeVerdict(
            "waiting",
            "allocatable %s is %s, but %d are expected (%d verified GPUs): look at the device plugin's log and the "
            "kubelet's" % (RESOURCE, short(offered), expected, len(node.gpus)),
        )
    return None


def requested(item: Value) -> int:
    """Return how many GPUs a pod holds."""
    if item.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    limits = [(one.get("resources") or {}).get("limits") or {} for one in item.get("spec", {}).get("containers") or []]
    return sum(int(limit[RESOURCE]) for limit in limits if re.match(r"\d{1,9}\Z", str(limit.get(RESOURCE, ""))))


def create(kubectl: Kubectl, node: NodeRequest, options: PodOptions) -> NodeVerdict:
    """Start the test pods of a node."""
    present = kubectl.get("pods", "--all-namespaces", "--field-selector=spec.nodeName=" + node.name)
    free = len(node.gpus) * node.replicas - sum(requested(one) for one in present)
    if free <= 0:
        return NodeVerdict("busy", "other pods use all %d GPUs, so no test pod was started" % len(node.gpus))
    pods = [pod(node, number, options) for number in range(min(free, PODS))]
    kubectl.with_objects(["apply", "--server-side", "--field-manager=" + MANAGER], pods, [])
    return NodeVerdict("waiting", "test pods were created")


def check_pods(kubectl: Kubectl, node: NodeRequest, pods: List[Value]) -> NodeVerdict:
    """Return the verdict on a node whose test pods exist."""
    seen = {}  # type: Dict[str, List[str]]
    if [one for one in pods if is_ending(one)]:
        return NodeVerdict("waiting", "its earlier test pods end")
    for one in pods:
        name, phase = str(one["metadata"]["name"]), one.get("status", {}).get("phase")
        if phase == "Failed" and one["status"].get("reason") == NOT_ADMITTED:
            delete(kubectl, [str(each["metadata"]["name"]) for each in pods], ["--wait=false"])
            return NodeVerdict("waiting", "the kubelet rejected the test pod %s: %s" % (name, reason(one)))
        if phase == "Failed":
            why = reason(one) or short(log(kubectl, name))
            return NodeVerdict("failed", "the test pod %s failed: %s" % (name, why))
        if phase != "Running":
            return NodeVerdict(
                "waiting", "the test pod %s is %s: %s" % (name, short(phase), reason(one) or "no reason given")
            )
        seen[name] = UUID.findall(log(kubectl, name))
        if not seen[name]:
            return NodeVerdict("waiting", "nvidia-smi in the test pod %s has listed no GPU yet" % name)
    return judge(node, seen)


def judge(node: NodeRequest, seen: Dict[str, List[str]]) -> NodeVerdict:
    """Compare the UUIDs that each pod saw with the verified ones."""
    for name, uuids in sorted(seen.items()):
        foreign = sorted(set(uuids) - set(node.gpus))
        if len(uuids) != 1:
            return NodeVerdict(
                "failed",
                "the test pod %s asked for one GPU and sees %d: its container gets GPUs by another way than the device "
                "plugin. Compare gpu_kubernetes_device_list with nvidia_container_runtime_mode" % (name, len(uuids)),
            )
        if foreign:
            return NodeVerdict(
                "failed", "the GPU %s of the test pod %s is not a verified one: run site.yml" % (foreign[0], name)
            )
    used = [uuids[0] for uuids in seen.values()]
    if node.replicas == 1 and len(set(used)) < len(used):
        return NodeVerdict("failed", "two test pods share the GPU %s, although sharing is off" % used[0])
    count = len(node.gpus)
    pods = "%d test pods see one verified GPU each" % len(used) if len(used) > 1 else "a test pod sees one verified GPU"
    return NodeVerdict(
        "verified", "%d GPUs allocatable, %s: %s" % (count * node.replicas, pods, ", ".join(sorted(set(used))))
    )


def log(kubectl: Kubectl, name: str) -> str:
    """Return the last lines of a test pod; "" while the kubelet has nothing."""
    options = ["--namespace=" + NAMESPACE, "--tail=200", "--limit-bytes=%d" % LONGEST_LOG, "--request-timeout=30s"]
    return kubectl.run(["logs", name] + options).out[:LONGEST_LOG]


def remove(kubectl: Kubectl) -> bool:
    """Delete all test pods, also of an earlier run that was interrupted; False if there were none."""
    found = kubectl.get("pods", "--namespace=" + NAMESPACE, "--selector=%s=%s" % (NAME_LABEL, NAME))
    if not found:
        return False
    delete(kubectl, ["--selector=%s=%s" % (NAME_LABEL, NAME)], ["--timeout=180s"])
    return True


def delete(kubectl: Kubectl, which: List[str], how: List[str]) -> None:
    """Delete test pods by their names or a selector."""
    words = ["delete", "pods", "--namespace=" + NAMESPACE] + which + ["--ignore-not-found"] + how
    answer = kubectl.run(words, 200)
    if answer.rc != 0:
        raise failure(words, answer)


def summary(verdicts: Dict[str, NodeVerdict]) -> str:
    """Return what is awaited, node by node; "" for nothing."""
    waiting = ["%s: %s" % (name, one.message) for name, one in sorted(verdicts.items()) if one.state == "waiting"]
    more = len(waiting) - LISTED
    return "; ".join(waiting[:LISTED]) + ("; and %d more nodes" % more if more > 0 else "")


def give_up(verdicts: Dict[str, NodeVerdict], limit: int) -> Dict[str, NodeVerdict]:
    """Return the verdicts after the last look: what is still awaited has failed."""
    return {
        name: NodeVerdict("failed", "not within %d s: %s" % (limit, one.message)) if one.state == "waiting" else one
        for name, one in verdicts.items()
    }


def read_nodes(values: List[Value], replicas: int) -> List[NodeRequest]:
    """Return nodes of the module's option. What a host answered is used only in the form that it can have."""
    return [
        NodeRequest(
            str(one["node"]),
            [str(gpu) for gpu in one["gpus"] if FULL_UUID.match(str(gpu))],
            str((one.get("labels") or {}).get(PRODUCT_LABEL, "")),
            replicas,
        )
        for one in values
    ]
