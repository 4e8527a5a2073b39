"""Which package manager a host has: by its family, and by its programs where the family is unknown."""

from ..base.host import Host
from ..system import os_release
from . import apt, dnf
from .family import uses_rpm
from .manager import Manager


def choose_manager(host: Host, keep_cache: bool = False) -> Manager:
    """Return package manager of a host; ``keep_cache``: dnf keeps downloaded packages (apt always does)."""
    release = os_release.read_os_release(host.read("/etc/os-release") or host.read("/usr/lib/os-release") or "")
    return dnf.Dnf(host, keep_cache=keep_cache) if uses_rpm(host, release.family) else apt.Apt(host)
