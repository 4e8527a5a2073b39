"""NVIDIA's modules in the running kernel: which are loaded, what holds them, and the order of loading and unloading."""

import re
from typing import Dict, List, NamedTuple

from .host import Host

UNLOAD_ORDER = (
    "nv_peer_mem", "gdrdrv", "nvidia_fs", "nvidia_vgpu_vfio", "nvidia_drm", "nvidia_modeset", "nvidia_uvm",
    "nvidia_peermem", "nvidia",
)  # fmt: skip
"""Users first. (NVIDIA's gpu-driver-container unloads in this order.)"""
SERVICES = (
    "nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service", "dcgm-exporter.service", "nvidia-dcgm.service",
    "nvidia-gridd.service", "nvidia-topologyd.service", "nvidia-imex.service", "nvidia-fabricmanager.service",
    "nvidia-persistenced.service",
)  # fmt: skip
"""Services that hold the device for the system, not for somebody's work: stopped in this order, started in reverse."""


DKMS_TREES = ("extra", "updates/dkms", "updates")
"""Folders below /lib/modules/KERNEL that DKMS installs to, by distribution."""


class Holder(NamedTuple):
    """A process that has a GPU open."""

    pid: int
    command: str


def loaded(host: Host) -> List[str]:
    """Return the modules of NVIDIA that are loaded, in the order in which they can be unloaded."""
    return [name for name in UNLOAD_ORDER if host.isdir("/sys/module/" + name)]


def lost(status: str, kernel: str, there: List[str]) -> List[str]:
    """Return those of DKMS's modules for a kernel ("nvidia/580.95.05") whose files are gone though DKMS installed them.

    ``status`` is what `dkms status` printed, ``there`` the files in DKMS_TREES. The open and the proprietary module
    have the same file names, so that the RPM package of one, removed after the other was installed, takes that along.
    """
    if any(name.partition(".ko")[0] == "nvidia" for name in there):
        return []
    found = []
    for line in status.splitlines():
        match = re.match(r"(nvidia[\w-]*)(?:/|, )([^,/ ]+), ([^,]+), [^:]+: installed\b.*[Dd]iff", line)
        if match and match.group(3) == kernel:
            found.append("%s/%s" % match.group(1, 2))
    return found


def version(host: Host) -> str:
    """Return the version of the loaded driver, "" when none is."""
    return (host.read("/sys/module/nvidia/version") or "").strip()


def references(host: Host, name: str) -> int:
    """Return how often a loaded module is in use."""
    text = (host.read("/sys/module/%s/refcnt" % name) or "").strip()
    return int(text) if re.match(r"\d+$", text) else 0


def foreign_users(host: Host, names: List[str]) -> List[str]:
    """Return modules of others that use one of ``names``."""
    users = {user for name in names for user in host.listdir("/sys/module/%s/holders" % name)}
    return sorted(users - set(names))


def processes(host: Host) -> List[Holder]:
    """Return the processes that have a device of NVIDIA open."""
    found = []
    for name in host.listdir("/proc"):
        if not name.isdigit():
            continue
        folder = "/proc/%s/fd" % name
        if any((host.readlink("%s/%s" % (folder, fd)) or "").startswith("/dev/nvidia") for fd in host.listdir(folder)):
            command = (host.read("/proc/%s/cmdline" % name) or "").replace("\0", " ").strip()
            found.append(Holder(int(name), command[:80] or (host.read("/proc/%s/comm" % name) or "?").strip()))
    return found


def held(host: Host, names: List[str]) -> str:
    """Return what keeps the modules from being unloaded, as words; "" when nothing does."""
    people = processes(host)
    if people:
        return "process " + ", ".join("%d (%s)" % holder for holder in people[:8])
    users = foreign_users(host, names)
    if users:
        return "the module " + ", ".join(users)
    # A module's own users count as references; more of them than users means somebody without an open file.
    for name in names:
        users = [user for user in host.listdir("/sys/module/%s/holders" % name) if user in names]
        if references(host, name) > len(users):
            return "an unknown user of the module %s (%d references; a console on the GPU, for instance)" % (
                name, references(host, name) - len(users),
            )  # fmt: skip
    return ""


def explain(name: str, text: str, kernel: str, messages: str) -> str:
    """Return one sentence for a modprobe that failed; ``messages`` is the kernel's log."""
    said = [line.split("] ", 1)[-1].strip() for line in messages.splitlines() if re.search(r"NVRM|nvidia", line)]
    log = "; the kernel said: " + " / ".join(said[-4:])[:600] if said else ""
    cause = text.strip().splitlines()[-1].strip() if text.strip() else "it said nothing"
    if "Key was rejected" in text or "Required key not available" in text:
        remedy = "Secure Boot accepts only signed modules: enrol the key that DKMS signs with (mokutil --import)"
    elif "not found in directory" in text:
        remedy = (
            "it was not built for the running kernel %s: see `dkms status`, and reboot into a newer kernel" % kernel
        )
    elif "Exec format error" in text or "Invalid argument" in text:
        remedy = "it was built for another kernel than the running %s: see `dkms status`" % kernel
    elif "No such device" in text:
        remedy = "this driver cannot drive a GPU of this host, or another driver (nouveau, vfio-pci) has it"
    else:
        remedy = "see `dmesg` on the host"
    return "the module %s does not load (%s): %s%s" % (name, cause, remedy, log)


def majors(text: str) -> Dict[str, int]:
    """Read the character devices of /proc/devices: major number by name."""
    part = text.partition("Block devices")[0]
    return {name: int(number) for number, name in re.findall(r"(?m)^\s*(\d+) (\S+)$", part)}


def nodes(host: Host) -> Dict[str, "tuple[int, int]"]:
    """Return the device nodes that the loaded driver needs: (major, minor) by path."""
    known = majors(host.read("/proc/devices") or "")
    major = known.get("nvidia", known.get("nvidia-frontend", 195))
    found = {"/dev/nvidiactl": (major, 255)}
    folder = "/proc/driver/nvidia/gpus"
    for name in host.listdir(folder):
        match = re.search(r"Device Minor:\s*(\d+)", host.read("%s/%s/information" % (folder, name)) or "")
        if match:
            found["/dev/nvidia" + match.group(1)] = (major, int(match.group(1)))
    if "nvidia-uvm" in known:
        found["/dev/nvidia-uvm"] = (known["nvidia-uvm"], 0)
        found["/dev/nvidia-uvm-tools"] = (known["nvidia-uvm"], 1)
    return found
