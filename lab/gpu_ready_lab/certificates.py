"""The lab's certificate authority, which its hosts trust, and its certificate for the vendors' names.

Both are made by openssl and kept in the cache. The certificate is renewed before it ends, and when the names change.
The authority lasts: a new one makes new images of all hosts.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .engine import need_packages
from .say import locked, run, succeeds

OPENSSL = "/usr/bin/openssl"
NEEDS = {OPENSSL: "openssl"}
DAYS_OF_AUTHORITY = 3650
DAYS = 365
RENEWED_BEFORE_END = 30 * 24 * 3600  # seconds; no lab runs that long
AUTHORITY, AUTHORITY_KEY, SERVER = "authority.pem", "authority.key", "server.pem"
CONFIG = b"[req]\ndistinguished_name = name\n[name]\n"
"""Without the extensions that the machine's own configuration adds."""


def ensure_authority(directory: Path) -> Path:
    """Return the certificate of the authority in a directory, made if it is missing or about to end."""
    need_packages(NEEDS, "the lab's certificates")
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(directory / "lock"):
        if not ((directory / AUTHORITY_KEY).exists() and _lasts(directory / AUTHORITY)):
            _make_authority(directory)
    return directory / AUTHORITY


def ensure_server(directory: Path, names: Sequence[str]) -> Path:
    """Return a file with a certificate for these names, signed by the directory's authority, and its key."""
    ensure_authority(directory)
    server = directory / SERVER
    with locked(directory / "lock"):
        if not (_lasts(server) and _names(server) == {*names} and _signed_by(directory / AUTHORITY, server)):
            _make_server(directory, names)
    return server


def _make_authority(directory: Path) -> None:
    key, certificate = directory / AUTHORITY_KEY, directory / AUTHORITY
    extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
    _make(key, certificate, "gpu-ready lab, answers for vendors/O=gpu-ready lab", DAYS_OF_AUTHORITY, extensions)


def _make_server(directory: Path, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as work:
        key, certificate = Path(work, "key"), Path(work, "certificate")
        extensions = (
            "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature,keyEncipherment",
            "extendedKeyUsage=serverAuth", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names),
        )  # fmt: skip
        signer = ("-CA", str(directory / AUTHORITY), "-CAkey", str(directory / AUTHORITY_KEY))
        _make(key, certificate, "gpu-ready lab", DAYS, extensions, *signer)
        with certificate.open("a") as both:
            both.write(key.read_text())
        certificate.replace(directory / SERVER)


def _make(key: Path, certificate: Path, name: str, days: int, extensions: Sequence[str], *signer: str) -> None:
    """Make a private key and a certificate for it, which it signs itself unless another signer is given."""
    for path in (key, certificate):
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
    run(
        [
            OPENSSL, "req", "-config", "/dev/stdin", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days),
            "-subj", f"/CN={name}", *(word for one in extensions for word in ("-addext", one)),
            "-keyout", str(key), "-out", str(certificate), *signer,
        ],
        limit=180, what=f"make a certificate for {name}", stdin=CONFIG,
    )  # fmt: skip


def _lasts(certificate: Path) -> bool:
    """Whether a certificate exists and will not end soon."""
    ask = [OPENSSL, "x509", "-in", str(certificate), "-noout", "-checkend", str(RENEWED_BEFORE_END)]
    return certificate.exists() and succeeds(ask)


def _names(certificate: Path) -> set[str]:
    ask = [OPENSSL, "x509", "-in", str(certificate), "-noout", "-ext", "subjectAltName"]
    return {*re.findall(r"DNS:([^\s,]+)", run(ask, limit=20, what="read the names of a certificate"))}


def _signed_by(authority: Path, certificate: Path) -> bool:
    return succeeds([OPENSSL, "verify", "-CAfile", str(authority), str(certificate)])
