"""Compare the host's .run driver with a requested one, and check whether its installer can run. Changes nothing."""

import re
from typing import Dict, List

from ...base import manifest
from ...base.host import Host
from ...system import nvrm_version
from .. import kernel_module
from . import installed_files
from .spec import OPEN_MODULES, RUNNING_DRIVER, DriverSpec, RunfileError, is_older

TOOLS = ("cc", "make", "ld", "dkms")


def missing_parts(host: Host, spec: DriverSpec, state_dir: str = manifest.DIRECTORY) -> List[str]:
    """Return what is missing for a requested driver, for messages; [] if nothing is."""
    installed = installed_files.installed_version(host)
    if installed != spec.version:
        return ["the .run driver " + spec.version + (" in place of " + installed if installed else "")]
    found = ["the rest of an interrupted installation"] if installed_files.is_interrupted(host, state_dir) else []
    if not any(path.endswith(".so." + spec.version) for path in installed_files.library_paths(host)):
        found.append("the libraries of " + spec.version)
    return found + [text for kernel in spec.kernels for text in module_differences(host, spec, kernel)]


def module_differences(host: Host, spec: DriverSpec, kernel: str) -> List[str]:
    """Return how the module that modprobe would load into a kernel differs from the requested one, for messages."""
    info = nvrm_version.read_modinfo(host.run(["modinfo", "-k", kernel, "nvidia"]).out)
    if info.version is None:
        return ["the module for " + kernel]
    if info.version != spec.version:
        return ["the module %s in place of %s for %s" % (spec.version, info.version, kernel)]
    if info.flavour != spec.flavour:
        return ["the %s module in place of the %s one for %s" % (spec.flavour, info.flavour or "unknown", kernel)]
    return []


def kernels_to_build(host: Host, spec: DriverSpec, state_dir: str = manifest.DIRECTORY) -> List[str]:
    """Return kernels for which DKMS can build the modules of the installed driver; [] if the installer must run."""
    absent = [
        kernel for kernel in spec.kernels if module_differences(host, spec, kernel) == ["the module for " + kernel]
    ]
    only_modules = len(missing_parts(host, spec, state_dir)) == len(absent) < len(spec.kernels)
    return absent if only_modules and host.isdir("/usr/src/nvidia-" + spec.version) else []


# ---- refusals -------------------------------------------------------------------------------------------------------


def driver_packages(host: Host, kernels: List[str]) -> Dict[str, str]:
    """Return packages that own files of a driver, each with one of these files."""
    paths = [
        path for path in ("/usr/bin/nvidia-smi", installed_files.UNINSTALLERS[0]) if host.exists(path)
    ] + installed_files.library_paths(host)
    sources = ["/usr/src/%s/dkms.conf" % name for name in host.listdir("/usr/src") if name.startswith("nvidia-")]
    paths += [path for path in sources if host.exists(path)]
    for kernel in kernels:
        match = re.search(r"(?m)^filename:\s+(/\S+)$", host.run(["modinfo", "-k", kernel, "nvidia"]).out)
        paths += [match.group(1)] if match else []
    real = sorted({host.realpath(path) for path in paths})
    if not real:
        return {}
    if host.exists("/var/lib/dpkg/status"):
        # With a merged /usr each path has two names, and a package knows only the one it was built with.
        both = real + [path[len("/usr") :] for path in real if path.startswith("/usr/lib")]
        return parse_dpkg_owners(host.run(["dpkg-query", "-S"] + both).out)
    return parse_rpm_owners(host.run(["rpm", "-qf", "--queryformat", "%{NAME}\\n"] + real).out, real)


def parse_dpkg_owners(text: str) -> Dict[str, str]:
    """Parse `dpkg-query -S`: "package:arch, package: /path" for each path that a package owns."""
    found = {}
    for line in text.splitlines():
        names, colon, path = line.rpartition(": ")
        if colon and path.startswith("/") and not names.startswith("diversion "):
            found.update({name.split(":")[0]: path for name in names.split(", ")})
    return found


def parse_rpm_owners(text: str, paths: List[str]) -> Dict[str, str]:
    """Parse `rpm -qf`: for each path a package's name, or a message that no package owns it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = zip(lines, paths)  # noqa: B905 - strict= needs Python 3.10
    return {line: path for line, path in pairs if " " not in line and "/" not in line}


def refuse_packages(host: Host, spec: DriverSpec) -> None:
    """Raise RunfileError if packages own a driver: an installer would overwrite their files."""
    found = driver_packages(host, spec.kernels)
    if found:
        names = sorted(found)
        raise RunfileError(
            "the driver on this host belongs to packages (%s%s; for example %s), and the .run installer of %s would "
            "overwrite their files. Remove these packages first, or set nvidia_driver_source to a package source"
            % (", ".join(names[:5]), ", ..." if len(names) > 5 else "", found[names[0]], spec.version)
        )


def refuse_foreign(host: Host, ours: bool, replace: bool) -> None:
    """Raise RunfileError for a .run driver that somebody else installed, without permission to replace it."""
    uninstaller = installed_files.find_uninstaller(host)
    version = installed_files.installed_version(host)
    if (version or uninstaller) and not ours and not replace:
        raise RunfileError(
            "the driver %s was installed by a .run installer outside of gpu-ready (%s). Set "
            "nvidia_driver_replace_foreign to true to replace it, or nvidia_driver_source to none to keep it"
            % (version or "of an unknown version", uninstaller or installed_files.BACKUP_LOG)
        )


def refuse_flavour(spec: DriverSpec) -> None:
    """Raise RunfileError for open modules of a release that has none."""
    if spec.flavour == nvrm_version.OPEN and is_older(spec.version, OPEN_MODULES):
        raise RunfileError(
            "the driver %s has no open kernel modules (available since branch 515). Set nvidia_driver_flavour to "
            "proprietary, or choose a newer branch" % spec.version
        )


def refuse_unbuildable(host: Host, spec: DriverSpec) -> None:
    """Raise RunfileError if headers or tools are missing, or the installer would refuse a driver in use."""
    for kernel in spec.kernels:
        if not host.exists("/lib/modules/%s/build" % kernel):
            raise RunfileError(
                "the headers of the kernel %s are missing (/lib/modules/%s/build), so the .run installer cannot build "
                "its modules. Install them, or boot a kernel that has its headers" % (kernel, kernel)
            )
    missing = [name for name in TOOLS if host.which(name) is None]
    if missing:
        raise RunfileError(
            "the .run installer of %s needs %s to build its kernel modules. Install the packages gcc, make, binutils "
            "and dkms" % (spec.version, " and ".join(missing))
        )
    if not is_older(spec.version, RUNNING_DRIVER):
        return
    bound = [name for name in host.listdir("/sys/bus/pci/drivers/nouveau") if name[:1].isdigit()]
    if bound:
        raise RunfileError(
            "nouveau drives the GPU %s, and the installer of %s tests its module by loading it. Reboot the host, so "
            "that the blacklist disables nouveau, then run again" % (bound[0], spec.version)
        )
    users = kernel_module.module_users(host, kernel_module.loaded_modules(host))
    if users:
        raise RunfileError(
            "%s uses the loaded NVIDIA driver, and the installer of %s cannot replace a driver in use. End it or "
            "reboot the host, then run again" % (users, spec.version)
        )
