"""NVIDIA's modules in DKMS: missing and damaged ones, and their build."""

import os
import re
from typing import Iterable, List, Tuple

from ..base.errors import GpuReadyError
from ..base.host import Host
from ..diagnostics import failure
from ..packaging import manager

TREES = ("extra", "updates/dkms", "updates")
"""Directories below /lib/modules/KERNEL that DKMS installs to, by distribution."""
LIMIT = 3600.0
"""Seconds for a build, which takes minutes."""


class DkmsError(GpuReadyError):
    """A dkms command failed."""


def missing_modules(status: str, kernel: str, installed: List[str], sources: Iterable[str] = ()) -> List[str]:
    """DKMS modules ("nvidia/580.95.05") that should be installed for a kernel and are missing.

    ``status`` is the output of `dkms status`, ``installed`` the files in TREES, ``sources`` those that packages
    installed for DKMS. RPM packages remove modules by mistake in two cases: the open and the proprietary module have
    the same file names, so removing one package after installing the other deletes its files; and reinstalling a
    package builds the modules in %post, after which its %preun removes them from DKMS.
    """
    if any(name.partition(".ko")[0] == "nvidia" for name in installed):
        return []
    found = []
    for line in status.splitlines():
        match = re.match(r"(nvidia[\w-]*)(?:/|, )([^,/ ]+), ([^,]+), [^:]+: installed\b.*[Dd]iff", line)
        if match and match.group(3) == kernel:
            found.append("%s/%s" % match.group(1, 2))
    known = registered_modules(status)
    return found + [name for name in sources if name not in known]


def registered_modules(status: str) -> List[str]:
    """NVIDIA's modules in the output of `dkms status`, as "nvidia/580.95.05"."""
    return ["%s/%s" % found for found in re.findall(r"(?m)^(nvidia[\w-]*)(?:/|, )([^,/:\s]+)", status)]


def module_sources(host: Host) -> List[str]:
    """Drivers with sources for DKMS in /usr/src, as "nvidia-open/580.95.05"."""
    found = []
    for name in host.listdir("/usr/src"):
        match = re.match(r"(nvidia(?!-fs|-peer)[\w-]*)-(\d[\w.]*)$", name)
        if match and host.exists("/usr/src/%s/dkms.conf" % name):
            found.append("%s/%s" % match.group(1, 2))
    return found


def built_modules(status: str, kernel: str) -> List[str]:
    """NVIDIA's modules that `dkms status` reports as built or installed for a kernel."""
    rows = re.findall(r"(?m)^(nvidia[\w-]*)(?:/|, )([^,/ ]+), ([^,]+), [^:]+: (?:installed|built)", status)
    return ["%s/%s" % (name, version) for name, version, built_for in rows if built_for == kernel]


def module_files(host: Host, kernel: str) -> List[str]:
    """Paths of NVIDIA's modules in TREES."""
    directories = ["/lib/modules/%s/%s" % (kernel, tree) for tree in TREES]
    return [
        "%s/%s" % (directory, name)
        for directory in directories
        for name in sorted(host.listdir(directory))
        if re.match(r"nvidia[\w-]*\.ko", name)
    ]


def damaged_modules(host: Host, kernel: str) -> List[str]:
    """Module files that modinfo cannot read.

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
    if damaged:
        remove_damaged(host, kernel, damaged)
    run(host, ["dkms", "autoinstall", "-k", kernel])
    host.sync_disks()
    installed = module_files(host, kernel)
    unreadable = damaged_modules(host, kernel)
    if unreadable or not installed:
        problem = "%s is unreadable" % unreadable[0] if unreadable else "/lib/modules/%s has no NVIDIA module" % kernel
        raise DkmsError(
            "`dkms autoinstall -k %s` succeeded, but %s. See `dkms status` and /var/lib/dkms on the host"
            % (kernel, problem)
        )
    return damaged, installed


def remove_damaged(host: Host, kernel: str, damaged: List[str]) -> None:
    """Delete damaged modules and DKMS's copies of them, which it would install again (changes the host)."""
    for path in damaged:
        os.unlink(path)
    for module in built_modules(host.run(["dkms", "status"]).out, kernel):
        run(host, ["dkms", "remove", module, "-k", kernel])
        if module not in registered_modules(host.run(["dkms", "status"]).out):  # so it is for a module's last kernel
            run(host, ["dkms", "add", module])


def run(host: Host, argv: List[str]) -> None:
    """Raises DkmsError, with the cause in the compiler's log if DKMS names one."""
    answer = host.run(argv, LIMIT)
    if answer.rc == 0:
        return
    text = answer.out + "\n" + answer.err
    call, path = " ".join(argv), failure.make_log(text)
    if path:
        why = failure.explain_failure([("installer-log", host.read(path) or text)], path, ("dkms_failed",))
        raise DkmsError("%s: %s" % (manager.find_dkms_failure(call, text) or call, why))
    raise DkmsError(
        "`%s` ended with %d (%s). See `dkms status` on the host" % (call, answer.rc, failure.key_line([text]))
    )
