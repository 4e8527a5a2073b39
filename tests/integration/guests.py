"""Lab guests, as the tests on real kernels use them."""

import re
import time

import pytest
from fleet import Fleet
from gpu_ready_lab import fleet as fleet_file
from gpu_ready_lab import paths, vm_image, vms

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


UNLOAD = "for m in nvidia_uvm nvidia_drm nvidia_modeset nvidia; do [ ! -e /sys/module/$m ] || rmmod $m || exit 1; done; dmesg -C; "


def plug(fleet: Fleet, host: str, gpus: str) -> str:
    """Exchange the GPUs of a running guest (``gpus`` as in a fleet file); return what the modules that udev loaded said."""
    text = f"name: other\nhosts:\n  one: {{kind: vm, distribution: debian12, gpus: {gpus}}}\n"
    options = vms.bus_options(fleet_file.parse(text).hosts[0].gpus)
    swap = f"rmmod gpu_ready_pci && echo '{options}' >/etc/gpu-ready-lab/pci-options && /usr/lib/gpu-ready-lab/pci"
    fleet.ssh(host, UNLOAD + swap)
    return said(fleet, host)


def built(fleet: Fleet, host: str, suite: str, package: str) -> str:
    """Have the modules of a driver package built for a guest's kernel; return their folder in the guest."""
    release = fleet.ssh(host, "uname -r").strip()
    folder = vm_image.ensure_driver(suite, release, package, paths.PROXY_URL)
    return f"/var/cache/gpu-ready-lab/modules/{folder.relative_to(vm_image.modules())}"


def insert(fleet: Fleet, host: str, folder: str) -> str:
    """Load the main module of a folder in place of whatever runs; return what it said."""
    needed = f"for m in $(modinfo -F depends {folder}/nvidia.ko | tr , ' '); do modprobe $m; done"
    fleet.ssh(host, f"{UNLOAD} {needed}; insmod {folder}/nvidia.ko", check=False)
    return said(fleet, host)
