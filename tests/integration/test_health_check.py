"""gpu-ready-check with Debian's slurmctld and slurmd: a bad GPU takes its node out of service, and a good one returns.

Faults are those of the lab; the driver that never returns is a library whose function waits.
"""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.fleet import Fleet, lab
from tests.integration.test_drain import INSTALL, SLURM
from tests.unit import real_programs

pytestmark = [pytest.mark.lab, pytest.mark.long]

NODE = "he-node"
DIRECTORY = "/usr/local/lib/gpu-ready-check"
WIRED = f"""
cat >>/etc/slurm/slurm.conf <<C
Prolog={DIRECTORY}/slurm-prolog
HealthCheckProgram={DIRECTORY}/slurm-health
HealthCheckInterval=5
HealthCheckNodeState=ANY
C
systemctl restart slurmctld slurmd
"""
REQUESTED: dict[str, Any] = {"gpu_health_check": ["systemd", "slurm"], "gpu_monitoring": ["textfile"]}
PRINTED = "cd /usr/local/lib/gpu-ready && python3 -m gpu_ready_node.monitor.service monitoring.json --print"
HUNG = "int pause(void);\nint nvmlInit_v2(void) { for (;;) pause(); }\n"
FAULTS: dict[str, tuple[str, str, str]] = {
    "an Xid 48": ("xid 48 0000:1b:00.0", "xid", "reset_gpu"),
    "a reset is required": ("nvml 1 recovery_action=1", "nvml", "reset_gpu"),
    "a remapping failed": ("nvml 1 remapped_uncorrected=9 remap_failed=1", "nvml", "service_required"),
    "an uncorrected error": ("nvml 1 ecc_uncorrected=1", "nvml", "reset_gpu"),
    "a narrow link": ("nvml 0 pcie_width=8", "nvml", "restart_os"),
    "off the bus": ("gpu-off-bus", "gpu-off-bus", "restart_os"),
}
"""The fault of the lab, what heals it, and the action."""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("health")
    fleet.up()
    run = fleet.play(extra=REQUESTED, holds=["gpu_monitoring.check"])
    assert run.rc == 0, run.screen[-4000:]
    fleet.ssh(NODE, (SLURM + INSTALL).replace("dr-node", NODE) + WIRED, limit=900)
    wait_for(fleet, lambda: slurm(fleet)[0] == "IDLE")
    return fleet


def slurm(fleet: Fleet) -> tuple[str, str]:
    text = fleet.ssh(NODE, f"scontrol show node {NODE}; sinfo -h -n {NODE} -o 'Reason: %E'", check=False)
    state = text.partition("State=")[2].split()
    return (state[0] if state else "", text.rpartition("Reason: ")[2].strip())


def wait_for(fleet: Fleet, condition: Any, limit: float = 60.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, (slurm(fleet), check(fleet))
        time.sleep(1)


def check(fleet: Fleet) -> dict[str, Any]:
    return dict(json.loads(fleet.ssh(NODE, "gpu-ready-check --no-write --json", check=False)))


def audited(fleet: Fleet) -> int:
    return fleet.play(playbook="playbooks/audit.yml", extra=REQUESTED).rc


def test_a_sound_node_passes_everywhere(fleet: Fleet) -> None:
    found = check(fleet)
    assert (found["level"], found["rows"]) == ("PASS", [])
    assert "\ngpu_ready_verified 1" in fleet.ssh(NODE, PRINTED)
    assert json.loads(fleet.ssh(NODE, "cat /var/lib/gpu-ready/health.json"))["level"] == "PASS"
    assert audited(fleet) == 0
    print("calls", found["nvml_calls"], "of", len(found["gpus"]))
    print(fleet.ssh(NODE, "bash -c 'time gpu-ready-check' 2>&1"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_drains_the_node_and_its_end_returns_it(fleet: Fleet, fault: str) -> None:
    cause, heal, action = FAULTS[fault]
    lab("fault", NODE, *cause.split())
    try:
        wait_for(fleet, lambda: "DRAIN" in slurm(fleet)[0])
        reason = slurm(fleet)[1]
        assert reason.startswith("gpu-ready-check: ") and reason.endswith("; " + action), reason
        assert check(fleet)["action"] == action
        assert "\ngpu_ready_verified 0" in fleet.ssh(NODE, PRINTED)
        if fault == "an Xid 48":
            assert audited(fleet) == 2
    finally:
        lab("heal", NODE, *heal.split())
    wait_for(fleet, lambda: slurm(fleet)[0] == "IDLE")
    print(fault, "|", reason)


def test_program_faults_leave_the_node_in_service(fleet: Fleet) -> None:
    for number in ("13", "31", "43", "45"):
        lab("fault", NODE, "xid", number, "0000:1b:00.0")
    try:
        time.sleep(12)
        assert slurm(fleet)[0] == "IDLE" and check(fleet)["level"] == "INFO"
    finally:
        lab("heal", NODE, "xid")


def test_a_drain_of_somebody_else_stays(fleet: Fleet) -> None:
    fleet.ssh(NODE, f"scontrol update nodename={NODE} state=drain reason='disk swap'")
    lab("fault", NODE, "nvml", "1", "recovery_action=1")
    time.sleep(12)
    lab("heal", NODE, "nvml")
    time.sleep(12)
    assert slurm(fleet) == ("IDLE+DRAIN", "disk swap")
    fleet.ssh(NODE, f"scontrol update nodename={NODE} state=resume")


def test_a_failed_prolog_queues_the_job_again_and_the_node_returns(fleet: Fleet) -> None:
    """With a long interval, so that the prolog is the first to see the fault."""
    fleet.ssh(
        NODE,
        "sed -i 's/^HealthCheckInterval=5/HealthCheckInterval=600/' /etc/slurm/slurm.conf; systemctl restart slurmctld slurmd",
    )
    wait_for(fleet, lambda: slurm(fleet)[0] == "IDLE")
    lab("fault", NODE, "nvml", "1", "recovery_action=1")
    try:
        job = fleet.ssh(NODE, "sbatch --parsable --requeue --output /root/job.out --wrap 'echo done'").strip()
        wait_for(fleet, lambda: "DRAIN" in slurm(fleet)[0])
        print(slurm(fleet), fleet.ssh(NODE, f"scontrol show job {job} | grep -E 'JobState|Reason|Restarts'"))
        fleet.ssh(NODE, DIRECTORY + "/slurm-health")
        assert slurm(fleet)[1].startswith("gpu-ready-check: ")
    finally:
        lab("heal", NODE, "nvml")
    fleet.ssh(NODE, DIRECTORY + "/slurm-health")
    assert "DRAIN" not in slurm(fleet)[0]
    fleet.ssh(NODE, f"scontrol release {job}", check=False)
    wait_for(fleet, lambda: fleet.ssh(NODE, "cat /root/job.out", check=False).strip() == "done", 150)


def test_a_driver_that_never_returns_holds_neither_slurmd_nor_the_node(fleet: Fleet, tmp_path: Path) -> None:
    real_programs.need_on_path("cc", "gcc")
    compiler = shutil.which("cc") or "cc"
    (tmp_path / "hung.c").write_text(HUNG)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "hung.c")], check=True)
    text = library.read_bytes().hex()
    fleet.ssh(
        NODE,
        f"mkdir -p /root/hung; echo {text} | xxd -r -p >/root/hung/libnvidia-ml.so.1 2>/dev/null || "
        f'python3 -c \'open("/root/hung/libnvidia-ml.so.1","wb").write(bytes.fromhex("{text}"))\'; '
        "mkdir -p /etc/systemd/system/slurmd.service.d; "
        "printf '[Service]\\nEnvironment=LD_LIBRARY_PATH=/root/hung\\n' >/etc/systemd/system/slurmd.service.d/hung.conf; "
        "sed -i 's/^HealthCheckInterval=600/HealthCheckInterval=5/' /etc/slurm/slurm.conf; "
        "systemctl daemon-reload; systemctl restart slurmctld slurmd",
    )
    wait_for(fleet, lambda: "DRAIN" in slurm(fleet)[0])
    state, reason = slurm(fleet)
    assert "no answer from NVML within 5 s" in reason and "*" not in state, (state, reason)
    fleet.ssh(
        NODE,
        "rm -r /root/hung /etc/systemd/system/slurmd.service.d/hung.conf; systemctl daemon-reload; systemctl restart slurmd",
    )
    wait_for(fleet, lambda: slurm(fleet)[0] == "IDLE")


def test_a_reboot_is_verified_before_anybody_runs_a_playbook(fleet: Fleet) -> None:
    fleet.ssh(NODE, "systemctl reboot", check=False)
    fleet.wait_booted(NODE)
    fleet.wait(NODE, "grep -q renewed /var/lib/gpu-ready/verified.json", 120)
    assert check(fleet)["level"] == "PASS"
    run = fleet.play(extra=REQUESTED)
    assert run.rc == 0 and run.steps(NODE) == []


def test_without_the_setting_everything_is_removed(fleet: Fleet) -> None:
    run = fleet.play(extra={"gpu_monitoring": ["textfile"]}, holds=["gpu_monitoring.remove_check"])
    assert run.rc == 0, run.screen[-4000:]
    left = fleet.ssh(
        NODE,
        "ls -d /usr/local/lib/gpu-ready-check /usr/local/sbin/gpu-ready-check /etc/systemd/system/gpu-ready-check* 2>/dev/null",
        check=False,
    )
    assert left.strip() == ""
