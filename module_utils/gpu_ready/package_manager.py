"""Which package manager a host has: its family decides, and what is there where the family is not known."""

from . import apt, dnf, platform
from .host import Host
from .packages import Manager

RPM_FAMILIES = ("rhel", "fedora", "amazon", "suse")


def is_rpm(host: Host, family: str) -> bool:
    """Return whether the packages of a host are RPMs; ``family`` is that of its os-release."""
    if family == "debian":
        return False
    return family in RPM_FAMILIES or (host.which("dpkg") is None and host.which("rpm") is not None)


def choose(host: Host) -> Manager:
    """Return the package manager of a host."""
    release = platform.read_os_release(host.read("/etc/os-release") or host.read("/usr/lib/os-release") or "")
    return dnf.Dnf(host) if is_rpm(host, release.family) else apt.Apt(host)
