"""NVIDIA's modules in the running kernel: which are loaded, what holds them, and the order of loading and unloading."""

import re
from typing import Dict, List, NamedTuple, Optional

from ..base import validation
from ..base.host import Host
from ..hardware import pci

UNLOAD_ORDER = (
    "nv_peer_mem", "gdrdrv", "nvidia_fs", "nvidia_vgpu_vfio", "nvidia_drm", "nvidia_modeset", "nvidia_uvm",
    "nvidia_peermem", "nvidia",
)  # fmt: skip
"""Users first. (NVIDIA's gpu-driver-container unloads in this order.)"""
CONSEQUENCES = ("no_gpu_found", "probe_failed")
"""What the kernel says of every module that takes no GPU; modprobe's error number says as much."""


class NodeAccess(NamedTuple):
    """Who may open the GPUs: owner, group and mode of the device nodes."""

    uid: int
    gid: int
    mode: int


class Holder(NamedTuple):
    """A process that has a GPU open."""

    pid: int
    command: str


def loaded(host: Host) -> List[str]:
    """Return the modules of NVIDIA that are loaded, in the order in which they can be unloaded."""
    return [name for name in UNLOAD_ORDER if host.isdir("/sys/module/" + name)]


def kernels_own(host: Host) -> Optional[str]:
    """Return the kernel's own module that drives a GPU, None where none does."""
    for module in pci.KERNEL_DRIVERS.values():
        folder = "/sys/module/%s/drivers" % module
        for name in host.listdir(folder):
            if [one for one in host.listdir("%s/%s" % (folder, name)) if one[:1].isdigit()]:
                return module
    return None


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
            words = [word for word in (host.read("/proc/%s/cmdline" % name) or "").split("\0") if word]
            command = " ".join(" ".join(validation.command(words)).split())
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
    """Return one sentence for a modprobe that failed: what the kernel said to it, else what modprobe printed.

    ``messages`` is what the kernel's log got since modprobe was started: it knows more than modprobe's error number.
    """
    from ..diagnostics import failure

    said = failure.quoted([text]) if text.strip() else "modprobe said nothing"
    found = failure.find([("dmesg", messages)], failure.EVENTS + CONSEQUENCES) or failure.find(
        [("installer-log", text), ("dmesg", messages)], failure.EVENTS
    )
    what = "the module %s does not load into the kernel %s" % (name, kernel)
    if found is None:
        return "%s (%s): see what the kernel said of it at the end of its log, `dmesg`" % (what, said)
    shown = "%s; %s" % (said, found.message) if found.message and found.message not in said else said
    because = failure.clause(found._replace(message=None))
    return "%s (%s): %s; the whole log is what `dmesg` prints" % (what, shown, because)


def majors(text: str) -> Dict[str, int]:
    """Read the character devices of /proc/devices: major number by name."""
    part = text.partition("Block devices")[0]
    return {name: int(number) for number, name in re.findall(r"(?m)^\s*(\d+) (\S+)$", part)}


def node_access(host: Host) -> Optional[NodeAccess]:
    """Return whose device nodes are by the module's options (NVreg_DeviceFile*), None where it leaves them to others.

    The file is the one that nvidia-modprobe asks (nvidia-modprobe-utils.c in its source); numbers are decimal there.
    """
    said = dict(re.findall(r"^(\w+): (\d+)$", host.read("/proc/driver/nvidia/params") or "", re.MULTILINE))
    if said.get("ModifyDeviceFiles") == "0":
        return None
    return NodeAccess(
        int(said.get("DeviceFileUID", 0)), int(said.get("DeviceFileGID", 0)), int(said.get("DeviceFileMode", 0o666))
    )


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
