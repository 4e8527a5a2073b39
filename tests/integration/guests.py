"""Lab guests, as the tests on real kernels use them."""

import re
import time

import pytest
from fleet import Fleet
from gpu_ready_lab import vms

BOOT_LIMIT = 300


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


def reboot(fleet: Fleet, host: str) -> None:
    """Reboot a guest as an operator does, and wait for it."""
    before = boot_id(fleet, host)
    fleet.ssh(host, "systemctl reboot", check=False)
    end = time.monotonic() + BOOT_LIMIT
    while time.monotonic() < end:
        time.sleep(3)
        now = fleet.ssh(host, "cat /proc/sys/kernel/random/boot_id", check=False).strip()
        if re.fullmatch(r"[0-9a-f-]{36}", now) and now != before:
            return
    raise AssertionError(f"{host} did not come back within {BOOT_LIMIT} s")


def loaded(fleet: Fleet, host: str) -> str:
    """Return what the kernel itself says of the loaded driver, "" where none is."""
    return fleet.ssh(host, "cat /proc/driver/nvidia/version", check=False)


def said(fleet: Fleet, host: str) -> str:
    """Return what NVIDIA's module told the kernel's log since the guest booted."""
    return fleet.ssh(host, "dmesg | grep -A3 NVRM || true")
