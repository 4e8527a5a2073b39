"""A real control plane and kubelets on lab hosts: what playbooks/kubernetes.yml applies, verifies and removes."""

import base64
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpu_ready_lab import cluster, hosts, kubernetes

from tests.integration.fleet import ROOT, Fleet, Run

pytestmark = pytest.mark.lab

FIRST, SECOND = "kube-1", "kube-2"
NODES = (FIRST, SECOND)
OWNED = "--selector=app.kubernetes.io/managed-by=gpu-ready"
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
POD = """
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "%s", "namespace": "default"}, "spec": {"runtimeClassName": "nvidia",
 "terminationGracePeriodSeconds": 0, "nodeSelector": {"nvidia.com/gpu.product": "%s"},
 "containers": [{"name": "c", "image": "docker.io/gpu-ready-lab/verify:1", "command": ["sh", "-c", "nvidia-smi -L; exec sleep 3600"],
 "resources": {"limits": {"nvidia.com/gpu": "%s"}}}]}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: train, namespace: default}
spec:
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      runtimeClassName: nvidia
      terminationGracePeriodSeconds: 0
      nodeSelector: {kubernetes.io/hostname: kube-2}
      containers:
        - name: c
          image: docker.io/gpu-ready-lab/verify:1
          command: [sleep, "3600"]
          resources: {limits: {nvidia.com/gpu: "1"}}
"""
BUDGET = """
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: train, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: train}}}
"""


class Cluster:
    """The fleet with its API server."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.kubeconfig = cluster.kubeconfig(fleet.name)
        self.users = {name: self.user(name) for name in ("kubernetes", "drain")}

    def user(self, page: str) -> Path:
        """Return the kubeconfig of a service account with exactly the rights that a page of docs/ names."""
        text = (ROOT / f"docs/{page}.md").read_text()
        roles = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```", text, re.M | re.S)
        assert roles, page
        self.kubectl("create", "namespace", page, check=False)
        for role in map(yaml.safe_load, roles):
            self.kubectl("apply", "--filename=-", stdin=json.dumps(role))
            kind, where = role["kind"], role["metadata"].get("namespace")
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}Binding",
                "metadata": {"name": role["metadata"]["name"], **({"namespace": where} if where else {})},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": page}],
            }  # fmt: skip
            self.kubectl("apply", "--filename=-", stdin=json.dumps(binding))
        self.wait("default", "default-token", "get", "serviceaccount", "--namespace", page, "--output=yaml")
        name = self.get("serviceaccount", "default", "--namespace", page)["secrets"][0]["name"]
        token = base64.b64decode(self.get("secret", name, "--namespace", page)["data"]["token"]).decode()
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.fleet.directory / f"kubeconfig-{page}"
        path.write_text(yaml.safe_dump(config))
        return path

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        """Return what kubectl prints."""
        argv = [str(cluster.kubectl()), f"--kubeconfig={self.kubeconfig}", *words]
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=200, check=False)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "--output=json"))

    def labels(self, node: str) -> dict[str, str]:
        """Return the labels of NVIDIA's names that a node has."""
        found = self.get("node", node)["metadata"]["labels"]
        return {name: value for name, value in found.items() if name.startswith("nvidia.com/")}

    def allocatable(self, node: str) -> int:
        return int(self.get("node", node)["status"]["allocatable"].get("nvidia.com/gpu", 0))

    def play(self, mode: str, *arguments: str, **variables: Any) -> Run:
        extra = {
            "gpu_kubernetes": mode,
            "gpu_kubernetes_kubectl": str(cluster.kubectl()),
            "gpu_kubernetes_kubeconfig": str(self.users["kubernetes"]),
            "gpu_kubernetes_device_list": "envvar",
            "gpu_kubernetes_plugin_image": f"docker.io/{cluster.PLUGIN_IMAGE}",
            "gpu_kubernetes_verify_image": "docker.io/gpu-ready-lab/verify:1",
            "gpu_kubernetes_directory": str(self.fleet.directory / "manifests"),
            **variables,
        }
        return self.fleet.play(*arguments, playbook="playbooks/kubernetes.yml", extra=extra)

    def drain(self, entry: str, **variables: Any) -> Run:
        """Drain the second node, or undrain it, with the rights that docs/drain.md names."""
        extra = {
            "entry": entry,
            "gpu_upgrade_drain": "kubernetes",
            "gpu_upgrade_drain_timeout": 120,
            "gpu_drain_kubernetes_kubectl": str(cluster.kubectl()),
            "gpu_drain_kubernetes_kubeconfig": str(self.users["drain"]),
            **variables,
        }
        return self.fleet.play("--limit", SECOND, playbook="tests/integration/drain.yml", extra=extra)

    def pod(self, name: str, product: str, gpus: int = 1) -> None:
        self.kubectl("apply", "--filename=-", stdin=POD % (name, product, gpus))

    def wait(self, name: str, text: str, *words: str, limit: int = 120) -> str:
        """Wait until kubectl prints a text about a pod."""
        end = time.monotonic() + limit
        while text not in (found := self.kubectl(*words, name, check=False)):
            assert time.monotonic() < end, f"{name}: no {text!r} in {found}"
            time.sleep(1)
        return found

    def owned(self) -> list[str]:
        """Return kind and name of what has the label of gpu-ready."""
        kinds = "daemonsets,configmaps,runtimeclasses,pods"
        return [f"{one['kind']} {one['metadata']['name']}" for one in self.get(kinds, "-A", OWNED)["items"]]


def sysctls() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in SYSCTLS]


@pytest.fixture(scope="module")
def kube(lab_machine: None) -> Cluster:
    if not kubernetes.is_built():
        pytest.skip(
            f"Kubernetes is not in the lab's cache: `{kubernetes.COMMAND}` or `make campaign PART=kubernetes_build` builds it; "
            "test_drain.py has a stand-in for the API server"
        )
    before = sysctls()
    fleet = Fleet("kubernetes")
    fleet.up()
    made = fleet.play()
    assert made.rc == 0, made.screen[-3000:]
    found = {one.host: one for one in hosts.existing() if one.fleet == fleet.name}
    cluster.start([found[name] for name in NODES])
    assert sysctls() == before, "a kubelet has changed the settings of this machine's kernel"
    return Cluster(fleet)


def uuids(kube: Cluster, node: str) -> set[str]:
    record = json.loads(kube.fleet.ssh(node, "cat /var/lib/gpu-ready/verified.json"))
    return set(record["gpus"])


def test_check_mode_shows_the_objects_and_applies_none(kube: Cluster) -> None:
    run = kube.play("device_plugin", "--check", "--diff")
    assert run.rc == 0 and "DaemonSet kube-system/gpu-ready-device-plugin" in run.screen
    assert '"nvidia.com/gpu.product": "Tesla-T4"' in run.screen
    assert kube.owned() == [] and kube.labels(FIRST) == {}


def test_the_device_plugin_runs_and_test_pods_see_one_verified_gpu_each(kube: Cluster) -> None:
    run = kube.play("device_plugin")
    assert run.rc == 0, run.screen[-3000:]
    for node in NODES:
        assert kube.allocatable(node) == 2
        assert "2 GPUs allocatable, 2 test pods see one verified GPU each" in run.screen
        assert all(gpu in run.screen for gpu in uuids(kube, node))
    assert kube.labels(FIRST)["nvidia.com/gpu.product"] == "Tesla-T4"
    assert sorted(kube.owned()) == [
        "ConfigMap gpu-ready-device-plugin", "DaemonSet gpu-ready-device-plugin", "RuntimeClass nvidia",
    ]  # fmt: skip


def test_a_second_run_changes_nothing(kube: Cluster) -> None:
    before = {node: kube.get("node", node)["metadata"].get("labels") for node in NODES}
    generation = kube.get("daemonset", "gpu-ready-device-plugin", "-n", "kube-system")["metadata"]["generation"]
    run = kube.play("device_plugin")
    assert run.rc == 0 and run.changed(FIRST) == run.changed(SECOND) == []
    assert before == {node: kube.get("node", node)["metadata"].get("labels") for node in NODES}
    assert generation == kube.get("daemonset", "gpu-ready-device-plugin", "-n", "kube-system")["metadata"]["generation"]


def test_pods_choose_a_model_and_share_no_gpu(kube: Cluster) -> None:
    for name in ("one", "two", "three"):
        kube.pod(name, "Tesla-T4")
    seen = [kube.wait(name, "UUID: GPU-", "logs") for name in ("one", "two")]
    pending = kube.wait("three", "Insufficient nvidia.com/gpu", "get", "pod", "--output=yaml")
    assert "phase: Pending" in pending
    assert {line.split("UUID: ")[1].rstrip(")\n") for line in seen} == uuids(kube, FIRST)
    busy = kube.play("device_plugin")
    assert busy.rc == 0 and "other pods use all 2 GPUs, so no test pod was started" in busy.screen
    kube.kubectl("delete", "pod", "one", "--wait=true")
    kube.wait("three", "UUID: GPU-", "logs")
    kube.kubectl("delete", "pods", "two", "three", "--wait=true")


@pytest.mark.long
def test_a_plugin_that_does_not_start_fails_the_verification_with_its_reason(kube: Cluster) -> None:
    run = kube.play(
        "device_plugin", gpu_kubernetes_plugin_image="docker.io/gpu-ready-lab/none:1", gpu_kubernetes_verify_timeout=30
    )
    assert run.rc != 0
    # The update replaces one pod after the other, and stops at the first that does not start.
    failures = [run.failures(node) for node in NODES]
    assert any("allocatable nvidia.com/gpu is 0, but 2 are expected (2 verified GPUs)" in text for text in failures)
    assert [name for name in kube.owned() if name.startswith("Pod ")] == []


@pytest.mark.long
def test_time_slicing_offers_each_gpu_to_two_pods(kube: Cluster) -> None:
    run = kube.play("device_plugin", gpu_kubernetes_sharing="time-slicing")
    assert run.rc == 0, run.screen[-3000:]
    assert "4 GPUs allocatable" in run.screen and kube.allocatable(FIRST) == 4
    assert kube.labels(FIRST)["nvidia.com/gpu.product"] == "Tesla-T4-SHARED"
    kube.pod("greedy", "Tesla-T4-SHARED", gpus=2)
    kube.wait("greedy", "UnexpectedAdmissionError", "get", "pod", "--output=yaml")
    kube.kubectl("delete", "pod", "greedy", "--wait=true")


def test_labels_of_somebody_else_are_refused_and_kept(kube: Cluster) -> None:
    kube.kubectl("label", "node", SECOND, "nvidia.com/gpu.product=by-hand", "--overwrite")
    run = kube.play("device_plugin")
    assert run.rc != 0 and "nvidia.com/gpu.product" in run.failures(FIRST) and "conflict" in run.failures(FIRST)
    assert kube.labels(SECOND)["nvidia.com/gpu.product"] == "by-hand"
    kube.kubectl("label", "node", SECOND, "nvidia.com/gpu.product-")


def test_another_device_plugin_is_refused(kube: Cluster) -> None:
    other = kube.get("daemonset", "gpu-ready-device-plugin", "-n", "kube-system")
    spec = other["spec"]
    spec["selector"]["matchLabels"] = spec["template"]["metadata"]["labels"] = {"name": "nvidia-device-plugin-ds"}
    made = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "spec": spec,
        "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
    }  # fmt: skip
    kube.kubectl("apply", "--filename=-", stdin=json.dumps(made))
    kube.wait(
        "nvidia-device-plugin-daemonset", '"numberReady": 2', "get", "daemonset", "-n", "kube-system", "--output=json"
    )
    run = kube.play("device_plugin")
    assert run.rc != 0
    assert "DaemonSet kube-system/nvidia-device-plugin-daemonset: it is a device plugin of NVIDIA" in run.failures(
        FIRST
    )
    place = ("-n", "kube-system")
    kube.kubectl("delete", "daemonset", "nvidia-device-plugin-daemonset", *place, "--wait=true")
    kube.kubectl("wait", "--for=delete", "pods", "--selector=name=nvidia-device-plugin-ds", *place, "--timeout=120s")


@pytest.mark.long
def test_a_drain_moves_pods_away_and_leaves_those_of_daemonsets(kube: Cluster) -> None:
    kube.kubectl("apply", "--filename=-", stdin=DEPLOYMENT)
    kube.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=120s")
    run = kube.drain("drain")
    assert run.rc == 0, run.failures(SECOND)
    node = kube.get("node", SECOND)
    assert node["spec"]["unschedulable"] and "gpu-ready/drained" in node["metadata"]["annotations"]
    left = kube.get("pods", "-A", f"--field-selector=spec.nodeName={SECOND}")["items"]
    assert [one["metadata"]["generateName"] for one in left] == ["gpu-ready-device-plugin-"]
    assert kube.drain("undrain").rc == 0 and "unschedulable" not in kube.get("node", SECOND)["spec"]
    kube.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=120s")


@pytest.mark.long
def test_a_drain_within_a_disruption_budget_ends_at_its_time_limit(kube: Cluster) -> None:
    kube.kubectl("apply", "--filename=-", stdin=BUDGET)
    kube.wait("train", '"expectedPods": 1', "get", "poddisruptionbudget", "--output=json")
    run = kube.drain("drain", gpu_upgrade_drain_timeout=20)
    assert run.rc != 0 and "default/train-" in run.failures(SECOND)
    assert "held by a disruption budget" in run.failures(SECOND)
    assert kube.drain("undrain").rc == 0
    kube.kubectl("delete", "poddisruptionbudget", "train", "--wait=true")


@pytest.mark.long
def test_a_drain_without_the_rights_says_which_are_missing(kube: Cluster) -> None:
    run = kube.drain("drain", gpu_drain_kubernetes_kubeconfig=str(kube.users["kubernetes"]))
    assert run.rc != 0 and "Forbidden" in run.screen and "permission" in run.failures(SECOND)
    assert kube.drain("undrain").rc == 0
    kube.kubectl("delete", "deployment", "train", "--wait=true")


def test_the_operator_is_refused_beside_the_device_plugin(kube: Cluster) -> None:
    run = kube.play("operator")
    assert run.rc != 0 and "the Operator has its own device plugin" in run.failures(FIRST)


def test_none_removes_exactly_what_was_applied(kube: Cluster) -> None:
    kube.kubectl("label", "node", FIRST, "nvidia.com/mine=kept")
    part = kube.play("none", "--limit", SECOND)
    assert part.rc == 0 and kube.labels(SECOND) == {} and "kube-1" in part.screen and kube.owned() != []
    run = kube.play("none")
    assert run.rc == 0 and kube.owned() == [] and kube.labels(FIRST) == {"nvidia.com/mine": "kept"}
    second = kube.play("none")
    assert second.rc == 0 and second.changed(FIRST) == []


def test_values_of_the_operator_are_written_and_the_dra_driver_needs_a_newer_kubernetes(kube: Cluster) -> None:
    run = kube.play("operator")
    assert run.rc == 0 and "helm upgrade --install gpu-operator" in run.screen
    assert (kube.fleet.directory / "manifests/gpu-operator-values.yml").exists()
    refused = kube.play("operator", gpu_kubernetes_dra=True)
    assert refused.rc != 0 and "needs Kubernetes 1.34.2 or newer (the server is v1.20.2)" in refused.failures(FIRST)


@pytest.mark.long
def test_cdi_gives_pods_their_gpu_without_a_runtime_of_nvidia(kube: Cluster) -> None:
    made = kube.fleet.play("--limit", SECOND, extra={"nvidia_container_runtime_mode": "cdi"})
    assert made.rc == 0, made.screen[-3000:]
    run = kube.play("device_plugin", "--limit", SECOND, gpu_kubernetes_device_list="cdi-annotations")
    assert run.rc == 0, run.screen[-3000:]
    assert "2 GPUs allocatable, 2 test pods see one verified GPU each" in run.screen
    assert kube.play("none", "--limit", SECOND).rc == 0 and kube.owned() == []
