"""Part `outputs`: what programs print and files contain about the GPUs, as it is and with identifiers replaced.

Nothing here changes a setting: nvidia-smi is only asked.
"""

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from plugins.module_utils.gpu_ready.base.host import MISSING, TIMED_OUT, Host
from tools.real_gpu import part
from tools.real_gpu.identifiers import replace_identifiers

SMI = "nvidia-smi"
LIMIT = 15.0
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


def ask(host: Host, hanging: set[str], argv: tuple[str, ...]) -> tuple[str | None, str]:
    """What a program printed (None: it does not exist or is not asked), and why that is nothing."""
    if argv[0] in hanging:
        return None, f"{argv[0]} hangs"
    # With this process's PATH: a program that the product's does not reach is asked nevertheless.
    answer = host.run([shutil.which(argv[0]) or argv[0], *argv[1:]], timeout=LIMIT)
    if answer.rc == MISSING:
        return None, f"{argv[0]} is missing"
    if answer.rc == TIMED_OUT:
        hanging.add(argv[0])
        return answer.out, f"no answer in {LIMIT:g} s"
    text = answer.out + answer.err if answer.rc else answer.out
    return text, "" if text else "it printed nothing"


def texts_of_files(host: Host) -> dict[str, str]:
    texts = {names_of(path): host.read(path) or "" for path in [*FILES, *files_below(DIRECTORY)]}
    rows = [
        f"{address} {name} {(host.read(f'/sys/bus/pci/devices/{address}/{name}') or '').strip()}\n"
        for address in host.listdir("/sys/bus/pci/devices")
        for name in PCI_FILES
    ]
    variables = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    environment = "".join(f"{name}={os.environ.get(name, '')}\n" for name in variables)
    return texts | {"sys-bus-pci": "".join(rows), "environment": environment}


def write(directory: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        if text:
            (directory / f"{name}.txt").write_text(text[:LARGEST], encoding="utf-8")


def main() -> str:
    host, raw = Host(), part.own_directory("outputs")
    texts = texts_of_files(host)
    write(raw, texts)
    hanging, missing = set[str](), []
    for program, argv in PROGRAMS.items():
        text, reason = ask(host, hanging, argv)
        if reason:
            missing.append(f"{program} ({reason})")
        texts[program] = text or ""
        write(raw, {program: texts[program]})  # at once: the next program may use up the time
    name = socket.gethostname()  # no question to a name server, which may not answer
    names = {name, name.partition(".")[0]}
    write(part.own_directory("corpus"), replace_identifiers(texts, names))
    part.need_gpu(host)
    return f"{sum(map(bool, texts.values()))} outputs" + (f"; without {', '.join(missing)}" if missing else "")


if __name__ == "__main__":
    part.run(main)
