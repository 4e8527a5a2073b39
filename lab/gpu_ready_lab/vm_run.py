"""Runs one virtual machine until it is powered off: python -m gpu_ready_lab.vm_run DIRECTORY.

It is the machine's boot loader: a guest that reboots ends its QEMU, and the next QEMU starts with the kernel and
initial RAM disk that the guest's disk has then.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import disks
from .say import LabError, wait_for

RESERVED = 0x20000000
"""Start address of the RAM of the simulated PCI functions; 64 MiB per function, at most eight."""
CMDLINE = "root=/dev/vda rw console=ttyS0 net.ifnames=0 panic=5 memmap=512M$0x20000000"


def argv(directory: Path, machine: dict[str, Any]) -> list[str]:
    """Return the command of a guest's QEMU."""
    return [
        "/usr/bin/qemu-system-x86_64", "-name", f"{machine['fleet']}-{machine['host']}", "-machine", "q35",
        "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", str(machine["memory_mib"]), "-no-reboot",
        "-kernel", str(directory / "vmlinuz"), "-initrd", str(directory / "initrd"), "-append", CMDLINE,
        "-drive", f"file={machine['disk']},format=raw,if=virtio,cache=unsafe",
        "-netdev", f"tap,id=net0,ifname={machine['tap']},script=no,downscript=no",
        "-device", f"virtio-net-pci,netdev=net0,mac={machine['mac']}",
        "-virtfs", f"local,path={directory / 'share'},mount_tag=lab,security_model=none,id=lab",
        "-virtfs", f"local,path={machine['modules']},mount_tag=modules,security_model=none,id=modules,readonly=on",
        "-qmp", f"unix:{directory / 'qmp'},server=on,wait=on", "-serial", f"file:{directory / 'console.log'}",
        "-monitor", "none", "-display", "none", "-vga", "none",
    ]  # fmt: skip


def messages(connection: socket.socket) -> Iterator[dict[str, Any]]:
    """Yield the messages of QEMU's monitor until it ends."""
    with connection.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)


def run_once(directory: Path, machine: dict[str, Any]) -> str:
    """Boot the guest and return why its QEMU ended: guest-reset, guest-shutdown, or what else QEMU calls it."""
    (directory / "release").write_text(disks.kernel(Path(machine["disk"]), directory) + "\n")
    (directory / "qmp").unlink(missing_ok=True)
    with (directory / "qemu.log").open("ab") as log:
        process = subprocess.Popen(argv(directory, machine), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    (directory / "qemu.pid").write_text(f"{process.pid}\n")
    reason = "ended"
    wait_for(lambda: (directory / "qmp").exists() or process.poll() is not None, limit=90, what="QEMU's monitor")
    if process.poll() is None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(directory / "qmp"))
            connection.sendall(b'{"execute": "qmp_capabilities"}\n')
            for message in messages(connection):
                if message.get("event") == "SHUTDOWN":
                    reason = str(message["data"]["reason"])
    process.wait()
    return reason


def main(directory: Path) -> int:
    """Run the guest until it is powered off."""
    machine = json.loads((directory / "machine.json").read_text())
    try:
        while run_once(directory, machine) == "guest-reset":
            pass
    except (LabError, OSError, ValueError) as error:
        with (directory / "qemu.log").open("a") as log:
            log.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
