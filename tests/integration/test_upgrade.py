"""Another driver for a fleet in service: a red canary, a killed control node, no network, and the rollback."""

import json
import os
import random
import signal
import subprocess
import time
from typing import Any

import pytest

from tests.integration import cores
from tests.integration.fleet import PLAY_LIMIT, ROOT, Fleet, environment, lab

pytestmark = pytest.mark.lab

UPGRADE, BACK = "playbooks/upgrade_drivers.yml", "playbooks/rollback_drivers.yml"
OLD, NEW = "580.178.04", "595.91.07"
HOSTS = ("up-a", "up-c")
CANARY = "up-c"  # the inventory names it
TARGET = {"nvidia_driver_version": NEW}
HOOK = {"gpu_upgrade_drain": [str(ROOT / "tests/integration/upgrade_hook.yml")]}
DEFECT = "/etc/dpkg/dpkg.cfg.d/defect"
WAIT = PLAY_LIMIT  # seconds to wait for a moment of a run, which ends within them too


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    lab("down", "upgrade")
    fleet = Fleet("upgrade")
    fleet.up()  # from a state in which site.yml has nothing to do
    return fleet


def loaded(fleet: Fleet, host: str) -> str:
    """Return the version of the loaded module."""
    return fleet.ssh(host, "cat /sys/module/nvidia/version").strip()


def journal(fleet: Fleet, host: str) -> dict[str, Any]:
    """Return the journal on a host, {} where there is none."""
    return dict(json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/upgrade.json 2>/dev/null || echo '{}'")))


def test_check_shows_the_plan_and_changes_nothing(fleet: Fleet) -> None:
    run = fleet.play("--check", playbook=UPGRADE, extra=TARGET)
    assert run.rc == 0
    assert f"{OLD}  {NEW}  live" in run.row("up-a")
    assert "batches of 1, 1" in run.screen and "Could not match" not in run.screen
    assert all(run.calls[host] == 2 for host in HOSTS)  # facts, and what the package sources offer
    assert journal(fleet, "up-a") == {}


def test_a_refused_host_stops_the_rollout_before_it_begins(fleet: Fleet) -> None:
    run = fleet.play(playbook=UPGRADE, extra=TARGET | {"gpu_ready_activation": "reboot"})
    assert run.rc != 0 and "gpu_ready_reboot_ok" in run.screen and "Nothing was changed on any host" in run.screen
    assert journal(fleet, "up-a") == {}


def test_a_red_canary_is_rolled_back_and_the_others_are_left_alone(fleet: Fleet) -> None:
    # The new driver arrives on this host without its CUDA library.
    fleet.ssh(CANARY, f"echo 'path-exclude=/usr/lib/x86_64-linux-gnu/libcuda.so.{NEW}' > {DEFECT}")
    run = fleet.play(playbook=UPGRADE, extra=TARGET)
    assert run.rc != 0
    assert "rolled back" in run.row(CANARY)
    assert loaded(fleet, CANARY) == OLD and journal(fleet, CANARY)["phase"] == "back"
    assert "held" in fleet.ssh(CANARY, "apt-mark showhold | sed 's/.*/held/'")
    for host in set(HOSTS) - {CANARY}:
        assert "not reached" in run.row(host)
        assert loaded(fleet, host) == OLD and journal(fleet, host)["phase"] == "staged"
    assert "gpu_upgrade_max_failures is 0; 1 is unchanged" in run.screen
    assert fleet.ssh("up-a", "dkms status").count("595") == 0
    fleet.ssh(CANARY, f"rm {DEFECT}")


def killed(fleet: Fleet, extra: dict[str, Any]) -> str:
    """Begin an upgrade and kill the control node during the canary's upgrade; return the phase at that time."""
    process = subprocess.Popen(
        fleet.command("-e", json.dumps(extra), playbook=UPGRADE),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment(), start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + WAIT
    while journal(fleet, CANARY).get("phase") not in ("draining", "switching"):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(1)
    time.sleep(random.uniform(0, 10))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return str(journal(fleet, CANARY)["phase"])


def test_the_same_command_resumes_after_the_control_node_died_and_without_network(fleet: Fleet) -> None:
    print("killed in the phase", killed(fleet, TARGET | HOOK))
    for host in HOSTS:
        lab("heal", host, "all")  # the hook of the killed run cut it off, and repeated downloads need the mirror
    run = fleet.play(playbook=UPGRADE, extra=TARGET | HOOK)
    assert run.rc == 0, run.screen[-3000:]
    for host in HOSTS:
        assert loaded(fleet, host) == NEW
        recorded = journal(fleet, host)
        assert recorded["phase"] == "done" and recorded["from"]["version"] == OLD and recorded["seconds"] > 0
        assert f"{OLD}  {NEW}  live" in run.row(host) or host == CANARY
    assert "installed" in fleet.ssh("up-a", f"dkms status nvidia/{NEW}")


def test_finished_hosts_cost_one_remote_call(fleet: Fleet) -> None:
    run = fleet.play(playbook=UPGRADE, extra=TARGET)
    assert run.rc == 0
    assert all(run.calls[host] == 1 for host in HOSTS)
    assert "nothing to do" in run.row("up-a") and "Could not match" not in run.screen


@pytest.mark.long
def test_a_host_that_is_lost_alone_in_its_batch_is_reported(fleet: Fleet) -> None:
    # The hook stops the host's sshd after the drain.
    hook = {"gpu_upgrade_drain": [str(ROOT / "tests/integration/upgrade_lost.yml")]}
    run = fleet.play(playbook=UPGRADE, extra={"nvidia_driver_version": OLD} | hook)
    lab("power-cycle", CANARY)
    assert run.rc != 0
    assert "failed" in run.row(CANARY) and f"{CANARY}: failed" in run.screen
    assert "unreachable during its upgrade" in " ".join(run.screen.split())
    assert "not reached" in run.row("up-a") and "gpu_upgrade_max_failures is 0; 1 is unchanged" in run.screen
    # The next run completes the driver, but runs no task file that it does not name.
    second = fleet.play(playbook=UPGRADE, extra=TARGET)
    assert second.rc != 0 and loaded(fleet, CANARY) == NEW
    assert "gpu_upgrade_drain does not name in this run" in " ".join(second.screen.split())
    undrained = fleet.play("--limit", CANARY, playbook="playbooks/undrain.yml", extra=hook)
    assert undrained.rc == 0, undrained.screen[-3000:]


@pytest.mark.long
def test_rollback_of_a_rollout(fleet: Fleet) -> None:
    run = fleet.play("--limit", "up-a", playbook=BACK, extra=TARGET)
    assert run.rc == 0 and "rolled back" in run.row("up-a")
    assert loaded(fleet, "up-a") == OLD and loaded(fleet, CANARY) == NEW


@pytest.fixture
def oldest(fleet: Fleet) -> Fleet:
    """The same hosts, from a control node with the oldest supported ansible-core."""
    old = Fleet(fleet.name, cores.programs(cores.OLD))
    shown = subprocess.run(
        [str(old.ansible / "ansible-playbook"), "--version"],
        capture_output=True, text=True, check=True, timeout=300, env=environment(), cwd=ROOT,
    ).stdout  # fmt: skip
    assert "core 2.16." in shown
    return old


# The rollback before it left the old driver on up-a; alone, this test begins with the same.
@pytest.mark.long
def test_the_oldest_core_upgrades(oldest: Fleet) -> None:
    assert loaded(oldest, "up-a") == OLD
    run = oldest.play("--limit", "up-a", playbook=UPGRADE, extra=TARGET)
    assert run.rc == 0 and "upgraded" in run.row("up-a"), run.screen[-3000:]
    recorded = journal(oldest, "up-a")
    assert (loaded(oldest, "up-a"), recorded["phase"], recorded["from"]["version"]) == (NEW, "done", OLD)
    second = oldest.play("--limit", "up-a", playbook=UPGRADE, extra=TARGET)
    assert second.rc == 0 and second.calls["up-a"] == 1 and "nothing to do" in second.row("up-a")


@pytest.mark.long
def test_the_oldest_core_rolls_back(oldest: Fleet) -> None:
    run = oldest.play("--limit", "up-a", playbook=BACK)
    assert run.rc == 0 and "rolled back" in run.row("up-a"), run.screen[-3000:]
    assert loaded(oldest, "up-a") == OLD
