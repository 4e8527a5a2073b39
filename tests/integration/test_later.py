"""Six months later: the catalog of today, hosts as they are then, and what the vendors offer by then (lab/mirror/later.yml)."""

from typing import Any

import pytest

from tests.integration.fleet import Fleet, Run, lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

DEBIAN, UBUNTU, ROCKY = HOSTS = ("la-debian", "la-ubuntu", "la-rocky")
UPGRADE, BACK = "playbooks/upgrade_drivers.yml", "playbooks/rollback_drivers.yml"
TOOLKIT = {
    DEBIAN: "dpkg-query --show --showformat '${Version}' nvidia-container-toolkit",
    UBUNTU: "dpkg-query --show --showformat '${Version}' nvidia-container-toolkit",
    ROCKY: "rpm --query --queryformat '%{VERSION}-%{RELEASE}' nvidia-container-toolkit",
}


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("later")
    fleet.up()
    lab("later", "lab/fleets/later.yml")
    return fleet


def branches(fleet: Fleet) -> dict[str, int]:
    """Return the branch of the loaded module by host."""
    return {host: int(fleet.ssh(host, "cut -d . -f 1 /sys/module/nvidia/version")) for host in HOSTS}


def upgrade(fleet: Fleet, *hosts: str, playbook: str = UPGRADE, **extra: Any) -> Run:
    return fleet.play("--limit", ",".join(hosts), playbook=playbook, extra=extra)


def warnings(run: Run, host: str) -> list[str]:
    """Return the codes of the warnings of a host's plan, sorted."""
    return sorted(warning["code"] for warning in run.plan(host)["warnings"])


def test_a_run_with_defaults_verifies_every_host_and_the_next_one_costs_one_call(fleet: Fleet) -> None:
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    assert set(branches(fleet).values()) == {580}
    again = fleet.play()
    assert again.rc == 0, again.screen[-4000:]
    assert {again.calls[host] for host in HOSTS} == {1}


def test_branches_that_the_catalog_does_not_know_are_installed_and_undone(fleet: Fleet) -> None:
    """630 of NVIDIA's repositories; 620 of Ubuntu's archive, which the catalog has from other sources only."""
    before = branches(fleet)
    run = upgrade(fleet, DEBIAN, ROCKY, nvidia_driver_branch=630)
    assert run.rc == 0, run.screen[-4000:]
    assert "does not have driver branch 630" in " ".join(run.screen.split())
    run = upgrade(fleet, UBUNTU, nvidia_driver_branch=620)
    assert run.rc == 0, run.screen[-4000:]
    assert branches(fleet) == {DEBIAN: 630, UBUNTU: 620, ROCKY: 630}
    for branch, hosts in ((630, (DEBIAN, ROCKY)), (620, (UBUNTU,))):
        run = upgrade(fleet, *hosts, playbook=BACK, nvidia_driver_branch=branch)
        assert run.rc == 0, run.screen[-4000:]
    assert branches(fleet) == before


def test_a_branch_whose_names_are_transitional_by_now_is_not_taken_for_another(fleet: Fleet) -> None:
    run = upgrade(fleet, UBUNTU, nvidia_driver_branch=595)
    assert run.rc != 0
    assert branches(fleet)[UBUNTU] == 580
    assert fleet.ssh(UBUNTU, "dpkg-query --list '*-620-*' '*-595-*' 2>&1 | grep -c ^ii || :").strip() == "0"


def test_a_version_that_has_left_the_archive_is_named(fleet: Fleet) -> None:
    run = fleet.play("--limit", UBUNTU, extra={"nvidia_driver_version": "580.178.04"})
    assert run.rc != 0
    assert "580.178.04" in run.failures(UBUNTU) and "580.201.03" in run.failures(UBUNTU)


def test_toolkits_and_libraries_that_the_catalog_does_not_know_are_installed(fleet: Fleet) -> None:
    newer = {
        "nvidia_container_toolkit_version": "1.21.1",
        "cuda_toolkit_source": "repo",
        "cuda_toolkit_versions": ["13.6"],
        "cudnn_source": "archive",
        "cudnn_version": "10.0.1.7",
    }
    run = fleet.play("--limit", f"{DEBIAN},{ROCKY}", extra=newer)
    assert run.rc == 0, run.screen[-4000:]
    for host in (DEBIAN, ROCKY):
        assert fleet.ssh(host, TOOLKIT[host]) == "1.21.1-1"
        assert "release 13.6" in fleet.ssh(host, "/usr/local/cuda-13.6/bin/nvcc --version")
        assert "not_in_catalog" in warnings(run, host)
