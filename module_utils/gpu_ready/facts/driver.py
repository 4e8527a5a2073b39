"""Facts about the NVIDIA driver: loaded, on disk for the running kernel, in userspace, and its origin."""

import re
from typing import Dict, List, Optional, Tuple

from ..base import versions
from ..base.host import Host
from ..catalog import driver_sources
from ..catalog import model as catalog
from ..driver import stopped_services
from ..driver.gpu_processes import container_id, gpu_process_ids
from ..driver.libraries import library_directories
from ..driver.runfile import installed_files
from ..system import nvrm_version
from .model import DkmsFacts, DriverFacts, GpuProcess, ImexFacts, KernelFacts, ModuleFacts, ModuleUse, PackageFacts

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
PACKAGE = re.compile(
    r"^(lib)?(nvidia|cuda-driver|libcuda1$|firmware-nvidia)|^(xserver-xorg-video|xorg-x11-drv|kmod|akmod|dkms)-nvidia"
    r"|^linux-(modules|objects|signatures)-nvidia"
)
NOT_DRIVER = re.compile(
    r"container|cuda-toolkit|nvidia-cuda|cuda-keyring|pinning|detect|installer-cleanup|modprobe$|driver-assistant"
)
FABRICMANAGER = "nvidia-fabricmanager"
IMEX = "nvidia-imex"
IMEX_NODES = "/etc/nvidia-imex/nodes_config.cfg"
CAPABILITIES = "/proc/driver/nvidia/capabilities"
PERSISTENCED = "/run/nvidia-persistenced/nvidia-persistenced.pid"


def collect(
    host: Host, kernel: KernelFacts, packages: PackageFacts, distro: Optional[str], nvswitches: bool = False
) -> DriverFacts:
    """Collect facts about the driver; ``nvswitches``: also whether the fabric manager runs."""
    loaded = read_loaded(host)
    modules = find_modules(host, kernel.running)
    on_disk = read_module(host, modules[0]) if modules else None
    if on_disk and not on_disk.version:  # a power cut left no content
        on_disk = None
    installed = driver_packages(packages.installed)
    runfile = installed_files.find_uninstaller(host)
    use = module_use(host) if loaded else {}
    busy = is_busy(use)
    outdated = bool(on_disk and loaded and loaded.version != on_disk.version)
    next_boot_has_module = kernel.next_boot == kernel.running or bool(find_modules(host, kernel.next_boot))
    return DriverFacts(
        loaded=loaded,
        on_disk=on_disk,
        module_files=modules,
        kernel_without_module=None if next_boot_has_module else kernel.next_boot,
        userspace=userspace_versions(host),
        packages=installed,
        held=sorted(name for name in packages.held if name in installed),
        runfile=runfile,
        origin=driver_origin(installed, runfile, distro, kernel.running, packages.installed),
        use=use,
        busy=busy,
        clients=gpu_processes(host) if busy and outdated else [],
        dkms=dkms_versions(host),
        persistenced=persistenced_runs(host),
        imex=imex_facts(host),
        interrupted=installed_files.is_interrupted(host),
        stopped=stopped_services.read_stopped(host),
        fabricmanager=fabricmanager_runs(host) if nvswitches else None,
        mig_instances=mig_instances(host) if loaded else [],
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
    """True if the fabric manager runs. CUDA does not start without it on NVSwitch hosts."""
    return host.run(["systemctl", "is-active", "--quiet", FABRICMANAGER], timeout=20.0).rc == 0


def imex_facts(host: Host) -> ImexFacts:
    """Collect whether this node belongs to an IMEX domain, and only then whether its service runs.

    The file lists the domain's nodes, one address per line. A file with comments only is a template.
    """
    lines = (host.read(IMEX_NODES) or "").splitlines()
    member = any(line.strip() and not line.strip().startswith("#") for line in lines)
    running = member and host.run(["systemctl", "is-active", "--quiet", IMEX], timeout=20.0).rc == 0
    return ImexFacts(member, running)


def persistenced_runs(host: Host) -> bool:
    """True if the persistence daemon runs, by its PID file."""
    pid = (host.read(PERSISTENCED) or "").strip()
    return pid.isdigit() and host.isdir("/proc/" + pid)


def read_loaded(host: Host) -> Optional[ModuleFacts]:
    """Return the loaded module, None if none is loaded."""
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
    return ModuleFacts(info.version or "", info.flavour, path, info.signer)


def userspace_versions(host: Host) -> List[str]:
    """Return the driver versions of the management and CUDA libraries, newest first; a single one on a sound host."""
    found = set()
    for directory in library_directories(host.uname()[1]):
        for name in host.listdir(directory):
            match = LIBRARY.match(name)
            if match:
                found.add(match.group(1))
    return sorted(found, key=versions.key, reverse=True)


def driver_packages(installed: Dict[str, str]) -> Dict[str, str]:
    """Return the packages that are part of a driver."""
    return {n: v for n, v in installed.items() if PACKAGE.match(n) and not NOT_DRIVER.search(n)}


def driver_origin(
    packages: Dict[str, str], runfile: Optional[str], distro: Optional[str], kernel: str, installed: Dict[str, str]
) -> Optional[str]:
    """Return the source of the driver: a source of the catalog, "runfile", "mixed", "unknown" or None.

    ``packages`` are the driver's, ``installed`` all of the host.
    """
    source = source_of_packages(packages, distro, kernel, installed) if packages else None
    if source and runfile:
        return "mixed"
    return "runfile" if runfile else source


def source_of_packages(packages: Dict[str, str], distro: Optional[str], kernel: str, installed: Dict[str, str]) -> str:
    """Return the source of these packages, "unknown" if it cannot be determined.

    Best is a source that carries the installed branch and whose packages are all installed. An interrupted run leaves
    some of them, and a branch that left its repository is in no list.
    """
    data = catalog.distro(distro) if distro else {"driver_sources": {}}
    upstream = [versions.upstream(version) for version in packages.values()]
    branches = {versions.branch(text) for text in upstream if re.match(r"^\d{3}\.\d", text)}
    best: Tuple[Tuple[bool, bool, int], str] = ((False, False, 0), "unknown")
    for source in driver_sources.source_names(data) if branches else []:
        names = [found for branch in branches for found in driver_sources.package_sets(data, source, branch, kernel)]
        hits = max([len(set(found) & set(packages)) for found in names] or [0])
        complete = any(set(found) <= set(installed) for found in names)
        listed = bool(branches & set(driver_sources.all_branches(data, source)))
        score = (complete and listed, listed or complete, hits)
        if hits and score > best[0]:
            best = (score, source)
    if best[1] == "unknown" and branches:
        # An interrupted run leaves packages that no source names. The branch is enough if a single source has it.
        names_of = [one for one in driver_sources.source_names(data) if one != driver_sources.RUNFILE]
        able = [one for one in names_of if branches <= set(driver_sources.all_branches(data, one))]
        return able[0] if len(able) == 1 else "unknown"
    return best[1]


def module_use(host: Host) -> Dict[str, ModuleUse]:
    """Return the use of every loaded module of the driver."""
    modules = {}
    for name in host.listdir("/sys/module"):
        if name == "nvidia" or name.startswith("nvidia_"):
            directory = "/sys/module/" + name
            count = (host.read(directory + "/refcnt") or "0").strip()
            modules[name] = ModuleUse(int(count or 0), host.listdir(directory + "/holders"))
    return modules


def is_busy(modules: Dict[str, ModuleUse]) -> bool:
    """True if anything but the driver's own modules holds one of them."""
    return any(module.refcnt > len(module.holders) for module in modules.values())


def gpu_processes(host: Host) -> List[GpuProcess]:
    """Return the processes with a device node of the driver open; ``container`` is an id."""
    found = []
    for pid in gpu_process_ids(host):
        name = (host.read("/proc/%d/comm" % pid) or "").strip()
        found.append(GpuProcess(pid, name, container_id(host, pid)))
    return found


def dkms_versions(host: Host) -> List[DkmsFacts]:
    rows = []
    for name in host.listdir("/var/lib/dkms"):
        if re.match("nvidia(?!-fs|-peer)", name):
            for version in host.listdir("/var/lib/dkms/" + name):
                kernels = [k for k in host.listdir("/var/lib/dkms/%s/%s" % (name, version)) if k[:1].isdigit()]
                if version[:1].isdigit():
                    rows.append(DkmsFacts(name, version, kernels))
    return rows
