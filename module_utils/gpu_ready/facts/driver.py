"""The NVIDIA driver of a host: loaded, on disk for the running kernel, in userspace, and where each came from."""

import re
from typing import Any, Dict, List, Optional, Tuple

from ..base import versions
from ..base.host import Host
from ..catalog import driver_sources
from ..catalog import model as catalog
from ..driver import stopped_services
from ..driver.libraries import library_directories
from ..driver.runfile import installed_files
from ..system import nvrm_version

MODULE = re.compile(r"^nvidia(-current|-tesla-\d+|-legacy-\d+xx|-legacy-390xx)?(-open)?\.ko(\.xz|\.zst|\.gz)?$")
MODULE_FOLDERS = (
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
PERSISTENCED = "/run/nvidia-persistenced/nvidia-persistenced.pid"
NODE = re.compile(r"^/dev/nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset|-caps/.*|-nvswitch.*)$")

CONTAINER = re.compile(r"(?:^|[/:-])([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
"""A container's id in /proc/PID/cgroup: docker-ID.scope, /docker/ID, libpod-ID.scope, cri-containerd-ID.scope."""


def look(host: Host, kernel: Dict[str, Any], packages: Dict[str, Any], distro: Optional[str]) -> Dict[str, Any]:
    """Return the part "driver"; ``kernel`` is base's row of kernels, ``packages`` those of the package manager."""
    running, following = kernel["running"], kernel["next_boot"]
    loaded = read_loaded(host)
    modules = find_modules(host, running)
    on_disk = read_module(host, modules[0]) if modules else None
    if on_disk and not on_disk["version"]:  # cut off by a loss of power: as good as none
        on_disk = None
    installed = driver_packages(packages["installed"])
    runfile = installed_files.find_uninstaller(host)
    used = use(host) if loaded else {}
    held = busy(used)
    lagging = bool(on_disk and loaded and loaded["version"] != on_disk["version"])
    return {
        "loaded": loaded,
        "on_disk": on_disk,
        "module_files": modules,
        "kernel_without_module": None if following == running or find_modules(host, following) else following,
        "userspace": userspace(host),
        "packages": installed,
        "held": sorted(name for name in packages["held"] if name in installed),
        "runfile": runfile,
        "origin": origin(installed, runfile, distro, running, packages["installed"]),
        "use": used,
        "busy": held,
        "clients": clients(host) if held and lagging else [],
        "dkms": dkms(host),
        "persistenced": persistenced(host),
        "imex": imex(host),
        "interrupted": installed_files.is_interrupted(host),
        "stopped": stopped_services.read_stopped(host),
    }


def fabricmanager(host: Host) -> bool:
    """Return whether the fabric manager runs; asked on NVSwitch hosts only, where CUDA does not start without it."""
    return host.run(["systemctl", "is-active", "--quiet", FABRICMANAGER], timeout=20.0).rc == 0


def imex(host: Host) -> Dict[str, Any]:
    """Return whether this node belongs to an IMEX domain, and whether its service runs (asked there only).

    The file names the domain's nodes, one address a line; one of comments alone is a template.
    """
    lines = (host.read(IMEX_NODES) or "").splitlines()
    member = any(line.strip() and not line.strip().startswith("#") for line in lines)
    running = member and host.run(["systemctl", "is-active", "--quiet", IMEX], timeout=20.0).rc == 0
    return {"member": member, "running": running}


def persistenced(host: Host) -> bool:
    """Return whether the persistence daemon runs, by its PID file."""
    pid = (host.read(PERSISTENCED) or "").strip()
    return pid.isdigit() and host.isdir("/proc/" + pid)


def read_loaded(host: Host) -> Optional[Dict[str, Any]]:
    """Return version and flavour of the loaded module, None where none is loaded."""
    found = nvrm_version.read_proc_version(host.read("/proc/driver/nvidia/version") or "")
    version = (host.read("/sys/module/nvidia/version") or "").strip()
    if found is None:
        return {"version": version, "flavour": None} if version else None
    return {"version": found.version, "flavour": found.flavour}


def find_modules(host: Host, running: str) -> List[str]:
    """Return the paths of nvidia's main module for a kernel, the one modprobe prefers first.

    Ubuntu's precompiled modules have a folder for each branch: ``kernel/nvidia-580srv-open``. A folder in which any
    module is empty does not count: DKMS does not wait for the disk, and a loss of power takes their content.
    """
    paths = []
    root = "/lib/modules/%s/" % running
    own = ["kernel/" + name for name in host.listdir(root + "kernel") if name.startswith("nvidia-")]
    for folder in MODULE_FOLDERS + tuple(own):
        there = [name for name in host.listdir(root + folder) if COMPANION.match(name)]
        files = {name: "%s/%s" % (root + folder, name) for name in there}
        main = [path for name, path in files.items() if MODULE.match(name)]
        paths += main if not main or all((host.stamp(path) or (1, 0))[0] for path in files.values()) else []
    return paths


def read_module(host: Host, path: str) -> Dict[str, Any]:
    """Return version and flavour of a module file (modinfo reads every compression)."""
    info = nvrm_version.read_modinfo(host.run(["modinfo", path], timeout=10).out)
    return {"path": path, "version": info.version, "flavour": info.flavour, "signer": info.signer}


def userspace(host: Host) -> List[str]:
    """Return the driver versions of the management and CUDA libraries, newest first; one on a sound host."""
    found = set()
    for folder in library_directories(host.uname()[1]):
        for name in host.listdir(folder):
            match = LIBRARY.match(name)
            if match:
                found.add(match.group(1))
    return sorted(found, key=versions.key, reverse=True)


def driver_packages(installed: Dict[str, str]) -> Dict[str, str]:
    """Return those packages that are part of a driver, with their versions."""
    return {n: v for n, v in installed.items() if PACKAGE.match(n) and not NOT_DRIVER.search(n)}


def origin(
    installed: Dict[str, str], runfile: Optional[str], distro: Optional[str], kernel: str, there: Dict[str, str]
) -> Optional[str]:
    """Return which source the driver came from: a source of the catalog, "runfile", "mixed", "unknown" or None.

    ``installed`` are the driver's packages, ``there`` all of the host.
    """
    source = source_of_packages(installed, distro, kernel, there) if installed else None
    if source and runfile:
        return "mixed"
    return "runfile" if runfile else source


def source_of_packages(installed: Dict[str, str], distro: Optional[str], kernel: str, there: Dict[str, str]) -> str:
    """Return the source whose packages these are.

    The best answer is a source that carries the installed branch and whose packages are all there; a run that was
    killed leaves a part of them, and a branch that left its repository is in no list any more.
    """
    data = catalog.distro(distro) if distro else {"driver_sources": {}}
    upstream = [versions.upstream(version) for version in installed.values()]
    branches = {versions.branch(text) for text in upstream if re.match(r"^\d{3}\.\d", text)}
    best: Tuple[Any, str] = ((False, False, 0), "unknown")
    for source in driver_sources.names(data) if branches else []:
        names = [found for branch in branches for found in driver_sources.sets(data, source, branch, kernel)]
        hits = max([len(set(found) & set(installed)) for found in names] or [0])
        whole = any(set(found) <= set(there) for found in names)
        listed = bool(branches & set(driver_sources.all_branches(data, source)))
        score = (whole and listed, listed or whole, hits)
        if hits and score > best[0]:
            best = (score, source)
    if best[1] == "unknown" and branches:
        # A run that was killed early leaves parts that no source names: the branch tells, where one source has it.
        able = [name for name in driver_sources.names(data) if branches <= set(driver_sources.all_branches(data, name))]
        able = [name for name in able if name != driver_sources.RUNFILE]
        return able[0] if len(able) == 1 else "unknown"
    return best[1]


def use(host: Host) -> Dict[str, Any]:
    """Return reference count and holding modules of every loaded module of the driver."""
    modules = {}
    for name in host.listdir("/sys/module"):
        if name == "nvidia" or name.startswith("nvidia_"):
            folder = "/sys/module/" + name
            count = (host.read(folder + "/refcnt") or "0").strip()
            modules[name] = {"refcnt": int(count or 0), "holders": host.listdir(folder + "/holders")}
    return modules


def busy(modules: Dict[str, Any]) -> bool:
    """Return whether anything but the driver's own modules holds one of them."""
    return any(module["refcnt"] > len(module["holders"]) for module in modules.values())


def clients(host: Host) -> List[Dict[str, Any]]:
    """Return the processes with a device node of the driver open: ``pid``, ``name``, ``container`` (id or None)."""
    found = []
    for pid in host.listdir("/proc"):
        if pid.isdigit():
            folder = "/proc/%s/fd" % pid
            nodes = {host.readlink("%s/%s" % (folder, fd)) or "" for fd in host.listdir(folder)}
            if any(NODE.match(node) for node in nodes):
                name = (host.read("/proc/%s/comm" % pid) or "").strip()
                container = container_id(host.read("/proc/%s/cgroup" % pid) or "")
                found.append({"pid": int(pid), "name": name, "container": container})
    return found


def container_id(cgroups: str) -> Optional[str]:
    """Return the id of the innermost container that /proc/PID/cgroup names, None of a process outside of any."""
    found = CONTAINER.findall(cgroups)
    return str(found[-1]) if found else None


def dkms(host: Host) -> List[Dict[str, Any]]:
    """Return what DKMS built: one row for each version of nvidia's modules and kernel."""
    rows = []
    for name in host.listdir("/var/lib/dkms"):
        if name.startswith("nvidia"):
            for version in host.listdir("/var/lib/dkms/" + name):
                kernels = [k for k in host.listdir("/var/lib/dkms/%s/%s" % (name, version)) if k[:1].isdigit()]
                if version[:1].isdigit():
                    rows.append({"name": name, "version": version, "kernels": kernels})
    return rows
