"""NVIDIA's modules in DKMS: missing and damaged ones, and their build."""

import os
import re
from typing import Dict, Iterable, List, Tuple

from ..base import versions
from ..base.errors import GpuReadyError
from ..base.evidence import FailureEvidence, Search, explained_later
from ..base.host import Host
from ..base.log_texts import key_line, make_log
from ..packaging import manager

TREES = ("extra", "updates/dkms", "updates")
"""Directories below /lib/modules/KERNEL that DKMS installs to, by distribution."""
TREE = "/var/lib/dkms/"
LIMIT = 3600.0
"""Seconds for a build, which takes minutes."""
DRIVER = manager.DKMS_DRIVER
STATUS = r"(?m)^(%s)(?:/|, )" % DRIVER
"""Start of a line of `dkms status` about a driver: "nvidia/580.95.05, " since DKMS 3, "nvidia, 580.95.05, " before."""


class DkmsError(GpuReadyError):
    """A dkms command failed."""


def missing_modules(status: str, kernel: str, installed: List[str], sources: Iterable[str] = ()) -> List[str]:
    """Return DKMS modules ("nvidia/580.95.05") that should be installed for a kernel and are missing.

    ``status`` is the output of `dkms status`, ``installed`` the files in TREES, ``sources`` those that packages
    installed for DKMS. RPM packages remove modules by mistake in two cases: the open and the proprietary module have
    the same file names, so removing one package after installing the other deletes its files; and reinstalling a
    package builds the modules in %post, after which its %preun removes them from DKMS.
    """
    if any(name.partition(".ko")[0] == "nvidia" for name in installed):
        return []
    found = []
    for name, version, built_for in re.findall(STATUS + r"([^,/ ]+), ([^,]+), [^:]+: installed\b.*[Dd]iff", status):
        if built_for == kernel:
            found.append("%s/%s" % (name, version))
    known = registered_modules(status)
    return found + [name for name in sources if name not in known]


def registered_modules(status: str) -> List[str]:
    """Return NVIDIA's modules in the output of `dkms status`, as "nvidia/580.95.05"."""
    return ["%s/%s" % found for found in re.findall(STATUS + r"([^,/:\s]+)", status)]


def module_sources(host: Host) -> List[str]:
    """Return drivers with sources for DKMS in /usr/src, as "nvidia-open/580.95.05"."""
    found = []
    for name in host.listdir("/usr/src"):
        match = re.match("(%s)-(\\d[\\w.]*)$" % DRIVER, name)
        if match and host.exists("/usr/src/%s/dkms.conf" % name):
            found.append("%s/%s" % match.group(1, 2))
    return found


def modules_for_kernel(status: str, kernel: str, states: str = "installed|built") -> List[str]:
    """Return NVIDIA's modules that `dkms status` reports in one of these states for a kernel."""
    rows = re.findall(STATUS + r"([^,/ ]+), ([^,]+), [^:]+: (?:%s)" % states, status)
    return ["%s/%s" % (name, version) for name, version, built_for in rows if built_for == kernel]


def newest_modules(modules: Iterable[str]) -> List[str]:
    """Return the newest version of each module."""
    found: Dict[str, str] = {}
    for module in modules:
        name, version = module.split("/")
        if name not in found or versions.key(version) > versions.key(found[name]):
            found[name] = version
    return ["%s/%s" % item for item in sorted(found.items())]


def module_files(host: Host, kernel: str) -> List[str]:
    """Return paths of NVIDIA's modules in TREES."""
    directories = ["/lib/modules/%s/%s" % (kernel, tree) for tree in TREES]
    return [
        "%s/%s" % (directory, name)
        for directory in directories
        for name in sorted(host.listdir(directory))
        if re.match(r"nvidia(?!-fs)[\w-]*\.ko", name)
    ]


def damaged_modules(host: Host, kernel: str) -> List[str]:
    """Return module files that modinfo cannot read.

    DKMS writes without fsync: after a power cut files can be empty or truncated, and DKMS still reports them installed.
    """
    return [
        path
        for path in module_files(host, kernel)
        if not host.run(["modinfo", "-F", "vermagic", path], 20.0).out.strip()
    ]


def build(host: Host, kernel: str) -> Tuple[List[str], List[str]]:
    """Build and install NVIDIA's modules for a kernel, damaged ones as well (changes the host).

    Returns the files that were damaged, and all module files afterwards.
    """
    damaged = damaged_modules(host, kernel)
    install_missing(host, kernel, remove_damaged(host, kernel, damaged) if damaged else [])
    host.sync_disks()
    installed = module_files(host, kernel)
    unreadable = damaged_modules(host, kernel)
    if unreadable or not installed:
        problem = "%s is unreadable" % unreadable[0] if unreadable else "/lib/modules/%s has no NVIDIA module" % kernel
        raise DkmsError(
            "DKMS has nothing more to build, but %s. See `dkms status` and %s on the host" % (problem, TREE)
        )
    return damaged, installed


def install_missing(host: Host, kernel: str, removed: List[str]) -> None:
    """Build and install the ``removed`` modules, else the newest of each of NVIDIA's modules that a kernel is missing.

    Changes the host. `dkms autoinstall` would build the modules of others too (zfs, OFED), and exits with 11 where one
    of those fails (`autoinstall` in dkms 3). A leftover of another packaging may fail, if one of the modules can be
    built.
    """
    status = host.run(["dkms", "status"]).out
    listed = modules_for_kernel(status, kernel, "installed")
    complete = {module.split("/")[0] for module in listed} if module_files(host, kernel) else set()
    failures, built = [], 0
    for module in removed or newest_modules(registered_modules(status) + module_sources(host)):
        if module.split("/")[0] in complete:
            continue
        try:
            if not host.isdir(TREE + module):
                run(host, ["dkms", "add", module])
            # Without --force, DKMS skips a module that it lists as installed, also where the files were removed.
            run(host, ["dkms", "install"] + (["--force"] if module in listed else []) + [module, "-k", kernel])
            built += 1
        except DkmsError as error:
            failures.append(error)
    if failures and not built:
        raise failures[0]


def remove_damaged(host: Host, kernel: str, damaged: List[str]) -> List[str]:
    """Delete damaged modules and DKMS's copies of them, which it would install again (changes the host).

    Returns the modules of which a copy was deleted.
    """
    for path in damaged:
        os.unlink(path)
    modules = modules_for_kernel(host.run(["dkms", "status"]).out, kernel)
    for module in modules:
        run(host, ["dkms", "remove", module, "-k", kernel])
        if module not in registered_modules(host.run(["dkms", "status"]).out):  # so it is for a module's last kernel
            run(host, ["dkms", "add", module])
    return modules


def run(host: Host, argv: List[str]) -> None:
    """Raises DkmsError, with the compiler's log if DKMS names one."""
    answer = host.run(argv, LIMIT)
    if answer.rc == 0:
        return
    text = answer.out + "\n" + answer.err
    call, path = " ".join(argv), make_log(text)
    if path:
        build = Search([("installer-log", host.read(path) or text)], [manager.BUILD_FAILED])
        why = explained_later(FailureEvidence([build], path))
        raise DkmsError("%s: %s" % (manager.find_dkms_failure(call, text) or call, why))
    raise DkmsError(
        "`%s` ended with %d (%s). Remedy: read `dkms status` on the host, then run again"
        % (call, answer.rc, key_line([text]))
    )
