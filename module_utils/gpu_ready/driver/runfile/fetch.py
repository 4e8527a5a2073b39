"""Bring a .run installer to the host, the driver's or a toolkit's: a folder for its work, the file, and its proof."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import urllib.parse
from typing import Iterator, NamedTuple

from ...base import files, manifest
from ...base.download import DAMAGED, Checksum, DownloadLimits, download, new_hash
from . import messages as runfile_text
from .messages import RunfileError, Wish

WORKPLACES = ("/var/tmp", manifest.FOLDER, "/root", "/tmp")
PREFIX = "gpu-ready-runfile-"
LOCK = "/run/gpu-ready-runfile.lock"
UNPACKED = 4
"""How many times its own size an installer needs beside itself: unpacked files and built modules."""
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


class Limits(NamedTuple):
    """Seconds without a byte, for the whole download, and for the installer's run."""

    silence: float = 60.0
    download: float = 3600.0
    install: float = 3600.0

    @property
    def of_download(self) -> DownloadLimits:
        return DownloadLimits(self.silence, self.download)


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
        if not wanted.digest and not source.location.startswith("https://"):
            raise RunfileError(
                "nothing proves %s: it comes without encryption and without a checksum or the address of one; give its "
                "sha256, or use https" % source.location
            )
        path = os.path.join(folder, "installer.run")
        download(
            source.location,
            path,
            limits.of_download,
            wanted,
            on_size=lambda size: room(folder, size * (1 + unpacked), source.location),
        )
        return path
    if not os.path.isfile(path):
        raise RunfileError("there is no installer %s on this host: check the path, or give a URL" % path)
    found = files.checksum(path, new_hash(wanted.algorithm))
    if wanted.digest and found != wanted.digest:
        raise RunfileError(
            "%s has %s %s, expected %s. Nothing was changed. %s"
            % (source.location, wanted.algorithm, found, wanted.digest, DAMAGED)
        )
    return path


def expected(source: Source, name: str, folder: str, limits: Limits) -> Checksum:
    """Return the checksum that is given, or that a list on the server names; without digits where there is neither."""
    url = source.sha256_url or source.md5_url
    if source.sha256 or not url:
        return Checksum("sha256", source.sha256.lower())
    algorithm = "sha256" if source.sha256_url else "md5"
    listing = os.path.join(folder, algorithm + "sum")
    download(url, listing, limits.of_download, max_bytes=CHECKSUM_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        found = runfile_text.read_checksum(handle.read(), name, DIGITS[algorithm])
    if found is None:
        raise RunfileError(
            "%s names no %s of %s: nothing was changed; give the sha256 itself, or repair the mirror"
            % (url, algorithm, name)
        )
    return Checksum(algorithm, found)


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
