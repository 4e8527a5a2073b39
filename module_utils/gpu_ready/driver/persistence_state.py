"""Persistence mode as the daemon has it; asking the driver would initialize every GPU.

The mode of a GPU is on while the daemon has it open: `nvidia-smi -pm 0` makes the daemon close it (set_device_mode in
nvidia-persistenced.c).
"""

import re
from typing import NamedTuple, Optional

from ..base.host import Host

UNIT = "nvidia-persistenced.service"
DROP_INS = "/etc/systemd/system/%s.d" % UNIT
DROP_IN = DROP_INS + "/gpu-ready.conf"
MASKED_BY_DPKG = "/var/lib/systemd/deb-systemd-helper-masked/" + UNIT
PID = "/run/nvidia-persistenced/nvidia-persistenced.pid"
OFF = "--no-persistence-mode"
NODE = re.compile(r"/dev/nvidia\d+(?: \(deleted\))?$")


class Persistence(NamedTuple):
    """``off``: the running daemon was started with the mode off. ``own``: the administrator has another command.

    ``held``: how many GPUs the daemon has open, None where that cannot be read.
    """

    running: bool = False
    off: bool = False
    own: bool = False
    held: Optional[int] = None


def read_persistence(host: Host) -> Persistence:
    """Return the state of the daemon, by its PID file (nvidia-persistenced.c writes it, whatever the unit says)."""
    pid = (host.read(PID) or "").strip()
    running = pid.isdigit() and host.isdir("/proc/" + pid)
    off = running and OFF in host.command_lines([int(pid)]).get(int(pid), [])
    return Persistence(running, off, has_own_command(host), held_gpus(host, pid) if running else None)


def held_gpus(host: Host, pid: str) -> Optional[int]:
    directory = "/proc/%s/fd" % pid
    targets = [host.readlink("%s/%s" % (directory, name)) or "" for name in host.listdir(directory)]
    # Every process has something open: none is shown where reading it is not allowed.
    return len({target for target in targets if NODE.match(target)}) if targets else None


def has_own_command(host: Host) -> bool:
    """Return True if the administrator replaced the unit, masked it, or gave it another command.

    The removal of a package of Debian's masks its unit too, and notes that (deb-systemd-helper of init-system-helpers).
    """
    paths = ["%s/%s" % (DROP_INS, name) for name in host.listdir(DROP_INS) if name.endswith(".conf")]
    texts = [host.read(path) or "" for path in paths if path != DROP_IN]
    replaced = host.exists("/etc/systemd/system/" + UNIT) and not host.exists(MASKED_BY_DPKG)
    return replaced or any("ExecStart" in text for text in texts)
