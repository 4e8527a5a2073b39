"""Which package manager a host has."""

from ..base.host import Host

FAMILIES = ("rhel", "fedora", "amazon")


def uses_rpm(host: Host, family: str) -> bool:
    """Return True if a host has RPMs: by the family of os-release, and by its programs where that is unknown."""
    if family == "debian":
        return False
    return family in FAMILIES or (host.which("dpkg") is None and host.which("rpm") is not None)
