"""The lab's certificate authority, which its hosts trust, and its certificate for the vendors' names.

Both are made by openssl and kept in the cache. The certificate is renewed before it ends, and when the names change.
The authority lasts: a new one makes new images of all hosts.
"""

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .engine import need_packages
from .say import run, succeeds

OPENSSL = "/usr/bin/openssl"
NEEDS = {OPENSSL: "openssl"}
DAYS_OF_AUTHORITY = 3650
DAYS = 365
RENEWED_BEFORE_END = 30 * 24 * 3600  # seconds; no lab runs that long
AUTHORITY, AUTHORITY_KEY, SERVER = "authority.pem", "authority.key", "server.pem"
EXTENSIONS = """\
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, keyEncipherment
extendedKeyUsage = serverAuth
subjectAltName = {names}
"""


def ensure_authority(directory: Path) -> Path:
    """Return the certificate of the authority in a directory, made if it is missing or about to end."""
    need_packages(NEEDS, "the lab's certificates")
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ((directory / AUTHORITY_KEY).exists() and _lasts(directory / AUTHORITY)):
            _make_authority(directory)
    return directory / AUTHORITY


def ensure_server(directory: Path, names: Sequence[str]) -> Path:
    """Return a file with a certificate for these names, signed by the directory's authority, and its key."""
    ensure_authority(directory)
    server = directory / SERVER
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (_lasts(server) and _names(server) == {*names} and _signed_by(directory / AUTHORITY, server)):
            _make_server(directory, names)
    return server


def _make_authority(directory: Path) -> None:
    with _new(directory / AUTHORITY_KEY) as key, _new(directory / AUTHORITY) as certificate:
        run(
            [
                OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(DAYS_OF_AUTHORITY),
                "-subj", "/CN=gpu-ready lab, answers for vendors/O=gpu-ready lab",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", str(key), "-out", str(certificate),
            ],
            limit=180, what="make the lab's certificate authority",
        )  # fmt: skip


def _make_server(directory: Path, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as work, _new(directory / SERVER) as new:
        key, request, extensions = (Path(work, name) for name in ("key", "request", "extensions"))
        extensions.write_text(EXTENSIONS.format(names=", ".join(f"DNS:{name}" for name in names)))
        run(
            [
                OPENSSL, "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=gpu-ready lab", "-keyout", str(key),
                "-out", str(request),
            ],
            limit=180, what="make a key for the vendors' names",
        )  # fmt: skip
        certificate = run(
            [
                OPENSSL, "x509", "-req", "-in", str(request), "-CA", str(directory / AUTHORITY),
                "-CAkey", str(directory / AUTHORITY_KEY), "-set_serial", str(int.from_bytes(os.urandom(8), "big")),
                "-days", str(DAYS), "-sha256", "-extfile", str(extensions),
            ],
            limit=180, what="make a certificate for the vendors' names",
        )  # fmt: skip
        new.write_text(certificate + key.read_text())


@contextlib.contextmanager
def _new(path: Path) -> Iterator[Path]:
    """A private file beside a path, which takes its place if nothing fails."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    yield new
    new.replace(path)


def _lasts(certificate: Path) -> bool:
    """Whether a certificate exists and will not end soon."""
    ask = [OPENSSL, "x509", "-in", str(certificate), "-noout", "-checkend", str(RENEWED_BEFORE_END)]
    return certificate.exists() and succeeds(ask)


def _names(certificate: Path) -> set[str]:
    ask = [OPENSSL, "x509", "-in", str(certificate), "-noout", "-ext", "subjectAltName"]
    return {*re.findall(r"DNS:([^\s,]+)", run(ask, limit=20, what="read the names of a certificate"))}


def _signed_by(authority: Path, certificate: Path) -> bool:
    return succeeds([OPENSSL, "verify", "-CAfile", str(authority), str(certificate)])
