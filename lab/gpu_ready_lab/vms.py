"""Lab hosts with a kernel of their own: QEMU guests on the lab's bridge, with a PCI bus that has simulated GPUs."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import disks, dress, engine, hardware, images, paths, vendors, vm_image, vm_run
from .fleet import Gpu, Host
from .say import LabError, recorded, run, say, wait_for

QEMU = "/usr/bin/qemu-system-x86_64"
NEEDS = {
    QEMU: "qemu-system-x86",
    "/usr/sbin/debugfs": "e2fsprogs",
}
NO_TCG = "this machine's QEMU does not emulate processors (no accelerator tcg): virtual machines cannot run here"
BOOT_LIMIT = 600  # seconds; a boot takes half a minute when the machine has nothing else to do
GREETING_LIMIT = 60.0
MEMORY_MIB = 3072
# Register PMC_BOOT_0 of a chip of each architecture, by which the driver identifies it.
CHIPS = {
    "fermi": 0x0C0000A1, "kepler": 0x0F2000A1, "maxwell": 0x124000A1, "pascal": 0x132000A1, "volta": 0x140000A1,
    "turing": 0x164000A1, "ampere": 0x170000A1, "hopper": 0x180000A1, "grace_hopper": 0x180000A1, "ada": 0x194000A1,
    "blackwell": 0x1A0000A1,
}  # fmt: skip


def directory(fleet: str, host: str) -> Path:
    """Return the directory of a running guest's sockets, logs and share."""
    return paths.STATE / "vm" / fleet / host


def existing() -> list[dict[str, Any]]:
    """Return the description of every guest, running or off."""
    return [json.loads(path.read_text()) for path in sorted((paths.STATE / "vm").glob("*/*/machine.json"))]


def state(fleet: str, host: str) -> str:
    """Return running or exited."""
    return "running" if _pid(directory(fleet, host), "supervisor.pid") else "exited"


def _pid(where: Path, name: str) -> int | None:
    """A recorded process id, if the process is alive and belongs to this guest."""
    return recorded(where / name, where)


def prepare(hosts: list[Host], proxy: str | None) -> dict[str, Path]:
    """Build all that guests are made of, and return the disk that each starts from."""
    engine.need_packages(NEEDS, "virtual machines")
    if "tcg" not in run([QEMU, "-accel", "help"], limit=20, what="list the accelerators of QEMU").split():
        raise LabError(NO_TCG)
    found: dict[str, Path] = {}
    for host in hosts:
        suite = dress.read(host.distribution).root
        if dress.read(host.distribution).name not in ("debian12", "debian13"):
            raise LabError(f"{host.name}: virtual machines are debian12 or debian13, not {host.distribution}")
        disk = vm_image.ensure(suite, f"linux-image-{kernel(host)}", host.preinstalled, proxy)
        for release in host.kernels or disks.kernels(disk):
            vm_image.ensure_bus(suite, release, proxy)
            for package in host.prebuilt:
                vm_image.ensure_driver(suite, release, package, proxy)
        found[host.name] = disk
    return found


def kernel(host: Host) -> str:
    """The package of the kernel that a guest begins with; the small kernel for clouds does not support shares."""
    return host.kernels[0] if host.kernels else "amd64"


def create(fleet: str, host: Host, disk: Path, address: str, key: str, proxy: str | None) -> None:
    """Create a guest, powered off."""
    where = directory(fleet, host.name)
    own = vm_image.directory() / "hosts" / f"{fleet}-{host.name}.img"
    own.parent.mkdir(parents=True, exist_ok=True)
    (where / "share").mkdir(parents=True, exist_ok=True)
    run(["/usr/bin/cp", "--sparse=always", "--reflink=auto", str(disk), str(own)], limit=900, what="copy a disk")
    number = int(address.rsplit(".", 1)[1])
    (where / "share/identity.tar").write_bytes(images.pack(identity(fleet, host, address, key, proxy)))
    machine = {
        "fleet": fleet, "host": host.name, "address": address, "key": key.strip(),
        "disk": str(own), "memory_mib": MEMORY_MIB,
        "tap": f"grlv{number}", "mac": f"52:54:00:67:72:{number:02x}", "modules": str(vm_image.modules()),
    }  # fmt: skip
    (where / "machine.json").write_text(json.dumps(machine, indent=1))


def identity(fleet: str, host: Host, address: str, key: str, proxy: str | None) -> dict[str, tuple[bytes | str, int]]:
    """Return the files that make a guest this host."""
    network = f"[Match]\nName=eth0\n\n[Network]\nAddress={address}/24\nDHCP=no\nLinkLocalAddressing=no\n"
    files: dict[str, tuple[bytes | str, int]] = {
        "etc/hostname": (f"{host.name}\n", 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {host.name}\n{vendors.etc_hosts()}", 0o644),
        "etc/systemd/network/10-lab.network": (network, 0o644),
        "root/.ssh/authorized_keys": (key, 0o600),
        "etc/gpu-ready-lab/nvml.conf": (hardware.nvml_conf(fleet, host), 0o644),
    }
    if host.gpus:
        files["etc/gpu-ready-lab/pci-options"] = (bus_options(host.gpus) + "\n", 0o644)
    if host.nouveau:
        files["etc/gpu-ready-lab/nouveau"] = ("", 0o644)
    if proxy:
        files |= vendors.apt_files(proxy)
    return files


def bus_options(gpus: tuple[Gpu, ...]) -> str:
    """The options of the module that simulates a PCI bus."""
    parts = {
        "ids": [f"0x{gpu.device}" for gpu in gpus],
        "boot0": [f"0x{CHIPS[gpu.architecture]:08x}" for gpu in gpus],
        "subsystems": [f"0x{gpu.subsystem}" for gpu in gpus],
        "classes": [f"0x{gpu.pci_class}00" for gpu in gpus],
    }
    lists = [f"{name}={','.join(values)}" for name, values in parts.items()]
    return " ".join([*lists, f"base=0x{vm_run.RESERVED:x}"])


def start(fleet: str, host: str) -> None:
    """Power a guest on."""
    where = directory(fleet, host)
    machine = json.loads((where / "machine.json").read_text())
    (where / "share/host-key").unlink(missing_ok=True)
    if not Path(f"/sys/class/net/{machine['tap']}").exists():
        ip = "/usr/sbin/ip"
        run([ip, "tuntap", "add", "dev", machine["tap"], "mode", "tap"], limit=30, what="make a network interface")
        run([ip, "link", "set", machine["tap"], "master", paths.BRIDGE, "up"], limit=30, what=f"join {paths.BRIDGE}")
    environment = dict(os.environ, PYTHONPATH=str(paths.REPO / "lab"))
    with (where / "supervisor.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gpu_ready_lab.vm_run", str(where)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment,
        )  # fmt: skip
    (where / "supervisor.pid").write_text(f"{process.pid}\n")
    # While a process is being started its command line is empty for a moment.
    begun = f"the start of {host} (its log: {where / 'supervisor.log'})"
    wait_for(lambda: state(fleet, host) == "running", limit=60, what=begun)


def wait_booted(fleet: str, host: str) -> None:
    """Wait until a guest has booted and its sshd answers."""
    where = directory(fleet, host)
    machine = json.loads((where / "machine.json").read_text())

    def ready() -> bool:
        if state(fleet, host) != "running":
            raise LabError(f"{host} ended by itself: {_tail(where / 'qemu.log') or 'QEMU printed nothing'}")
        return (where / "share/host-key").exists() and answers(machine["address"])

    try:
        wait_for(ready, limit=BOOT_LIMIT, what=f"sshd on the guest {host}", pause=1)
    except LabError as error:
        raise LabError(
            f"{error}; its console ({where / 'console.log'}) shows: {_tail(where / 'console.log')}"
        ) from None


def answers(address: str) -> bool:
    """True if an SSH server sends its banner. Setting up a session takes an emulated processor many seconds."""
    try:
        with socket.create_connection((address, 22), timeout=GREETING_LIMIT) as connection:
            connection.settimeout(GREETING_LIMIT)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    return "\n  ".join(path.read_text(errors="replace").strip().splitlines()[-6:])


def host_key(fleet: str, host: str) -> str:
    """A guest's SSH key, as the guest wrote it into its share."""
    return (directory(fleet, host) / "share/host-key").read_text().strip()


def kill(fleet: str, host: str) -> None:
    """Cut a guest's power: what it had not written to its disk is lost."""
    for name in ("supervisor.pid", "qemu.pid"):  # the supervisor first, which would start the next QEMU
        _kill(directory(fleet, host), name)


def _kill(where: Path, name: str) -> None:
    """Kill a recorded process of a guest and wait for its end."""
    pid = _pid(where, name)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: _pid(where, name) is None, limit=60, what=f"the end of {name}")


def remove(fleet: str, host: str) -> None:
    """Remove a guest with its disk."""
    where = directory(fleet, host)
    machine = json.loads((where / "machine.json").read_text())
    kill(fleet, host)
    if Path(f"/sys/class/net/{machine['tap']}").exists():
        run(["/usr/sbin/ip", "link", "delete", machine["tap"]], limit=30, what=f"delete {machine['tap']}")
    Path(machine["disk"]).unlink(missing_ok=True)
    shutil.rmtree(where)
    if not any(where.parent.iterdir()):
        where.parent.rmdir()


def switch_on(fleet: str, host: str) -> None:
    """Start a guest that is off, and wait until it has booted."""
    began = time.monotonic()
    off = state(fleet, host) != "running"
    if off:
        start(fleet, host)
    wait_booted(fleet, host)
    if off:
        say(f"{host}: booted in {time.monotonic() - began:.0f} s")
