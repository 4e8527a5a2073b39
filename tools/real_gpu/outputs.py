"""Part `outputs`: what programs print and files contain about the GPUs, as it is and with identifiers replaced.

Nothing here changes a setting: nvidia-smi is only asked.
"""

import os
import shutil
import socket
from pathlib import Path

from gpu_ready.base.host import MISSING, TIMED_OUT, Host

from tools.real_gpu import part
from tools.real_gpu.identifiers import replace_identifiers

SMI = "nvidia-smi"
LIMIT = 12.0
"""Seconds for one program."""
LARGEST = 4 << 20
PROGRAMS: dict[str, tuple[str, ...]] = {
    "nvidia-smi": (SMI,),
    "nvidia-smi-L": (SMI, "-L"),
    "nvidia-smi-q": (SMI, "-q"),
    "nvidia-smi-q-x": (SMI, "-x", "-q"),
    "nvidia-smi-topo": (SMI, "topo", "-m"),
    "nvidia-smi-nvlink": (SMI, "nvlink", "-s"),
    "nvidia-smi-pmon": (SMI, "pmon", "-c", "1", "-s", "um"),
    "dmesg": ("dmesg",),
    "lspci": ("lspci", "-nnk", "-d", "10de:"),
    "modinfo": ("modinfo", "nvidia"),
    "ldconfig": ("ldconfig", "-p"),
    "device-nodes": ("find", "/dev", "-maxdepth", "2", "-name", "nvidia*", "-ls"),
    "driver-files": (
        "find", "/usr/local/nvidia", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib/modules",
        "-name", "*nvidia*", "-o", "-name", "libcuda*",
    ),
}  # fmt: skip
FILES = ("/etc/os-release", "/proc/version", "/proc/cmdline", "/proc/modules", "/proc/mounts", "/proc/1/cgroup")
DIRECTORY = "/proc/driver/nvidia"
PCI_FILES = ("vendor", "device", "class", "numa_node", "current_link_speed", "current_link_width")


def names_of(path: str) -> str:
    return path.strip("/").replace("/", "-").replace(":", "_")


def files_below(directory: str) -> list[str]:
    """Regular files below a directory, without links."""
    found = (Path(parent, name) for parent, _, names in os.walk(directory) for name in names)
    return sorted(str(path) for path in found if path.is_file() and not path.is_symlink())


def collect(host: Host) -> tuple[dict[str, str], list[str]]:
    """The outputs by name, and what there was no output of, with the reason."""
    texts: dict[str, str] = {}
    missing: list[str] = []
    for name, argv in PROGRAMS.items():
        # With this process's PATH: what root's usual one does not reach is reported, and asked nevertheless.
        answer = host.run([shutil.which(argv[0]) or argv[0], *argv[1:]], timeout=LIMIT)
        if answer.rc in (MISSING, TIMED_OUT):
            missing.append(f"{name} ({'is missing' if answer.rc == MISSING else f'no answer in {LIMIT:g} s'})")
        if answer.out or answer.rc not in (0, MISSING):
            texts[name] = answer.out + answer.err if answer.rc else answer.out
    for path in [*FILES, *files_below(DIRECTORY)]:
        text = host.read(path)
        if text:
            texts[names_of(path)] = text
    rows = [
        f"{address} {name} {(host.read(f'/sys/bus/pci/devices/{address}/{name}') or '').strip()}\n"
        for address in host.listdir("/sys/bus/pci/devices")
        for name in PCI_FILES
    ]
    texts["sys-bus-pci"] = "".join(rows)
    variables = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    texts["environment"] = "".join(f"{name}={os.environ.get(name, '')}\n" for name in variables)
    return {name: text[:LARGEST] for name, text in texts.items() if text}, missing


def write(directory: Path, texts: dict[str, str]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / f"{name}.txt").write_text(text, encoding="utf-8")


def main() -> str:
    host = Host()
    texts, missing = collect(host)
    write(part.own_directory("outputs"), texts)
    write(part.own_directory("corpus"), replace_identifiers(texts, {socket.gethostname(), socket.getfqdn()}))
    part.need_gpu(host)
    return f"{len(texts)} outputs" + (f"; without {', '.join(missing)}" if missing else "")


if __name__ == "__main__":
    part.run(main)
