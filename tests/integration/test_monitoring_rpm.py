"""Monitoring on Enterprise Linux: rpm, version locks, systemd and node_exporter are real, DCGM is the lab's stand-in."""

import pytest

from tests.integration.fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "mon-rpm"
NAMES = ("datacenter-gpu-manager-4-core", "datacenter-gpu-manager-exporter")
EXPORTER = "node-exporter"
REQUESTED = {
    "gpu_monitoring": ["textfile", "dcgm"],
    "gpu_monitoring_node_exporter": "install",
    "gpu_monitoring_interval": 1,
}
STEPS = ["gpu_monitoring.dcgm", "gpu_monitoring.node_exporter", "gpu_monitoring.textfile", "gpu_verify.verify"]
"""With the verification: the host was started from a state, and the record there is of another boot."""
REMOVED = ["gpu_monitoring.remove", "gpu_monitoring.remove_dcgm", "gpu_monitoring.remove_node_exporter"]
INSTALLED = f"rpm -q --queryformat '%{{EPOCHNUM}}:%{{VERSION}} ' {' '.join(NAMES)}"
LOCKED = "cat /etc/dnf/plugins/versionlock.list"
SERVED = "curl -sf --retry 60 --retry-connrefused --retry-delay 1 http://127.0.0.1:{}/metrics"
DCGM, NODE = 9400, 9100
PRINTED = "cd /usr/local/lib/gpu-ready && python3 -m gpu_ready_node.monitor.service monitoring.json --print"
FILES = "find /etc/dcgm-exporter /etc/systemd/system/nvidia-dcgm-exporter.service.d ! -type d 2>/dev/null || :"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    """A node on which a run has set up all of the monitoring and nothing else."""
    fleet = Fleet("monitoring_rpm")
    fleet.up()
    planned = fleet.play("--check", extra=REQUESTED)
    run = fleet.play(extra=REQUESTED)
    assert run.rc == 0, run.screen[-4000:]
    assert sorted(run.steps(HOST)) == STEPS and planned.steps(HOST) == run.steps(HOST)
    return fleet


def test_dcgm_and_its_exporter_are_one_pair_locked_and_serve(fleet: Fleet) -> None:
    assert fleet.ssh(HOST, INSTALLED).split() == ["1:4.5.3", "0:4.8.2"]
    locks = fleet.ssh(HOST, LOCKED)
    assert all(name in locks for name in NAMES), locks
    served = fleet.ssh(HOST, SERVED.format(DCGM), limit=120)
    assert served.count("DCGM_FI_DEV_GPU_TEMP{") == 4 and "DCGM_FI_DEV_FB_USED{" in served


def test_node_exporter_of_epel_serves_the_metrics_of_the_gpus(fleet: Fleet) -> None:
    wait = f"for _ in $(seq 60); do {SERVED.format(NODE)} | grep -q '^gpu_ready_nvml_up 1' && break; sleep 1; done; "
    served = fleet.ssh(HOST, wait + SERVED.format(NODE), limit=180)
    assert served.count("\ngpu_ready_gpu_info{") == 4 and '\ngpu_ready_drift{check="driver"} 0' in served
    # By hand: the unit's ProtectKernelTunables hides the lab's boot id there, see lab/fleets/monitoring.yml.
    assert "\ngpu_ready_verified 1" in fleet.ssh(HOST, PRINTED)
    assert fleet.ssh(HOST, f"rpm -q --queryformat %{{NAME}} {EXPORTER}") == EXPORTER


def test_a_second_run_changes_nothing_with_one_call(fleet: Fleet) -> None:
    second = fleet.play(extra=REQUESTED)
    assert (second.rc, second.calls[HOST], second.recap(HOST)["changed"]) == (0, 1, 0), second.screen[-2000:]


def test_an_exporter_that_does_not_run_is_drift_and_is_started_again(fleet: Fleet) -> None:
    fleet.ssh(HOST, "systemctl stop nvidia-dcgm-exporter")
    audit = fleet.play(playbook="playbooks/audit.yml", extra=REQUESTED)
    assert "DCGM or its exporter does not run" in audit.screen
    run = fleet.play(extra=REQUESTED)
    assert run.rc == 0 and "gpu_monitoring.dcgm" in run.steps(HOST), run.screen[-2000:]
    assert "DCGM_FI_DEV_FB_USED{" in fleet.ssh(HOST, SERVED.format(DCGM), limit=120)


def test_without_the_variable_packages_locks_and_files_are_removed(fleet: Fleet) -> None:
    run = fleet.play()
    assert run.rc == 0 and sorted(run.steps(HOST)) == REMOVED, run.screen[-4000:]
    assert fleet.ssh(HOST, f"{INSTALLED} || :").count("is not installed") == len(NAMES)
    assert fleet.ssh(HOST, f"rpm -q {EXPORTER} || :").strip() == f"package {EXPORTER} is not installed"
    assert "datacenter-gpu-manager" not in fleet.ssh(HOST, LOCKED)
    assert fleet.ssh(HOST, FILES) == ""  # uninstall.yml removes the directories
