"""A rollout over 24 hosts of mixed distributions and GPUs: a red canary, budgets, and a control node that dies.

The fleet is provisioned once; each test begins with what the one before left.
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
from gpu_ready_lab import fleet as fleets

from tests.grid import SEED
from tests.integration.fleet import ROOT, Fleet, environment

pytestmark = [pytest.mark.lab, pytest.mark.long]

UPGRADE = "playbooks/upgrade_drivers.yml"
OLD, NEW = "580.95.05", "595.91.07"
DEFECT = "/etc/dpkg/dpkg.cfg.d/defect"
KILLS = 4
RESULTS = 65  # task results per host within which the control node dies: half of those of a complete rollout
WAIT = 3600  # seconds to wait for that many results
DISTRIBUTIONS = {host.name: host.distribution for host in fleets.read(ROOT / "lab/fleets/upgrade24.yml").hosts}
HOSTS = tuple(DISTRIBUTIONS)
APT = tuple(host for host in HOSTS if not DISTRIBUTIONS[host].startswith("rocky"))
CANARY, RED = APT[1], APT[-1]
BUILDERS = list({DISTRIBUTIONS[host]: host for host in HOSTS}.values())
"""One host of each kind."""
FORWARD, BACK = ({"nvidia_driver_version": version} for version in (NEW, OLD))


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("upgrade24", limit=WAIT)
    fleet.up()
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
    """Install drivers on a host without their CUDA library, so that the verification fails."""
    fleet.ssh(host, f"echo 'path-exclude=/usr/lib/x86_64-linux-gnu/libcuda.so.{version}' > {DEFECT}")


def heals(fleet: Fleet) -> None:
    """End that fault."""
    for host in HOSTS:
        fleet.ssh(host, f"rm -f {DEFECT}")


def test_a_red_canary_is_rolled_back_and_all_others_are_untouched(fleet: Fleet) -> None:
    breaks(fleet, CANARY, NEW)
    run = fleet.play(playbook=UPGRADE, extra=FORWARD | {"gpu_upgrade_canaries": [CANARY]})
    heals(fleet)
    assert run.rc != 0
    assert "rolled back" in run.row(CANARY)
    assert f"gpu_upgrade_max_failures is 0; {len(HOSTS) - 1} are unchanged" in run.screen
    assert set(loaded(fleet).values()) == {OLD}
    found = journals(fleet)
    assert found.pop(CANARY)["phase"] == "back"
    assert {one["phase"] for one in found.values()} == {"staged"}
    assert fleet.ssh(CANARY, "nvidia-smi --query-gpu=driver_version --format=csv,noheader").split("\n")[0] == OLD
    # One host of each kind compiled; the others have its archive.
    archives = {
        host: fleet.ssh(host, "sha256sum /var/lib/gpu-ready/modules/modules.tar.gz").split()[0] for host in HOSTS
    }
    kinds = {DISTRIBUTIONS[host] for host in HOSTS}
    assert len(set(archives.values())) == len(kinds)


def test_failures_beyond_the_budget_stop_the_rollout(fleet: Fleet) -> None:
    # The second batch has two hosts, and both fail.
    second = [host for host in APT if host != HOSTS[0]][:2]
    for host in second:
        breaks(fleet, host, NEW)
    settings = FORWARD | {"gpu_upgrade_max_failures": 1, "gpu_upgrade_first": [HOSTS[0], *second]}
    run = fleet.play(playbook=UPGRADE, extra=settings)
    heals(fleet)
    assert run.rc != 0
    assert "upgraded" in run.row(HOSTS[0])
    assert all("rolled back" in run.row(host) for host in second)
    assert f"2 hosts failed and gpu_upgrade_max_failures is 1; {len(HOSTS) - 3} are unchanged" in run.screen
    found = loaded(fleet)
    assert found.pop(HOSTS[0]) == NEW and set(found.values()) == {OLD}


def test_failures_inside_the_budget_do_not(fleet: Fleet) -> None:
    breaks(fleet, RED, NEW)
    run = fleet.play(playbook=UPGRADE, extra=FORWARD | {"gpu_upgrade_max_failures": 1})
    heals(fleet)
    assert run.rc != 0  # a host is not in the desired state
    assert "rolled back" in run.row(RED) and "The rollout stopped" not in run.screen
    found = loaded(fleet)
    assert found.pop(RED) == OLD and set(found.values()) == {NEW}


def killed(fleet: Fleet, settings: dict[str, Any], number: int, directory: Path) -> str:
    """Begin an upgrade and kill the control node after so many results of tasks.

    Return the host and the name of the last task, "" if the run ended before.
    """
    events = directory / "events"
    events.unlink(missing_ok=True)
    env = environment() | {
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/integration/callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "record",
        "GPU_READY_TEST_EVENTS": str(events),
    }
    screen = directory / "screen"
    with screen.open("w") as shown:
        process = subprocess.Popen(
            fleet.command("-e", json.dumps(settings), playbook=UPGRADE),
            stdout=shown, stderr=shown, stdin=subprocess.DEVNULL, cwd=ROOT, env=env, start_new_session=True,
        )  # fmt: skip
    end = time.monotonic() + WAIT
    lines: list[str] = []
    while len(lines) < number and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.5)
        lines = events.read_text().splitlines() if events.exists() else []
    if process.poll() is not None:
        assert process.returncode == 0, screen.read_text()[-4000:]
        return ""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    last = json.loads(lines[-1])
    return f"{last['host']}: {last['task']}"


def test_a_control_node_that_dies_again_and_again(fleet: Fleet, tmp_path: Path) -> None:
    moments = random.Random(SEED)
    ways, deaths = [BACK, FORWARD], 0
    while deaths < KILLS:
        number = moments.randint(1, RESULTS * len(HOSTS))
        last = killed(fleet, ways[0], number, tmp_path)
        print(f"{number} results to {ways[0]['nvidia_driver_version']}:", last or "went through before")
        deaths += last != ""
        if not last:
            ways.reverse()
    goal, other = (way["nvidia_driver_version"] for way in ways)
    run = fleet.play(playbook=UPGRADE, extra=ways[0])
    assert run.rc == 0, run.screen[-4000:]
    assert set(loaded(fleet).values()) == {goal}
    found = journals(fleet)
    if goal == OLD:
        assert found.pop(RED)["phase"] == "done"  # it was rolled back before, and never had the other driver in service
    for host, recorded in found.items():
        assert (recorded["phase"], recorded["from"]["version"]) == ("done", other), host
    second = fleet.play(playbook=UPGRADE, extra=ways[0])
    assert second.rc == 0
    assert all(second.calls[host] == 1 for host in HOSTS)  # finished hosts cost one remote call
    assert all("nothing to do" in second.row(host) for host in HOSTS)
