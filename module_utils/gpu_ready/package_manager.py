"""Which package manager a host has: its family decides, and what is there where the family is not known."""

from . import apt, dnf, platform, rpm
from .host import Host
from .packages import Manager


def choose(host: Host) -> Manager:
    """Return the package manager of a host."""
    release = platform.read_os_release(host.read("/etc/os-release") or host.read("/usr/lib/os-release") or "")
    return dnf.Dnf(host) if rpm.on(host, release.family) else apt.Apt(host)
