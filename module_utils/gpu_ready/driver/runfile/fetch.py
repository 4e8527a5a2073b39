"""Fetch and verify a .run installer, of the driver or of a CUDA toolkit, and give it a work directory."""

import contextlib
import errno
import os
import re
import shutil
import tempfile
import urllib.parse
from typing import Iterator, NamedTuple, Optional, Tuple

from ...base import files, manifest, work_directories
from ...base.download import DAMAGED, Checksum, DownloadLimits, download, new_hash
from ...base.locks import hold_lock
from .spec import DriverSpec, RunfileError

WORK_DIRECTORIES = (manifest.DIRECTORY, "/root", "/usr/src")
"""Root's alone: in /var/tmp every user could take our names, and fill the disk. Which has space, and is not noexec."""
PREFIX = "gpu-ready-runfile-"
UNPACKED = 4
"""Space for unpacked files and built modules, in multiples of the installer's size."""
DIGITS = {"sha256": 64, "md5": 32}
HEAD = 1 << 16
CHECKSUM_LIMIT = 1 << 20


class InstallerSource(NamedTuple):
    """A URL or a path on this host, and a checksum or the URL of a list of checksums ("" for none).

    NVIDIA publishes md5 sums only for toolkits: they detect damage by a transfer or a mirror, not an attacker.
    """

    location: str
    sha256: str = ""
    sha256_url: str = ""
    md5_url: str = ""


class RunfileLimits(NamedTuple):
    """Seconds without a byte, for the whole download, and for the installer's run."""

    silence: float = 60.0
    download: float = 3600.0
    install: float = 3600.0

    @property
    def of_download(self) -> DownloadLimits:
        return DownloadLimits(self.silence, self.download)


# ---- work directory -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def work_directory(needed: int = 0) -> Iterator[str]:
    """Yield a temporary directory with ``needed`` bytes free, on a file system without noexec."""
    os.makedirs(WORK_DIRECTORIES[0], mode=0o755, exist_ok=True)
    with hold_lock("runfile"):
        for root in WORK_DIRECTORIES:
            work_directories.delete_leftover_directories(root, PREFIX)  # the lock shows that no run is active
        directory = tempfile.mkdtemp(prefix=PREFIX, dir=choose_work_directory(needed))
        try:
            yield directory
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise RunfileError("the disk of %s is full. Free disk space, then run again" % directory) from error
            raise
        finally:
            shutil.rmtree(directory)


def choose_work_directory(needed: int) -> str:
    """Return the first directory with ``needed`` bytes free on a file system without noexec."""
    tried = []
    for root in WORK_DIRECTORIES:
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
        "the .run installer needs %d MiB in a directory that is not mounted noexec: %s. Free disk space in one of "
        "them, or mount it without noexec" % (needed >> 20, ", ".join(tried))
    )


def check_free_space(directory: str, needed: int, location: str) -> None:
    """Raise RunfileError if fewer than ``needed`` bytes are free for an installer and its work."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise RunfileError(
            "%s needs %d MiB in %s (for the file and what is unpacked and built from it), but %d MiB are free. Free "
            "disk space there, then run again" % (location, needed >> 20, os.path.dirname(directory), free >> 20)
        )


# ---- file -----------------------------------------------------------------------------------------------------------


def fetch_driver_installer(
    source: InstallerSource, spec: DriverSpec, architecture: str, directory: str, limits: RunfileLimits
) -> str:
    """Return the path of the verified installer of the requested version on this host."""
    path = fetch_file(source, directory, limits)
    check_installer(path, source.location, spec.version, architecture)
    return path


def fetch_file(source: InstallerSource, directory: str, limits: RunfileLimits, unpacked: int = UNPACKED) -> str:
    """Return the path of a verified file on this host; a URL is downloaded to ``directory``.

    ``unpacked``: further space that the file will need there, in multiples of its size.
    """
    name = urllib.parse.unquote(source.location.rpartition("/")[2])
    expected = expected_checksum(source, name, directory, limits)
    path = source.location
    if "://" in source.location:
        if not expected.digest and not source.location.startswith("https://"):
            raise RunfileError(
                "%s cannot be verified: it comes without encryption and without a checksum. Give its sha256, or use "
                "https" % source.location
            )
        path = os.path.join(directory, "installer.run")
        download(source.location, path, limits.of_download, expected, unpacked=unpacked)
        return path
    if not os.path.isfile(path):
        raise RunfileError("there is no installer %s on this host. Check the path, or give a URL" % path)
    found = files.checksum(path, new_hash(expected.algorithm))
    if expected.digest and found != expected.digest:
        raise RunfileError(
            "%s has %s %s, expected %s. Nothing was changed. %s"
            % (source.location, expected.algorithm, found, expected.digest, DAMAGED)
        )
    return path


def expected_checksum(source: InstallerSource, name: str, directory: str, limits: RunfileLimits) -> Checksum:
    """Return the given checksum, else the one in a list on the server; an empty digest if there is neither."""
    url = source.sha256_url or source.md5_url
    if source.sha256 or not url:
        return Checksum("sha256", source.sha256.lower())
    algorithm = "sha256" if source.sha256_url else "md5"
    listing = os.path.join(directory, algorithm + "sum")
    download(url, listing, limits.of_download, max_bytes=CHECKSUM_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        found = parse_checksum(handle.read(), name, DIGITS[algorithm])
    if found is None:
        raise RunfileError(
            "%s has no %s of %s. Nothing was changed. Give the sha256 itself, or repair the mirror"
            % (url, algorithm, name)
        )
    return Checksum(algorithm, found)


def parse_checksum(text: str, name: str, digits: int = 64) -> Optional[str]:
    """Return the checksum of a file in a list: lines "HEX  NAME", or the number alone."""
    form = r"^([0-9a-fA-F]{%d})(?:\s+[*]?(\S+))?\s*$" % digits
    rows = [re.match(form, line.strip()) for line in text.splitlines()]
    named = [row.group(1).lower() for row in rows if row and (row.group(2) or name).rpartition("/")[2] == name]
    return named[0] if len(set(named)) == 1 else None


def parse_head(text: str) -> Optional[Tuple[str, str]]:
    """Return architecture and version in the script before the archive, None for another kind of file."""
    if not text.startswith("#!"):
        return None
    match = re.search(r"\bLinux-(x86_64|aarch64|x86)[ -](\d{2,4}\.\d+(?:\.\d+)?)\b", text)
    return (match.group(1), match.group(2)) if match else None


def check_installer(path: str, location: str, version: str, architecture: str) -> None:
    """Raise RunfileError for a file that is not the installer of this driver for this architecture."""
    with open(path, "rb") as handle:
        found = parse_head(handle.read(HEAD).decode("utf-8", "replace"))
    if found is None:
        raise RunfileError("%s is not a .run installer of NVIDIA's driver. Check its address" % location)
    if found != (architecture, version):
        raise RunfileError(
            "%s contains the driver %s for %s, expected %s for %s. Correct its address or nvidia_driver_version"
            % (location, found[1], found[0], version, architecture)
        )
