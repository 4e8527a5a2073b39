"""Make samples again: run the commands of the index in root file systems of Debian (README.md says how to make these).

    sudo .venv/bin/python -m tests.corpus.record ROOTS [PART OF A FILE NAME...]

Each command runs in namespaces of its own (mounts, processes, network, host name). Its output replaces the sample. Expected
readings are written by people who read the outputs, so a changed sample is a change to review.
"""

import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import pci_tree
from gpu_ready_lab.fleet import Gpu, Host
from gpu_ready_lab.hardware import NVML_ARCHITECTURE

HERE = Path(__file__).resolve().parent
LAB = HERE.parents[1] / "lab/gpu_ready_lab/data"
VERSIONS = {"debian12": "535.309.01", "debian13": "550.163.01"}
ENTER = """\
set -e
hostname node1
ip link set lo up
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
cd "$1/root"
mount -t proc proc proc
mount -t tmpfs tmpfs tmp
mkdir -p dev/pts
mount -t devpts -o ptmxmode=666 devpts dev/pts
ln -sf pts/ptmx dev/ptmx
mount --rbind "$3" mnt
[ ! -e "$3/sys" ] || mount --rbind "$3/sys" sys
exec chroot . sh /mnt/run
"""


def nvml_configuration(gpus: str, version: str) -> str:
    """Return what the mock of NVML shows: "key=value" for the library, then "DEVICE@ADDRESS key=value ..." per GPU."""
    known = yaml_load((LAB / "gpus.yml").read_text())
    lines, index = [f"driver_version = {version}", f"library_version = {version}", "require_dev = 0"], 0
    for word in gpus.split():
        device, at, address = word.partition("@")
        if not at:
            lines.append(word.replace("=", " = ", 1))
            continue
        gpu = known[device]
        identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{device}/{address}")
        lines += [
            f"[gpu {index}]", f"name = {gpu['name']}", f"uuid = GPU-{identity}", f"serial = 16540{index:08d}",
            f"bus_id = {address}", f"pci_id = 0x{device}", f"pci_subsys = 0x{gpu['subsystem']}",
            f"compute_cap = {gpu['compute']}", f"architecture = {NVML_ARCHITECTURE[gpu['architecture']]}",
            f"memory_mib = {gpu['memory_mib']}", f"numa = {int(address[5] >= '8')}",
        ]  # fmt: skip
        index += 1
    return "\n".join(lines) + "\n"


def write_pci_tree(functions: str, directory: Path) -> None:
    """Write /sys/bus/pci of a host with "DEVICE@ADDRESS" and "DEVICE@ADDRESS:DRIVER" (22a3: an NVSwitch)."""
    known, gpus, switches = yaml_load((LAB / "gpus.yml").read_text()), [], []
    for word in functions.split():
        device, _, place = word.partition("@")
        address, driver = place[:12], place[13:] or None
        gpu = known.get(device, {"name": "", "architecture": "hopper", "class": "0302", "subsystem": "0000"})
        if device == "22a3":
            switches.append((address, device))
        else:
            gpus.append(
                Gpu(device, gpu["name"], gpu["architecture"], gpu["class"], gpu["subsystem"], 0, "", address, driver)
            )
    files, links = pci_tree.tree(Host("node1", "debian12", gpus=tuple(gpus), nvswitches=tuple(switches)))
    for name in [*files, *links]:
        path = directory / "bus/pci" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in files:
            path.write_bytes(files[name])
        else:
            path.symlink_to(links[name])


def record(entry: dict[str, Any], roots: Path, work: Path) -> None:
    """Run one entry's command and write what it prints."""
    system = entry["system"]
    lines = ["export LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    lines += [". /mnt/setup.sh", "cd /tmp", "echo nameserver 192.0.2.1 >/etc/resolv.conf"]
    if "nvml" in entry:
        (work / "nvml.conf").write_text(nvml_configuration(entry["nvml"], VERSIONS[system]))
        lines.append("export LD_LIBRARY_PATH=/mnt/nvml NVML_MOCK_CONF=/mnt/nvml.conf")
    shutil.rmtree(work / "sys", ignore_errors=True)
    if "pci" in entry:
        write_pci_tree(entry["pci"], work / "sys")
    lines += ["{", entry["setup"], "} >/dev/null 2>&1"] if "setup" in entry else []
    (work / "run").write_text("\n".join([*lines, "exec 2>&1", entry["command"]]) + "\n")
    (work / "setup.sh").write_text((HERE / "setup.sh").read_text())
    command = ["unshare", "-mpnu", "--fork", "sh", "-c", ENTER, "sh", roots / "mounts", roots / system, work]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=600, check=False)
    target = HERE / entry["file"]
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(answer.stdout)
    print(f"{answer.returncode:3} {entry['file']}", flush=True)


def record_all(roots: Path, work: Path, parts: list[str]) -> None:
    """Run the commands of the entries that the parts choose."""
    (work / "nvml").mkdir()
    library = work / "nvml/libnvidia-ml.so.1"
    subprocess.run(["gcc", "-std=gnu11", "-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-Wno-override-init",
                    "-o", library, LAB / "nvml/nvml_mock.c", "-ldl"], check=True)  # fmt: skip
    for entry in yaml_load((HERE / "index.yaml").read_text()):
        if "command" in entry and (not parts or any(part in entry["file"] for part in parts)):
            record(entry, roots, work)


def main() -> None:
    roots, parts = Path(sys.argv[1]).resolve(), sys.argv[2:]
    (roots / "mounts").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=roots) as work:
        record_all(roots, Path(work), parts)


if __name__ == "__main__":
    main()
