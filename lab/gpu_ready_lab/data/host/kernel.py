#!/usr/bin/python3
"""The simulated kernel of a lab host: boots, loads and unloads modules, keeps what /sys and /proc say of them.

usage: kernel boot | coldplug | load FILE [PARAMETERS] | unload NAME | refresh

The real modprobe, rmmod, lsmod and modinfo work on top (see preload.c). What is loaded lives in /run, so that
a reboot forgets it. `load` judges as the real driver does: the module must be built for the running kernel,
find what it depends on, and find a GPU that it can drive. The exit status is the errno of the system call.
"""

import errno
import fcntl
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import time
import uuid
import zlib
from pathlib import Path
from typing import Any

ETC = Path("/etc/gpu-ready-lab")
RUN = Path("/run/gpu-ready-lab")
PCI = RUN / "pci"
MODULE = RUN / "module"
DRIVER = RUN / "driver"
PROC_MODULES = RUN / "proc-modules"
STATE = RUN / "modules.json"
KMSG = RUN / "kmsg"
LOADED = Path("/usr/lib/systemd/system/gpu-ready-lab-nvidia.target")

# What NVIDIA's branches drive: (first branch, last branch), None for no bound.
BRANCHES: dict[str, tuple[int | None, int | None]] = {
    "fermi": (None, 390),
    "kepler": (None, 470),
    "maxwell": (None, 580),
    "pascal": (None, 580),
    "volta": (None, 580),
    "turing": (410, None),
    "ampere": (450, None),
    "ada": (520, None),
    "hopper": (520, None),
    "grace_hopper": (535, None),
    "blackwell": (570, None),
}
WITHOUT_GSP = ("fermi", "kepler", "maxwell", "pascal", "volta")  # the open modules need a GSP
SIGNED = b"~Module signature appended~\n"
TRUSTED = ("Canonical", "Debian", "Red Hat", "Rocky", "CentOS", "Fedora", "Amazon")  # whose keys their kernels have
OPEN_ONLY = ("grace_hopper", "blackwell")
DEFAULT_PARAMETERS: dict[str, int | str] = {
    "ModifyDeviceFiles": 1,
    "DeviceFileUID": 0,
    "DeviceFileGID": 0,
    "DeviceFileMode": 0o666,
    "EnableStreamMemOPs": 0,
    "NvLinkDisable": 0,
    "RestrictProfilingToAdminUsers": 1,
    "PreserveVideoMemoryAllocations": 0,
    "RegistryDwords": "",
    "ExcludedGpus": "",
}


class Refused(Exception):
    """The system call fails with this errno."""

    def __init__(self, number: int, *messages: str) -> None:
        super().__init__(number)
        self.number = number
        self.messages = messages


def release() -> str:
    """Return the release of the pretended kernel."""
    return (ETC / "kernel-release").read_text().strip()


def host() -> dict[str, Any]:
    """Return what the fleet file says of this host's hardware."""
    found: dict[str, Any] = json.loads((ETC / "host.json").read_text())
    return found


def modules() -> dict[str, dict[str, Any]]:
    """Return what is loaded, in order of loading."""
    try:
        found: dict[str, dict[str, Any]] = json.loads(STATE.read_text())
    except FileNotFoundError:
        return {}
    return found


def kmsg(text: str) -> None:
    """Add a line to the kernel's log, as dmesg shows it."""
    since = time.clock_gettime(time.CLOCK_MONOTONIC) - float((RUN / "booted").read_text())
    with KMSG.open("a") as log:
        log.write(f"<6>[{since:12.6f}] {text}\n")


# ---- module files ---------------------------------------------------------------------------------


def modinfo(path: str) -> dict[str, list[str]]:
    """Return the .modinfo section of a module file: tag -> values."""
    with open(path, "rb") as file:  # noqa: PTH123 - may be a /proc/PID/fd link
        header = file.read(64)
        if header[:4] != b"\x7fELF":
            raise Refused(errno.ENOEXEC, "module is not an ELF file")
        offset = struct.unpack_from("<Q", header, 0x28)[0]
        size, count, names_at = struct.unpack_from("<HHH", header, 0x3A)
        file.seek(offset)
        table = file.read(size * count)
        sections = [struct.unpack_from("<IIQQQQ", table, i * size) for i in range(count)]
        file.seek(sections[names_at][4])
        names = file.read(sections[names_at][5])
        found: dict[str, list[str]] = {}
        for name, _type, _flags, _address, at, length in sections:
            if names[name : names.index(b"\0", name)] != b".modinfo":
                continue
            file.seek(at)
            for item in file.read(length).split(b"\0"):
                tag, equals, value = item.decode(errors="replace").partition("=")
                if equals:
                    found.setdefault(tag, []).append(value)
        return found


def signer(path: str) -> str | None:
    """Return whose signature is appended to a module file (include/linux/module_signature.h), None for none."""
    data = Path(path).read_bytes()
    if not data.endswith(SIGNED):
        return None
    end = len(data) - len(SIGNED) - 12
    name, key, length = struct.unpack_from(">3xBB3xI", data, end)
    start = end - length - key - name
    return data[start : start + name].decode(errors="replace")


def built_in() -> set[str]:
    """Return the names of what the pretended kernel has built in."""
    lines = Path(f"/lib/modules/{release()}/modules.builtin").read_text().splitlines()
    return {Path(line).stem.replace("-", "_") for line in lines}


# ---- loading --------------------------------------------------------------------------------------


def load(path: str, parameters: str) -> None:
    """Load a module, or refuse."""
    info = modinfo(path)
    loaded = modules()
    name = info.get("name", [Path(os.path.realpath(path)).name.split(".")[0]])[0].replace("-", "_")
    if name in loaded:
        raise Refused(errno.EEXIST)
    built_for = info.get("vermagic", [""])[0].split(" ")[0]
    if built_for != release():
        raise Refused(
            errno.ENOEXEC,
            f"{name}: version magic '{info.get('vermagic', [''])[0]}' should be"
            f" '{release()} SMP preempt mod_unload modversions '",
        )
    if (ETC / "efivars").exists() and "Y" not in info.get("intree", []):
        signed_by = signer(path)
        if signed_by is None or not signed_by.startswith(TRUSTED):
            what = "unsigned module" if signed_by is None else "module with unavailable key"
            raise Refused(errno.EKEYREJECTED, f"Loading of {what} is rejected")
    depends = [d.replace("-", "_") for d in info.get("depends", [""])[0].split(",") if d]
    missing = [d for d in depends if d not in loaded and d not in built_in()]
    if missing:
        raise Refused(errno.ENOENT, f"{name}: Unknown symbol (needs {', '.join(missing)}) (err -2)")
    module: dict[str, Any] = {
        "version": info.get("version", [""])[0],
        "srcversion": info.get("srcversion", [""])[0],
        "license": info.get("license", [""])[0],
        "size": max(16384, os.stat(path).st_size // 4096 * 4096),  # noqa: PTH116
        "depends": [d for d in depends if d in loaded],
        "parameters": parameters,
        "drives": [],
    }
    free = [gpu for gpu in host()["gpus"] if not (PCI / "devices" / gpu["address"] / "driver").is_symlink()]
    if name == "nvidia":
        module["drives"] = [gpu["address"] for gpu in nvidia_probe(module, free)]
    elif name == "nouveau":
        module["drives"] = [gpu["address"] for gpu in free]
        for gpu in free:
            kmsg(f"nouveau {gpu['address']}: NVIDIA {gpu['architecture']} ({gpu['device']})")
    loaded[name] = module
    publish(loaded)
    if name == "nvidia":
        report_to_systemd("start")


def nvidia_probe(module: dict[str, Any], free: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the GPUs that this nvidia module drives; refuse with ENODEV when there is none."""
    version = str(module["version"])
    branch = int(version.split(".")[0])
    is_open = "GPL" in module["license"]
    if not free:
        bound = [gpu for gpu in host()["gpus"] if gpu not in free]
        raise Refused(
            errno.ENODEV,
            *(f"NVRM: GPU {gpu['address']} is already bound to {bound_to(gpu)}." for gpu in bound),
            *([] if bound else ["NVRM: No NVIDIA GPU found."]),
        )
    drives, messages = [], []
    for gpu in free:
        why = cannot_drive(gpu, version, branch, is_open)
        if why:
            messages.append(why)
        else:
            drives.append(gpu)
    if not drives:
        raise Refused(errno.ENODEV, *messages, "NVRM: None of the NVIDIA devices were initialized.")
    for message in messages:
        kmsg(message)
    flavour = "Open Kernel Module for x86_64" if is_open else "x86_64 Kernel Module"
    kmsg(f"NVRM: loading NVIDIA UNIX {flavour}  {version}")
    return drives


def bound_to(gpu: dict[str, Any]) -> str:
    """Return the name of the driver that a GPU is bound to."""
    return os.path.basename(os.readlink(PCI / "devices" / str(gpu["address"]) / "driver"))  # noqa: PTH115, PTH119


def cannot_drive(gpu: dict[str, Any], version: str, branch: int, is_open: bool) -> str | None:
    """Return the driver's complaint about a GPU, None when it drives it."""
    architecture = gpu["architecture"]
    first, last = BRANCHES[architecture]
    what = f"The NVIDIA GPU {gpu['address']} (PCI ID: 10de:{gpu['device']})"
    if last is not None and branch > last:
        return f"NVRM: {what} installed in this system is supported through the NVIDIA {last}.xx Legacy drivers."
    if first is not None and branch < first:
        return f"NVRM: {what} installed in this system is not supported by the NVIDIA {version} driver release."
    if is_open and architecture in WITHOUT_GSP:
        return (
            f"NVRM: {what} installed in this system is not supported by open nvidia.ko because it does not"
            " include the required GPU System Processor (GSP)."
        )
    if not is_open and architecture in OPEN_ONLY:
        return f"NVRM: {what} requires use of the NVIDIA open kernel modules."
    return None


def unload(name: str) -> None:
    """Unload a module, or refuse when it is in use."""
    loaded = modules()
    name = name.replace("-", "_")
    if name not in loaded:
        raise Refused(errno.ENOENT)
    if users(name, loaded):
        raise Refused(errno.EWOULDBLOCK)
    del loaded[name]
    if name == "nvidia":
        (RUN / "nvml-settings").unlink(missing_ok=True)  # persistence mode, power limits: the driver forgets them
    publish(loaded)
    if name == "nvidia":
        report_to_systemd("stop")


def report_to_systemd(verb: str) -> None:
    """Do what udev and the device unit of the module do where a package has a unit for it (Ubuntu)."""
    if LOADED.exists():
        subprocess.run(["/usr/bin/systemctl", verb, "--no-block", LOADED.name], timeout=60, check=False)


# ---- who uses a module ----------------------------------------------------------------------------

NODES = {
    "nvidia": r"/dev/nvidia(\d+|ctl)$",
    "nvidia_uvm": r"/dev/nvidia-uvm(-tools)?$",
    "nvidia_modeset": r"/dev/nvidia-modeset$",
}


def holders(name: str, loaded: dict[str, dict[str, Any]]) -> list[str]:
    """Return the loaded modules that use a module."""
    return [other for other, module in loaded.items() if name in module["depends"]]


def open_files(name: str) -> int:
    """Return how many file descriptors of this host (its containers too) are open on a module's device nodes."""
    if name not in NODES:
        return 0
    count = 0
    for directory in Path("/proc").glob("[0-9]*/fd"):
        try:
            count += sum(1 for link in directory.iterdir() if re.match(NODES[name], os.readlink(link)))  # noqa: PTH115
        except OSError:
            continue  # the process has ended meanwhile
    return count


def users(name: str, loaded: dict[str, dict[str, Any]]) -> int:
    """Return the reference count of a module."""
    return len(holders(name, loaded)) + open_files(name)


# ---- what /sys, /proc and /dev show ---------------------------------------------------------------


def publish(loaded: dict[str, dict[str, Any]]) -> None:
    """Make /sys/module, /sys/bus/pci, /proc/modules, /proc/driver and /dev agree with what is loaded."""
    STATE.write_text(json.dumps(loaded, indent=1))
    for directory in MODULE.iterdir():
        if directory.name not in loaded:
            shutil.rmtree(directory)
    lines = []
    for name, module in loaded.items():
        directory = MODULE / name
        (directory / "holders").mkdir(parents=True, exist_ok=True)
        count, using = users(name, loaded), holders(name, loaded)
        taint = "OE" if "GPL" in module["license"] else "POE"
        texts = {"initstate": "live", "coresize": module["size"], "refcnt": count, "taint": taint}
        texts |= {key: module[key] for key in ("version", "srcversion") if module[key]}
        for file, text in texts.items():
            (directory / file).write_text(f"{text}\n")
        for old in (directory / "holders").iterdir():
            old.unlink()
        for other in using:
            (directory / "holders" / other).symlink_to(f"../../{other}")
        lines.append(
            f"{name} {module['size']} {count} {','.join([*using, '']) or '-'} Live 0x0000000000000000 ({taint})\n"
        )
        if module["drives"]:
            bind(name, module["drives"])
    PROC_MODULES.write_text("".join(reversed(lines)))
    for driver in (PCI / "drivers").iterdir():
        if driver.name in ("nvidia", "nouveau") and driver.name not in loaded:
            release_devices(driver)
    publish_nvidia(loaded)


def bind(driver: str, addresses: list[str]) -> None:
    """Link PCI devices to their driver."""
    directory = PCI / "drivers" / driver
    directory.mkdir(exist_ok=True)
    (directory / "bind").touch()
    (directory / "unbind").touch()
    if not (directory / "module").is_symlink():
        (directory / "module").symlink_to(f"../../../../module/{driver}")
    links = MODULE / driver / "drivers"
    links.mkdir(exist_ok=True)
    if not (links / f"pci:{driver}").is_symlink():
        (links / f"pci:{driver}").symlink_to(f"../../../bus/pci/drivers/{driver}")
    for address in addresses:
        device = PCI / "devices" / address
        if not (device / "driver").is_symlink():
            (device / "driver").symlink_to(f"../../drivers/{driver}")
            (device / "uevent").write_text(f"DRIVER={driver}\n" + (device / "uevent").read_text())
            (directory / address).symlink_to(f"../../devices/{address}")


def release_devices(driver: Path) -> None:
    """Unlink every PCI device of a driver that was unloaded."""
    for link in driver.iterdir():
        device = PCI / "devices" / link.name
        if device.is_dir():
            (device / "driver").unlink()
            lines = (device / "uevent").read_text().splitlines(keepends=True)
            (device / "uevent").write_text("".join(line for line in lines if not line.startswith("DRIVER=")))
    shutil.rmtree(driver)


def uvm_major(version: str) -> int:
    """Return the major number of /dev/nvidia-uvm; dynamic on real machines, here it encodes the loaded version.

    In a container, where the driver's /proc files are not, the mock NVML compares it with its own version.
    """
    return 384 + zlib.crc32(version.encode()) % 100


def publish_nvidia(loaded: dict[str, dict[str, Any]]) -> None:
    """Make /proc/driver/nvidia and the device nodes agree with what is loaded."""
    top = DRIVER / "nvidia"
    if top.exists():
        shutil.rmtree(top)
    nodes: dict[str, tuple[int, int]] = {}
    if "nvidia" in loaded:
        module = loaded["nvidia"]
        version, is_open = module["version"], "GPL" in module["license"]
        driven = [gpu for gpu in host()["gpus"] if gpu["address"] in module["drives"]]
        top.mkdir()
        (top / "version").write_text(version_text(version, is_open))
        (top / "params").write_text(params_text(module["parameters"]))
        (top / "registry").write_text('Binary: ""\n')
        for gpu in driven:
            directory = top / "gpus" / gpu["address"]
            directory.mkdir(parents=True)
            (directory / "information").write_text(information(gpu, version, is_open))
            nodes[f"nvidia{gpu['minor']}"] = (195, gpu["minor"])
        nodes["nvidiactl"] = (195, 255)
        if "nvidia_modeset" in loaded:
            nodes["nvidia-modeset"] = (195, 254)
        if "nvidia_uvm" in loaded:
            nodes["nvidia-uvm"] = (uvm_major(version), 0)
            nodes["nvidia-uvm-tools"] = (uvm_major(version), 1)
    for path in Path("/dev").glob("nvidia*"):
        if path.name not in nodes and path.is_char_device():
            path.unlink()
    for name, (major, minor) in nodes.items():
        node = Path("/dev", name)
        if node.exists() and node.stat().st_rdev != os.makedev(major, minor):
            node.unlink()
        if not node.exists():
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            node.chmod(0o666)


def version_text(version: str, is_open: bool) -> str:
    """Return the text of /proc/driver/nvidia/version."""
    built = "Wed Apr  8 09:34:22 UTC 2026"
    if is_open:
        by = "Release Build  (dvs-builder@U22-I3-B01-03-2)"
        head = f"NVIDIA UNIX Open Kernel Module for x86_64  {version}  {by}  {built}"
    else:
        head = f"NVIDIA UNIX x86_64 Kernel Module  {version}  {built}"
    return f"NVRM version: {head}\nGCC version:  {(ETC / 'gcc-version').read_text()}"


def params_text(parameters: str) -> str:
    """Return the text of /proc/driver/nvidia/params for a module that was loaded with these parameters.

    As in the kernel, the last value of a parameter counts, quotes surround a value with spaces, and a parameter that
    the module does not have is ignored. The real driver has more; these are some of nv-reg.h, with their defaults.
    """
    values = dict(DEFAULT_PARAMETERS)
    for name, value in re.findall(r'NVreg_(\w+)="?((?<=")[^"]*|[^\s"]*)', parameters):
        if name in values:
            old = values[name]
            values[name] = value if isinstance(old, str) else parse_number(value) & 0xFFFFFFFF
    values["RmProfilingAdminOnly"] = values.pop("RestrictProfilingToAdminUsers")  # shown under its older name
    return "".join(f'{name}: "{one}"\n' if isinstance(one, str) else f"{name}: {one}\n" for name, one in values.items())


def parse_number(text: str) -> int:
    """Return a number as kstrtoint reads it with base 0; what it does not take keeps the module from loading."""
    try:
        return int(text, 8 if re.match(r"-?0\d", text) else 0)
    except ValueError:
        raise Refused(errno.EINVAL, f"nvidia: `{text}' invalid for parameter") from None


def information(gpu: dict[str, Any], version: str, is_open: bool) -> str:
    """Return the text of /proc/driver/nvidia/gpus/ADDRESS/information."""
    return (
        f"Model: \t\t {gpu['name']}\nIRQ:   \t\t {gpu['irq']}\n"
        f"GPU UUID: \t {gpu['uuid']}\nVideo BIOS: \t {gpu['vbios']}\n"
        f"Bus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t {gpu['address']}\n"
        f"Device Minor: \t {gpu['minor']}\nGPU Firmware: \t {version if is_open else 'N/A'}\nGPU Excluded:\t No\n"
    )


# ---- booting --------------------------------------------------------------------------------------


def mount(*arguments: str) -> None:
    """Run mount; PID 1 cannot continue without it."""
    subprocess.run(["/usr/bin/mount", *arguments], check=True)


def control_groups() -> None:
    """Give the host a control group tree of its own, writable, below that of the lab's engine."""
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    while subprocess.run(["/usr/bin/umount", "-R", "/sys/fs/cgroup"], capture_output=True, check=False).returncode == 0:
        pass
    top = Path("/sys/fs/cgroup")
    if all(number == "0" for number, _, _ in rows):
        mount("-t", "cgroup2", "-o", "rw,nosuid,nodev,noexec,nsdelegate", "cgroup2", str(top))
        return
    mount("-t", "tmpfs", "-o", "rw,nosuid,nodev,noexec,mode=755,size=4m", "tmpfs", str(top))
    for _number, controllers, _path in rows:
        if not controllers:
            directory = top / "unified"
            directory.mkdir()
            mount("-t", "cgroup2", "-o", "rw,nosuid,nodev,noexec,nsdelegate", "cgroup2", str(directory))
            continue
        directory = top / controllers.removeprefix("name=")
        directory.mkdir()
        options = f"none,{controllers}" if controllers.startswith("name=") else controllers
        mount("-t", "cgroup", "-o", f"rw,nosuid,nodev,noexec,{options}", "cgroup", str(directory))
        if "," in controllers:
            for one in controllers.split(","):
                (top / one).symlink_to(controllers)


def provide_nouveau() -> None:
    """Put the stand-in for nouveau where kmod finds the kernel's own modules."""
    target = Path(f"/lib/modules/{release()}/kernel/drivers/gpu/drm/nouveau/nouveau.ko")
    if not target.exists():
        target.parent.mkdir(parents=True)
        shutil.copy("/usr/lib/gpu-ready-lab/nouveau.ko", target)
        subprocess.run(["/usr/sbin/depmod", release()], check=True)


def take_new_identity() -> None:
    """Forget the machine id and SSH host keys of the host that this one's file system comes from."""
    mark = ETC / "new-identity"
    if not mark.exists():
        return
    for path in Path("/etc/ssh").glob("ssh_host_*"):
        path.unlink()
    Path("/etc/machine-id").write_text("")
    Path("/var/lib/dbus/machine-id").unlink(missing_ok=True)
    mark.unlink()


def boot() -> None:
    """Be firmware, boot loader and kernel: lay out /sys and /proc, then become systemd."""
    take_new_identity()
    for made in (RUN, MODULE, DRIVER):
        made.mkdir(parents=True)
    (RUN / "booted").write_text(f"{time.clock_gettime(time.CLOCK_MONOTONIC)}")
    shutil.copytree(ETC / "pci", PCI, symlinks=True)
    for name in ("devices", "drivers", "slots"):
        (PCI / name).mkdir(exist_ok=True)
    gcc = (ETC / "gcc-version").read_text().strip()
    texts = {
        "/proc/sys/kernel/random/boot_id": (RUN / "boot-id", f"{uuid.uuid4()}\n"),
        "/proc/sys/kernel/osrelease": (RUN / "osrelease", f"{release()}\n"),
        "/proc/version": (
            RUN / "version",
            f"Linux version {release()} (lab@gpu-ready) ({gcc}) #1 SMP PREEMPT_DYNAMIC Debian\n",
        ),
        "/proc/cmdline": (RUN / "cmdline", f"BOOT_IMAGE=/boot/vmlinuz-{release()} root=/dev/vda1 ro\n"),
    }
    PROC_MODULES.write_text("")  # preload.c leads /proc/modules there
    for path, (source, text) in texts.items():
        source.write_text(text)
        mount("--bind", str(source), path)
    for directory, path in ((PCI, "/sys/bus/pci"), (MODULE, "/sys/module"), (DRIVER, "/proc/driver")):
        mount("--bind", str(directory), path)
    if (ETC / "efivars").exists():
        firmware = RUN / "firmware"
        shutil.copytree(ETC / "efivars", firmware / "efi/efivars")
        mount("--bind", str(firmware), "/sys/firmware")
    if host().get("nouveau"):
        provide_nouveau()
    kmsg(f"Linux version {release()} (lab@gpu-ready) ({gcc}) #1 SMP PREEMPT_DYNAMIC Debian")
    control_groups()
    # No way out but the lab's proxy and mirror, and a name server that refuses at once.
    subprocess.run(["/usr/sbin/ip", "route", "del", "default"], capture_output=True, check=False)
    Path("/etc/resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "container": "docker",
        "TERM": "linux",
    }
    env["SYSTEMD_PROC_CMDLINE"] = "systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        del env["SYSTEMD_PROC_CMDLINE"]
    os.execve("/lib/systemd/systemd", ["/sbin/init"], env)


def coldplug() -> None:
    """Do what udev does at boot: ask the real modprobe for a driver of every PCI device, honouring blacklists."""
    seen = set()
    for device in sorted((PCI / "devices").iterdir()):
        alias = (device / "modalias").read_text().strip()
        if (device / "driver").is_symlink() or alias in seen:
            continue
        seen.add(alias)
        subprocess.run(["/usr/sbin/modprobe", "-q", "-b", alias], timeout=60, check=False)  # no driver is an answer


def main(arguments: list[str]) -> int:
    """Run one command."""
    verb = arguments[0]
    if verb == "boot":
        boot()
    if verb == "coldplug":
        coldplug()
        return 0
    with (RUN / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if verb == "load":
                load(arguments[1], arguments[2] if len(arguments) > 2 else "")
            elif verb == "unload":
                unload(arguments[1])
            elif verb == "refresh":
                publish(modules())
            else:
                print(__doc__, file=sys.stderr)
                return errno.EINVAL
        except Refused as refused:
            for message in refused.messages:
                kmsg(message)
            return refused.number
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
