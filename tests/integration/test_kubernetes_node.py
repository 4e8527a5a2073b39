"""Nodes of k3s and of CRI-O: the host's half. k3s, CRI-O and Kubernetes are stand-ins (lab/kubernetes), containerd is Debian's."""

import json
import re
from pathlib import Path

import pytest

from tests.grid import CAMPAIGN
from tests.integration.fleet import DRIVER_ALONE, Fleet, hosts_of

pytestmark = pytest.mark.lab

HOSTS = hosts_of("kubernetes_node")
K3S, CRIO = "kn-k3s", "kn-crio"
SCRIPTS = Path(__file__).resolve().parents[2] / "lab/kubernetes"
GENERATED = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
DROP_IN = "/etc/crio/crio.conf.d/99-gpu-ready.conf"
UNREAD = "/etc/crio/conf.d/99-nvidia.toml"
STEPS = {
    K3S: "nvidia_container_runtime.kubernetes",
    CRIO: "nvidia_container_runtime.crio",
}
PERMIT = {"gpu_ready_disrupt": ["kubernetes_restart"]}
RUNTIMES = "journalctl --sync; journalctl -u crio --output cat | grep runtimes: | tail -1"
STARTED = "systemctl show --property=ExecMainStartTimestampMonotonic --value "
NO_CONTAINERD = "apt-get -qq -y remove containerd >/dev/null\n"
"""That of k3s has the same directory: it is the volume of a lab host on which overlays can be made."""
USED = f"grep nvidia {GENERATED}"
UNIT = {K3S: "k3s", CRIO: "crio"}


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("kubernetes_node")
    fleet.up()
    for host in HOSTS:
        script = (DRIVER_ALONE + NO_CONTAINERD if host == K3S else "") + (SCRIPTS / f"{UNIT[host]}.sh").read_text()
        fleet.ssh(host, f"test -e /etc/systemd/system/{UNIT[host]}.service || {{\nset -eu\n{script}}}", limit=900)
    if fleet.ssh(K3S, USED, check=False):  # an interrupted run of these tests left it
        assert fleet.play(playbook="playbooks/uninstall.yml").rc == 0
    fleet.ssh(K3S, "systemctl restart k3s")
    return fleet


@pytest.fixture(scope="module")
def ready(fleet: Fleet) -> Fleet:
    """The nodes provisioned with the defaults, which find the kubelet's engine."""
    before = {host: fleet.ssh(host, STARTED + UNIT[host]) for host in HOSTS}
    checked = fleet.play("--check", extra=PERMIT) if CAMPAIGN else None
    run = fleet.play(extra=PERMIT)
    assert run.rc == 0, run.screen[-3000:]
    for host in HOSTS:
        assert checked is None or checked.steps(host) == run.steps(host)
        assert STEPS[host] in run.changed_steps(host)
        assert not [step for step in run.steps(host) if step.startswith("docker_engine.")]
        assert fleet.ssh(host, STARTED + UNIT[host]) != before[host]
    return fleet


def test_a_server_of_k3s_is_not_restarted_without_a_permission(fleet: Fleet) -> None:
    refused = fleet.play("--limit", K3S)
    assert refused.rc != 0 and refused.changed(K3S) == []
    message = refused.failures(K3S)
    assert "which stops the API server of this k3s server" in message
    assert "gpu_ready_disrupt: [kubernetes_restart]" in message


def test_k3s_has_the_runtime_after_one_restart_and_its_containers_get_gpus(ready: Fleet) -> None:
    assert "/usr/bin/nvidia-container-runtime" in ready.ssh(K3S, f"cat {GENERATED}")
    dump = ready.ssh(K3S, f"/var/lib/rancher/k3s/data/current/bin/containerd -c {GENERATED} config dump")
    assert re.search(r"runtimes\.nvidia\.options\][^\[]*BinaryName = .*nvidia-container-runtime", dump)
    record = json.loads(ready.ssh(K3S, "cat /var/lib/gpu-ready/verified.json"))
    assert record["checks"]["gpus_in_k3s_container"] == "ok"
    (image,) = ready.ssh(K3S, "k3s ctr --namespace gpu-ready images list --quiet").split()
    command = "nvidia-smi --query-gpu=uuid --format=csv,noheader"
    gpus = re.findall("GPU-[0-9a-f-]{36}", ready.ssh(K3S, command))
    runtime = f"--runc-binary /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES={gpus[1]}"
    seen = ready.ssh(K3S, f"k3s ctr --namespace gpu-ready run --rm {runtime} {image} one {command}")
    assert re.findall("GPU-[0-9a-f-]{36}", seen) == gpus[1:2]


@pytest.mark.skipif(CRIO not in HOSTS, reason="a host of the campaign")
def test_crio_has_a_drop_in_file_where_it_reads_and_runs(ready: Fleet) -> None:
    assert 'monitor_path = "/usr/libexec/crio/conmon"' in ready.ssh(CRIO, f"cat {DROP_IN}")
    assert ready.ssh(CRIO, RUNTIMES).strip() == "runtimes: crun nvidia default: crun"
    record = json.loads(ready.ssh(CRIO, "cat /var/lib/gpu-ready/verified.json"))
    assert "gpus_in_crio_container" not in record["checks"] or record["checks"]["gpus_in_crio_container"] != "ok"


def test_a_second_run_changes_nothing_with_one_call(ready: Fleet) -> None:
    second = ready.play()
    assert second.rc == 0, second.screen[-2000:]
    for host in HOSTS:
        assert second.steps(host) == [] and second.changed(host) == [] and second.calls[host] == 1


@pytest.mark.skipif(CRIO not in HOSTS, reason="a host of the campaign")
def test_a_file_that_nobody_reads_is_reported(ready: Fleet) -> None:
    ready.ssh(CRIO, f"mkdir -p {UNREAD.rpartition('/')[0]} && cp {DROP_IN} {UNREAD}")
    run = ready.play("--limit", CRIO, "--check")
    assert f"{UNREAD} names NVIDIA's runtime, but no engine of this host reads it" in run.screen
    audit = ready.play("--limit", CRIO, playbook="playbooks/audit.yml")
    assert UNREAD in audit.screen
    ready.ssh(CRIO, f"rm {UNREAD}")


def test_uninstall_leaves_the_engines_as_they_were(ready: Fleet) -> None:
    run = ready.play(playbook="playbooks/uninstall.yml")
    assert run.rc == 0, run.screen[-3000:]
    for host in HOSTS:
        assert ready.ssh(host, f"systemctl is-active {UNIT[host]}").strip() == "active"
    if CRIO in HOSTS:
        assert ready.ssh(CRIO, f"ls {DROP_IN} 2>/dev/null || true") == ""
        assert ready.ssh(CRIO, RUNTIMES).strip() == "runtimes: crun default: crun"
