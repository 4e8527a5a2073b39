"""Kubernetes nodes through kubectl: whose cordon it is, eviction of pods, and giving a node back.

``kubectl cordon`` leaves no trace of who cordoned. So the node is cordoned by the very patch that it sends, with our
note in the same write and only over the version of the node that we looked at: a cordon without it is somebody else's.
"""

import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base.host import FOLDERS, MISSING, TIMED_OUT, Host, Result
from .journal import DrainError

NOTE = "gpu-ready/drained"
"""Annotation of a node that we cordoned; its value is the reason."""
LIMIT = 60.0
"""Seconds for one answer of the API server."""
TRIES = 5
MOST_NAMED = 5
TIMEOUT = re.compile(
    r"global timeout reached|drain did not complete within|timed out waiting|context deadline exceeded"
)
CONFLICT = re.compile(r"\bConflict\b|object has been modified")
BUDGET = "disruption budget"


class Node(NamedTuple):
    """A node of Kubernetes: whether it takes no new pods, our note on it, and its version in the API server."""

    name: str
    cordoned: bool
    note: str
    version: str


class Cordon(NamedTuple):
    """Whether to cordon now, whether the cordon is ours, and, where it is not, why the node is left as it is."""

    cordon: bool
    mine: bool
    left: str


class Access(NamedTuple):
    """How kubectl is called: its name or path, a kubeconfig and a context ("": kubectl's own defaults)."""

    kubectl: str = "kubectl"
    kubeconfig: str = ""
    context: str = ""


class Options(NamedTuple):
    """What ``kubectl drain`` may do; times in seconds, -1: what the pod names."""

    grace_period: int = -1
    delete_emptydir_data: bool = True
    force: bool = False
    disable_eviction: bool = False
    pod_selector: str = ""


def read_node(text: str) -> Optional[Node]:
    """Return the node in the answer of ``kubectl get node NAME --output=json``, None where it holds none."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("kind") != "Node":
        return None
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    note = (metadata.get("annotations") or {}).get(NOTE, "")
    cordoned = bool(spec.get("unschedulable"))
    return Node(str(metadata.get("name", "")), cordoned, str(note), str(metadata.get("resourceVersion", "")))


def read_pods(text: str) -> List[str]:
    """Return the pods in ``kubectl get pods --output=json`` that a drain has to move, as namespace/name."""
    try:
        items = json.loads(text).get("items") or []
    except (ValueError, AttributeError):
        return []
    return sorted(
        "%s/%s" % (pod["metadata"].get("namespace", "default"), pod["metadata"]["name"])
        for pod in items
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        and "kubernetes.io/config.mirror" not in (pod["metadata"].get("annotations") or {})
        and not [owner for owner in pod["metadata"].get("ownerReferences") or [] if owner.get("kind") == "DaemonSet"]
    )


def to_cordon(node: Node, reason: str, noted: bool) -> Cordon:
    """Return what a drain does with a node. ``noted``: the journal says that its cordon is ours."""
    if not node.cordoned:
        return Cordon(True, True, "")
    mine = noted and node.note == reason
    left = "the Kubernetes node %s is cordoned already%s: it stays so"
    return Cordon(False, mine, "" if mine else left % (node.name, " (%s)" % node.note if node.note else ""))


def to_uncordon(node: Node, reason: str) -> Tuple[bool, str]:
    """Return whether to give back a node whose cordon the journal lists, and why it is left as it is."""
    if node.note == reason:
        return True, ""
    if not node.cordoned:
        return False, ""
    return False, "the Kubernetes node %s was cordoned by somebody else since: it stays so" % node.name


def patch(node: Node, reason: str, cordon: bool) -> str:
    """Return the merge patch that cordons or gives back exactly the version of the node that was looked at."""
    return json.dumps(
        {
            "metadata": {
                "annotations": {NOTE: reason if cordon else None},
                "resourceVersion": node.version,
            },
            "spec": {"unschedulable": True if cordon else None},
        },
        sort_keys=True,
    )


def drain_argv(node: str, options: Options, seconds: int) -> List[str]:
    """Return the words of ``kubectl drain`` after the program's own."""
    words = ["drain", node, "--ignore-daemonsets", "--timeout=%ds" % seconds]
    words += ["--grace-period=%d" % options.grace_period]
    words += ["--delete-emptydir-data"] if options.delete_emptydir_data else []
    words += ["--force"] if options.force else []
    words += ["--disable-eviction"] if options.disable_eviction else []
    words += ["--pod-selector=" + options.pod_selector] if options.pod_selector else []
    return words


def awaited(node: str, pods: List[str], said: str) -> str:
    """Return what a drain still waits for. ``said``: what kubectl printed."""
    held = ", held by a disruption budget" if BUDGET in said else ""
    if not pods:
        return "the end of pods on the Kubernetes node %s%s" % (node, held)
    named = ", ".join(pods[:MOST_NAMED]) + (" and %d more" % (len(pods) - MOST_NAMED) if pods[MOST_NAMED:] else "")
    return "%d pod%s on the Kubernetes node %s: %s%s" % (len(pods), "" if len(pods) == 1 else "s", node, named, held)


def refused(node: str, said: str) -> str:
    """Return the sentence for a drain that kubectl does not even begin."""
    remedy = "see to it, then run again"
    if re.search(r"--delete-(emptydir|local)-data", said):
        remedy = "allow it with gpu_drain_kubernetes_delete_emptydir_data: true"
    elif "--force" in said:
        remedy = "remove those pods, or allow it with gpu_drain_kubernetes_force: true"
    errors = [line.rpartition("error: ")[2] for line in said.splitlines() if "error: " in line]
    told = errors[-1].partition(", continuing command")[0].strip("[]") if errors else " ".join(said.split())
    return "kubectl cannot drain the node %s (%s): %s." % (node, told[-600:], remedy)


class Kubectl:
    """kubectl on this host."""

    def __init__(self, host: Host, name: str, access: Access) -> None:
        self.host = host
        self.name = name
        self.access = access

    def call(self, words: List[str], limit: float = LIMIT) -> Result:
        """Run kubectl; DrainError where it is absent or does not end."""
        program = self.access.kubectl
        argv = [program]
        argv += ["--kubeconfig=" + self.access.kubeconfig] if self.access.kubeconfig else []
        argv += ["--context=" + self.access.context] if self.access.context else []
        # The PATH of the user whose access it is: a kubeconfig names helpers that log in (aws, kubelogin), found there.
        path = ":".join([os.environ.get("PATH", "")] + list(FOLDERS)).lstrip(":")
        answer = self.host.run(argv + words, limit, {"PATH": path})
        if answer.rc == MISSING:
            raise DrainError(
                "%s is not on the host where it is to run: install it there, or set gpu_drain_kubernetes_host or "
                "gpu_drain_kubernetes_kubectl." % program
            )
        if answer.rc == TIMED_OUT:
            raise DrainError("kubectl %s did not end in %d s: see to the API server." % (" ".join(words[:2]), limit))
        return answer

    def look(self) -> Node:
        """Return the node as the API server knows it."""
        answer = self.call(["get", "node", self.name, "--output=json", "--request-timeout=30s"])
        node = read_node(answer.out) if answer.rc == 0 else None
        if node is None:
            said = " ".join((answer.err or answer.out).split())[-600:]
            if "NotFound" in said:
                raise DrainError(
                    "Kubernetes has no node %s: set gpu_drain_kubernetes_node to the name that "
                    "`kubectl get nodes` shows." % self.name
                )
            raise DrainError(
                "kubectl did not tell of the node %s (%s): see to gpu_drain_kubernetes_kubeconfig, "
                "gpu_drain_kubernetes_context and the API server." % (self.name, said or "no output")
            )
        return node

    def write(self, node: Node, reason: str, cordon: bool) -> bool:
        """Cordon or give back; False where the node changed since it was looked at."""
        words = ["patch", "node", self.name, "--type=merge", "--patch=" + patch(node, reason, cordon)]
        answer = self.call(words + ["--request-timeout=30s"])
        said = " ".join((answer.err or answer.out).split())
        if answer.rc != 0 and not CONFLICT.search(said):
            raise DrainError(
                "Kubernetes refused to %s the node %s (%s): give that user the right to patch nodes, then run again."
                % ("cordon" if cordon else "uncordon", self.name, said[-600:])
            )
        return answer.rc == 0

    def cordon(self, reason: str, noted: bool, act: bool) -> Dict[str, Any]:
        """Cordon the node where nobody has; ``act``: do it, else only say what would be done."""
        for _ in range(TRIES):
            node = self.look()
            decided = to_cordon(node, reason, noted)
            if not decided.cordon or not act or self.write(node, reason, True):
                return {"changed": decided.cordon, "mine": decided.mine, "left": decided.left}
        raise DrainError(self.restless())

    def uncordon(self, reason: str, check: bool) -> Dict[str, Any]:
        """Give the node back where its cordon is ours; ``check``: only say what would be done."""
        for _ in range(TRIES):
            node = self.look()
            give, left = to_uncordon(node, reason)
            if not give or check or self.write(node, reason, False):
                return {"changed": give, "left": left}
        raise DrainError(self.restless())

    def restless(self) -> str:
        """Return the sentence for a node that somebody else changes between each look and write."""
        return "the Kubernetes node %s changed at each of %d tries: run again." % (self.name, TRIES)

    def evict(self, options: Options, seconds: int) -> str:
        """Have kubectl evict the pods for some seconds; returns what is still awaited, "" for nothing."""
        answer = self.call(drain_argv(self.name, options, max(seconds, 1)), seconds + LIMIT)
        said = answer.err + answer.out
        if answer.rc == 0:
            return ""
        if not TIMEOUT.search(said):
            raise DrainError(refused(self.name, answer.err or answer.out))
        words = ["get", "pods", "--all-namespaces", "--field-selector=spec.nodeName=" + self.name, "--output=json"]
        words += ["--selector=" + options.pod_selector] if options.pod_selector else []
        pods = self.call(words + ["--request-timeout=30s"])
        if pods.rc != 0:
            told = " ".join((pods.err or pods.out).split())[-600:]
            return "an answer of Kubernetes about the pods on the node %s (%s)" % (self.name, told)
        return awaited(self.name, read_pods(pods.out), said)
