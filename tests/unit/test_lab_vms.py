"""Virtual machines of the lab: their fleet files, their files, the command that runs them, the kernel they boot."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from gpu_ready_lab import disks, fleet, hosts, images, paths, vm_image, vm_run, vms
from gpu_ready_lab.say import LabError

FLEET = """
name: guests
hosts:
  one:
    kind: vm
    distribution: debian12
    gpus: [{device: "1b38", count: 2}, {device: "2330"}]
"""


def guest(text: str = FLEET) -> fleet.Host:
    """The only host of a fleet file."""
    return fleet.parse(text).hosts[0]


def test_the_gpus_of_a_guest_are_on_the_simulated_bus() -> None:
    assert [gpu.address for gpu in guest().gpus] == ["0001:00:00.0", "0001:00:01.0", "0001:00:02.0"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("nvswitches: 2", "have none in this lab"),
        ("secure_boot: true", "have none in this lab"),
        ('kind: {a: b}', "expected a text"),
        ("prebuilt: nvidia-kernel-dkms", "expected a list of names"),
    ],
)  # fmt: skip
def test_unsupported_keys_of_a_guest_are_refused(more: str, words: str) -> None:
    text = FLEET.replace("    kind: vm\n", "") if more.startswith("kind") else FLEET
    with pytest.raises(LabError, match=words):
        fleet.parse(f"{text}    {more}\n")


def test_a_guest_begins_with_the_first_of_its_kernels() -> None:
    assert vms.kernel(guest()) == "amd64"
    assert vms.kernel(guest(FLEET + '    kernels: ["6.1.0-47-amd64", "6.1.0-50-amd64"]\n')) == "6.1.0-47-amd64"
    with pytest.raises(LabError, match="only virtual machines have a kernel of their own"):
        fleet.parse(FLEET.replace("    kind: vm\n", "") + '    kernels: ["6.1.0-47-amd64"]\n')


def test_a_guest_has_eight_gpus_at_most() -> None:
    with pytest.raises(LabError, match="at most 8"):
        fleet.parse(FLEET.replace("count: 2", "count: 8"))


def test_the_bus_gets_ids_chips_and_classes_in_one_order() -> None:
    words = dict(word.split("=") for word in vms.bus_options(guest().gpus).split())
    assert words["ids"] == "0x1b38,0x1b38,0x2330"
    assert words["boot0"] == "0x132000a1,0x132000a1,0x180000a1"
    assert words["classes"] == "0x030200,0x030200,0x030200"
    assert int(words["base"], 16) == vm_run.RESERVED


def test_every_architecture_of_fleet_files_has_a_chip() -> None:
    assert set(vms.CHIPS) == set(fleet.ARCHITECTURES)


def test_the_ram_of_the_bus_is_reserved() -> None:
    assert f"memmap=512M$0x{vm_run.RESERVED:x}" in vm_run.CMDLINE
    assert fleet.MAX_GUEST_GPUS * 64 <= 512


def test_a_guest_gets_its_identity() -> None:
    files = vms.identity("guests", guest(), "10.199.0.249", "ssh-ed25519 AAAA lab", "http://10.199.0.1:3142")
    assert files["etc/hostname"][0] == "one\n"
    assert "Address=10.199.0.249/24" in str(files["etc/systemd/network/10-lab.network"][0])
    assert files["root/.ssh/authorized_keys"] == ("ssh-ed25519 AAAA lab", 0o600)
    assert "bus_id = 0001:00:02.0" in str(files["etc/gpu-ready-lab/nvml.conf"][0])


def test_the_newest_kernel_with_an_initial_ram_disk_is_booted(tmp_path: Path) -> None:
    boot = tmp_path / "root/boot"
    boot.mkdir(parents=True)
    for name in ("vmlinuz-6.1.0-9-amd64", "initrd.img-6.1.0-9-amd64", "vmlinuz-6.1.0-56-amd64", "initrd.img-6.1.0-56-amd64",
                 "vmlinuz-6.1.0-57-amd64", "config-6.1.0-58-amd64"):  # fmt: skip
        (boot / name).write_text(name)
    disk = tmp_path / "disk.img"
    try:
        subprocess.run(["/usr/bin/truncate", "-s", "16M", str(disk)], check=True)
        subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-d", str(tmp_path / "root"), str(disk)], check=True)
    except FileNotFoundError as error:
        pytest.skip(f"{error.filename} is not here: the lab installs it with e2fsprogs")
    assert disks.kernels(disk) == ["6.1.0-9-amd64", "6.1.0-56-amd64"]
    assert disks.kernel(disk, tmp_path) == "6.1.0-56-amd64"
    assert (tmp_path / "initrd").read_text() == "initrd.img-6.1.0-56-amd64"
    with pytest.raises(LabError, match="has no /boot/nothing"):
        disks.copy_out(disk, "/boot/nothing", tmp_path / "nothing")


def test_modules_as_released_are_built_without_security_updates_and_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []

    def bootstrap(suite: str, root: Path, packages: tuple[str, ...], *rest: Any) -> None:
        made.append(rest[2])
        for place in (
            "lib/modules/6.1.0/updates/dkms",
            "var/lib/dkms/nvidia-current-open/535.261.03/6.1.0/x86_64/module",
        ):
            (root / place).mkdir(parents=True)
            (root / place / "nvidia-current-open.ko").write_bytes(b"module")

    monkeypatch.setattr(vm_image, "directory", lambda: tmp_path)
    monkeypatch.setattr(vm_image, "_bootstrap", bootstrap)
    directory = vm_image.ensure_driver("bookworm", "6.1.0", "nvidia-open-kernel-dkms@release", None)
    assert (directory / "nvidia.ko").read_bytes() == b"module"
    assert vm_image.ensure_driver("bookworm", "6.1.0", "nvidia-open-kernel-dkms@release", None) == directory
    (hooks,) = made
    assert [hook.rpartition("/")[2] for hook in hooks] == ["preferences.d"]
    vm_image.ensure_driver("bookworm", "6.1.0", "nvidia-open-kernel-dkms", None)
    assert made[1:] == [[]]
    with pytest.raises(LabError, match="is not a package of NVIDIA's module sources"):
        vm_image.ensure_driver("bookworm", "6.1.0", "nvidia-driver@release", None)


def test_two_fleets_made_at_once_get_different_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    existing: list[hosts.Running] = []
    made = threading.Barrier(2, timeout=30)

    def prepare(guests: list[fleet.Host], proxy: str | None) -> dict[str, Path]:
        made.wait()
        return {guest.name: tmp_path for guest in guests}

    def create(name: str, host: fleet.Host, disk: Path, address: str, *rest: object) -> None:
        existing.append(hosts.Running(name, host.name, address, "exited", "vm"))

    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setattr(hosts, "existing", lambda: list(existing))
    monkeypatch.setattr(hosts, "ssh_key", lambda name: "key")
    monkeypatch.setattr(images, "ensure_all", lambda names, proxy: {})
    monkeypatch.setattr(vms, "prepare", prepare)
    monkeypatch.setattr(vms, "create", create)
    monkeypatch.setattr(vms, "switch_on", lambda name, host: None)
    fleets = [
        threading.Thread(target=hosts.up, args=(fleet.parse(FLEET.replace("guests", name)), None, {}))
        for name in ("first", "second")
    ]
    for one in fleets:
        one.start()
    for one in fleets:
        one.join(timeout=60)
    assert len({running.address for running in existing}) == 2
