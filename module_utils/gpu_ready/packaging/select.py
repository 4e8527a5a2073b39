"""The package manager of a host."""

from ..base.host import Host
from . import apt, dnf
from .family import uses_rpm
from .manager import Manager


def choose_manager(host: Host, keep_cache: bool = False) -> Manager:
    """Return package manager of a host; ``keep_cache``: dnf keeps downloaded packages (apt always does)."""
    return dnf.Dnf(host, keep_cache=keep_cache) if uses_rpm(host) else apt.Apt(host)
