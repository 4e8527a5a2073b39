"""Ways of hosts to the vendors by name: they lead to the lab, whose authority hosts trust, without a proxy."""

from pathlib import Path

from . import certificates, mirror, paths

CERTIFICATE = "usr/lib/gpu-ready-lab/authority.crt"
"""On a host: the authority's certificate, which `trust` there adds to those that programs trust."""


def authority() -> Path:
    """Return the certificate of the authority that hosts trust."""
    return certificates.ensure_authority(paths.cache() / mirror.CERTIFICATES)


def add_hosts() -> list[str]:
    """Options that give a container the vendors' names; docker rewrites its /etc/hosts at each start."""
    return [option for name in mirror.names() for option in ("--add-host", f"{name}:{paths.ADDRESS}")]


def etc_hosts() -> str:
    """Return the lines of /etc/hosts with the vendors' names."""
    return "".join(f"{paths.ADDRESS} {name}\n" for name in mirror.names())


def apt_files(proxy: str) -> dict[str, tuple[bytes | str, int]]:
    """Return apt's configuration: the archive's proxy for all hosts but the mirror and the vendors; it has no TLS."""
    direct = [paths.ADDRESS, *mirror.names()]
    lines = [f'Acquire::http::Proxy::{name} "DIRECT";\nAcquire::https::Proxy::{name} "DIRECT";\n' for name in direct]
    return {
        "etc/apt/apt.conf.d/99gpu-ready-lab-proxy": (f'Acquire::http::Proxy "{proxy}";\n', 0o644),
        "etc/apt/apt.conf.d/99gpu-ready-lab-mirror": ("".join(lines), 0o644),
    }
