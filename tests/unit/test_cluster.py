"""Decisions about a cluster. tests/integration/test_kubernetes.py asks a real API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.cluster import (
    conflicts,
    device_plugin,
    kubectl,
    objects,
    operator,
    pods,
    taints,
    verify_pods,
)
from plugins.module_utils.gpu_ready.cluster.verify_pods import NodeRequest

ROOT = Path(__file__).resolve().parents[2]
GPUS = [f"GPU-11111111-2222-3333-4444-55555555555{n}" for n in range(2)]
FOREIGN = "GPU-99999999-2222-3333-4444-555555555555"
NODE = NodeRequest("n1", GPUS, "Tesla-T4", 1)
SHARED = NODE._replace(replicas=2)


@pytest.mark.parametrize(
    ("node", "seen", "state", "message"),
    [
        (NODE, [GPUS[:1], GPUS[1:]], "verified", "2 GPUs allocatable, 2 test pods see one verified GPU each"),
        (NODE, [GPUS[:1]], "verified", "a test pod sees one verified GPU"),
        (NODE, [GPUS], "failed", "asked for one GPU and sees 2"),
        (NODE, [[FOREIGN]], "failed", f"{FOREIGN} of the test pod p0 is not a verified one"),
        (NODE, [GPUS[:1], GPUS[:1]], "failed", f"share the GPU {GPUS[0]}, although sharing is off"),
        (SHARED, [GPUS[:1], GPUS[:1]], "verified", "4 GPUs allocatable"),
    ],
)
def test_what_test_pods_saw_is_compared_with_the_verified_gpus(
    node: NodeRequest, seen: list[list[str]], state: str, message: str
) -> None:
    verdict = verify_pods.judge(node, {f"p{number}": one for number, one in enumerate(seen)})
    assert verdict.state == state and message in verdict.message


def node_object(allocatable: str | None = "2", ready: str = "True", **spec: Any) -> dict[str, Any]:
    offered = {} if allocatable is None else {"nvidia.com/gpu": allocatable}
    return {
        "spec": spec,
        "status": {"allocatable": offered, "conditions": [{"type": "Ready", "status": ready}]},
    }


@pytest.mark.parametrize(
    ("node", "found", "state", "message"),
    [
        (NODE, None, "failed", "no such node: set gpu_kubernetes_node"),
        (NODE, node_object(ready="Unknown"), "waiting", "not Ready"),
        (NODE, node_object(unschedulable=True), "failed", "cordoned"),
        (NODE, node_object("1"), "waiting", "nvidia.com/gpu is 1, but 2 are expected"),
        (NODE, node_object(None), "waiting", "nvidia.com/gpu is 0, but 2 are expected"),
        (SHARED, node_object("2"), "waiting", "nvidia.com/gpu is 2, but 4 are expected (2 verified GPUs)"),
        (NODE._replace(gpus=[]), node_object(), "failed", "named no verified GPU"),
        (NODE._replace(product="a b"), node_object(), "failed", "named no verified GPU or no model"),
    ],
)
def test_a_node_runs_test_pods_only_when_it_offers_its_verified_gpus(
    node: NodeRequest, found: dict[str, Any] | None, state: str, message: str
) -> None:
    verdict = verify_pods.check_node(node, found, "")
    assert verdict is not None and verdict.state == state and message in verdict.message


def test_a_node_that_offers_its_gpus_is_ready_for_test_pods() -> None:
    assert verify_pods.check_node(NODE, node_object(), "") is None


def test_a_node_without_the_applied_device_plugin_runs_no_test_pod_though_it_offers_gpus() -> None:
    verdict = verify_pods.check_node(NODE, node_object(), "the device plugin does not run")
    assert verdict == verify_pods.NodeVerdict("waiting", "the device plugin does not run")


def plugin_pod(node: str, generation: str, waiting: str = "", **metadata: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": waiting, "message": "Back-off"}} if waiting else {}
    return {
        "metadata": {"name": f"plugin-{node}", "labels": {"pod-template-generation": generation}, **metadata},
        "spec": {"nodeName": node},
        "status": {
            "conditions": [{"type": "Ready", "status": "False" if waiting else "True"}],
            "containerStatuses": [{"state": state}],
        },
    }


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([plugin_pod("n1", "2"), plugin_pod("n2", "1", "CrashLoopBackOff")], ""),
        ([plugin_pod("n2", "2")], "the device plugin has no pod there: `kubectl describe daemonset"),
        ([plugin_pod("n1", "2", "ErrImagePull")],
         "the device plugin does not run: the pod kube-system/plugin-n1 on n1 (ErrImagePull Back-off). Correct"),
        ([plugin_pod("n1", "1"), plugin_pod("n2", "2", "ErrImagePull")],
         "from before this change: the update waits for the pod kube-system/plugin-n2 on n2 (ErrImagePull Back-off)"),
        ([plugin_pod("n1", "1", deletionTimestamp="now")],
         "the pod kube-system/plugin-n1 on n1 (it was deleted) still ends"),
        ([plugin_pod("n1", "1", deletionTimestamp="now"), plugin_pod("n1", "2")], ""),
        ([plugin_pod("n1", "1"), plugin_pod("n2", "1", deletionTimestamp="now")],
         "from before this change: the update waits for the pod kube-system/plugin-n2 on n2 (it was deleted)"),
        ([plugin_pod("n1", "1"), plugin_pod("n2", "2")], "from before this change: the update waits"),
    ],
)  # fmt: skip
def test_a_node_must_run_the_device_plugin_that_was_applied(found: list[dict[str, Any]], message: str) -> None:
    daemonset = {"metadata": {"annotations": {"deprecated.daemonset.template.generation": "2"}}}
    missing = device_plugin.what_is_missing(device_plugin.DevicePlugin(daemonset, found), "n1")
    assert message in missing and bool(message) == bool(missing)


def test_without_its_daemonset_nothing_runs_the_device_plugin() -> None:
    assert "has no DaemonSet" in device_plugin.what_is_missing(device_plugin.DevicePlugin(None, []), "n1")


class RecordingKubectl(kubectl.Kubectl):
    """kubectl that only records its calls."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def run(self, words: list[str], limit: float = kubectl.LIMIT) -> Result:
        self.calls.append(words)
        return Result(0, "", "")


def test_a_test_pod_that_came_before_the_device_plugin_was_registered_is_created_again() -> None:
    rejected = {"metadata": {"name": "p0"}, "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError"}}
    running = {"metadata": {"name": "p1"}, "status": {"phase": "Running"}}
    calls = RecordingKubectl()
    verdict = verify_pods.check_pods(calls, NODE, [rejected, running])
    assert verdict.state == "waiting" and "UnexpectedAdmissionError" in verdict.message
    assert [words[:2] for words in calls.calls] == [["delete", "pods"]] and {"p0", "p1"} <= set(calls.calls[0])
    ending = {"metadata": {"name": "p1", "deletionTimestamp": "now"}, "status": {"phase": "Running"}}
    assert verify_pods.check_pods(calls, NODE, [ending]).state == "waiting" and len(calls.calls) == 1


def test_the_time_limit_turns_what_is_awaited_into_a_failure_with_its_reason() -> None:
    verdicts = {
        "n1": verify_pods.NodeVerdict(
            "waiting", "it is Pending: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
        ),
        "n2": verify_pods.NodeVerdict("busy", "other pods use all 2 GPUs"),
    }
    assert verify_pods.summary(verdicts).startswith("n1: it is Pending")
    ended = verify_pods.give_up(verdicts, 600)
    assert ended["n1"].state == "failed" and ended["n1"].message.startswith("not within 600 s: it is Pending")
    assert ended["n2"].state == "busy" and verify_pods.summary(ended) == ""


@pytest.mark.parametrize(
    ("values", "gpus"),
    [([*GPUS, "GPU-1\n", "all", "$(reboot)"], GPUS), ([], [])],
)
def test_of_a_hosts_answer_only_uuids_are_used(values: list[str], gpus: list[str]) -> None:
    (node,) = verify_pods.read_nodes([{"node": "n1", "gpus": values, "labels": {}}], 1)
    assert node.gpus == gpus


def pod(phase: str, *limits: str) -> dict[str, Any]:
    containers = [{"resources": {"limits": {"nvidia.com/gpu": limit}}} for limit in limits]
    return {"status": {"phase": phase}, "spec": {"containers": [*containers, {"resources": {}}]}}


@pytest.mark.parametrize(
    ("one", "count"),
    [(pod("Running", "1", "2"), 3), (pod("Pending", "1"), 1), (pod("Failed", "1"), 0), (pod("Running"), 0)],
)
def test_gpus_that_a_pod_holds(one: dict[str, Any], count: int) -> None:
    assert verify_pods.requested(one) == count


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [{"status": "False", "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}]},
         "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}}]},
         "ImagePullBackOff Back-off pulling"),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        ({"reason": "UnexpectedAdmissionError", "message": "Allocate failed"}, "UnexpectedAdmissionError Allocate failed"),
    ],
)  # fmt: skip
def test_the_reason_of_a_pod_that_does_not_run(status: dict[str, Any], expected: str) -> None:
    assert pods.reason({"status": status}) == expected


def daemonset(name: str, image: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}}


@pytest.mark.parametrize(
    ("name", "image", "what"),
    [
        ("nvidia-device-plugin-daemonset", "nvcr.io/nvidia/k8s-device-plugin:v0.17.0", "a device plugin of NVIDIA"),
        ("plugin", "mirror.example.org/nvcr.io/nvidia/k8s-device-plugin@sha256:0", "a device plugin of NVIDIA"),
        ("nvidia-gpu-device-plugin", "registry.k8s.io/pause:3.9", "a device plugin of NVIDIA"),  # of GKE
        ("gpu-feature-discovery", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "a device plugin of NVIDIA"),
        ("gpu-feature-discovery", "nvcr.io/nvidia/gpu-feature-discovery:v0.8.2", "GPU feature discovery"),
        ("kubelet-plugin", "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.5.0", "NVIDIA's DRA driver"),
        ("node-exporter", "quay.io/prometheus/node-exporter:v1.8.2", None),
        ("dcgm-exporter", "nvcr.io/nvidia/k8s/dcgm-exporter:4.8.3", None),
    ],
)
def test_daemonsets_that_serve_the_same_gpus(name: str, image: str, what: str | None) -> None:
    assert conflicts.describe(daemonset(name, image)) == what


RUNTIME = {"kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}
OWNED = {"kind": "ConfigMap", "metadata": {"name": "c", "labels": {objects.OWNER_LABEL: "gpu-ready"}}}


def test_objects_of_others_are_not_touched() -> None:
    assert objects.usable([RUNTIME, OWNED], [RUNTIME, OWNED]) == [OWNED]
    with pytest.raises(GpuReadyError, match="RuntimeClass nvidia: it exists and is not gpu-ready's"):
        objects.usable([RUNTIME | {"handler": "runc"}], [RUNTIME])
    with pytest.raises(GpuReadyError, match="ConfigMap c: it exists"):
        objects.usable([{"kind": "ConfigMap", "metadata": {"name": "c"}}], [OWNED])


def test_a_conflict_names_field_and_manager() -> None:
    text = (  # kubectl 1.20.2
        'error: Apply failed with 1 conflict: conflict with "kubectl-label" using v1: '
        ".metadata.labels.nvidia.com/gpu.product\nPlease review the fields above--they currently have other managers."
    )
    error = kubectl.failure(["apply", "--server-side"], Result(1, "", text))
    assert objects.conflict(str(error)) == (
        'conflict with "kubectl-label" using v1: .metadata.labels.nvidia.com/gpu.product'
    )


def test_only_what_the_objects_say_is_a_change() -> None:
    live = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"a": "1"}, "resourceVersion": "7"},
        "status": {"x": 1},
    }
    after = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"a": "1"}, "managedFields": [{}]},
        "status": {"x": 2},
    }
    assert objects.find_changes([live], [after]) == []
    (change,) = objects.find_changes([live], [after | {"metadata": {"name": "n1", "labels": {"a": "2"}}}])
    assert change.name == "Node n1" and change.before["metadata"]["labels"] == {"a": "1"}


OTHER = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-11-01T00:00:00Z"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
PREFERENCE = TAINT | {"effect": "PreferNoSchedule"}
FOREIGN_TAINT = TAINT | {"value": "true"}


@pytest.mark.parametrize(
    ("found", "own", "effect", "expected", "owned"),
    [
        ([], "", "none", [], ""),
        ([], "", "NoSchedule", [TAINT], "NoSchedule"),
        ([OTHER], "", "NoSchedule", [OTHER, TAINT], "NoSchedule"),
        ([TAINT, OTHER], "NoSchedule", "NoSchedule", [TAINT, OTHER], "NoSchedule"),
        ([TAINT, OTHER], "NoSchedule", "PreferNoSchedule", [OTHER, PREFERENCE], "PreferNoSchedule"),
        ([TAINT, OTHER], "NoSchedule", "none", [OTHER], ""),
        ([TAINT], "", "none", [TAINT], ""),
        ([TAINT], "", "NoSchedule", [TAINT], ""),
        ([FOREIGN_TAINT], "", "NoSchedule", [FOREIGN_TAINT], ""),
        ([FOREIGN_TAINT], "", "PreferNoSchedule", [FOREIGN_TAINT, PREFERENCE], "PreferNoSchedule"),
        ([FOREIGN_TAINT], "NoSchedule", "none", [FOREIGN_TAINT], ""),
        ([FOREIGN_TAINT], "NoSchedule", "NoSchedule", [FOREIGN_TAINT], ""),
        ([OTHER], "NoSchedule", "none", [OTHER], ""),
        ([OTHER], "NoSchedule", "NoSchedule", [OTHER, TAINT], "NoSchedule"),
    ],
)  # fmt: skip
def test_only_the_taint_of_gpu_ready_is_set_and_removed(
    found: list[Any], own: str, effect: str, expected: list[Any], owned: str
) -> None:
    after = taints.Taints(found, own).change(effect)
    assert after == taints.Taints(expected, owned)
    assert after.change(effect) == after


class ChangingNode(RecordingKubectl):
    """A node that something else writes between each of ``changes`` reads and the write after it."""

    def __init__(self, changes: int) -> None:
        super().__init__()
        self.changes = changes
        self.stored: dict[str, Any] = {"metadata": {"name": "n1", "resourceVersion": "0"}, "spec": {}}

    def run(self, words: list[str], limit: float = kubectl.LIMIT) -> Result:
        self.calls.append(words)
        if words[0] == "get":
            return Result(0, json.dumps({"kind": "NodeList", "items": [self.stored]}), "")
        if self.changes:
            self.changes -= 1
            version = str(self.changes + 100)
            self.stored = {"metadata": {"name": "n1", "resourceVersion": version}, "spec": {"taints": [OTHER]}}
        (patch,) = (json.loads(word.partition("=")[2]) for word in words if word.startswith("--patch="))
        if patch["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            return Result(1, "", "Error from server (Conflict): the object has been modified")
        self.stored["spec"] = patch["spec"]
        return Result(0, "", "")


def test_a_taint_that_somebody_adds_in_the_meantime_stays() -> None:
    node = ChangingNode(changes=2)
    (change,) = taints.apply(node, {"n1": "NoSchedule", "n2": "NoSchedule"}, check=False)
    assert change.name == "Taints of Node n1" and node.stored["spec"]["taints"] == [OTHER, TAINT]
    assert [words[0] for words in node.calls] == ["get", "patch"] * 3


def test_a_node_that_changes_again_and_again_is_named() -> None:
    with pytest.raises(GpuReadyError, match="the node n1 changed during each of 5 tries to write its taints"):
        taints.apply(ChangingNode(changes=9), {"n1": "NoSchedule"}, check=False)


def test_check_mode_shows_the_taint_and_writes_nothing() -> None:
    node = ChangingNode(changes=0)
    (change,) = taints.apply(node, {"n1": "NoSchedule"}, check=True)
    assert change.after["spec"]["taints"] == [TAINT] and node.stored["spec"] == {}


def test_the_variable_offers_the_effects_that_the_module_knows() -> None:
    variables = yaml.safe_load((ROOT / "catalog/variables/kubernetes.yml").read_text())["variables"]
    assert list(variables["gpu_kubernetes_taint"]["choices"]) == taints.EFFECTS


def test_an_effect_that_ends_running_pods_is_refused() -> None:
    with pytest.raises(GpuReadyError, match="gpu_kubernetes_taint: NoExecute is not one of none, NoSchedule"):
        taints.apply(ChangingNode(changes=0), {"n1": "NoExecute"}, check=True)


@pytest.mark.parametrize(
    ("server", "has_cdi", "missing"),
    [
        ("v1.34.2", True, None),
        ("v1.35.0+k3s1", True, None),
        ("v1.34.1", True, "Kubernetes 1.34.2 or newer (the server is v1.34.1)"),
        ("", True, "the server is of an unknown version"),
        ("v" + "9" * 5000 + ".1.1", True, "Kubernetes 1.34.2 or newer"),
        ("v1.34.2", False, "gpu_kubernetes_device_list: cdi-cri"),
    ],
)
def test_requirements_of_the_dra_driver(server: str, has_cdi: bool, missing: str | None) -> None:
    if missing is None:
        operator.check_dra(server, has_cdi)
        return
    with pytest.raises(GpuReadyError) as refused:
        operator.check_dra(server, has_cdi)
    assert missing in str(refused.value)


def test_a_node_with_an_old_driver_is_refused_for_the_dra_driver_and_no_other() -> None:
    refused = operator.refuse_drivers({"a": "595.91.07", "b": "580.95.05", "c": "570.1.2", "d": "", "e": "9" * 5000})
    assert sorted(refused) == ["c", "d", "e"]
    assert "driver 580 or newer (found 570.1.2). Upgrade it" in refused["c"]
    assert len(refused["e"]) < 1000


def test_a_refusal_has_the_message_of_the_server() -> None:
    text = 'Error from server (Forbidden): nodes is forbidden: User "x" cannot list resource "nodes"\n'
    error = kubectl.failure(["get", "nodes", "--output=json"], Result(1, "", text))
    assert str(error).startswith("kubectl get nodes: Error from server (Forbidden): nodes is forbidden")
    assert "Give that user the permission" in str(error)
