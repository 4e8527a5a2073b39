"""Guests with a kernel of their own: from nothing to NVIDIA's real module, verified, and then nothing more to do."""

import pytest

from tests.integration import guests
from tests.integration.fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

GUESTS = {"vm12": ("vm", "535."), "vm13": ("vm13", "550.")}
"""Fleet of each guest, and the branch that its distribution carries."""


@pytest.fixture(scope="module", params=GUESTS)
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def fleet(lab_machine: None, host: str) -> Fleet:
    return guests.up(GUESTS[host][0])


def test_a_bare_guest_gets_the_real_module_by_one_reboot(fleet: Fleet, host: str) -> None:
    bound = fleet.ssh(host, "lspci -k -d 10de:")
    assert bound.count("Kernel driver in use: nouveau") == 2, bound
    before = guests.boot_id(fleet, host)
    run = fleet.play("--limit", host)
    assert run.rc == 0, run.failures(host)
    assert {"kernel_headers.install", "nvidia_driver.blacklist_nouveau", "nvidia_driver.install"} <= set(
        run.steps(host)
    )
    assert run.changed_steps(host) == run.steps(host)
    assert guests.boot_id(fleet, host) != before

    assert f"x86_64 Kernel Module  {GUESTS[host][1]}" in guests.loaded(fleet, host)
    now = fleet.ssh(host, "lspci -k -d 10de:; lsmod")
    assert now.count("Kernel driver in use: nvidia") == 2 and "nouveau " not in now.partition("Module ")[2]
    assert "NVRM: loading NVIDIA UNIX x86_64 Kernel Module" in guests.driver_messages(fleet, host)
    assert fleet.ssh(host, "cat /proc/driver/nvidia/gpus/*/information").count("Tesla P40") == 2
    assert "gpu-ready-blacklist-nouveau.conf" in fleet.ssh(host, "lsinitramfs /boot/initrd.img-$(uname -r)")


def test_the_second_run_does_nothing_and_leaves_the_kernel_alone(fleet: Fleet, host: str) -> None:
    before = guests.boot_id(fleet, host)
    run = fleet.play("--limit", host)
    assert run.rc == 0, run.failures(host)
    assert run.steps(host) == [] and run.changed(host) == [] and run.calls[host] == 1
    assert guests.boot_id(fleet, host) == before
