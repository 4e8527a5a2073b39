"""A rollout over a fleet of mixed distributions and GPUs: a red canary, budgets, and a control node that dies ten times.

The fleet is provisioned once; each test begins with what the one before left. `upgrade_hosts` in the fleet's file says how
many of its hosts take part.
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet import ROOT, Fleet, environment, lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

UPGRADE = "playbooks/upgrade_drivers.yml"
OLD, NEW = "580.95.05", "595.91.07"
FORWARD, BACK = {"nvidia_driver_version": NEW}, {"nvidia_driver_version": OLD}
DEFECT = "/etc/dpkg/dpkg.cfg.d/defect"
KILLS = 10
SEED = 6
RESULTS = 40  # task results of a host in a whole rollout that goes through, at least
WAIT = 1800  # seconds, for a run to come so far
SAID = yaml.safe_load((ROOT / "lab/fleets/upgrade24.yml").read_text())
HOSTS = tuple(SAID["hosts"])[: SAID["vars"]["upgrade_hosts"]]
APT = tuple(host for host in HOSTS if not SAID["hosts"][host]["distribution"].startswith("rocky"))
CANARY = APT[1]


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("upgrade24")
    file = ROOT / ".lab/upgrade24.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(SAID | {"hosts": {host: SAID["hosts"][host] for host in HOSTS}}, sort_keys=False))
    lab("up", str(file))
    for host in HOSTS:
        fleet.ssh(host, f"rm -f {DEFECT} /var/lib/gpu-ready/upgrade.json")
    run = fleet.play()
    assert run.rc == 0, run.screen[-3000:]
    return fleet


def loaded(fleet: Fleet) -> dict[str, str]:
    """Return the version of the loaded module by host."""
    return {host: fleet.ssh(host, "cat /sys/module/nvidia/version").strip() for host in HOSTS}


def journals(fleet: Fleet) -> dict[str, dict[str, Any]]:
    """Return the journals by host."""
    texts = {host: fleet.ssh(host, "cat /var/lib/gpu-ready/upgrade.json 2>/dev/null || echo '{}'") for host in HOSTS}
    return {host: dict(json.loads(text)) for host, text in texts.items()}


def breaks(fleet: Fleet, host: str, version: str) -> None:
    """Let a driver arrive on a host without its CUDA library, so that its proof is red."""
    fleet.ssh(host, f"echo 'path-exclude=/usr/lib/x86_64-linux-gnu/libcuda.so.{version}' > {DEFECT}")


def heals(fleet: Fleet) -> None:
    """Take that away."""
    for host in HOSTS:
        fleet.ssh(host, f"rm -f {DEFECT}")


def test_a_red_canary_comes_back_and_all_others_are_untouched(fleet: Fleet) -> None:
    breaks(fleet, CANARY, NEW)
    run = fleet.play(playbook=UPGRADE, extra=FORWARD | {"gpu_upgrade_canaries": [CANARY]})
    heals(fleet)
    assert run.rc != 0
    assert "rolled back" in run.row(CANARY)
    assert f"gpu_upgrade_max_failures is 0; {len(HOSTS) - 1} are untouched" in run.screen
    assert set(loaded(fleet).values()) == {OLD}
    found = journals(fleet)
    assert found.pop(CANARY)["phase"] == "back"
    assert {one["phase"] for one in found.values()} == {"staged"}
    assert fleet.ssh(CANARY, "nvidia-smi --query-gpu=driver_version --format=csv,noheader").split("\n")[0] == OLD
    # Each kind of host compiled once; the others have the archive of theirs.
    archives = {
        host: fleet.ssh(host, "sha256sum /var/lib/gpu-ready/modules/modules.tar.gz").split()[0] for host in HOSTS
    }
    kinds = {SAID["hosts"][host]["distribution"] for host in HOSTS}
    assert len(set(archives.values())) == len(kinds)


def killed(fleet: Fleet, number: int, folder: Path) -> str:
    """Begin an upgrade and kill the control node after so many results of tasks; return the name of the last one."""
    events = folder / "events"
    events.unlink(missing_ok=True)
    env = environment() | {
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/integration/callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "record",
        "GPU_READY_TEST_EVENTS": str(events),
    }
    process = subprocess.Popen(
        fleet.command("-e", json.dumps(FORWARD), playbook=UPGRADE),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=ROOT, env=env, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + WAIT
    lines: list[str] = []
    while len(lines) < number and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.5)
        lines = events.read_text().splitlines() if events.exists() else []
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    last = json.loads(lines[-1])
    return f"{last['host']}: {last['task']}"


def test_a_control_node_that_dies_ten_times(fleet: Fleet, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    for _ in range(KILLS):
        print("killed after", killed(fleet, moments.randint(1, RESULTS * len(HOSTS)), tmp_path))
    run = fleet.play(playbook=UPGRADE, extra=FORWARD)
    assert run.rc == 0, run.screen[-4000:]
    assert set(loaded(fleet).values()) == {NEW}
    for host, noted in journals(fleet).items():
        assert (noted["phase"], noted["from"]["version"]) == ("done", OLD), host


def test_finished_hosts_cost_one_remote_call(fleet: Fleet) -> None:
    run = fleet.play(playbook=UPGRADE, extra=FORWARD)
    assert run.rc == 0
    assert all(run.calls[host] == 1 for host in HOSTS)
    assert all("nothing to do" in run.row(host) for host in HOSTS)


def test_failures_beyond_the_budget_stop_the_rollout(fleet: Fleet) -> None:
    # The other way, so that nothing has to be brought back first. The second batch has two hosts, and both fail.
    second = [host for host in APT if host != HOSTS[0]][:2]
    for host in second:
        breaks(fleet, host, OLD)
    wishes = BACK | {"gpu_upgrade_max_failures": 1, "gpu_upgrade_first": [HOSTS[0], *second]}
    run = fleet.play(playbook=UPGRADE, extra=wishes)
    heals(fleet)
    assert run.rc != 0
    assert "upgraded" in run.row(HOSTS[0])
    assert all("rolled back" in run.row(host) for host in second)
    assert f"2 hosts failed and gpu_upgrade_max_failures is 1; {len(HOSTS) - 3} are untouched" in run.screen
    found = loaded(fleet)
    assert found.pop(HOSTS[0]) == OLD and set(found.values()) == {NEW}


def test_failures_inside_the_budget_do_not(fleet: Fleet) -> None:
    red = APT[-1]
    breaks(fleet, red, OLD)
    run = fleet.play(playbook=UPGRADE, extra=BACK | {"gpu_upgrade_max_failures": 1})
    heals(fleet)
    assert run.rc != 0  # a host is not as wanted
    assert "rolled back" in run.row(red) and "The rollout stopped" not in run.screen
    found = loaded(fleet)
    assert found.pop(red) == NEW and set(found.values()) == {OLD}
