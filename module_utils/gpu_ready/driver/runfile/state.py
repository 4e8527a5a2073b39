"""The .run driver of a host: what is there, what a wish still lacks, and what forbids its installer to run.

Nothing here changes the host.
"""

import re
from typing import Dict, List

from ...base import manifest
from ...base.host import Host
from ...system import nvrm_version
from .. import kernel_module
from . import installed_files
from . import messages as runfile_text
from .messages import RunfileError, Wish

TOOLS = ("cc", "make", "ld")


# ---- what is here ---------------------------------------------------------------------------------------------------


def lacking(host: Host, wish: Wish, folder: str = manifest.FOLDER) -> List[str]:
    """Return what is not as wished, in words; [] when there is nothing to do."""
    there = installed_files.installed(host)
    if there != wish.version:
        return ["the .run driver " + wish.version + (" in place of " + there if there else "")]
    found = ["the rest of an installation that was cut off"] if installed_files.pending(host, folder) else []
    if not any(path.endswith(".so." + wish.version) for path in installed_files.libraries(host)):
        found.append("the libraries of " + wish.version)
    return found + [words for kernel in wish.kernels for words in module_lacks(host, wish, kernel)]


def module_lacks(host: Host, wish: Wish, kernel: str) -> List[str]:
    """Return what the module that modprobe would load under a kernel lacks, in words; [] where it is right."""
    info = nvrm_version.read_modinfo(host.run(["modinfo", "-k", kernel, "nvidia"]).out)
    if info.version is None:
        return ["the module for " + kernel]
    if info.version != wish.version:
        return ["the module %s in place of %s for %s" % (wish.version, info.version, kernel)]
    if info.flavour != wish.flavour:
        return ["the %s module in place of the %s one for %s" % (wish.flavour, info.flavour or "unknown", kernel)]
    return []


def only_builds(host: Host, wish: Wish, folder: str = manifest.FOLDER) -> List[str]:
    """Return the kernels that DKMS can serve from what is installed, [] where the installer has to run."""
    absent = [kernel for kernel in wish.kernels if module_lacks(host, wish, kernel) == ["the module for " + kernel]]
    whole = wish.dkms and len(lacking(host, wish, folder)) == len(absent) < len(wish.kernels)
    return absent if whole and host.isdir("/usr/src/nvidia-" + wish.version) else []


# ---- refusals -------------------------------------------------------------------------------------------------------


def owners(host: Host, kernels: List[str]) -> Dict[str, str]:
    """Return the packages that own files of a driver here, each with one of its files."""
    paths = [
        path for path in ("/usr/bin/nvidia-smi", installed_files.UNINSTALLERS[0]) if host.exists(path)
    ] + installed_files.libraries(host)
    sources = ["/usr/src/%s/dkms.conf" % name for name in host.listdir("/usr/src") if name.startswith("nvidia-")]
    paths += [path for path in sources if host.exists(path)]
    for kernel in kernels:
        match = re.search(r"(?m)^filename:\s+(/\S+)$", host.run(["modinfo", "-k", kernel, "nvidia"]).out)
        paths += [match.group(1)] if match else []
    real = sorted({host.realpath(path) for path in paths})
    if not real:
        return {}
    if host.exists("/var/lib/dpkg/status"):
        # A merged /usr has each path under two names, and a package knows only the one that it was built with.
        both = real + [path[len("/usr") :] for path in real if path.startswith("/usr/lib")]
        return read_dpkg_owners(host.run(["dpkg-query", "-S"] + both).out)
    return read_rpm_owners(host.run(["rpm", "-qf", "--queryformat", "%{NAME}\\n"] + real).out, real)


def read_dpkg_owners(text: str) -> Dict[str, str]:
    """Read `dpkg-query -S`: "package:arch, package: /path" for each path that a package owns."""
    found = {}
    for line in text.splitlines():
        names, colon, path = line.rpartition(": ")
        if colon and path.startswith("/") and not names.startswith("diversion "):
            found.update({name.split(":")[0]: path for name in names.split(", ")})
    return found


def read_rpm_owners(text: str, paths: List[str]) -> Dict[str, str]:
    """Read `rpm -qf`: for each path a package's name, or a sentence that nobody owns it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = zip(lines, paths)  # noqa: B905 - strict= is younger than the hosts' Python
    return {line: path for line, path in pairs if " " not in line and "/" not in line}


def refuse_packages(host: Host, wish: Wish) -> None:
    """Raise RunfileError where packages own a driver: an installer over them leaves neither whole."""
    found = owners(host, wish.kernels)
    if found:
        names = sorted(found)
        raise RunfileError(
            "the driver on this host belongs to packages (%s%s; %s, for instance), and the .run installer of %s would "
            "write over their files: remove these packages first, or set nvidia_driver_source to a package source"
            % (", ".join(names[:5]), ", ..." if len(names) > 5 else "", found[names[0]], wish.version)
        )


def refuse_foreign(host: Host, ours: bool, replace: bool) -> None:
    """Raise RunfileError for a .run driver of somebody else that nobody allowed to replace."""
    old = installed_files.uninstaller(host)
    if (installed_files.installed(host) or old) and not ours and not replace:
        raise RunfileError(
            "a .run installer that gpu-ready did not run has installed the driver %s here (%s): set "
            "nvidia_driver_replace_foreign to true to have it replaced, or nvidia_driver_source to none to keep it"
            % (installed_files.installed(host) or "of an unknown version", old or installed_files.BACKUP_LOG)
        )


def refuse_flavour(wish: Wish) -> None:
    """Raise RunfileError where a release has no modules of the flavour."""
    if wish.flavour == nvrm_version.OPEN and runfile_text.before(wish.version, runfile_text.OPEN_MODULES):
        raise RunfileError(
            "the driver %s has no open kernel modules (they came with branch 515): set nvidia_driver_flavour to "
            "proprietary, or choose a newer branch" % wish.version
        )


def refuse_unbuildable(host: Host, wish: Wish) -> None:
    """Raise RunfileError where headers or tools are missing, or the installer would mind what is in use."""
    for kernel in wish.kernels:
        if not host.exists("/lib/modules/%s/build" % kernel):
            raise RunfileError(
                "the headers of the kernel %s are missing (/lib/modules/%s/build), so the .run installer cannot build "
                "its modules: install them, or boot a kernel that has its headers" % (kernel, kernel)
            )
    missing = [name for name in TOOLS + (("dkms",) if wish.dkms else ()) if host.which(name) is None]
    if missing:
        raise RunfileError(
            "the .run installer of %s needs %s to build its kernel modules, and that is not installed here: install it "
            "(packages gcc, make, binutils, dkms)" % (wish.version, " and ".join(missing))
        )
    if not runfile_text.before(wish.version, runfile_text.RUNNING_DRIVER):
        return
    bound = [name for name in host.listdir("/sys/bus/pci/drivers/nouveau") if name[:1].isdigit()]
    if bound:
        raise RunfileError(
            "nouveau drives the GPU %s, and the installer of %s proves its module by loading it: reboot the host, so "
            "that its blacklist keeps nouveau away, then run again" % (bound[0], wish.version)
        )
    held = kernel_module.held(host, kernel_module.loaded(host))
    if held:
        raise RunfileError(
            "%s uses the loaded NVIDIA driver, and the installer of %s replaces none that is in use: end it or reboot "
            "the host, then run again" % (held, wish.version)
        )
