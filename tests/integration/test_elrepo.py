"""ELRepo's driver on Enterprise Linux: its detector is asked, branches and flavours change, other sources are refused."""

import pytest

from tests.integration.fleet import Fleet, Run, lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "el-turing"
DETECT = "/usr/bin/nvidia-detect"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    lab("down", "elrepo")
    fleet = Fleet("elrepo")
    fleet.up()
    return fleet


def driver(fleet: Fleet) -> tuple[str, str, set[str]]:
    """Return version and licence of the loaded module, and the driver's packages."""
    version = fleet.ssh(HOST, "cat /sys/module/nvidia/version").strip()
    licence = fleet.ssh(HOST, "modinfo -F license nvidia").strip()
    return (
        version,
        licence,
        set(fleet.ssh(HOST, "rpm -qa --qf '%{NAME}\\n' | grep -e kmod-nvidia -e x11-drv || :").split()),
    )


def good(run: Run) -> Run:
    assert run.rc == 0, run.screen[-3000:]
    return run


def test_the_detector_runs_before_the_driver_is_installed(fleet: Fleet) -> None:
    run = good(fleet.play(holds=["nvidia_driver.detect"]))
    steps = run.steps(HOST)
    assert steps.index("nvidia_driver.detect") < steps.index("nvidia_driver.install")
    assert fleet.ssh(HOST, f"{DETECT} || :").strip() == "kmod-nvidia-open"
    assert driver(fleet) == (
        "595.91.07",
        "Dual MIT/GPL",
        {"kmod-nvidia-open", "nvidia-x11-drv", "nvidia-x11-drv-libs"},
    )
    second = fleet.play()
    assert second.recap(HOST)["changed"] == 0
    assert second.steps(HOST) == []


def test_down_to_the_older_branch_and_up_again(fleet: Fleet) -> None:
    good(fleet.play(extra={"nvidia_driver_branch": "580"}))
    older = {"kmod-nvidia-580xx", "nvidia-x11-drv-580xx", "nvidia-x11-drv-580xx-libs"}
    assert driver(fleet) == ("580.178.04", "NVIDIA", older)
    assert older <= set(fleet.ssh(HOST, "sed -E 's/-[0-9]+:?[0-9.]+-.*//' /etc/dnf/plugins/versionlock.list").split())
    good(fleet.play(extra={"nvidia_driver_branch": "595", "nvidia_driver_flavour": "open"}))
    assert driver(fleet)[:2] == ("595.91.07", "Dual MIT/GPL")


def test_the_flavour_changes(fleet: Fleet) -> None:
    good(fleet.play(extra={"nvidia_driver_flavour": "proprietary"}))
    assert driver(fleet) == ("595.91.07", "NVIDIA", {"kmod-nvidia", "nvidia-x11-drv", "nvidia-x11-drv-libs"})


def test_another_source_is_refused(fleet: Fleet) -> None:
    run = fleet.play(extra={"nvidia_driver_source": "cuda_repo"})
    assert "of this host is from ELRepo" in run.failures(HOST)
    assert run.changed(HOST) == []


def test_a_detector_that_disagrees_stops_the_host(fleet: Fleet) -> None:
    fleet.ssh(HOST, f"cp {DETECT} /root/detect && printf '#!/bin/sh\\necho kmod-nvidia-470xx\\n' >{DETECT}")
    try:
        run = fleet.play(extra={"nvidia_driver_branch": "580"})
    finally:
        fleet.ssh(HOST, f"cp /root/detect {DETECT}")
    assert run.rc != 0
    assert "kmod-nvidia-470xx" in run.failures(HOST) and "kmod-nvidia-open" in run.failures(HOST)
    assert driver(fleet)[0] == "595.91.07"


def test_uninstall_removes_the_driver(fleet: Fleet) -> None:
    good(fleet.play(playbook="playbooks/uninstall.yml"))
    left = fleet.ssh(HOST, "rpm -qa | grep -i nvidia || :; ls /etc/yum.repos.d | grep gpu-ready || :")
    assert left.split() == []
