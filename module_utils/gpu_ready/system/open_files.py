"""Which processes have a file open, from /proc."""

from typing import Callable, List

from ..base.host import Host


def processes_with_open_file(host: Host, matches: Callable[[str], bool]) -> List[int]:
    """Return ids of processes with an open file whose path matches. Needs root to see other users' processes."""
    found = []
    for pid in host.listdir("/proc"):
        if pid.isdigit():
            directory = "/proc/%s/fd" % pid
            if any(matches(host.readlink("%s/%s" % (directory, fd)) or "") for fd in host.listdir(directory)):
                found.append(int(pid))
    return found
