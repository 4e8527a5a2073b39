"""A guest that loses its power during the installation of the driver: the shortest test with a guest."""

import sys
from pathlib import Path

import pytest

from tests.integration import guests
from tests.integration.fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "sample"
INSTALL = "nvidia_driver.install"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    return guests.up("vm_sample")


def test_a_power_cut_during_the_installation_is_reported(fleet: Fleet, tmp_path: Path) -> None:
    cut = [sys.executable, "-m", "gpu_ready_lab", "power-cycle", f"{fleet.name}/{HOST}"]
    run = fleet.play(moments=[{"task": INSTALL, "after": 15, "argv": cut, "mark": str(tmp_path / "cut")}])
    assert run.rc != 0 and (tmp_path / "cut").exists(), run.screen[-3000:]
    assert run.recap(HOST)["unreachable"] == 1
    assert "can be reached over ssh" in run.screen


def test_the_same_command_then_loads_the_real_module_without_a_reboot(fleet: Fleet) -> None:
    fleet.up()  # which waits for the guest
    before = guests.boot_id(fleet, HOST)
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert guests.boot_id(fleet, HOST) == before
    assert "x86_64 Kernel Module  550." in guests.loaded(fleet, HOST)
    assert "Kernel driver in use: nvidia" in fleet.ssh(HOST, "lspci -k -d 10de:")
    assert "NVRM: loading NVIDIA UNIX x86_64 Kernel Module" in guests.driver_messages(fleet, HOST)


def test_a_third_run_does_nothing(fleet: Fleet) -> None:
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert run.steps(HOST) == [] and run.changed(HOST) == [] and run.calls[HOST] == 1
