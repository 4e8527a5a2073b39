"""Kubernetes nodes through kubectl: who owns a cordon, eviction of pods, and uncordoning.

``kubectl cordon`` does not record who cordoned. So gpu-ready sends the same patch together with an annotation, for
exactly the version of the node that it read. A cordon without the annotation is somebody else's.
"""

import json
import re
from typing import Any, Dict, List, NamedTuple, Optional

from ..base.host import Result
from ..base.json_file import parse_json
from ..cluster.kubectl import CONFLICT, FORBIDDEN, LIMIT, TRIES, UNREACHABLE, Kubectl, NoAnswer
from .hook import Away, DrainDecision, NodeHook, Values, one_line
from .journal import DrainError

ANNOTATION = "gpu-ready/drained"
"""On a node that gpu-ready cordoned; its value is the reason."""
NAMED_PODS = 5
TIMEOUT = re.compile(
    r"global timeout reached|drain did not complete within|timed out waiting|context deadline exceeded"
)
FROM_SERVER = re.compile(r"Error from server \(\w+\): (.*)$")
"""How kubectl prints a refusal of the API server (StandardErrorMessage in k8s.io/kubectl/pkg/cmd/util/helpers.go)."""
BARE_PODS = re.compile(r"\(use --force to override\)")
OTHER_PODS = re.compile(r"\(use --(?!force )[a-z-]+ to override\)")
"""What kubectl drain says of pods that it does not delete (k8s.io/kubectl/pkg/drain/filters.go)."""
BUDGET = "disruption budget"
STARTING = re.compile(FORBIDDEN.pattern + "|the server doesn't have a resource type")
"""What a server that has just started says until it has read the roles: it allows nobody anything, the list of its
resources included (github.com/kubernetes/kubernetes/issues/121635)."""
READY = ["get", "--raw=/readyz", "--request-timeout=30s"]
"""A server is ready after it has read them (github.com/kubernetes/kubernetes/pull/92644, in 1.19); before, it may
refuse this question, too. By default every user may ask it (system:public-info-viewer)."""
NODE_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
"""A DNS subdomain of RFC 1123 (kubernetes.io/docs/concepts/overview/working-with-objects/names)."""
LONGEST_NAME = 253


class KubernetesNode(NamedTuple):
    """``annotation``: the value of ANNOTATION. ``version``: resourceVersion in the API server."""

    name: str
    cordoned: bool
    annotation: str
    version: str


class EvictionOptions(NamedTuple):
    """Options of ``kubectl drain``. ``grace_period``: seconds, -1 for the pod's own."""

    grace_period: int = -1
    delete_emptydir_data: bool = True
    force: bool = False
    disable_eviction: bool = False
    pod_selector: str = ""


DEFAULT_OPTIONS = EvictionOptions()


def parse_node(text: str) -> Optional[KubernetesNode]:
    """Parse `kubectl get node NAME --output=json`; None if it is no node."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("kind") != "Node":
        return None
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    annotation = (metadata.get("annotations") or {}).get(ANNOTATION, "")
    cordoned = bool(spec.get("unschedulable"))
    version = str(metadata.get("resourceVersion", ""))
    return KubernetesNode(str(metadata.get("name", "")), cordoned, str(annotation), version)


def evictable_pods(text: str) -> List[Dict[str, Any]]:
    """Return the pods in `kubectl get pods --output=json` that a drain evicts."""
    try:
        items = parse_json(text).get("items") or []
    except (ValueError, AttributeError):
        return []
    return [
        pod
        for pod in items
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        and "kubernetes.io/config.mirror" not in (pod["metadata"].get("annotations") or {})
        and not [owner for owner in pod["metadata"].get("ownerReferences") or [] if owner.get("kind") == "DaemonSet"]
    ]


def parse_pods(text: str) -> List[str]:
    """namespace/name of the pods that a drain evicts."""
    return sorted(
        "%s/%s" % (pod["metadata"].get("namespace", "default"), pod["metadata"]["name"]) for pod in evictable_pods(text)
    )


def bare_pods_are_ending(text: str) -> bool:
    """Return True if all pods without a controller are being deleted already.

    kubectl refuses to drain a node with a pod of no controller, also one that is Terminating (unreplicatedFilter in
    k8s.io/kubectl/pkg/drain/filters.go), although nothing is lost by waiting for its end.
    """
    bare = [
        pod["metadata"]
        for pod in evictable_pods(text)
        if not [owner for owner in pod["metadata"].get("ownerReferences") or [] if owner.get("controller")]
    ]
    return all(metadata.get("deletionTimestamp") for metadata in bare)


def decide_cordon(node: KubernetesNode, reason: str, recorded: bool) -> DrainDecision:
    if not node.cordoned:
        return DrainDecision(True, True)
    owned = recorded and node.annotation == reason
    kept = "the Kubernetes node %s is already cordoned%s and stays so"
    by = " (%s)" % node.annotation if node.annotation else ""
    return DrainDecision(False, owned, "" if owned else kept % (node.name, by))


def decide_uncordon(node: KubernetesNode, reason: str) -> DrainDecision:
    """``act``: uncordon a node whose cordon the journal lists."""
    if node.annotation == reason:
        return DrainDecision(True, True)
    kept = "the Kubernetes node %s was cordoned by somebody else in the meantime and stays so" % node.name
    return DrainDecision(False, False, kept if node.cordoned else "")


def build_patch(node: KubernetesNode, reason: str, cordon: bool) -> str:
    """Return the merge patch that cordons or uncordons exactly this version of the node."""
    return json.dumps(
        {
            "metadata": {
                "annotations": {ANNOTATION: reason if cordon else None},
                "resourceVersion": node.version,
            },
            "spec": {"unschedulable": True if cordon else None},
        },
        sort_keys=True,
    )


def drain_arguments(node: str, options: EvictionOptions, seconds: int) -> List[str]:
    words = ["drain", node, "--ignore-daemonsets", "--timeout=%ds" % seconds]
    words += ["--grace-period=%d" % options.grace_period]
    words += ["--delete-emptydir-data"] if options.delete_emptydir_data else []
    words += ["--force"] if options.force else []
    words += ["--disable-eviction"] if options.disable_eviction else []
    words += ["--pod-selector=" + options.pod_selector] if options.pod_selector else []
    return words


def describe_pods(node: str, pods: List[str], output: str) -> str:
    """Return what a drain waits for. ``output``: of `kubectl drain`."""
    held = ", held by a disruption budget" if BUDGET in output else ""
    if not pods:
        return "the end of pods on the Kubernetes node %s%s" % (node, held)
    named = ", ".join(pods[:NAMED_PODS]) + (" and %d more" % (len(pods) - NAMED_PODS) if pods[NAMED_PODS:] else "")
    return "%d pod%s on the Kubernetes node %s: %s%s" % (len(pods), "" if len(pods) == 1 else "s", node, named, held)


def explain_refusal(node: str, output: str) -> str:
    """Return the message for a drain that kubectl did not begin."""
    remedy = "Correct the cause, then run again"
    if re.search(r"--delete-(emptydir|local)-data", output):
        remedy = "Allow it with gpu_drain_kubernetes_delete_emptydir_data: true"
    elif "--force" in output:
        remedy = "Remove those pods, or allow it with gpu_drain_kubernetes_force: true"
    # Of several errors kubectl prints each in a line without "error: " (MultipleErrors in its helpers.go).
    errors = [line.rpartition("error: ")[2] for line in output.splitlines() if re.search("error: |^error when ", line)]
    refused = [match for match in map(FROM_SERVER.match, output.splitlines()) if match]
    if refused:  # beside it `error: unable to drain node ..., aborting command...`, which has no reason
        errors = [refused[-1].group(1)]
    if FORBIDDEN.search(output):
        remedy = "Give that user the permission (docs/drain.md has all that are needed), then run again"
    reason = errors[-1].partition(", continuing command")[0].strip("[]") if errors else output
    return "kubectl: it cannot drain the node %s (%s). %s." % (node, one_line(reason), remedy)


class KubernetesHook(NodeHook):
    """A node through kubectl on this host. ``seconds``: how long one call evicts."""

    def __init__(
        self, kubectl: Kubectl, name: str, options: EvictionOptions = DEFAULT_OPTIONS, seconds: int = 30
    ) -> None:
        """Raise DrainError if ``name`` cannot be a node; kubectl would take one with a leading dash for an option."""
        if len(name) > LONGEST_NAME or not NODE_NAME.match(name):
            raise DrainError(
                "gpu_drain_kubernetes_node: %r is not the name of a node. Set it to the name that `kubectl get nodes` "
                "shows: small letters, digits, dots and dashes." % name[:LONGEST_NAME]
            )
        self.kubectl = kubectl
        self.name = name
        self.options = options
        self.seconds = seconds

    def call(self, words: List[str], limit: float = LIMIT) -> Result:
        """Return what kubectl prints; Away if it does not end, or if the API server refuses because it is not ready."""
        try:
            answer = self.kubectl.run(words, limit)
            if answer.rc == 0 or not STARTING.search(answer.err):
                return answer
            if self.kubectl.run(READY).rc == 0:
                return self.kubectl.run(words, limit)  # it may have become ready between the two answers
        except NoAnswer as error:
            raise Away(self.silence(str(error))) from None
        raise Away(self.silence("it is not ready: " + one_line(answer.err)))

    def ask(self, words: List[str]) -> Result:
        """Return what kubectl answers; Away if the API server does not."""
        answer = self.call(words + ["--request-timeout=30s"])
        if answer.rc != 0 and (UNREACHABLE.search(answer.err) or TIMEOUT.search(answer.err)):
            raise Away(self.silence(one_line(answer.err)))
        return answer

    def get(self) -> KubernetesNode:
        """Return the node as the API server reports it."""
        answer = self.ask(["get", "node", self.name, "--output=json"])
        node = parse_node(answer.out) if answer.rc == 0 else None
        if node is None:
            reason = one_line(answer.err, answer.out)
            if "NotFound" in reason:
                raise DrainError(
                    "Kubernetes: it has no node %s. Set gpu_drain_kubernetes_node to the name that "
                    "`kubectl get nodes` shows." % self.name
                )
            raise DrainError(
                "kubectl: `get node %s` failed (%s). Check gpu_drain_kubernetes_kubeconfig, "
                "gpu_drain_kubernetes_context and the API server." % (self.name, reason)
            )
        return node

    def patch(self, node: KubernetesNode, reason: str, cordon: bool) -> bool:
        """Cordon or uncordon; False if the node changed since it was read."""
        words = ["patch", "node", self.name, "--type=merge", "--patch=" + build_patch(node, reason, cordon)]
        answer = self.ask(words)
        output = one_line(answer.err, answer.out)
        if answer.rc != 0 and not CONFLICT.search(output):
            remedy = (
                "Give that user the permission to patch nodes" if FORBIDDEN.search(output) else "Check the API server"
            )
            raise DrainError(
                "Kubernetes: it did not %s the node %s (%s). %s, then run again."
                % ("cordon" if cordon else "uncordon", self.name, output, remedy)
            )
        return answer.rc == 0

    def drain(self, reason: str, recorded: bool, check: bool) -> DrainDecision:
        """Cordon the node, unless it is cordoned already."""
        for _ in range(TRIES):
            node = self.get()
            decision = decide_cordon(node, reason, recorded)
            if not decision.act or check or self.patch(node, reason, True):
                return decision
        raise self.contention()

    def undrain(self, reason: str, check: bool, deadline: float = 0.0) -> Values:
        """Uncordon the node if gpu-ready cordoned it."""
        for _ in range(TRIES):
            node = self.get()
            decision = decide_uncordon(node, reason)
            if not decision.act or check or self.patch(node, reason, False):
                return {"changed": decision.act, "kept": decision.kept}
        raise self.contention()

    def contention(self) -> DrainError:
        """Something else changes the node between each read and write."""
        return DrainError("Kubernetes: the node %s changed during each of %d tries. Run again." % (self.name, TRIES))

    def pending_work(self) -> str:
        """Evict pods for ``seconds``; what is still awaited then, "" for nothing."""
        try:
            return self.evict()
        except Away as error:
            return str(error)

    def evict(self) -> str:
        """As :meth:`pending_work`; Away without an answer."""
        words = drain_arguments(self.name, self.options, max(self.seconds, 1))
        answer = self.call(words, self.seconds + LIMIT)
        output = answer.err + answer.out
        if answer.rc == 0:
            return ""
        refused = not TIMEOUT.search(output) and not UNREACHABLE.search(output)
        if refused and (OTHER_PODS.search(output) or not BARE_PODS.search(output)):
            raise DrainError(explain_refusal(self.name, answer.err or answer.out))
        words = ["get", "pods", "--all-namespaces", "--field-selector=spec.nodeName=" + self.name, "--output=json"]
        words += ["--selector=" + self.options.pod_selector] if self.options.pod_selector else []
        pods = self.call(words + ["--request-timeout=30s"])
        if pods.rc != 0:
            return self.silence(one_line(pods.err, pods.out))
        if refused and not bare_pods_are_ending(pods.out):
            raise DrainError(explain_refusal(self.name, answer.err or answer.out))
        return describe_pods(self.name, parse_pods(pods.out), output)

    def silence(self, reason: str) -> str:
        """Return what a drain waits for while nothing is known about its pods."""
        return "an answer of the API server about the node %s (%s)" % (self.name, reason.rstrip("."))
