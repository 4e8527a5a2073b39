"""NVIDIA's modules in the running kernel: which are loaded, what uses them, and the order of unloading."""

import re
from typing import Dict, List, NamedTuple, Optional

from ..base.evidence import FailureEvidence, Search, explained_later
from ..base.host import Host
from ..base.log_texts import key_line
from ..hardware import pci
from ..system import nvrm_version
from .gpu_processes import describe_commands, gpu_process_ids

UNLOAD_ORDER = (
    "nv_peer_mem", "gdrdrv", "nvidia_fs", "nvidia_vgpu_vfio", "nvidia_drm", "nvidia_modeset", "nvidia_uvm",
    "nvidia_peermem", "nvidia",
)  # fmt: skip
"""Users first. (NVIDIA's gpu-driver-container unloads in this order.)"""
EVENTS = ["xid", "sxid"]
"""Reports of a working GPU; never the reason why a module does not load."""
CONSEQUENCES = ["no_gpu_found", "probe_failed"]
"""Kernel messages that only repeat modprobe's error number: the module binds to no GPU."""


class NodeAccess(NamedTuple):
    """Owner, group and mode of the GPUs' device nodes."""

    uid: int
    gid: int
    mode: int


def loaded_modules(host: Host) -> List[str]:
    """Return NVIDIA's loaded modules, in the order in which they can be unloaded."""
    return [name for name in UNLOAD_ORDER if host.isdir("/sys/module/" + name)]


def bound_kernel_driver(host: Host) -> Optional[str]:
    """Return the kernel's own module (such as nouveau) that drives a GPU."""
    for module in pci.KERNEL_DRIVERS.values():
        drivers = "/sys/module/%s/drivers" % module
        for name in host.listdir(drivers):
            if [one for one in host.listdir("%s/%s" % (drivers, name)) if one[:1].isdigit()]:
                return module
    return None


def loaded_version(host: Host) -> str:
    """Return the version of the loaded driver, "" if none is loaded."""
    return (host.read("/sys/module/nvidia/version") or "").strip()


def is_current(host: Host) -> bool:
    """Return True if the loaded module is the installed one, by version, flavour and the checksum of its source.

    The kernel shows ``srcversion`` of the loaded module, modinfo shows the file's (MODULE_SRCVERSION_ALL). If either is
    missing, the modules count as different.
    """
    text = host.run(["modinfo", "nvidia"]).out
    installed = nvrm_version.read_modinfo(text)
    loaded = nvrm_version.read_proc_version(host.read("/proc/driver/nvidia/version") or "")
    source = re.search(r"(?m)^srcversion:\s+(\S+)$", text)
    return bool(
        source
        and loaded
        and source.group(1) == (host.read("/sys/module/nvidia/srcversion") or "").strip()
        and (installed.version, installed.flavour) == (loaded.version, loaded.flavour)
    )


def reference_count(host: Host, name: str) -> int:
    text = (host.read("/sys/module/%s/refcnt" % name) or "").strip()
    return int(text) if re.match(r"\d+$", text) else 0


def foreign_users(host: Host, names: List[str]) -> List[str]:
    """Return other modules that use one of ``names``."""
    users = {user for name in names for user in host.listdir("/sys/module/%s/holders" % name)}
    return sorted(users - set(names))


def module_users(host: Host, names: List[str]) -> str:
    """Return what uses the modules and prevents unloading, for messages; "" if nothing does."""
    commands = describe_commands(host, gpu_process_ids(host)[:8], 80)
    if commands:
        return "process " + ", ".join("%d (%s)" % item for item in commands.items())
    users = foreign_users(host, names)
    if users:
        return "the module " + ", ".join(users)
    # Modules that use a module count as references; more references than that mean a user without an open file.
    for name in names:
        users = [user for user in host.listdir("/sys/module/%s/holders" % name) if user in names]
        if reference_count(host, name) > len(users):
            return "an unknown user of the module %s (%d references; a console on the GPU, for instance)" % (
                name, reference_count(host, name) - len(users),
            )  # fmt: skip
    return ""


def describe_modprobe(name: str, output: str, kernel: str, messages: str) -> str:
    """Return the message for a failed modprobe: the kernel's reason, else modprobe's output.

    ``messages`` is the kernel's log since modprobe started, which has more than modprobe's error number.
    """
    quoted = key_line([output]) if output.strip() else "modprobe printed nothing"
    what = "the module %s does not load into the kernel %s" % (name, kernel)
    if "not found in directory" in output and not name.startswith("nvidia"):
        unknown = (
            "%s: this kernel has it in no installed package. Remedy: install the package with its further modules "
            "(linux-modules-extra on Ubuntu, kernel-modules-extra elsewhere), or boot a kernel of "
            "the distribution, then run again" % quoted
        )
    else:
        unknown = "%s. Remedy: read the end of the kernel's log, `dmesg`, then run again" % quoted
    searches = [
        Search([("dmesg", messages)], EVENTS + CONSEQUENCES),
        Search([("installer-log", output), ("dmesg", messages)], EVENTS),
    ]
    return "%s: %s" % (
        what,
        explained_later(FailureEvidence(searches, "the output of `dmesg`", quoted, unknown=unknown)),
    )


def parse_majors(text: str) -> Dict[str, int]:
    """Return character devices in /proc/devices: major number by name."""
    part = text.partition("Block devices")[0]
    return {name: int(number) for number, name in re.findall(r"(?m)^[ \t]*(\d+) (\S+)$", part)}


def node_access(host: Host) -> Optional[NodeAccess]:
    """Return access by the module's options NVreg_DeviceFile*; None if they leave the device nodes to other software.

    nvidia-modprobe reads the same file (nvidia-modprobe-utils.c in its source). The numbers are decimal.
    """
    options = dict(re.findall(r"^(\w+): (\d+)$", host.read("/proc/driver/nvidia/params") or "", re.MULTILINE))
    if options.get("ModifyDeviceFiles") == "0":
        return None
    return NodeAccess(
        int(options.get("DeviceFileUID", 0)),
        int(options.get("DeviceFileGID", 0)),
        int(options.get("DeviceFileMode", 0o666)),
    )


def device_nodes(host: Host) -> Dict[str, "tuple[int, int]"]:
    """Return device nodes that the loaded driver needs: (major, minor) by path."""
    known = parse_majors(host.read("/proc/devices") or "")
    major = known.get("nvidia", known.get("nvidia-frontend", 195))
    found = {"/dev/nvidiactl": (major, 255)}
    gpus = "/proc/driver/nvidia/gpus"
    for name in host.listdir(gpus):
        match = re.search(r"Device Minor:\s*(\d+)", host.read("%s/%s/information" % (gpus, name)) or "")
        if match:
            found["/dev/nvidia" + match.group(1)] = (major, int(match.group(1)))
    if "nvidia-uvm" in known:
        found["/dev/nvidia-uvm"] = (known["nvidia-uvm"], 0)
        found["/dev/nvidia-uvm-tools"] = (known["nvidia-uvm"], 1)
    return found
