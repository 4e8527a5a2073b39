"""Upgrades and a rollback of nodes of a real cluster that are in service."""

from collections.abc import Iterator

import pytest
from gpu_ready_lab import hosts, work

from tests.integration import control_plane
from tests.integration.control_plane import FIRST, NODES, SECOND, Cluster
from tests.integration.kubernetes_objects import DEPLOYMENT, EXPORTER

pytestmark = [pytest.mark.lab, pytest.mark.long]

OLD, NEW = "580.178.04", "595.91.07"
DEFECT = "/etc/dpkg/dpkg.cfg.d/defect"
RESTARTS = "{.items[*].status.containerStatuses[0].restartCount}"


@pytest.fixture(scope="module")
def kube(lab_machine: None) -> Cluster:
    return control_plane.start()


@pytest.fixture
def train(kube: Cluster) -> Iterator[Cluster]:
    """A deployment with a GPU of the second node, which the device plugin offers."""
    kube.set_up("device_plugin")
    kube.kubectl("apply", "--filename=-", stdin=DEPLOYMENT)
    kube.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=120s")
    yield kube
    kube.clean()


@pytest.fixture
def exporter(train: Cluster) -> Cluster:
    """A pod of a DaemonSet that holds a GPU of each node, beside the deployment.

    The lab's kernel counts open device nodes only when a module changes. So no plan sees these pods, as if they began after it.
    """
    for host in hosts.existing():
        if host.fleet == train.fleet.name:
            work.copy_program(host.container, host.host)
    train.kubectl("apply", "--filename=-", stdin=EXPORTER)
    train.kubectl("rollout", "status", "daemonset/exporter", "--timeout=120s")
    return train


def loaded(kube: Cluster) -> list[str]:
    """Version of the module that each node runs."""
    return [kube.fleet.ssh(node, "cat /sys/module/nvidia/version").strip() for node in NODES]


def boots(kube: Cluster) -> list[str]:
    """When the first process of each node began."""
    return [kube.fleet.ssh(node, "cat /proc/1/stat").split()[21] for node in NODES]


def test_a_failed_upgrade_leaves_the_canary_cordoned_until_it_is_undrained_and_the_other_node_alone(
    train: Cluster,
) -> None:
    train.kubectl("delete", "events", "--all", "--namespace=default")
    # The new driver arrives on this node without its CUDA library.
    train.fleet.ssh(SECOND, f"echo 'path-exclude=/usr/lib/x86_64-linux-gnu/libcuda.so.{NEW}' > {DEFECT}")
    try:
        run = train.service(
            "playbooks/upgrade_drivers.yml", nvidia_driver_branch=595, gpu_upgrade_canaries=[SECOND], gpu_upgrade_soak=2
        )
    finally:
        train.fleet.ssh(SECOND, f"rm {DEFECT}")
    assert run.rc != 0 and "rolled back" in run.row(SECOND) and "not reached" in run.row(FIRST), run.screen[-3000:]
    assert loaded(train) == [OLD, OLD] and train.cordoned() == [SECOND]
    # The kubelet of a node that is cordoned reports it (pkg/kubelet/kubelet_node_status.go).
    seen = train.get("events", "--field-selector=reason=NodeNotSchedulable")["items"]
    assert FIRST not in [one["involvedObject"]["name"] for one in seen]
    back = train.service("playbooks/undrain.yml", "--limit", SECOND)
    assert back.rc == 0 and train.cordoned() == [], back.screen[-3000:]
    train.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=120s")


def test_a_driver_change_restarts_pods_of_daemonsets_that_hold_gpus_instead_of_the_host(exporter: Cluster) -> None:
    before = boots(exporter)
    run = exporter.service("playbooks/upgrade_drivers.yml", nvidia_driver_branch=595)
    assert run.rc == 0, run.screen[-3000:]
    assert loaded(exporter) == [NEW, NEW] and exporter.cordoned() == []
    assert all("live" in run.row(node) for node in NODES)
    exporter.wait("--selector=app=exporter", "1 1", "get", "pods", f"--output=jsonpath={RESTARTS}")
    exporter.kubectl("rollout", "status", "daemonset/exporter", "--timeout=120s")
    exporter.await_gpus()
    exporter.kubectl("wait", "--for=condition=Available", "deployment/train", "--timeout=120s")
    back = exporter.service("playbooks/rollback_drivers.yml")
    assert back.rc == 0, back.screen[-3000:]
    assert loaded(exporter) == [OLD, OLD] and exporter.cordoned() == []
    assert boots(exporter) == before
