"""Upgrades without a network for drivers that apt does not install: NVIDIA's installer, and RPM packages."""

import json
from typing import Any

import pytest

from tests.integration.fleet import ROOT, Fleet, requests

pytestmark = [pytest.mark.lab, pytest.mark.long]

UPGRADE, BACK = "playbooks/upgrade_drivers.yml", "playbooks/rollback_drivers.yml"
OLD, NEW = "580.95.05", "595.91.07"
RUN, RPM = "up-run", "up-rpm"
STORE = "/var/lib/gpu-ready/installers"
# The hook cuts a host off from mirror and proxy during its upgrade.
SETTINGS = {"nvidia_driver_version": NEW, "gpu_upgrade_drain": [str(ROOT / "tests/integration/upgrade_hook.yml")]}


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("upgrade_sources")
    fleet.up()
    for host in (RUN, RPM):
        fleet.ssh(host, "rm -f /var/lib/gpu-ready/upgrade.json")
    assert fleet.play().rc == 0
    return fleet


def loaded(fleet: Fleet, host: str) -> str:
    """Return the version of the loaded module."""
    return fleet.ssh(host, "cat /sys/module/nvidia/version").strip()


def journal(fleet: Fleet, host: str) -> dict[str, Any]:
    """Return the journal on a host."""
    return dict(json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/upgrade.json")))


def test_both_are_upgraded_without_a_network(fleet: Fleet) -> None:
    run = fleet.play(playbook=UPGRADE, extra=SETTINGS)
    assert run.rc == 0, run.screen[-4000:]
    for host in (RUN, RPM):
        assert loaded(fleet, host) == NEW
        assert (journal(fleet, host)["phase"], journal(fleet, host)["from"]["version"]) == ("done", OLD)
    names = fleet.ssh(RUN, f"ls {STORE}").split()
    assert names == [f"NVIDIA-driver-{v}.run{end}" for v in (OLD, NEW) for end in ("", ".sha256")]


def test_the_rollback_needs_no_network(fleet: Fleet) -> None:
    before = requests(fleet).count(".run\n")
    run = fleet.play(playbook=BACK, extra=SETTINGS)
    assert run.rc == 0, run.screen[-4000:]
    assert {loaded(fleet, host) for host in (RUN, RPM)} == {OLD}
    assert requests(fleet).count(".run\n") == before


def test_an_installer_that_cannot_be_verified_excludes_the_host(fleet: Fleet) -> None:
    fleet.ssh(RUN, f"rm -r {STORE}")
    run = fleet.play("--limit", RUN, playbook=UPGRADE, extra=SETTINGS | {"nvidia_driver_runfile_sha256": "0" * 64})
    assert run.rc != 0 and "The preparation failed, nothing was changed" in run.screen and "has sha256" in run.screen
    assert loaded(fleet, RUN) == OLD and fleet.ssh(RUN, f"ls {STORE}") == ""
