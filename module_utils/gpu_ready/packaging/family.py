"""Which package manager a host has."""

from ..base.host import Host
from .dpkg_status import STATUS


def uses_rpm(host: Host) -> bool:
    """Return True if the packages of a host are RPMs: rpm is installed, and dpkg has no package in its database."""
    return host.which("rpm") is not None and not (host.read(STATUS) or "").strip()
