"""Which lease a host has, as a short text; lease.py has the rest."""

import hashlib

from .host import Host

PATH = "/var/lib/gpu-ready/lease.json"


def mark(host: Host, path: str = PATH) -> str:
    """Return a hash of the lease; another one after any run has taken, renewed or released it. "" without a lease."""
    content = host.read_bytes(path)
    return hashlib.sha256(content).hexdigest() if content else ""
