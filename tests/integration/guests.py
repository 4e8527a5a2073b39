"""Lab guests, as the tests on real kernels use them."""

import pytest
from fleet import Fleet
from gpu_ready_lab import vms


def up(name: str) -> Fleet:
    """Start a fleet of guests; the test is skipped where this machine cannot emulate any."""
    fleet = Fleet(name)
    try:
        fleet.up()
    except RuntimeError as error:
        if vms.NO_TCG in str(error):
            pytest.skip(vms.NO_TCG)
        raise
    return fleet


def boot_id(fleet: Fleet, host: str) -> str:
    return fleet.ssh(host, "cat /proc/sys/kernel/random/boot_id").strip()


def loaded(fleet: Fleet, host: str) -> str:
    """Return what the kernel itself says of the loaded driver, "" where none is."""
    return fleet.ssh(host, "cat /proc/driver/nvidia/version", check=False)


def said(fleet: Fleet, host: str) -> str:
    """Return what NVIDIA's module told the kernel's log since the guest booted."""
    return fleet.ssh(host, "dmesg | grep -A3 NVRM || true")
