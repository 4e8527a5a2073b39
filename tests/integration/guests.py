"""Lab guests, as the tests on real kernels use them."""

import subprocess
import time

import pytest
from gpu_ready_lab import fleet as fleets
from gpu_ready_lab import mirror, vm_image, vms

from tests.integration.fleet import ROOT, Fleet

SUITE = "bookworm"
CACHE = "/var/cache/gpu-ready-lab/modules/"
"""Where guests see the modules that the lab had built."""
PLAY_LIMIT = 4800
"""Seconds of a run: a quarter of an hour on an idle machine, and emulation has to share a busy one."""
REBOOT_LIMIT = 1200
OPTIONS = "/etc/gpu-ready-lab/pci-options"


def up(name: str) -> Fleet:
    """Start a fleet of guests; the test is skipped where this machine cannot emulate any."""
    fleet = Fleet(name, limit=PLAY_LIMIT)
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
    """Reboot a guest or a lab host as its operator would, and wait until it is up."""
    before = boot_id(fleet, host)
    fleet.ssh(host, "systemctl reboot", check=False)
    end = time.monotonic() + REBOOT_LIMIT
    while time.monotonic() < end:
        try:
            now = fleet.ssh(host, "cat /proc/sys/kernel/random/boot_id", check=False, limit=60).strip()
        except subprocess.TimeoutExpired:
            continue
        if now not in ("", before):
            fleet.wait_booted(host)
            return
        time.sleep(3)
    raise AssertionError(f"{host} did not boot again after its reboot: `gpu_ready_lab status` shows its state")


def loaded(fleet: Fleet, host: str) -> str:
    """The kernel's own description of the loaded driver, "" if none is loaded."""
    return fleet.ssh(host, "cat /proc/driver/nvidia/version", check=False)


def driver_messages(fleet: Fleet, host: str) -> str:
    """The messages of NVIDIA's module in the kernel's log since the guest booted."""
    return fleet.ssh(host, "dmesg | grep -A3 NVRM || true")


def real_smi(fleet: Fleet, host: str) -> str:
    """Run nvidia-smi with NVIDIA's own library, unpacked beside the mock, and return what it printed and its status."""
    directory = "/root/real"
    script = f"""
        set -e
        if [ ! -d {directory} ]; then
          mkdir -p {directory}
          cd {directory}
          apt-get -q download libnvidia-ml1 >/dev/null
          dpkg-deb -x libnvidia-ml1_*.deb .
        fi
        export LD_LIBRARY_PATH=$(dirname $(find {directory} -name 'libnvidia-ml.so.*.*' | head -n 1))
        [ -e $LD_LIBRARY_PATH/libnvidia-ml.so.1 ] || ln -s libnvidia-ml.so.*.* $LD_LIBRARY_PATH/libnvidia-ml.so.1
        nvidia-smi 2>&1 || echo ended with $?
    """
    return fleet.ssh(host, script)


def built(release: str, package: str) -> str:
    """The directory, as guests see it, with the modules of a driver package for a kernel; built if missing."""
    directory = vm_image.ensure_driver(SUITE, release, package, mirror.start().proxy)
    return CACHE + str(directory.relative_to(vm_image.modules()))


def insert(fleet: Fleet, host: str, directory: str, *names: str) -> str:
    """Insert modules of a directory into the kernel, past modprobe, and return what this added to the kernel's log."""
    script = 'dmesg -C; for name in $(modinfo -F depends {0}/nvidia.ko | tr , " "); do modprobe "$name"; done; '
    script += "; ".join(f"insmod {{0}}/{name}.ko" for name in names)
    fleet.ssh(host, f"set -e; {script.format(directory)}; udevadm settle")
    return fleet.ssh(host, "dmesg")


def bound(fleet: Fleet, host: str) -> set[str]:
    """The device ids of the functions that NVIDIA's module drives."""
    script = "for f in /sys/bus/pci/drivers/nvidia/*:*; do [ -e $f/device ] && cat $f/device; done; true"
    return {line.removeprefix("0x") for line in fleet.ssh(host, script).split()}


def replace_cards(fleet: Fleet, host: str, *devices: str) -> None:
    """Replace the simulated bus of a guest by one with only these of the cards in its fleet file."""
    described = fleets.read(ROOT / f"lab/fleets/{fleet.name}.yml")
    cards = next(one.gpus for one in described.hosts if one.name == host)
    options = vms.bus_options(tuple(card for card in cards if card.device in devices))
    fleet.ssh(host, f"set -e; rmmod gpu_ready_pci; echo '{options}' >{OPTIONS}; /usr/lib/gpu-ready-lab/pci")


def explain(kind: str, text: str) -> str:
    """The explanation that gpu-explain prints of an output."""
    done = subprocess.run(
        [str(ROOT / "bin/gpu-explain"), "read", kind, "-"], input=text, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr
