"""Objects of gpu-ready in a cluster: applied server-side with a field manager of their own, and removed again.

The API server records who set which field. So labels of nodes are removed by applying the node without them, which
leaves those alone that others set (kubernetes.io/docs/reference/using-api/server-side-apply). Objects of gpu-ready's
own have a label.
"""

import json
from typing import Any, Dict, List, NamedTuple, Tuple

from ..base.errors import GpuReadyError
from .kubectl import Kubectl, Value, failure, names, objects_of

MANAGER = "gpu-ready"
OWNER_LABEL = "app.kubernetes.io/managed-by"
PRESENT_LABEL = "nvidia.com/gpu.present"
KINDS = "daemonset.apps,configmap,runtimeclass.node.k8s.io"
"""Kinds of objects that gpu-ready creates. Nodes are the cluster's."""
LIMIT = 180.0
SET_BY_SERVER = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


class Change(NamedTuple):
    """One object that differs: ``before`` is {} for one that does not exist, ``after`` for one that is removed."""

    name: str
    before: Value
    after: Value


def diff(change: Change) -> Value:
    """Return a change as Ansible's --diff shows it."""
    before, after = [
        json.dumps(one, indent=1, sort_keys=True) + "\n" if one else "" for one in (change.before, change.after)
    ]
    return {"before_header": change.name, "after_header": change.name, "before": before, "after": after}


def key(item: Value) -> Tuple[str, str, str]:
    metadata = item.get("metadata", {})
    return str(item.get("kind", "")), str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def describe(item: Value) -> str:
    kind, namespace, name = key(item)
    return "%s %s" % (kind, namespace + "/" + name if namespace else name)


def is_owned(item: Value) -> bool:
    return bool((item.get("metadata", {}).get("labels") or {}).get(OWNER_LABEL) == MANAGER)


def without_server_fields(item: Value) -> Value:
    """Return an object without what the API server adds or changes by itself."""
    metadata = {name: value for name, value in item.get("metadata", {}).items() if name not in SET_BY_SERVER}
    annotations = {
        name: value
        for name, value in (metadata.pop("annotations", None) or {}).items()
        if not name.startswith("deprecated.daemonset.template.generation")
    }
    kept = {name: value for name, value in item.items() if name not in ("status", "metadata")}
    return dict(kept, metadata=dict(metadata, annotations=annotations))


def usable(live: List[Value], desired: List[Value]) -> List[Value]:
    """Return the objects to apply. GpuReadyError for one that somebody else created.

    A RuntimeClass with the same handler serves as it is: k3s creates one, and it must survive a removal.
    """
    found = {key(one): one for one in live}
    kept = []
    for one in desired:
        other = found.get(key(one))
        if one.get("kind") == "Node" or other is None or is_owned(other):
            kept.append(one)
        elif one.get("kind") != "RuntimeClass" or other.get("handler") != one.get("handler"):
            raise GpuReadyError(
                "%s: it exists and is not gpu-ready's (its label %s is not %s). Remove it, then run again."
                % (describe(one), OWNER_LABEL, MANAGER)
            )
    return kept


def find_changes(live: List[Value], after: List[Value]) -> List[Change]:
    """Return objects that applying would create or change; ``after``: what the API server says they would be."""
    found = {key(one): without_server_fields(one) for one in live}
    rows = [Change(describe(one), found.get(key(one), {}), without_server_fields(one)) for one in after]
    return [row for row in rows if row.before != row.after]


def apply(kubectl: Kubectl, desired: List[Value], check: bool) -> List[Change]:
    """Apply objects; GpuReadyError where somebody else set a field to another value."""
    missing = sorted(
        {one["metadata"]["name"] for one in desired if one["kind"] == "Node"} - set(names(kubectl.get("nodes")))
    )
    if missing:
        raise GpuReadyError(
            "the cluster has no node %s. Set gpu_kubernetes_node to the name that `kubectl get nodes` shows."
            % ", ".join(missing)
        )
    live = live_objects(kubectl, desired)
    objects = usable(live, desired)
    if not objects:
        return []
    changes = find_changes(live, objects_of(server_side(kubectl, objects, ["--dry-run=server"])))
    if changes and not check:
        server_side(kubectl, objects, [])
    return changes


def live_objects(kubectl: Kubectl, desired: List[Value]) -> List[Value]:
    words = ["get", "--ignore-not-found", "--request-timeout=30s"]
    return objects_of(kubectl.with_objects(words, desired, []))


def server_side(kubectl: Kubectl, objects: List[Value], more: List[str]) -> Value:
    words = ["apply", "--server-side", "--field-manager=" + MANAGER]
    try:
        return kubectl.with_objects(words, objects, more)
    except GpuReadyError as error:
        if "conflict" not in str(error):
            raise
        raise GpuReadyError(
            "%s: %s. Two owners of a field overwrite each other: remove the other one's label or setting, or use "
            "gpu_kubernetes: render." % (conflicting(kubectl, words, objects), conflict(str(error)))
        ) from None


def conflict(text: str) -> str:
    """Return which field and manager the API server named."""
    return text.partition("conflict: ")[2].partition(". Check ")[0] or text


def conflicting(kubectl: Kubectl, words: List[str], objects: List[Value]) -> str:
    """Return the first object that cannot be applied: kubectl does not name it."""
    for one in objects:
        try:
            kubectl.with_objects(words, [one], ["--dry-run=server"])
        except GpuReadyError:
            return describe(one)
    return "an object"


def remove(kubectl: Kubectl, nodes: List[str], check: bool) -> Tuple[List[Change], List[str]]:
    """Remove the labels from nodes and, if no other node has some, what is gpu-ready's in the cluster.

    Returns the changes, and the names of nodes that keep labels.
    """
    labelled = labelled_nodes(kubectl)
    changes = [
        Change(describe(node), without_server_fields(node), {})
        for node in labelled
        if node["metadata"].get("name") in nodes
    ]
    others = [name for name in names(labelled) if name not in nodes]
    owned = [] if others else kubectl.get(KINDS, "--all-namespaces", "--selector=%s=%s" % (OWNER_LABEL, MANAGER))
    changes += [Change(describe(one), without_server_fields(one), {}) for one in owned]
    if check:
        return changes, others
    for one in owned:
        kind, namespace, name = key(one)
        words = ["delete", kind.lower(), name, "--ignore-not-found", "--timeout=120s"]
        answer = kubectl.run(words + (["--namespace=" + namespace] if namespace else []), LIMIT)
        if answer.rc != 0:
            raise failure(words, answer)
    bare = [bare_node(node["metadata"]["name"]) for node in labelled if node["metadata"].get("name") in nodes]
    if bare:
        server_side(kubectl, bare, [])
    return changes, others


def bare_node(name: str) -> Value:
    """Return a node without any field of gpu-ready."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def labelled_nodes(kubectl: Kubectl) -> List[Value]:
    """Return nodes with labels that gpu-ready set.

    Raw, since `kubectl get` from 1.21 on does not show who set a field.
    """
    path = "/api/v1/nodes?labelSelector=%s%%3Dtrue" % PRESENT_LABEL.replace("/", "%2F")
    answer = kubectl.read(["get", "--raw", path])
    return [dict(node, kind="Node") for node in answer.get("items") or [] if MANAGER in managers(node)]


def managers(item: Value) -> Dict[str, Any]:
    """Return who applied fields of an object, with those fields."""
    return {
        str(entry.get("manager")): entry.get("fieldsV1")
        for entry in item.get("metadata", {}).get("managedFields") or []
        if entry.get("operation") == "Apply"
    }
