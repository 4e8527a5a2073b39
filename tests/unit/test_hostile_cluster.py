"""An API server that belongs to an attacker: what its answers may make kubectl do on the control node."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import host
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.cluster import kubectl as kubectl_module
from plugins.module_utils.gpu_ready.cluster import objects, verify_pods
from plugins.module_utils.gpu_ready.cluster.kubectl import Kubectl, KubectlAccess

pytestmark = pytest.mark.host_io
OPTIONS = ("--context=production", "--filename=https://evil.example/x.yml")
OWN_LABELS = {"app.kubernetes.io/managed-by": "gpu-ready", "app.kubernetes.io/name": "gpu-ready-verify"}
RUNNING = {"phase": "Running"}
PROGRAM = """#!{python}
import json, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
answers = json.load(open({answers!r}))
words = [word for word in sys.argv[1:] if word in answers]
print(json.dumps(answers[words[0]]) if words else "")
"""
"""kubectl as far as the attacker is concerned: it prints what the server answers, kinds and names too (1.20, 1.35)."""


def kubectl_of(directory: Path, answers: dict[str, Any]) -> Kubectl:
    """Return a kubectl whose server gives these answers, by a word of the call."""
    (directory / "answers").write_text(json.dumps(answers))
    program = directory / "kubectl"
    program.write_text(
        PROGRAM.format(python=sys.executable, calls=str(directory / "calls"), answers=str(directory / "answers"))
    )
    program.chmod(0o755)
    return Kubectl(Host(), KubectlAccess(str(program), "", ""))


def calls(directory: Path) -> list[list[str]]:
    """Return the arguments of each call."""
    return [json.loads(line) for line in (directory / "calls").read_text().splitlines()]


def listed(kind: str, name: str, namespace: str = "kube-system") -> dict[str, Any]:
    """Return a list with one object."""
    metadata = {"name": name, "namespace": namespace, "labels": OWN_LABELS, "annotations": {"gpu-ready/node": "n1"}}
    return {"kind": "List", "items": [{"kind": kind, "metadata": metadata, "status": RUNNING}]}


@pytest.mark.parametrize(
    ("kind", "name", "namespace"),
    [(OPTIONS[0], OPTIONS[1], ""), ("ConfigMap", OPTIONS[1], "x"), ("ConfigMap", "x", "x\n--context=production")],
)
def test_what_is_removed_is_named_by_no_option_of_kubectl(tmp_path: Path, kind: str, name: str, namespace: str) -> None:
    kubectl = kubectl_of(tmp_path, {objects.KINDS: listed(kind, name, namespace)})
    with pytest.raises(GpuReadyError, match="an object that cannot exist .*gpu_kubernetes_kubeconfig"):
        objects.remove(kubectl, ["n1"], False)
    assert not [call for call in calls(tmp_path) if "delete" in call]


def test_the_log_of_a_test_pod_is_read_by_no_option_of_kubectl(tmp_path: Path) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"nvidia.com/gpu": "1"}}
    node = {"kind": "Node", "metadata": {"name": "n1"}, "status": status}
    answers = {"nodes": {"kind": "List", "items": [node]}, "pods": listed("Pod", OPTIONS[0])}
    request = verify_pods.NodeRequest("n1", ["GPU-11111111-2222-3333-4444-555555555550"], "Tesla-T4", 1)
    with pytest.raises(GpuReadyError, match="an object that cannot exist"):
        verify_pods.check(kubectl_of(tmp_path, answers), [request], verify_pods.PodOptions("image", "", 60))
    assert not [call for call in calls(tmp_path) if "logs" in call]


def test_an_answer_without_end_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "OUTPUT_LIMIT", 1 << 20)
    kubectl = kubectl_of(tmp_path, {})
    Path(kubectl.access.kubectl).write_text("#!/bin/sh\nexec yes\n")
    with pytest.raises(
        GpuReadyError, match="printed more than 1 MiB .*kubectl get nodes`: check that gpu_kubernetes_kub"
    ):
        kubectl.get("nodes")


def test_the_log_of_a_failed_test_pod_is_shortened(tmp_path: Path) -> None:
    pod = listed("Pod", "gpu-ready-verify-1")["items"][0]
    kubectl = kubectl_of(tmp_path, {"logs": "x" * 100_000})
    request = verify_pods.NodeRequest("n1", [], "Tesla-T4", 1)
    verdict = verify_pods.check_pods(kubectl, request, [{**pod, "status": {"phase": "Failed"}}])
    assert verdict.state == "failed" and len(verdict.message) < 1000
    [call] = calls(tmp_path)
    assert [word for word in call if word.startswith("--limit-bytes=")]


WRONG: tuple[dict[str, Any], ...] = (
    {"metadata": {"labels": 7}}, {"metadata": {"name": "n1", "annotations": [7]}}, {"spec": None}, {"status": 7},
    {"status": {"conditions": {"type": "Ready"}}}, {"status": {"containerStatuses": [7]}}, {"spec": {"containers": 7}},
    {"status": {"containerStatuses": [{"state": {"waiting": "x"}}]}}, {"spec": {"selector": "x"}}, {},
    {"spec": {"taints": ["x"]}},
)  # fmt: skip
"""Objects of another form than those of Kubernetes."""


@pytest.mark.parametrize(
    "answer",
    [{"kind": "List", "items": 7}, {"kind": "List", "items": [7]}, {"metadata": 7}]
    + [{"kind": "List", "items": [one]} for one in WRONG],
)
def test_an_answer_of_another_form_is_an_error_with_a_remedy(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(GpuReadyError, match="an object that cannot exist .*gpu_kubernetes_kubeconfig"):
        kubectl_of(tmp_path, {"nodes": answer}).get("nodes")


def test_an_answer_of_empty_objects_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubectl_module, "MOST_VALUES", 1000)
    answer = {"kind": "List", "items": [{}] * 1002}
    with pytest.raises(GpuReadyError, match="kubectl get nodes: its output is no JSON, or too large"):
        kubectl_of(tmp_path, {"nodes": answer}).get("nodes")


def test_names_that_kubernetes_accepts_are_read(tmp_path: Path) -> None:
    found = kubectl_of(tmp_path, {"nodes": listed("Node", "ip-10-0-0-1.ec2.internal", "")}).get("nodes")
    assert found[0]["metadata"]["name"] == "ip-10-0-0-1.ec2.internal"
