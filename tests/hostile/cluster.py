"""kubectl of the operator in the hostile campaign: a cluster whose nodes are the hosts of the run.

usage: cluster.py DIRECTORY ARGUMENTS...      DIRECTORY: that of the run; what is applied to nodes is kept in its reports

DIRECTORY/api.json makes the API server an attacker's: the answers to some calls are attacks. Every call is kept.
"""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.hostile import attacks  # noqa: E402  found by the path of this program

GPU = "GPU-11111111-2222-3333-4444-555555555555"
READY = [{"type": "Ready", "status": "True"}]
GENERATION = "deprecated.daemonset.template.generation"


def call_of(words: list[str]) -> str:
    """Return the kind of a call: its verb and kind of object."""
    named = [word for word in words[1:] if not word.startswith("-")]
    return " ".join(["kubectl", words[0], *(named[:1] if words[0] == "get" else [])])


def listed(kind: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a list as kubectl prints it."""
    return {"kind": "List", "items": [{"kind": kind, **one} for one in found]}


def node(name: str) -> dict[str, Any]:
    """Return a node with one GPU."""
    return {"metadata": {"name": name}, "status": {"conditions": READY, "allocatable": {"nvidia.com/gpu": "1"}}}


def plugin(name: str) -> dict[str, Any]:
    """Return the pod of the device plugin on a node."""
    metadata = {"name": f"plugin-{name}", "namespace": "kube-system", "labels": {"pod-template-generation": "1"}}
    return {"metadata": metadata, "spec": {"nodeName": name}, "status": {"phase": "Running", "conditions": READY}}


def answer(directory: Path, words: list[str]) -> Any:
    """Return what the API server would answer: JSON, or the text of a log."""
    files = [Path(word.partition("=")[2]) for word in words if word.startswith("--filename=")]
    objects = [one for file in files for one in json.loads(file.read_text())["items"]]
    hosts = list(json.loads((directory / "inventory.json").read_text())["all"]["hosts"])
    kept = directory / "pods.json"
    pods = json.loads(kept.read_text()) if kept.exists() else []
    call = call_of(words)
    if call == "kubectl apply":
        if "--dry-run=server" not in words:
            nodes = [one for one in objects if one["kind"] == "Node"]
            if nodes:
                (directory / "reports/nodes.yml").write_text(json.dumps({"items": nodes}))
            kept.write_text(json.dumps(pods + [one for one in objects if one["kind"] == "Pod"]))
        return {"kind": "List", "items": objects}
    if call == "kubectl delete":
        kept.unlink(missing_ok=True)
        return {}
    if call == "kubectl logs":
        return f"GPU 0: Tesla T4 (UUID: {GPU})\n"
    if call == "kubectl version":
        return {"serverVersion": {"gitVersion": "v1.35.0"}}
    if call == "kubectl get nodes":
        return listed("Node", [node(name) for name in hosts])
    if call == "kubectl get daemonset.apps":
        metadata = {"name": "gpu-ready-device-plugin", "namespace": "kube-system", "annotations": {GENERATION: "1"}}
        return {"kind": "DaemonSet", "metadata": metadata}
    if call == "kubectl get pods" and any(word.endswith("=gpu-ready-device-plugin") for word in words):
        return listed("Pod", [plugin(name) for name in hosts])
    if call == "kubectl get pods" and any(word.endswith("=gpu-ready-verify") for word in words):
        return listed("Pod", [{**one, "status": {"phase": "Running"}} for one in pods])
    assert words[0] == "get", words
    return listed("Pod", [])


def main(directory: Path, words: list[str]) -> None:
    """Answer a call, with an attack where the API server is an attacker's."""
    with (directory / "kubectl-calls").open("a") as calls:
        calls.write(json.dumps(words) + "\n")
    honest = answer(directory, words)
    api = directory / "api.json"
    given = json.loads(api.read_text()) if api.exists() else {"calls": []}
    if call_of(words) not in given["calls"]:
        print(honest if isinstance(honest, str) else json.dumps(honest), end="")
        return
    key, tasks, kubeconfig, program, ran = [Path(text) for text in given["paths"]]
    at = attacks.Targets(key, tasks, kubeconfig, program, ran, *given["texts"])
    asked = getattr(attacks, given["attack"])(honest if isinstance(honest, dict) else {}, at)
    write = runpy.run_path(str(ROOT / "lab/hostile/interpreter.py"))["attack"]
    write(given["host"], {"module": call_of(words), **asked}, json.dumps(honest))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
