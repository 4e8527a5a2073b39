"""Three guests from 535 to 550 and back with NVIDIA's real modules: by a live reload, held by a program, and by a reboot."""

import json
from typing import Any

import pytest

from tests.integration import guests
from tests.integration.fleet import Fleet, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]

UPGRADE = "playbooks/upgrade_drivers.yml"
OLD, NEW = "535.309.01", "550.163.01"
LIVE, HELD, BOOT = HOSTS = ("vmlive", "vmheld", "vmboot")
FORWARD, BACK = ({"nvidia_driver_version": version} for version in (NEW, OLD))
PROGRAM = "trainer"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = guests.up("vm_upgrade")
    for host in HOSTS:
        fleet.ssh(host, f"pkill -x {PROGRAM}; rm -f /var/lib/gpu-ready/upgrade.json; true")
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    assert drivers(fleet) == dict.fromkeys(HOSTS, OLD)
    return fleet


def drivers(fleet: Fleet) -> dict[str, str]:
    """The version of the loaded driver by host, as the kernel reports it; its whole text if it is neither version."""
    found = {}
    for host in HOSTS:
        output = guests.loaded(fleet, host)
        found[host] = next((version for version in (OLD, NEW) if f"Kernel Module  {version} " in output), output)
    return found


def boots(fleet: Fleet) -> dict[str, str]:
    return {host: guests.boot_id(fleet, host) for host in HOSTS}


def journal(fleet: Fleet, host: str) -> dict[str, Any]:
    return dict(json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/upgrade.json")))


def upgrade(fleet: Fleet, *arguments: str, **settings: Any) -> Run:
    return fleet.play(*arguments, playbook=UPGRADE, extra=settings)


def hold(fleet: Fleet) -> str:
    """Start a program that keeps the driver open on a host, and return its PID."""
    fleet.ssh(HELD, f"cp /usr/bin/sleep /usr/local/bin/{PROGRAM}")
    return fleet.ssh(HELD, f"setsid {PROGRAM} 36000 </dev/nvidiactl >/dev/null 2>&1 & echo $!").strip()


def test_the_plan_shows_the_activation_and_changes_nothing(fleet: Fleet) -> None:
    before = boots(fleet)
    hold(fleet)
    run = upgrade(fleet, "--check", **FORWARD)
    assert run.rc == 0, run.screen[-4000:]
    assert f"{OLD}  {NEW}  live" in run.row(LIVE)
    assert f"{OLD}  {NEW}  live" in run.row(HELD)
    assert f"unless {PROGRAM} still hold the GPUs after the drain" in " ".join(run.screen.split())
    assert f"{OLD}  {NEW}  reboot" in run.row(BOOT)
    assert boots(fleet) == before and drivers(fleet) == dict.fromkeys(HOSTS, OLD)


def test_each_host_is_activated_with_the_least_disruption(fleet: Fleet) -> None:
    before = boots(fleet)
    run = upgrade(fleet, **FORWARD)
    assert run.rc == 0, run.screen[-4000:]
    assert drivers(fleet) == dict.fromkeys(HOSTS, NEW)
    after = boots(fleet)
    assert after[LIVE] == before[LIVE] and after[HELD] != before[HELD] and after[BOOT] != before[BOOT]
    assert "live" in run.row(LIVE) and "reboot" in run.row(HELD) and "reboot" in run.row(BOOT)
    for host in HOSTS:
        recorded = journal(fleet, host)
        assert (recorded["phase"], recorded["from"]["version"]) == ("done", OLD) and recorded["seconds"] > 0
        assert fleet.ssh(host, "modinfo -F version nvidia").strip() == NEW
        assert NEW in fleet.ssh(host, "nvidia-smi --query-gpu=driver_version --format=csv,noheader")


def test_without_permission_to_reboot_a_host_in_use_keeps_its_driver_and_its_program(fleet: Fleet) -> None:
    before = boots(fleet)
    pid = hold(fleet)
    run = upgrade(fleet, **BACK, gpu_ready_reboot_ok=False, gpu_upgrade_leave_out=True, gpu_upgrade_max_failures=1)
    assert run.rc != 0
    output = " ".join(run.screen.split())
    assert f"held by PID {pid} ({PROGRAM})" in output, run.screen[-4000:]
    assert "left out" in run.row(BOOT) and "failed" in run.row(HELD) and "upgraded" in run.row(LIVE)
    assert fleet.ssh(HELD, f"cat /proc/{pid}/comm").strip() == PROGRAM
    assert drivers(fleet) == {LIVE: OLD, HELD: NEW, BOOT: NEW}
    assert boots(fleet) == before
    assert journal(fleet, HELD)["phase"] == "untouched"
    assert fleet.ssh(HELD, "modinfo -F version nvidia").strip() == NEW


def test_with_permission_and_without_the_program_the_same_command_rolls_all_back(fleet: Fleet) -> None:
    fleet.ssh(HELD, f"pkill -x {PROGRAM}")  # installers before 545.23 do not replace a driver in use
    run = upgrade(fleet, **BACK)
    assert run.rc == 0, run.screen[-4000:]
    assert drivers(fleet) == dict.fromkeys(HOSTS, OLD)
    assert "nothing to do" in run.row(LIVE) and run.calls[LIVE] == 1
    assert fleet.play().rc == 0  # site.yml with the same settings has nothing to do
