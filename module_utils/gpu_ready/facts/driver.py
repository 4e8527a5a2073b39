"""Facts about the NVIDIA driver: loaded, on disk for the running kernel, in userspace, and its origin."""

import re
from typing import Dict, Iterable, List, Optional, Sequence

from ..base import versions
from ..base.host import Host
from ..driver import persistence_state, stopped_services
from ..driver.libraries import OUTSIDE_DIRECTORY, library_directories
from ..driver.runfile import installed_files
from ..system import modprobe_files, nvrm_version
from . import boot_module
from .model import (
    KERNEL_OUTSIDE,
    BaseFacts,
    DkmsFacts,
    DriverFacts,
    ImexFacts,
    ModuleFacts,
    OtherModule,
    PackageFacts,
)

MODULE = re.compile(r"^nvidia(-current|-tesla-\d+|-legacy-\d+xx|-legacy-390xx)?(-open)?\.ko(\.xz|\.zst|\.gz)?$")
MODULE_DIRECTORIES = (
    "updates/dkms",
    "updates",
    "extra",
    "extra/nvidia",
    "extra/drivers/video/nvidia",
    "weak-updates",
    "weak-updates/nvidia",
    "weak-updates/drivers/video/nvidia",
    "misc",
    "kernel/drivers/video",
    "kernel/drivers/video/nvidia",
    "kernel/nvidia",
    "kernel/drivers/char/drm",
)
COMPANION = re.compile(r"^nvidia[\w-]*\.ko")
LIBRARY = re.compile(r"^lib(?:nvidia-ml|cuda)\.so\.(\d{2,4}\.\d+(?:\.\d+)?)$")
FABRICMANAGER = "nvidia-fabricmanager"
IMEX = "nvidia-imex"
IMEX_NODES = "/etc/nvidia-imex/nodes_config.cfg"
CAPABILITIES = "/proc/driver/nvidia/capabilities"
DKMS = "/var/lib/dkms/"
DKMS_DRIVER = "nvidia(?!-fs|-peer)"
PARAMETERS = "/proc/driver/nvidia/params"
SHOWN_AS = {"RmProfilingAdminOnly": "RestrictProfilingToAdminUsers"}
"""The one parameter that the driver shows under another name (nv_parms in nv-reg.h of the open kernel modules)."""


def collect(host: Host, system: BaseFacts, packages: PackageFacts, installed: Dict[str, str]) -> DriverFacts:
    """Collect facts about the driver, but not where it came from; ``installed``: the packages that are part of it."""
    kernel = system.kernel
    loaded = read_loaded(host)
    modules = find_modules(host, kernel.running)
    on_disk = read_module(host, modules[0]) if modules else None
    if on_disk and not on_disk.version:  # a power cut left no content
        on_disk = None
    if system.module_elsewhere and loaded:
        on_disk = loaded  # its file is on that machine
    directories = library_directories(host.uname()[1])
    if system.managed_by == KERNEL_OUTSIDE:
        directories += (OUTSIDE_DIRECTORY,)
    runfile = installed_files.find_uninstaller(host)
    same_kernel = kernel.next_boot == kernel.running
    next_modules = [] if same_kernel else find_modules(host, kernel.next_boot)
    return DriverFacts(
        loaded=loaded,
        on_disk=on_disk,
        module_files=modules,
        next_module=read_module(host, next_modules[0]) if next_modules else None,
        kernel_without_module=None if same_kernel or next_modules else kernel.next_boot,
        userspace=userspace_versions(host, directories),
        packages=installed,
        held=sorted(name for name in packages.held if name in installed),
        runfile=runfile,
        missing_parts=missing_parts(host, directories) if on_disk else [],
        dkms=dkms_versions(host),
        other_modules=other_modules(host),
        persistence=persistence_state.read_persistence(host),
        imex=imex_facts(host),
        interrupted=installed_files.is_interrupted(host),
        stopped=stopped_services.read_stopped(host),
        fabricmanager=fabricmanager_runs(host) if system.nvswitches else None,
        mig_instances=mig_instances(host) if loaded else [],
        parameters=loaded_parameters(host),
        options=parameter_options(host),
        blocked=None if system.module_elsewhere else boot_module.collect(host, system),
    )


def loaded_parameters(host: Host) -> Dict[str, str]:
    """Return the parameters that the loaded driver shows: all numbers and some strings, these in quotes."""
    shown = re.findall(r"(?m)^(\w+): (.*)$", host.read(PARAMETERS) or "")
    return {SHOWN_AS.get(name, name): value for name, value in shown}


def parameter_options(host: Host) -> Dict[str, str]:
    """Return the files of modprobe.d with parameters of the driver, and a line for those on the command line."""
    found = {path: text for path, text in modprobe_files.read_files(host).items() if "NVreg_" in text}
    words = re.findall(r"(?<!\S)(nvidia[\w-]*)\.(NVreg_\S+)", host.read(modprobe_files.COMMAND_LINE) or "")
    return (
        dict(found, **{modprobe_files.COMMAND_LINE: "".join("options %s %s\n" % word for word in words)})
        if words
        else found
    )


def mig_instances(host: Host) -> List[str]:
    """Return the GPU instances of MIG, as "gpu0/gi1".

    A GPU without instances has an empty directory (NVIDIA's MIG user guide, "Device Nodes and Capabilities").
    """
    return [
        "%s/%s" % (gpu, name)
        for gpu in host.listdir(CAPABILITIES)
        for name in host.listdir("%s/%s/mig" % (CAPABILITIES, gpu))
        if name.startswith("gi")
    ]


def fabricmanager_runs(host: Host) -> bool:
    """Return True if the fabric manager runs. CUDA does not start without it on NVSwitch hosts."""
    return host.run(["systemctl", "is-active", "--quiet", FABRICMANAGER], timeout=20.0).rc == 0


def imex_facts(host: Host) -> ImexFacts:
    """Collect whether this node belongs to an IMEX domain, and only then whether its service runs.

    The file lists the domain's nodes, one address per line. A file with comments only is a template.
    """
    lines = (host.read(IMEX_NODES) or "").splitlines()
    member = any(line.strip() and not line.strip().startswith("#") for line in lines)
    running = member and host.run(["systemctl", "is-active", "--quiet", IMEX], timeout=20.0).rc == 0
    return ImexFacts(member, running)


def read_loaded(host: Host) -> Optional[ModuleFacts]:
    found = nvrm_version.read_proc_version(host.read("/proc/driver/nvidia/version") or "")
    version = (host.read("/sys/module/nvidia/version") or "").strip()
    if found is None:
        return ModuleFacts(version) if version else None
    return ModuleFacts(found.version, found.flavour)


def find_modules(host: Host, running: str) -> List[str]:
    """Return the paths of NVIDIA's main module for a kernel, starting with the file that modprobe prefers.

    Ubuntu's precompiled modules have a directory for each branch: ``kernel/nvidia-580srv-open``. A directory with an
    empty module does not count: DKMS does not wait for the disk, and a power cut leaves files without content.
    """
    paths = []
    root = "/lib/modules/%s/" % running
    own = ["kernel/" + name for name in host.listdir(root + "kernel") if name.startswith("nvidia-")]
    for directory in MODULE_DIRECTORIES + tuple(own):
        names = [name for name in host.listdir(root + directory) if COMPANION.match(name)]
        files = {name: "%s/%s" % (root + directory, name) for name in names}
        main = [path for name, path in files.items() if MODULE.match(name)]
        paths += main if not main or all((host.stamp(path) or (1, 0))[0] for path in files.values()) else []
    return paths


def read_module(host: Host, path: str) -> ModuleFacts:
    """Return a module file by modinfo, which reads every compression."""
    info = nvrm_version.read_modinfo(host.run(["modinfo", path], timeout=10).out)
    return ModuleFacts(info.version or "", info.flavour, path, info.signer, info.parameters)


def userspace_versions(host: Host, directories: Sequence[str]) -> List[str]:
    """Return the driver versions of the management and CUDA libraries, newest first; a single one on a sound host."""
    found = set()
    for directory in directories:
        for name in host.listdir(directory):
            match = LIBRARY.match(name)
            if match:
                found.add(match.group(1))
    return sorted(found, key=versions.key, reverse=True)


def missing_parts(host: Host, directories: Sequence[str]) -> List[str]:
    """Return the missing user-space parts: libcuda, libnvidia-ml, nvidia-smi."""
    names = {name for directory in directories for name in host.listdir(directory)}
    found = ["lib%s" % part for part in ("cuda", "nvidia-ml") if not is_library_present(names, "lib%s.so." % part)]
    return found + ([] if host.which("nvidia-smi") else ["nvidia-smi"])


def is_library_present(names: Iterable[str], start: str) -> bool:
    return any(name.startswith(start) and LIBRARY.match(name) for name in names)


def dkms_versions(host: Host) -> List[DkmsFacts]:
    rows = []
    for name in host.listdir(DKMS):
        if re.match(DKMS_DRIVER, name):
            for version in host.listdir(DKMS + name):
                kernels = [k for k in host.listdir("%s%s/%s" % (DKMS, name, version)) if k[:1].isdigit()]
                if version[:1].isdigit():
                    rows.append(DkmsFacts(name, version, kernels))
    return rows


def other_modules(host: Host) -> List[OtherModule]:
    """Collect the modules that `dkms autoinstall` builds besides the driver: the newest version with AUTOINSTALL each.

    The links kernel-KERNEL-ARCH name what is installed. DKMS moves the log of a successful build, and leaves the log of
    a failed one in the directory `build`; its first line names the kernel (autoinstall, _is_module_installed and
    actual_build of dkms 2.8 to 3.4).
    """
    found = []
    for name in host.listdir(DKMS):
        configurations = {
            version: host.read("%s%s/%s/source/dkms.conf" % (DKMS, name, version))
            for version in ([] if re.match(DKMS_DRIVER, name) else host.listdir(DKMS + name))
        }
        added = {version: text for version, text in configurations.items() if text is not None}
        if not added:
            continue
        version = max(added, key=versions.key)
        if not re.search(r"(?m)^\s*AUTOINSTALL=[\"']?\w", added[version]):
            continue
        links = [host.readlink(DKMS + name + "/" + link) or "" for link in host.listdir(DKMS + name)]
        kernels = [parts[-2] for parts in (link.rstrip("/").split("/") for link in links) if parts[-3:-2] == [version]]
        log = host.read("%s%s/%s/build/make.log" % (DKMS, name, version)) or ""
        failed = re.search(r"make\.log for \S+ for kernel (\S+)", log)
        found.append(OtherModule(name, version, kernels, failed.group(1) if failed else ""))
    return found
