"""A rollout over 24 hosts with more failures than its budget, and with as many: who is touched, and what the run says.

Under host_pinned each host is upgraded to its end before the next one of its batch begins, and the budget is checked
before each.
"""

import json
from typing import Any

import pytest

from tests.integration.fleet import Fleet, hosts_of

pytestmark = [pytest.mark.lab, pytest.mark.long]

UPGRADE = "playbooks/upgrade_drivers.yml"
OLD, NEW = "580.178.04", "595.91.07"
DEFECT = "/etc/dpkg/dpkg.cfg.d/defect"
HOSTS = tuple(hosts_of("upgrade_budget"))
SECOND = HOSTS[1:4]
"""The second batch."""
LATE = HOSTS[9]
SETTINGS = {"nvidia_driver_version": NEW, "gpu_upgrade_builders": [HOSTS[0], HOSTS[1]]}
STATE = "cat /sys/module/nvidia/version; cat /var/lib/gpu-ready/upgrade.json 2>/dev/null || echo '{}'"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("upgrade_budget", limit=3600)
    fleet.up()
    for host in HOSTS:
        fleet.ssh(host, f"rm -f {DEFECT} /var/lib/gpu-ready/upgrade.json")
    return fleet


def states(fleet: Fleet) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the version of the loaded module and the journal by host."""
    found = {}
    for host in HOSTS:
        version, _, text = fleet.ssh(host, STATE).partition("\n")
        found[host] = (version, dict(json.loads(text)))
    return found


def breaks(fleet: Fleet, host: str) -> None:
    """Install drivers on a host without their CUDA library, so that the verification fails."""
    fleet.ssh(host, f"echo 'path-exclude=/usr/lib/x86_64-linux-gnu/libcuda.so.{NEW}' > {DEFECT}")


def test_failures_beyond_the_budget_stop_the_rollout_and_leave_the_others_untouched(fleet: Fleet) -> None:
    for host in SECOND[:2]:
        breaks(fleet, host)
    run = fleet.play(playbook=UPGRADE, extra=SETTINGS | {"gpu_upgrade_max_failures": 1})
    for host in SECOND[:2]:
        fleet.ssh(host, f"rm {DEFECT}")
    assert run.rc != 0
    assert f"2 hosts failed and gpu_upgrade_max_failures is 1; {len(HOSTS) - 4} are unchanged" in run.screen
    assert all("rolled back" in run.row(host) for host in SECOND[:2])
    # The third host of the batch had begun before the second failure, so it was finished.
    assert all("upgraded" in run.row(host) for host in (HOSTS[0], SECOND[2]))
    assert all("not reached" in run.row(host) for host in HOSTS[4:])
    found = states(fleet)
    for host in HOSTS:
        version, journal = found[host]
        phase = "back" if host in SECOND[:2] else "done" if host in HOSTS[:4] else "staged"
        assert (version, journal["phase"]) == (NEW if phase == "done" else OLD, phase), host
        assert phase != "staged" or "since" not in journal or journal["since"] is None, host


def test_failures_within_the_budget_are_rolled_back_and_the_rollout_ends(fleet: Fleet) -> None:
    breaks(fleet, LATE)
    run = fleet.play(playbook=UPGRADE, extra=SETTINGS | {"gpu_upgrade_max_failures": 1})
    fleet.ssh(LATE, f"rm {DEFECT}")
    assert run.rc != 0  # a host is not in the desired state
    assert "The rollout stopped" not in run.screen
    assert "rolled back" in run.row(LATE)
    found = states(fleet)
    assert (found[LATE][0], found[LATE][1]["phase"]) == (OLD, "back")
    assert {(version, journal["phase"]) for host, (version, journal) in found.items() if host != LATE} == {
        (NEW, "done")
    }
    # Hosts of the first run were not upgraded again, and each of the others was out of service for its own upgrade.
    assert all("nothing to do" in run.row(host) for host in (HOSTS[0], SECOND[2]))
