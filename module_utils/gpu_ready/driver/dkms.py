"""NVIDIA's modules in DKMS: what a kernel should have and has not, what lost its content, and their build."""

import os
import re
from typing import Iterable, List, Tuple

from ..base.errors import GpuReadyError
from ..base.host import Host
from ..diagnostics import failure
from ..packaging import manager

TREES = ("extra", "updates/dkms", "updates")
"""Folders below /lib/modules/KERNEL that DKMS installs to, by distribution."""
LIMIT = 3600.0
"""Seconds for a build: minutes on any machine that has GPUs."""


class DkmsError(GpuReadyError):
    """DKMS does not do what it was told; one sentence."""


def lost(status: str, kernel: str, there: List[str], offered: Iterable[str] = ()) -> List[str]:
    """Return those of DKMS's modules ("nvidia/580.95.05") that a kernel should have and has not.

    ``status`` is what `dkms status` printed, ``there`` the files in TREES, ``offered`` what packages brought for
    DKMS. Two ways of the RPM packages lose them: the open and the proprietary module have the same file names, so that
    the package of one, removed after the other was installed, takes that along; and a package that is installed again
    builds them in %post, after which its %preun has DKMS forget them.
    """
    if any(name.partition(".ko")[0] == "nvidia" for name in there):
        return []
    found = []
    for line in status.splitlines():
        match = re.match(r"(nvidia[\w-]*)(?:/|, )([^,/ ]+), ([^,]+), [^:]+: installed\b.*[Dd]iff", line)
        if match and match.group(3) == kernel:
            found.append("%s/%s" % match.group(1, 2))
    known = registered(status)
    return found + [name for name in offered if name not in known]


def registered(status: str) -> List[str]:
    """Return NVIDIA's modules that DKMS knows ("nvidia/580.95.05"), from what `dkms status` printed."""
    return ["%s/%s" % found for found in re.findall(r"(?m)^(nvidia[\w-]*)(?:/|, )([^,/:\s]+)", status)]


def sources(host: Host) -> List[str]:
    """Return the drivers whose sources lie where DKMS takes them from, as "nvidia-open/580.95.05"."""
    found = []
    for folder in host.listdir("/usr/src"):
        match = re.match(r"(nvidia(?!-fs|-peer)[\w-]*)-(\d[\w.]*)$", folder)
        if match and host.exists("/usr/src/%s/dkms.conf" % folder):
            found.append("%s/%s" % match.group(1, 2))
    return found


def installed(status: str, kernel: str) -> List[str]:
    """Return NVIDIA's modules that DKMS calls built or installed for a kernel, from what `dkms status` printed."""
    rows = re.findall(r"(?m)^(nvidia[\w-]*)(?:/|, )([^,/ ]+), ([^,]+), [^:]+: (?:installed|built)", status)
    return ["%s/%s" % (name, version) for name, version, built_for in rows if built_for == kernel]


def module_files(host: Host, kernel: str) -> List[str]:
    """Return the paths of NVIDIA's modules that lie where DKMS installs to."""
    folders = ["/lib/modules/%s/%s" % (kernel, tree) for tree in TREES]
    return [
        "%s/%s" % (folder, name)
        for folder in folders
        for name in sorted(host.listdir(folder))
        if re.match(r"nvidia[\w-]*\.ko", name)
    ]


def unreadable(host: Host, kernel: str) -> List[str]:
    """Return those of these files that are no modules: DKMS writes them without waiting for the disk.

    After a power cut they can be empty or cut off, and DKMS goes on to call them installed.
    """
    return [
        path
        for path in module_files(host, kernel)
        if not host.run(["modinfo", "-F", "vermagic", path], 20.0).out.strip()
    ]


def build(host: Host, kernel: str) -> Tuple[List[str], List[str]]:
    """Have DKMS build and install NVIDIA's modules for a kernel (changes the host), also those that lost their content.

    Returns the files that were damaged, and all that are there now.
    """
    damaged = unreadable(host, kernel)
    if damaged:
        forget(host, kernel, damaged)
    run(host, ["dkms", "autoinstall", "-k", kernel])
    host.settle()
    there = module_files(host, kernel)
    left = unreadable(host, kernel)
    if left or not there:
        raise DkmsError(
            "`dkms autoinstall -k %s` left %s: see `dkms status` and /var/lib/dkms on the host"
            % (kernel, "%s unreadable" % left[0] if left else "no NVIDIA module below /lib/modules/%s" % kernel)
        )
    return damaged, there


def forget(host: Host, kernel: str, damaged: List[str]) -> None:
    """Take damaged modules away, and what DKMS built them from (changes the host): it would only copy that again."""
    for path in damaged:
        os.unlink(path)
    for module in installed(host.run(["dkms", "status"]).out, kernel):
        run(host, ["dkms", "remove", module, "-k", kernel])
        if module not in registered(host.run(["dkms", "status"]).out):  # as it does with the last kernel of a module
            run(host, ["dkms", "add", module])


def run(host: Host, argv: List[str]) -> None:
    """Call DKMS; DkmsError with the compiler's cause where it names a log of it."""
    answer = host.run(argv, LIMIT)
    if answer.rc == 0:
        return
    text = answer.out + "\n" + answer.err
    call, path = " ".join(argv), failure.make_log(text)
    if path:
        why = failure.because([("installer-log", host.read(path) or text)], path, ("dkms_failed",))
        raise DkmsError("%s: %s" % (manager.find_dkms_failure(call, text) or call, why))
    raise DkmsError(
        "`%s` ended with %d (%s): see `dkms status` on the host" % (call, answer.rc, failure.quoted([text]))
    )
