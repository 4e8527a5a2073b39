"""Persistence mode as the daemon's command and unit have it; asking the driver would initialize every GPU."""

from typing import NamedTuple

from ..base.host import Host

UNIT = "nvidia-persistenced.service"
DROP_INS = "/etc/systemd/system/%s.d" % UNIT
DROP_IN = DROP_INS + "/gpu-ready.conf"
PID = "/run/nvidia-persistenced/nvidia-persistenced.pid"
OFF = "--no-persistence-mode"


class Persistence(NamedTuple):
    """``off``: the running daemon was started with the mode off. ``own``: the administrator has another command."""

    running: bool = False
    off: bool = False
    own: bool = False


def read_persistence(host: Host) -> Persistence:
    """Return the state of the daemon, by its PID file (nvidia-persistenced.c writes it, whatever the unit says)."""
    pid = (host.read(PID) or "").strip()
    running = pid.isdigit() and host.isdir("/proc/" + pid)
    off = running and OFF in host.command_lines([int(pid)]).get(int(pid), [])
    return Persistence(running, off, has_own_command(host))


def has_own_command(host: Host) -> bool:
    """True if the administrator replaced the unit, masked it, or gave it another command."""
    paths = ["%s/%s" % (DROP_INS, name) for name in host.listdir(DROP_INS) if name.endswith(".conf")]
    texts = [host.read(path) or "" for path in paths if path != DROP_IN]
    return host.exists("/etc/systemd/system/" + UNIT) or any("ExecStart" in text for text in texts)
