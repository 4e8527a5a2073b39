"""Bring a .run installer to the host, the driver's or a toolkit's: a folder for its work, the file, and its proof."""

import contextlib
import errno
import fcntl
import hashlib
import http.client
import os
import shutil
import socket
import tempfile
import time
import urllib.error
import urllib.parse
from typing import Any, Iterator, NamedTuple

from ...base import files, manifest
from ...base.download import open_url, unfetched
from . import messages as runfile_text
from .messages import RunfileError, Wish

WORKPLACES = ("/var/tmp", manifest.FOLDER, "/root", "/tmp")
PREFIX = "gpu-ready-runfile-"
LOCK = "/run/gpu-ready-runfile.lock"
UNPACKED = 4
"""How many times its own size an installer needs beside itself: unpacked files and built modules."""
CHUNK = 1 << 20
DIGITS = {"sha256": 64, "md5": 32}
HEAD = 1 << 16
CHECKSUM_LIMIT = 1 << 20


class Source(NamedTuple):
    """Where an installer comes from: a URL or a path on this host, and what proves it ("" where nothing does).

    The URLs name lists of checksums; an md5 is what NVIDIA states of toolkits, and it proves what a broken transfer or
    a mirror did to a file, not what an attacker did.
    """

    location: str
    sha256: str = ""
    sha256_url: str = ""
    md5_url: str = ""


class Proof(NamedTuple):
    """A checksum: the algorithm's name and the digits, "" where nothing proves a file."""

    algorithm: str
    digits: str


class Limits(NamedTuple):
    """Seconds without a byte, for the whole download, and for the installer's run."""

    silence: float = 60.0
    download: float = 3600.0
    install: float = 3600.0


# ---- the folder -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def workplace(needed: int = 0) -> Iterator[str]:
    """Give a folder of our own where programs may run, with room; it goes with all that is in it."""
    with open(LOCK, "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunfileError(
                "another run works with a .run installer on this host just now (%s is locked): wait for it, then run "
                "again" % LOCK
            ) from error
        for root in WORKPLACES:
            for name in os.listdir(root) if os.path.isdir(root) else []:
                if name.startswith(PREFIX):  # a killed run left it: the lock says that it runs no more
                    shutil.rmtree(os.path.join(root, name))
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=place(needed))
        try:
            yield folder
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise RunfileError("the disk under %s is full: make room there, then run again" % folder) from error
            raise
        finally:
            shutil.rmtree(folder)


def place(needed: int) -> str:
    """Return a folder with so many bytes free where programs may run (a /tmp that is mounted noexec is none)."""
    tried = []
    for root in WORKPLACES:
        if not os.path.isdir(root):
            continue
        state = os.statvfs(root)
        free = state.f_bavail * state.f_frsize
        if state.f_flag & os.ST_NOEXEC:
            tried.append("%s is mounted noexec" % root)
        elif free < needed:
            tried.append("%s has %d MiB free" % (root, free >> 20))
        else:
            return root
    raise RunfileError(
        "the .run installer needs a folder for %d MiB where programs may run, and there is none (%s): make room in one "
        "of them, or mount it without noexec" % (needed >> 20, ", ".join(tried))
    )


def room(folder: str, needed: int, said: str) -> None:
    """Raise RunfileError where an installer cannot be unpacked and do its work; ``needed`` in bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise RunfileError(
            "%s needs %d MiB under %s (the file, and what is unpacked and built from it), but %d MiB are free: make "
            "room there, then run again" % (said, needed >> 20, os.path.dirname(folder), free >> 20)
        )


# ---- the file -------------------------------------------------------------------------------------------------------


def obtain(source: Source, wish: Wish, machine: str, folder: str, limits: Limits) -> str:
    """Return the path of the installer on this host, fetched where it is a URL, proved and of the right version."""
    path = fetch(source, folder, limits)
    judge(path, source.location, wish, machine)
    return path


def fetch(source: Source, folder: str, limits: Limits, unpacked: int = UNPACKED) -> str:
    """Return the path of a file on this host, proved by its checksum; one of a URL is brought into ``folder``.

    ``unpacked`` is how many times its own size the file will need there beside itself.
    """
    name = urllib.parse.unquote(source.location.rpartition("/")[2])
    wanted = expected(source, name, folder, limits)
    path = source.location
    if "://" in source.location:
        if not wanted.digits and not source.location.startswith("https://"):
            raise RunfileError(
                "nothing proves %s: it comes without encryption and without a checksum or the address of one; give its "
                "sha256, or use https" % source.location
            )
        path = os.path.join(folder, "installer.run")
        found = download(source.location, path, limits, 0, wanted.algorithm, unpacked)
    elif not os.path.isfile(path):
        raise RunfileError("there is no installer %s on this host: check the path, or give a URL" % path)
    else:
        found = files.checksum(path, hasher(wanted.algorithm))
    if wanted.digits and found != wanted.digits:
        raise RunfileError(
            "%s has %s %s, expected %s: it is damaged or not the file that is meant; nothing was changed; correct "
            "the checksum, or repair the mirror" % (source.location, wanted.algorithm, found, wanted.digits)
        )
    return path


def expected(source: Source, name: str, folder: str, limits: Limits) -> Proof:
    """Return the checksum that is given, or that a list on the server names; without digits where there is neither."""
    url = source.sha256_url or source.md5_url
    if source.sha256 or not url:
        return Proof("sha256", source.sha256.lower())
    algorithm = "sha256" if source.sha256_url else "md5"
    listing = os.path.join(folder, algorithm + "sum")
    download(url, listing, limits, CHECKSUM_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        found = runfile_text.read_checksum(handle.read(), name, DIGITS[algorithm])
    if found is None:
        raise RunfileError(
            "%s names no %s of %s: nothing was changed; give the sha256 itself, or repair the mirror"
            % (url, algorithm, name)
        )
    return Proof(algorithm, found)


def hasher(algorithm: str) -> Any:
    """Return a new sum; RunfileError where this host's Python refuses the algorithm, as one in FIPS mode does md5."""
    try:
        return hashlib.new(algorithm)
    except ValueError as error:
        raise RunfileError(
            "this host calculates no %s (%s), so the file cannot be proved: give its sha256" % (algorithm, error)
        ) from error


def judge(path: str, said: str, wish: Wish, machine: str) -> None:
    """Raise RunfileError where a file is no installer of the wished driver for this machine, by its own words."""
    with open(path, "rb") as handle:
        found = runfile_text.read_head(handle.read(HEAD).decode("utf-8", "replace"))
    if found is None:
        raise RunfileError("%s is no .run installer of NVIDIA's driver: check its address" % said)
    if found != (machine, wish.version):
        raise RunfileError(
            "%s holds the driver %s for %s, wanted is %s for %s: correct its address or nvidia_driver_version"
            % (said, found[1], found[0], wish.version, machine)
        )


def download(
    url: str, path: str, limits: Limits, most: int = 0, algorithm: str = "sha256", unpacked: int = UNPACKED
) -> str:
    """Write the body of ``url`` to ``path`` and return its checksum; ``most`` bytes are read (0: any number)."""
    deadline = time.monotonic() + limits.download
    total, size = hasher(algorithm), 0
    try:
        with open_url(url, limits.silence) as answer, open(path, "wb") as handle:
            length = answer.headers.get("Content-Length") or ""
            if length.isdigit() and not most:
                room(os.path.dirname(path), int(length) * (1 + unpacked), url)
            for block in iter(lambda: answer.read(CHUNK), b""):
                handle.write(block)
                total.update(block)
                size += len(block)
                if most and size > most:
                    raise RunfileError("%s is longer than %d bytes: it is not the file that is meant" % (url, most))
                if time.monotonic() > deadline:
                    raise _unfetched(url, "only %d bytes came in %g s" % (size, limits.download))
    except urllib.error.HTTPError as error:
        raise RunfileError(
            "%s: the server answered %d (%s); nothing was changed; check the version, and that gpu_ready_mirror holds "
            "this file" % (url, error.code, error.reason)
        ) from error
    except socket.timeout as error:
        raise _unfetched(url, "no answer in %g s" % limits.silence) from error
    except urllib.error.URLError as error:
        raise _unfetched(url, str(error.reason)) from error
    except (http.client.HTTPException, ConnectionError, ValueError) as error:
        raise _unfetched(url, "%s after %d bytes" % (str(error) or type(error).__name__, size)) from error
    if length.isdigit() and int(length) != size:
        raise _unfetched(url, "the connection ended after %d of %s bytes" % (size, length))
    return str(total.hexdigest())


def _unfetched(url: str, cause: str) -> RunfileError:
    return RunfileError(unfetched(url, cause))
