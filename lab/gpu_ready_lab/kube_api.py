"""A stand-in of Kubernetes' API server, enough for kubectl's get, patch, cordon and drain: nodes, pods, evictions.

It runs alone on a lab host (`python3 kube_api.py PORT`), over plain HTTP, for any user of the host. There is no
scheduler, no controller and no kubelet: an evicted pod is removed when its time is over. `PUT /lab` replaces the
objects by {"nodes": {name: {"unschedulable": bool}}, "pods": [{"name", "node", "owner": kind or null, "ends": seconds,
"budget": bool, "emptydir": bool, "labels": {}, "terminating": bool}]}, where `budget` means a disruption budget that
forbids the eviction and `terminating` that the pod was deleted before and needs `ends` seconds; `GET /lab` returns the
objects and the requests so far.
"""

import json
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Value = dict[str, Any]
NAMESPACE = "ml"
GROUPS = {"policy": ("v1", "v1beta1"), "apps": ("v1",)}
RESOURCES = {
    "v1": (("nodes", "Node", False), ("pods", "Pod", True)),
    "policy/v1": (("poddisruptionbudgets", "PodDisruptionBudget", True),),
    "policy/v1beta1": (("poddisruptionbudgets", "PodDisruptionBudget", True),),
    "apps/v1": (("daemonsets", "DaemonSet", True),),
}
VERBS = ["get", "list", "patch", "delete", "create"]


class ApiError(Exception):
    """An answer other than success: status and Kubernetes' reason for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class Cluster:
    """The objects of the server."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.version = 1
        self.nodes: dict[str, Value] = {}
        self.pods: dict[str, Value] = {}
        self.ends: dict[str, float] = {}
        self.asked: list[str] = []

    def load(self, state: Value) -> None:
        """Replace all nodes and pods."""
        self.ends, self.asked = {}, []
        self.nodes = {name: self.node(name, bool(one.get("unschedulable"))) for name, one in state["nodes"].items()}
        self.pods = {one["name"]: self.pod(one) for one in state["pods"]}
        for one in state["pods"]:
            if one.get("terminating"):
                self.end(one["name"])

    def stamp(self) -> str:
        """Return the next version of an object."""
        self.version += 1
        return str(self.version)

    def node(self, name: str, unschedulable: bool) -> Value:
        """Return a node as the API shows it."""
        metadata = {"name": name, "uid": f"node-{name}", "resourceVersion": self.stamp(), "annotations": {}}
        spec = {"unschedulable": True} if unschedulable else {}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {}}

    def pod(self, one: Value) -> Value:
        """Return a pod as the API shows it."""
        name = one["name"]
        metadata: Value = {"name": name, "namespace": NAMESPACE, "uid": f"pod-{name}-{self.stamp()}"}
        metadata |= {"labels": one.get("labels", {}), "annotations": {}, "resourceVersion": self.stamp()}
        if one.get("owner"):
            owner = {"apiVersion": "apps/v1", "kind": one["owner"], "name": "owner", "uid": "o", "controller": True}
            metadata["ownerReferences"] = [owner]
        spec: Value = {"nodeName": one["node"], "containers": [{"name": "c", "image": "i"}]}
        if one.get("emptydir"):
            spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        lab = {"ends": float(one.get("ends", 0)), "budget": bool(one.get("budget"))}
        status = {"phase": "Running"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status, "lab": lab}

    def sweep(self) -> None:
        """Remove pods whose time is over."""
        for name in [name for name, end in self.ends.items() if end <= time.time()]:
            del self.ends[name]
            self.pods.pop(name, None)

    def end(self, name: str) -> None:
        """Start the termination of a pod."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.pods[name]["metadata"].setdefault("deletionTimestamp", now)
        self.ends.setdefault(name, time.time() + self.pods[name]["lab"]["ends"])
        self.sweep()


def merge(target: Value, change: Value) -> Value:
    """Return a value after a JSON merge patch (RFC 7396)."""
    after = dict(target)
    for key, value in change.items():
        if value is None:
            after.pop(key, None)
        elif isinstance(value, dict):
            after[key] = merge(after.get(key) or {}, value)
        else:
            after[key] = value
    return after


def found(table: dict[str, Value], name: str, kind: str) -> Value:
    """Return an object by its name."""
    if name not in table:
        raise ApiError(404, "NotFound", f'{kind} "{name}" not found')
    return table[name]


def discovery(path: str) -> Value | None:
    """The discovery documents, which list the resources."""
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0-lab"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = []
        for name, versions in GROUPS.items():
            offered = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
            groups.append({"name": name, "versions": offered, "preferredVersion": offered[0]})
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    group = path.removeprefix("/apis/").removeprefix("/api/")
    if group not in RESOURCES:
        return None
    rows: list[Value] = [
        {"name": name, "singularName": name[:-1], "kind": kind, "namespaced": spaced, "verbs": VERBS}
        for name, kind, spaced in RESOURCES[group]
    ]
    if group == "v1":
        policy = {"group": "policy", "version": "v1", "kind": "Eviction"}
        rows.append({"name": "pods/eviction", "singularName": "", "namespaced": True, "verbs": ["create"], **policy})
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": rows}


def answer(cluster: Cluster, method: str, url: str, body: Value) -> Value:
    """Return the answer to a request. Raises ApiError."""
    parts = urllib.parse.urlsplit(url)
    document = discovery(parts.path) if method == "GET" else None
    if document is not None:
        return document
    if parts.path == "/lab":
        if method == "PUT":
            cluster.load(body)
        return {"asked": cluster.asked, "nodes": cluster.nodes, "pods": sorted(cluster.pods)}
    cluster.sweep()
    cluster.asked.append(f"{method} {parts.path}")
    query = dict(urllib.parse.parse_qsl(parts.query))
    match parts.path.strip("/").split("/"):
        case ["api", "v1", "nodes", name]:
            return node(cluster, method, name, body)
        case ["api", "v1", "pods"] | ["api", "v1", "namespaces", _, "pods"] if method == "GET":
            return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods(cluster, query)}
        case ["api", "v1", "namespaces", _, "pods", name] if method in ("GET", "DELETE"):
            pod = found(cluster.pods, name, "pods")
            if method == "DELETE":
                cluster.end(name)
            return pod
        case ["api", "v1", "namespaces", _, "pods", name, "eviction"] if method == "POST":
            if found(cluster.pods, name, "pods")["lab"]["budget"]:
                message = "Cannot evict pod as it would violate the pod's disruption budget."
                raise ApiError(429, "TooManyRequests", message)
            cluster.end(name)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        case ["apis", "apps", "v1", "namespaces", _, "daemonsets", name] if method == "GET":
            return {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": name, "namespace": NAMESPACE}}
    raise ApiError(404, "NotFound", "the server could not find the requested resource")


def node(cluster: Cluster, method: str, name: str, body: Value) -> Value:
    """A node, after a patch if the method is PATCH."""
    current = found(cluster.nodes, name, "nodes")
    if method == "PATCH":
        version = body.get("metadata", {}).get("resourceVersion")
        if version is not None and version != current["metadata"]["resourceVersion"]:
            message = f'Operation cannot be fulfilled on nodes "{name}": the object has been modified'
            raise ApiError(409, "Conflict", message)
        current = merge(current, body)
        current["metadata"]["resourceVersion"] = cluster.stamp()
        cluster.nodes[name] = current
    return current


def pods(cluster: Cluster, query: dict[str, str]) -> list[Value]:
    """Return the pods of a node and with a label, as the query names them."""
    on = query.get("fieldSelector", "").partition("spec.nodeName=")[2]
    key, _, value = query.get("labelSelector", "").partition("=")
    return [
        pod
        for pod in cluster.pods.values()
        if (not on or pod["spec"]["nodeName"] == on) and (not key or pod["metadata"]["labels"].get(key) == value)
    ]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    cluster = Cluster()

    def handle_request(self) -> None:
        """Answer in JSON."""
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "protobuf" in (self.headers.get("Content-Type") or ""):
            text = b""  # newer clients' options of a deletion, which nothing here depends on
        try:
            with self.cluster.lock:
                status, value = 200, answer(self.cluster, self.command, self.path, json.loads(text or b"{}"))
        except ApiError as error:
            status = error.status
            value = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": status}
            value |= {"message": str(error), "reason": error.reason}
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_request  # noqa: N815 - names of the base class

    def log_message(self, *words: Any) -> None:
        """Print nothing: `asked` has it."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
