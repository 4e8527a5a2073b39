"""Six months later: the catalog of today, hosts as they are then, and what the vendors offer by then (lab/mirror/later.yml)."""

import re

import pytest

from tests.integration.fleet import ROOT, Fleet, Run, lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

DEBIAN, UBUNTU, ROCKY = "la-debian", "la-ubuntu", "la-rocky"
UPGRADE, BACK = "playbooks/upgrade_drivers.yml", "playbooks/rollback_drivers.yml"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("later")
    fleet.up()
    lab("later", "lab/fleets/later.yml")
    return fleet


def loaded(fleet: Fleet) -> dict[str, str]:
    """Return the version of the loaded module by host."""
    return {host: fleet.ssh(host, "cat /sys/module/nvidia/version").strip() for host in (DEBIAN, UBUNTU, ROCKY)}


def not_in_catalog(run: Run, host: str) -> list[str]:
    """Return what a host's plan says is not in the catalog."""
    return [warning["message"] for warning in run.plan(host)["warnings"] if warning["code"] == "not_in_catalog"]


def test_a_run_with_defaults_verifies_every_host(fleet: Fleet) -> None:
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    assert {version.split(".")[0] for version in loaded(fleet).values()} == {"580"}
    again = fleet.play()
    assert again.rc == 0, again.screen[-4000:]
    assert {again.calls[host] for host in (DEBIAN, UBUNTU, ROCKY)} == {1}


def test_a_branch_that_the_catalog_does_not_know_is_installed_and_undone(fleet: Fleet) -> None:
    before = loaded(fleet)
    limit = ("--limit", f"{DEBIAN},{ROCKY}")
    run = fleet.play(*limit, playbook=UPGRADE, extra={"nvidia_driver_branch": 630})
    assert run.rc == 0, run.screen[-4000:]
    assert {host: version.split(".")[0] for host, version in loaded(fleet).items()} == {
        DEBIAN: "630", UBUNTU: "580", ROCKY: "630",
    }  # fmt: skip
    assert re.search("630 is not in the catalog", " ".join(run.screen.split()))
    run = fleet.play(*limit, playbook=BACK, extra={"nvidia_driver_branch": 630})
    assert run.rc == 0, run.screen[-4000:]
    assert loaded(fleet) == before
