"""Ubuntu's own driver packages, compiled on the host and precompiled: upgraded and rolled back without a network."""

import json
from typing import Any

import pytest

from tests.integration.fleet import ROOT, Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

UPGRADE, BACK = "playbooks/upgrade_drivers.yml", "playbooks/rollback_drivers.yml"
HOSTS = ("up-dkms", "up-precompiled")
# The hook cuts a host off from mirror and proxy during its upgrade.
SETTINGS = {"nvidia_driver_branch": 595, "gpu_upgrade_drain": [str(ROOT / "tests/integration/upgrade_hook.yml")]}
DEFECT = "/etc/dpkg/dpkg.cfg.d/lab-defect"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("upgrade_ubuntu")
    fleet.up()
    for host in HOSTS:
        fleet.ssh(host, "rm -f /var/lib/gpu-ready/upgrade.json")
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    return fleet


def loaded(fleet: Fleet, host: str) -> str:
    """Return the version of the loaded module."""
    return fleet.ssh(host, "cat /sys/module/nvidia/version").strip()


def journal(fleet: Fleet, host: str) -> dict[str, Any]:
    """Return the journal on a host."""
    return dict(json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/upgrade.json")))


def driver_packages(fleet: Fleet, host: str) -> set[str]:
    """Return the installed packages of the driver with their versions, without those that `apt-get autoremove` would remove."""
    form = "${db:Status-Abbrev}${Package}=${Version}\\n"
    listed = fleet.ssh(host, f"dpkg-query --show --showformat '{form}' '*nvidia*' '*libcuda*'").splitlines()
    unused = fleet.ssh(host, "apt-get --simulate autoremove | sed -n 's/^Remv //p' | cut -d ' ' -f 1").split()
    installed = {line.split()[1] for line in listed if line.startswith(("ii ", "hi "))}
    return {package for package in installed if package.split("=")[0] not in unused}


def test_an_upgrade_that_fails_is_rolled_back_to_exactly_the_packages_of_before(fleet: Fleet) -> None:
    before = {host: (loaded(fleet, host), driver_packages(fleet, host)) for host in HOSTS}
    assert all(version.startswith("580.") for version, _ in before.values())
    for host in HOSTS:  # the new driver arrives without its CUDA library
        fleet.ssh(host, f"echo 'path-exclude=/usr/lib/x86_64-linux-gnu/libcuda.so.595*' > {DEFECT}")
    run = fleet.play(
        playbook=UPGRADE, extra=SETTINGS | {"gpu_upgrade_max_failures": 2, "gpu_upgrade_batches": ["100%"]}
    )
    assert run.rc != 0
    for host in HOSTS:
        assert "rolled back" in run.row(host), run.screen[-4000:]
        assert journal(fleet, host)["phase"] == "back"
        fleet.ssh(host, f"rm {DEFECT}")
        assert loaded(fleet, host) == before[host][0]
        assert driver_packages(fleet, host) == before[host][1]


def test_both_are_upgraded_without_a_network(fleet: Fleet) -> None:
    run = fleet.play(playbook=UPGRADE, extra=SETTINGS)
    assert run.rc == 0, run.screen[-4000:]
    for host in HOSTS:
        assert loaded(fleet, host).startswith("595.")
        assert journal(fleet, host)["phase"] == "done"


def test_the_rollback_installs_the_recorded_packages_without_a_network(fleet: Fleet) -> None:
    recorded = {host: journal(fleet, host)["from"]["version"] for host in HOSTS}
    run = fleet.play(playbook=BACK, extra=SETTINGS)
    assert run.rc == 0, run.screen[-4000:]
    assert {host: loaded(fleet, host) for host in HOSTS} == recorded
