"""Nodes of k3s and RKE2: the host's half. Both are stand-ins (lab/kubernetes); containerd is Debian's."""

import json
import re
from pathlib import Path

import pytest

from tests.grid import CAMPAIGN
from tests.integration.fleet import DRIVER_ALONE, Fleet, hosts_of

pytestmark = pytest.mark.lab

HOSTS = hosts_of("kubernetes_node")
K3S, RKE2 = "kn-k3s", "kn-rke2"
SCRIPTS = Path(__file__).resolve().parents[2] / "lab/kubernetes"
GENERATED = "/var/lib/rancher/{}/agent/etc/containerd/config.toml"
BINARIES = "/var/lib/rancher/{}/bin"
CTR = {K3S: "k3s ctr", RKE2: "/var/lib/rancher/rke2/bin/ctr --address /run/k3s/containerd/containerd.sock"}
STEP = "nvidia_container_runtime.kubernetes"
PERMIT = {"gpu_ready_disrupt": f"{{{{ ['kubernetes_restart'] if inventory_hostname == '{K3S}' else [] }}}}"}
"""For the server of k3s alone: the restart of an agent of RKE2 stops nothing, so it needs no permission."""
STARTED = "systemctl show --property=ExecMainStartTimestampMonotonic --value "
NO_CONTAINERD = "apt-get -qq -y remove containerd >/dev/null\n"
"""That of k3s has the same directory: it is the volume of a lab host on which overlays can be made."""
USED = "grep nvidia " + GENERATED
UNIT = {K3S: "k3s", RKE2: "rke2-agent"}
RANCHER = {host: kind for host, kind in {K3S: "k3s", RKE2: "rke2"}.items() if host in HOSTS}


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("kubernetes_node")
    fleet.up()
    for host, kind in RANCHER.items():
        bare = DRIVER_ALONE + NO_CONTAINERD if host == K3S else ""
        make_node(fleet, host, f"{bare}kind={kind}\n" + (SCRIPTS / "rancher.sh").read_text())
    if fleet.ssh(K3S, USED.format("k3s"), check=False):  # an interrupted run of these tests left it
        assert fleet.play(playbook="playbooks/uninstall.yml").rc == 0
    for host in RANCHER:
        fleet.ssh(host, f"systemctl restart {UNIT[host]}")
    return fleet


def make_node(fleet: Fleet, host: str, script: str) -> None:
    fleet.ssh(host, f"systemctl is-enabled --quiet {UNIT[host]} || {{\nset -eu\n{script}}}", limit=900)


@pytest.fixture(scope="module")
def ready(fleet: Fleet) -> Fleet:
    """The nodes provisioned with the defaults, which find the kubelet's engine."""
    before = {host: fleet.ssh(host, STARTED + UNIT[host]) for host in HOSTS}
    checked = fleet.play("--check", extra=PERMIT) if CAMPAIGN else None
    run = fleet.play(extra=PERMIT, holds=["nvidia_container_runtime.install", "nvidia_container_runtime.kubernetes"])
    assert run.rc == 0, run.screen[-3000:]
    for host in HOSTS:
        assert checked is None or checked.steps(host) == run.steps(host)
        assert STEP in run.changed_steps(host)
        assert not [step for step in run.steps(host) if step.startswith("docker_engine.")]
        assert fleet.ssh(host, STARTED + UNIT[host]) != before[host]
    return fleet


def test_a_server_of_k3s_is_not_restarted_without_a_permission(fleet: Fleet) -> None:
    refused = fleet.play("--limit", K3S)
    assert refused.rc != 0 and refused.changed(K3S) == []
    message = refused.failures(K3S)
    assert "which stops the API server of this k3s server" in message
    assert "gpu_ready_disrupt: [kubernetes_restart]" in message


@pytest.mark.parametrize("host", RANCHER)
def test_the_runtime_is_there_after_one_restart_and_containers_get_gpus(ready: Fleet, host: str) -> None:
    kind, ctr = RANCHER[host], CTR[host]
    generated = GENERATED.format(kind)
    assert "/usr/bin/nvidia-container-runtime" in ready.ssh(host, f"cat {generated}")
    dump = ready.ssh(host, f"{BINARIES.format(kind)}/containerd -c {generated} config dump")
    assert re.search(r"runtimes\.nvidia\.options\][^\[]*BinaryName = .*nvidia-container-runtime", dump)
    record = json.loads(ready.ssh(host, "cat /var/lib/gpu-ready/verified.json"))
    assert record["checks"][f"gpus_in_{kind}_container"] == "ok"
    (image,) = ready.ssh(host, f"{ctr} --namespace gpu-ready images list --quiet").split()
    command = "nvidia-smi --query-gpu=uuid --format=csv,noheader"
    gpus = re.findall("GPU-[0-9a-f-]{36}", ready.ssh(host, command))
    runtime = f"--runc-binary /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES={gpus[1]}"
    seen = ready.ssh(host, f"{ctr} --namespace gpu-ready run --rm {runtime} {image} one {command}")
    assert re.findall("GPU-[0-9a-f-]{36}", seen) == gpus[1:2]


def test_a_second_run_changes_nothing_with_one_call(ready: Fleet) -> None:
    second = ready.play()
    assert second.rc == 0, second.screen[-2000:]
    for host in HOSTS:
        assert second.steps(host) == [] and second.changed(host) == [] and second.calls[host] == 1


def test_uninstall_leaves_the_engines_as_they_were(ready: Fleet) -> None:
    run = ready.play(playbook="playbooks/uninstall.yml")
    assert run.rc == 0, run.screen[-3000:]
    for host in HOSTS:
        assert ready.ssh(host, f"systemctl is-active {UNIT[host]}").strip() == "active"
    for host in RANCHER:
        assert ready.ssh(host, "dpkg -l | grep '^ii *nvidia-container-toolkit' || true") == ""
