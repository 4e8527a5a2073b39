"""Locks of package managers: which process works on the packages of a host."""

import re
from typing import Iterable, List, Tuple

from ..base.host import Host

DPKG_LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
"""Held from the first to the last package of a run; before dpkg 1.19 there is the second one only."""
APT_LOCKS = DPKG_LOCKS + ("/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock")
RPM_LOCKS = ("/usr/lib/sysimage/rpm/.rpm.lock", "/var/lib/rpm/.rpm.lock", "/run/dnf/rpmtransaction.lock")
TRANSACTION_PID_FILES = ("/var/lib/dnf/rpmdb_lock.pid", "/var/run/yum.pid")
PID_FILES = ("/var/cache/dnf/metadata_lock.pid", "/var/cache/dnf/download_lock.pid") + TRANSACTION_PID_FILES


def held_locks(host: Host, paths: Iterable[str]) -> List[Tuple[str, int]]:
    """Return files that another process has locked: (path, process; 0 where it is not visible from here)."""
    return [(path, pid) for path in paths for pid in [host.lock_holder(path)] if pid is not None]


def held_pid_files(host: Host, paths: Iterable[str]) -> List[Tuple[str, int]]:
    """Return files of dnf and yum that name a running package manager: (path, process)."""
    found = []
    for path in paths:
        text = (host.read(path) or "").strip()
        words = host.command_lines([int(text)]).get(int(text), []) if re.match(r"[0-9]{1,9}$", text) else []
        if re.search(r"dnf|yum|packagekit|rpm", " ".join(words), re.IGNORECASE):
            found.append((path, int(text)))
    return found


def describe_holder(host: Host, held: List[Tuple[str, int]]) -> str:
    """Return the first process that holds one of these locks, "" where there is none."""
    if not held:
        return ""
    pid = held[0][1]
    name = (host.read("/proc/%d/comm" % pid) or "").strip() if pid else ""
    return "process %s" % pid + (" (%s)" % name if name else "") if pid else "a process outside of this container"
