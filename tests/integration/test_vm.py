"""A guest with a kernel of its own: from nothing to NVIDIA's real module, verified, and then nothing more to do."""

import guests
import pytest
from fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "vm12"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    return guests.up("vm")


def test_a_bare_guest_gets_the_real_module_by_one_reboot(fleet: Fleet) -> None:
    bound = fleet.ssh(HOST, "lspci -k -d 10de:")
    assert bound.count("Kernel driver in use: nouveau") == 2, bound
    before = guests.boot_id(fleet, HOST)
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert {"kernel_headers.install", "nvidia_driver.blacklist_nouveau", "nvidia_driver.install"} <= set(
        run.steps(HOST)
    )
    assert run.changed_steps(HOST) == run.steps(HOST)
    assert guests.boot_id(fleet, HOST) != before

    assert "x86_64 Kernel Module  535." in guests.loaded(fleet, HOST)
    now = fleet.ssh(HOST, "lspci -k -d 10de:; lsmod")
    assert now.count("Kernel driver in use: nvidia") == 2 and "nouveau " not in now.partition("Module ")[2]
    assert "NVRM: loading NVIDIA UNIX x86_64 Kernel Module" in guests.said(fleet, HOST)
    assert fleet.ssh(HOST, "cat /proc/driver/nvidia/gpus/*/information").count("Tesla P40") == 2
    assert "gpu-ready-blacklist-nouveau.conf" in fleet.ssh(HOST, "lsinitramfs /boot/initrd.img-$(uname -r)")


def test_the_second_run_does_nothing_and_leaves_the_kernel_alone(fleet: Fleet) -> None:
    before = guests.boot_id(fleet, HOST)
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert run.steps(HOST) == [] and run.changed(HOST) == [] and run.calls[HOST] == 1
    assert guests.boot_id(fleet, HOST) == before
