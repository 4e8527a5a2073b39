"""A real control plane and kubelets on lab hosts: what playbooks/kubernetes.yml applies, verifies and removes, and drains.

`make test` runs the control plane with the device plugin and its test pods, one drain, one refusal, the removal, the Operator's values and
what the drain hook decides; `make campaign` also each further reason to refuse, sharing, CDI, and the kinds of pods.
"""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import cluster

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.cluster import taints
from plugins.module_utils.gpu_ready.cluster.kubectl import Kubectl, KubectlAccess
from plugins.module_utils.gpu_ready.drain.journal import DrainError
from tests.integration import control_plane
from tests.integration.control_plane import FIRST, NODES, REASON, SECOND, Cluster, Drained
from tests.integration.kubernetes_objects import BUDGET, DEPLOYMENT

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def kube(lab_machine: None) -> Cluster:
    return control_plane.start()


@pytest.fixture(autouse=True)
def clean(kube: Cluster) -> Iterator[None]:
    """Nothing of this test is left for the next one."""
    yield
    kube.clean()


@pytest.fixture
def without(kube: Cluster) -> Cluster:
    """No object or label of gpu-ready."""
    kube.set_up("none")
    return kube


@pytest.fixture
def plugin(kube: Cluster) -> Cluster:
    """The device plugin, which offers the four GPUs of each node."""
    kube.set_up("device_plugin")
    return kube


def uuids(kube: Cluster, node: str) -> set[str]:
    record = json.loads(kube.fleet.ssh(node, "cat /var/lib/gpu-ready/verified.json"))
    return set(record["gpus"])


def test_check_mode_shows_the_objects_and_applies_none(without: Cluster) -> None:
    run = without.play("device_plugin", "--check", "--diff")
    assert run.rc == 0 and "DaemonSet kube-system/gpu-ready-device-plugin" in run.screen
    assert '"nvidia.com/gpu.product": "Tesla-T4"' in run.screen
    assert without.owned() == [] and without.labels(FIRST) == {}


def test_the_device_plugin_runs_and_test_pods_see_one_verified_gpu_each(without: Cluster) -> None:
    run = without.play("device_plugin")
    assert run.rc == 0, run.screen[-3000:]
    for node in NODES:
        assert without.allocatable(node) == 4
        assert "4 GPUs allocatable, 2 test pods see one verified GPU each" in run.screen
        assert len({gpu for gpu in uuids(without, node) if gpu in run.screen}) == 2
    assert without.labels(FIRST)["nvidia.com/gpu.product"] == "Tesla-T4"
    assert sorted(without.owned()) == [
        "ConfigMap gpu-ready-device-plugin", "DaemonSet gpu-ready-device-plugin", "RuntimeClass nvidia",
    ]  # fmt: skip


def test_a_second_run_changes_nothing(plugin: Cluster) -> None:
    before = {node: plugin.get("node", node)["metadata"].get("labels") for node in NODES}
    generation = plugin.get("daemonset", "gpu-ready-device-plugin", "-n", "kube-system")["metadata"]["generation"]
    run = plugin.play("device_plugin")
    assert run.rc == 0 and run.changed(FIRST) == run.changed(SECOND) == []
    assert before == {node: plugin.get("node", node)["metadata"].get("labels") for node in NODES}
    assert (
        generation == plugin.get("daemonset", "gpu-ready-device-plugin", "-n", "kube-system")["metadata"]["generation"]
    )


@pytest.fixture
def train(plugin: Cluster) -> Cluster:
    """A deployment with a GPU of the second node."""
    plugin.kubectl("apply", "--filename=-", stdin=DEPLOYMENT)
    plugin.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=60s")
    return plugin


def test_a_drain_moves_pods_away_and_leaves_those_of_daemonsets(train: Cluster) -> None:
    run = train.drain("drain")
    assert run.rc == 0, run.failures(SECOND)
    node = train.get("node", SECOND)
    assert node["spec"]["unschedulable"] and "gpu-ready/drained" in node["metadata"]["annotations"]
    left = train.get("pods", "-A", f"--field-selector=spec.nodeName={SECOND}")["items"]
    assert [one["metadata"]["generateName"] for one in left] == ["gpu-ready-device-plugin-"]
    assert train.drain("undrain").rc == 0 and "unschedulable" not in train.get("node", SECOND)["spec"]
    train.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=60s")


@pytest.mark.long
def test_pods_choose_a_model_and_share_no_gpu(plugin: Cluster) -> None:
    names = ("one", "two", "three", "four")
    for name in (*names, "five"):
        plugin.pod(name, "Tesla-T4")
    seen = [plugin.wait(name, "UUID: GPU-", "logs") for name in names]
    pending = plugin.wait("five", "Insufficient nvidia.com/gpu", "get", "pod", "--output=yaml")
    assert "phase: Pending" in pending
    assert {line.split("UUID: ")[1].rstrip(")\n") for line in seen} == uuids(plugin, FIRST)
    busy = plugin.play("device_plugin")
    assert busy.rc == 0 and "other pods use all 4 GPUs, so no test pod was started" in busy.screen
    plugin.kubectl("delete", "pod", "one", "--wait=true")
    plugin.wait("five", "UUID: GPU-", "logs")
    plugin.kubectl("delete", "pods", "--all", "--wait=true")


@pytest.mark.long
def test_a_plugin_that_does_not_start_fails_each_node_with_the_reason(plugin: Cluster) -> None:
    """A rolling update replaces one pod after the other: behind the first that does not start, the earlier plugin still runs."""
    image = {"gpu_kubernetes_plugin_image": "docker.io/gpu-ready-lab/none:1"}
    assert plugin.play("device_plugin", gpu_kubernetes_verify=False, **image).rc == 0
    selector = "--selector=app.kubernetes.io/name=gpu-ready-device-plugin"
    plugin.wait(selector, "ImagePull", "get", "pods", "-n", "kube-system", "--output=yaml")
    run = plugin.play("device_plugin", gpu_kubernetes_verify_timeout=15, **image)
    assert run.rc != 0
    pods = plugin.get("pods", "-n", "kube-system")["items"]
    (stuck,) = [one["spec"]["nodeName"] for one in pods if one["status"]["phase"] == "Pending"]
    (waits,) = set(NODES) - {stuck}
    assert f"{stuck}: not within 15 s: the device plugin does not run: the pod kube-system/" in run.failures(stuck)
    assert f"{waits}: not within 15 s: its device plugin is still the one from before" in run.failures(waits)
    for node in NODES:
        assert "none:1" in run.failures(node) and "Correct gpu_kubernetes_plugin_image" in run.failures(node)
    assert [name for name in plugin.owned() if name.startswith("Pod ")] == []


@pytest.mark.long
def test_time_slicing_offers_each_gpu_to_two_pods(plugin: Cluster) -> None:
    run = plugin.play("device_plugin", gpu_kubernetes_sharing="time-slicing")
    assert run.rc == 0, run.screen[-3000:]
    assert "8 GPUs allocatable" in run.screen and plugin.allocatable(FIRST) == 8
    assert plugin.labels(FIRST)["nvidia.com/gpu.product"] == "Tesla-T4-SHARED"
    second = plugin.play("device_plugin", gpu_kubernetes_sharing="time-slicing")
    assert second.rc == 0 and second.changed(FIRST) == second.changed(SECOND) == []
    plugin.pod("greedy", "Tesla-T4-SHARED", gpus=2)
    plugin.wait("greedy", "UnexpectedAdmissionError", "get", "pod", "--output=yaml")
    plugin.kubectl("delete", "pod", "greedy", "--wait=true")


@pytest.mark.long
def test_pods_that_share_a_gpu_are_distinguished_in_the_metrics(plugin: Cluster) -> None:
    """NVML's list of processes is the lab's; pods, their cgroups and the directories of their logs are the kubelet's."""
    fleet, mib = plugin.fleet, 1 << 20
    assert plugin.play("device_plugin", gpu_kubernetes_sharing="time-slicing").rc == 0
    made = fleet.play("--limit", FIRST, extra={"gpu_monitoring": ["textfile"]})
    assert made.rc == 0, made.screen[-3000:]
    try:
        uses = {"train": 4096, "infer": 512}
        rows = []
        for name, used in uses.items():
            plugin.pod(name, "Tesla-T4-SHARED")
            plugin.wait(name, "UUID: GPU-", "logs")
            uid = plugin.get("pod", name)["metadata"]["uid"]
            found = fleet.ssh(
                FIRST, f"pgrep -x sleep | while read p; do ! grep -q {uid} /proc/$p/cgroup || echo $p; done"
            )
            rows.append(f"{int(found)}:{used}:20")
        fleet.ssh(FIRST, f"printf '[gpu 0]\\nprocesses = {' '.join(rows)}\\n' >/etc/gpu-ready-lab/nvml-faults.conf")
        program = "python3 -m gpu_ready_node.monitor.service monitoring.json --print"
        shown = fleet.ssh(FIRST, f"cd /usr/local/lib/gpu-ready && {program}")
        lines = re.findall(r'^gpu_ready_container_memory_used_bytes\{(.*gpu="0".*)\} (\d+)$', shown, re.MULTILINE)
        pods = {re.sub(r'.*pod="([^"]*)".*', r"\1", labels): int(value) // mib for labels, value in lines}
        assert pods == uses and all('namespace="default"' in labels for labels, _ in lines), shown
    finally:
        fleet.ssh(FIRST, "rm -f /etc/gpu-ready-lab/nvml-faults.conf")
        assert fleet.play("--limit", FIRST).rc == 0


@pytest.mark.long
def test_the_taint_keeps_other_pods_away_and_leaves_the_taints_of_others(plugin: Cluster) -> None:
    plugin.kubectl("taint", "node", FIRST, "example.com/team=kept:PreferNoSchedule")
    plugin.kubectl("taint", "node", SECOND, "nvidia.com/gpu=team:NoSchedule")
    kept, foreign = (plugin.taints(node) for node in NODES)
    try:
        shown = plugin.play("device_plugin", "--check", "--diff", gpu_kubernetes_taint="NoSchedule")
        assert shown.rc == 0 and "Taints of Node kube-1" in shown.screen and plugin.taints(FIRST) == kept
        for changed in (True, False):
            run = plugin.play("device_plugin", gpu_kubernetes_taint="NoSchedule")
            assert run.rc == 0 and bool(run.changed(FIRST)) == changed, run.screen[-3000:]
            assert "2 test pods see one verified GPU each" in run.screen
            assert plugin.taints(FIRST) == [*kept, "nvidia.com/gpu=present:NoSchedule"]
            assert plugin.taints(SECOND) == foreign
        plugin.pod("other", "Tesla-T4")
        plugin.wait("other", "had taint {nvidia.com/gpu: present}", "get", "pod", "--output=yaml")
        assert plugin.play("none").rc == 0
        assert [plugin.taints(node) for node in NODES] == [kept, foreign]
    finally:
        plugin.kubectl("taint", "node", FIRST, "example.com/team-")
        plugin.kubectl("taint", "node", SECOND, "nvidia.com/gpu-")


def test_a_taint_is_written_only_for_the_version_of_the_node_that_was_read(kube: Cluster) -> None:
    """409 for another resourceVersion (kubernetes.io/docs/reference/using-api/api-concepts): it is read again."""
    access = Kubectl(Host(), KubectlAccess(str(cluster.kubectl()), str(kube.users["kubernetes"])))
    (read,) = access.get("node", SECOND)
    kube.kubectl("taint", "node", SECOND, "example.com/team=kept:PreferNoSchedule")
    try:
        after = taints.Taints.read(read).change("PreferNoSchedule")
        assert not taints.write(access, read, after)
        assert taints.apply_to(access, read, "PreferNoSchedule", check=False)
        both = ["example.com/team=kept:PreferNoSchedule", "nvidia.com/gpu=present:PreferNoSchedule"]
        assert kube.taints(SECOND) == both
        assert taints.apply(access, {SECOND: "none"}, check=False) and kube.taints(SECOND) == both[:1]
        assert taints.ANNOTATION not in kube.get("node", SECOND)["metadata"]["annotations"]
    finally:
        kube.kubectl("taint", "node", SECOND, "example.com/team-")


@pytest.mark.long
def test_labels_of_somebody_else_are_refused_and_kept(plugin: Cluster) -> None:
    plugin.kubectl("label", "node", SECOND, "nvidia.com/gpu.product=by-hand", "--overwrite")
    run = plugin.play("device_plugin")
    assert run.rc != 0 and "nvidia.com/gpu.product" in run.failures(FIRST) and "conflict" in run.failures(FIRST)
    assert plugin.labels(SECOND)["nvidia.com/gpu.product"] == "by-hand"
    plugin.kubectl("label", "node", SECOND, "nvidia.com/gpu.product-")
    plugin.applied = None


@pytest.mark.long
def test_another_device_plugin_is_refused(plugin: Cluster) -> None:
    other = plugin.get("daemonset", "gpu-ready-device-plugin", "-n", "kube-system")
    spec = other["spec"]
    spec["selector"]["matchLabels"] = spec["template"]["metadata"]["labels"] = {"name": "nvidia-device-plugin-ds"}
    # The image alone is what is recognised. If it ran, the kubelet would take it for the resource's new device plugin.
    spec["template"]["spec"]["containers"][0]["command"] = ["sleep", "3600"]
    spec["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    made = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "spec": spec,
        "metadata": {"name": "nvidia-device-plugin-daemonset", "namespace": "kube-system"},
    }  # fmt: skip
    plugin.kubectl("apply", "--filename=-", stdin=json.dumps(made))
    plugin.wait(
        "nvidia-device-plugin-daemonset", '"numberReady": 2', "get", "daemonset", "-n", "kube-system", "--output=json"
    )
    run = plugin.play("device_plugin")
    assert run.rc != 0
    assert "DaemonSet kube-system/nvidia-device-plugin-daemonset: it is a device plugin of NVIDIA" in run.failures(
        FIRST
    )
    place = ("-n", "kube-system")
    plugin.kubectl("delete", "daemonset", "nvidia-device-plugin-daemonset", *place, "--wait=true")
    plugin.wait_until_deleted("pods", "--selector=name=nvidia-device-plugin-ds", *place)


def test_the_operator_is_refused_beside_the_device_plugin(plugin: Cluster) -> None:
    run = plugin.play("operator")
    assert run.rc != 0 and "the Operator has its own device plugin" in run.failures(FIRST)


@pytest.mark.long
def test_none_with_a_limit_removes_the_labels_of_those_nodes_and_keeps_the_objects(plugin: Cluster) -> None:
    run = plugin.play("none", "--limit", SECOND)
    assert run.rc == 0 and plugin.labels(SECOND) == {} and "kube-1" in run.screen
    assert plugin.owned() != [] and plugin.labels(FIRST) != {}


def test_none_removes_exactly_what_was_applied(plugin: Cluster) -> None:
    plugin.kubectl("label", "node", FIRST, "nvidia.com/mine=kept")
    run = plugin.play("none")
    assert run.rc == 0 and plugin.owned() == [] and plugin.labels(FIRST) == {"nvidia.com/mine": "kept"}
    second = plugin.play("none")
    assert second.rc == 0 and second.changed(FIRST) == []


def test_values_of_the_operator_are_written(without: Cluster) -> None:
    run = without.play("operator")
    assert run.rc == 0 and "helm upgrade --install gpu-operator" in run.screen
    assert (without.fleet.directory / "manifests/gpu-operator-values.yml").exists()


@pytest.mark.long
def test_the_dra_driver_needs_a_newer_kubernetes(without: Cluster) -> None:
    refused = without.play("operator", gpu_kubernetes_dra=True)
    assert refused.rc != 0 and "needs Kubernetes 1.34.2 or newer (the server is v1.20.2)" in refused.failures(FIRST)


@pytest.fixture
def cdi(without: Cluster) -> Iterator[Cluster]:
    """The second node's containerd without a runtime of NVIDIA's."""
    made = without.fleet.play("--limit", SECOND, extra={"nvidia_container_runtime_mode": "cdi"})
    assert made.rc == 0, made.screen[-3000:]
    yield without
    assert without.fleet.play("--limit", SECOND).rc == 0


@pytest.mark.long
def test_cdi_gives_pods_their_gpu_without_a_runtime_of_nvidia(cdi: Cluster) -> None:
    for changed in (True, False):
        run = cdi.play("device_plugin", "--limit", SECOND, gpu_kubernetes_device_list="cdi-annotations")
        assert run.rc == 0, run.screen[-3000:]
        assert "4 GPUs allocatable, 2 test pods see one verified GPU each" in run.screen
        assert bool(run.changed(SECOND)) == changed
    assert cdi.play("none", "--limit", SECOND).rc == 0 and cdi.owned() == []


@pytest.mark.long
def test_a_drain_within_a_disruption_budget_ends_at_its_time_limit(train: Cluster) -> None:
    train.kubectl("apply", "--filename=-", stdin=BUDGET)
    train.wait("train", '"expectedPods": 1', "get", "poddisruptionbudget", "--output=json")
    run = train.drain("drain", gpu_upgrade_drain_timeout=20)
    assert run.rc != 0 and "default/train-" in run.failures(SECOND)
    assert "held by a disruption budget" in run.failures(SECOND)
    assert train.drain("undrain").rc == 0 and "unschedulable" not in train.get("node", SECOND)["spec"]


@pytest.mark.long
def test_a_drain_awaits_an_api_server_that_is_away(train: Cluster) -> None:
    train.kubectl("apply", "--filename=-", stdin=BUDGET)
    train.wait("train", '"expectedPods": 1', "get", "poddisruptionbudget", "--output=json")
    program, failures = train.fleet.directory / "kubectl", train.fleet.directory / "kubectl.failures"
    program.write_text(f'#!/bin/sh\n{cluster.kubectl()} "$@" || {{ status=$?; echo . >>{failures}; exit $status; }}\n')
    program.chmod(0o755)
    with ThreadPoolExecutor() as pool:
        drain = pool.submit(
            train.drain, "drain", gpu_upgrade_drain_timeout=900, gpu_drain_kubernetes_kubectl=str(program)
        )
        train.wait(SECOND, '"unschedulable": true', "get", "node", "--output=json", limit=300)
        train.fleet.ssh(FIRST, "systemctl stop kube-apiserver")
        failures.write_text("")
        # An eviction and a question fail every 5 s (POLL), and the screen shows what is awaited every 15 s (SHORTEST).
        end = time.monotonic() + 300
        while failures.read_text().count(".") < 12 and time.monotonic() < end:
            time.sleep(1)
        train.fleet.ssh(FIRST, "systemctl start kube-apiserver")
        train.wait(SECOND, '"kind": "Node"', "get", "node", "--output=json", "--request-timeout=10s", limit=300)
        train.kubectl("delete", "poddisruptionbudget", "train")
        run = drain.result()
    assert run.rc == 0, run.failures(SECOND)
    shown = " ".join(run.screen.split())
    assert "s more for an answer of the API server about the node kube-2 (The connection to the server" in shown
    assert train.drain("undrain").rc == 0 and "unschedulable" not in train.get("node", SECOND)["spec"]


@pytest.mark.long
def test_a_drain_without_the_rights_says_which_are_missing(train: Cluster) -> None:
    """With those of docs/kubernetes.md, which do not allow evictions."""
    other = {"gpu_drain_kubernetes_kubeconfig": str(train.users["kubernetes"])}
    run = train.drain("drain", **other)
    assert run.rc != 0 and 'cannot create resource "pods/eviction"' in run.failures(SECOND)
    assert "Give that user the permission (docs/drain.md" in run.failures(SECOND)
    assert train.drain("undrain", **other).rc == 0 and "unschedulable" not in train.get("node", SECOND)["spec"]


@pytest.fixture
def drained(kube: Cluster) -> Drained:
    if not kube.owned():  # a pod that still ends after its DaemonSet was removed is refused
        plugin = "--selector=app.kubernetes.io/name=gpu-ready-device-plugin"
        kube.kubectl("delete", "pods", "--namespace=kube-system", plugin, "--force", "--grace-period=0")
    return Drained(kube)


@pytest.mark.long
def test_a_pod_without_a_controller_is_deleted_only_by_force(drained: Drained) -> None:
    """unreplicatedFilter in k8s.io/kubectl/pkg/drain/filters.go: nothing would start it again."""
    drained.pod("bare")
    with pytest.raises(DrainError, match=r"default/bare\). Remove those pods, or allow it with \w+_force: true"):
        drained.hook().pending_work()
    assert drained.pods() == ["bare"]
    drained.evict(force=True)
    assert drained.pods() == []


@pytest.mark.long
def test_a_pod_without_a_controller_that_already_ends_is_awaited(drained: Drained) -> None:
    drained.pod("ending", terminationGracePeriodSeconds=600)
    drained.kube.kubectl("delete", "pod", "ending", "--wait=false")
    assert drained.hook().pending_work() == f"1 pod on the Kubernetes node {SECOND}: default/ending"
    drained.kube.kubectl("delete", "pod", "ending", "--grace-period=0", "--force")
    drained.evict()


@pytest.mark.long
def test_data_of_an_emptydir_is_deleted_only_if_allowed(drained: Drained) -> None:
    """localStorageFilter in k8s.io/kubectl/pkg/drain/filters.go."""
    drained.pod("scratch", volumes=[{"name": "data", "emptyDir": {}}])
    with pytest.raises(DrainError, match=r"default/scratch\). Allow it with \w+_delete_emptydir_data: true"):
        drained.hook(force=True, delete_emptydir_data=False).pending_work()
    assert drained.pods() == ["scratch"]
    drained.evict(force=True)
    assert drained.pods() == []


@pytest.mark.long
def test_a_pod_of_the_kubelets_own_files_is_neither_deleted_nor_awaited(drained: Drained) -> None:
    """The API server has only its mirror (kubernetes.io/docs/tasks/configure-pod-container/static-pod)."""
    image = {"name": "c", "image": "docker.io/gpu-ready-lab/verify:1", "command": ["sleep", "3600"]}
    static = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static", "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [image]},
    }  # fmt: skip
    path = "/etc/kubernetes/manifests/static.yaml"
    drained.kube.fleet.ssh(SECOND, f"echo '{json.dumps(static)}' >{path}")
    try:
        drained.kube.wait(f"static-{SECOND}", "Running", "get", "pod", "--output=jsonpath={.status.phase}")
        drained.evict()
        assert drained.pods() == [f"static-{SECOND}"]
    finally:
        drained.kube.fleet.ssh(SECOND, f"rm {path}")
        drained.kube.wait_until_deleted("pod", f"static-{SECOND}")


def test_a_disruption_budget_holds_a_pod_until_it_allows_the_eviction(drained: Drained) -> None:
    """429 of the API server (kubernetes.io/docs/concepts/scheduling-eviction/api-eviction); kubectl tries again."""
    kube = drained.kube
    kube.kubectl("uncordon", SECOND)
    deployment = yaml_load(DEPLOYMENT)
    pod = deployment["spec"]["template"]["spec"]
    del pod["containers"][0]["resources"], pod["runtimeClassName"]  # needs nothing that gpu-ready applies
    kube.kubectl("apply", "--filename=-", stdin=json.dumps(deployment))
    kube.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=60s")
    kube.kubectl("apply", "--filename=-", stdin=BUDGET)
    kube.wait("train", '"currentHealthy": 1', "get", "poddisruptionbudget", "--output=json")
    kube.kubectl("cordon", SECOND)
    waiting = drained.hook().pending_work()
    assert "1 pod on the Kubernetes node kube-2: default/train-" in waiting and "held by a disruption budget" in waiting
    kube.kubectl("delete", "poddisruptionbudget", "train")
    drained.evict()
    assert drained.pods() == []


def test_missing_rights_are_named_and_what_they_allowed_is_undone(drained: Drained) -> None:
    """The rights of docs/kubernetes.md allow to patch nodes, but not to evict pods. Of several pods kubectl prints a list."""
    for names in (["bare"], ["bare", "other"]):
        drained.pod(names[-1])
        with pytest.raises(DrainError, match=r'cannot create resource "pods/eviction".* Give that user the permission'):
            drained.hook("kubernetes", force=True).pending_work()
        assert drained.pods() == names
    assert drained.hook("kubernetes").undrain(REASON, check=False) == {"changed": True, "kept": ""}
    assert "unschedulable" not in drained.kube.get("node", SECOND)["spec"]


def test_a_cordon_of_somebody_else_stays(drained: Drained) -> None:
    kept = drained.hook().undrain("another reason", check=False)
    assert not kept["changed"] and "cordoned by somebody else in the meantime and stays so" in str(kept["kept"])
    assert drained.hook().undrain(REASON, check=False)["changed"]
    drained.kube.kubectl("cordon", SECOND)
    decision = drained.hook().drain(REASON, recorded=False, check=False)
    assert not decision.owned and "is already cordoned and stays so" in decision.kept
    assert not drained.hook().undrain(REASON, check=False)["changed"]
    assert drained.kube.get("node", SECOND)["spec"]["unschedulable"]


def test_a_node_that_the_cluster_does_not_have_is_named(drained: Drained) -> None:
    with pytest.raises(DrainError, match=r"Kubernetes: it has no node nobody\. Set gpu_drain_kubernetes_node"):
        drained.hook(node="nobody").drain(REASON, recorded=False, check=False)


def test_a_node_that_changed_since_it_was_read_is_not_written(drained: Drained) -> None:
    """409 for another resourceVersion (kubernetes.io/docs/reference/using-api/api-concepts); the hook reads again."""
    read = drained.hook().get()
    drained.kube.kubectl("annotate", "node", SECOND, "example.com/changed=now")
    assert not drained.hook().patch(read, REASON, cordon=False)
    drained.kube.kubectl("annotate", "node", SECOND, "example.com/changed-")
    assert drained.hook().undrain(REASON, check=False)["changed"]
