"""Fetch and verify archives of cuDNN: by the manifests of NVIDIA's server, from a URL, or a file on this host."""

import os
import shutil
import urllib.parse
from typing import NamedTuple

from ...base import files
from ...base.download import Checksum, DownloadLimits, download
from .model import CudnnError
from .redist_manifest import parse_manifest

MANIFEST_LIMIT = 8 << 20
UNPACKED = 3
"""Space for the unpacked files, in multiples of the archive's size (9.x: about two and a half)."""


class CudnnInstall(NamedTuple):
    """cuDNN for one toolkit; ``archive_url`` and ``sha256`` are "" if they are to be taken from the manifest.

    Without a ``manifest_url`` the archive is the operator's: ``archive_url`` is a URL or a path on this host, and
    ``version`` may be "" to take it from the archive.
    """

    cuda: str
    version: str = ""
    cuda_path: str = ""
    manifest_url: str = ""
    key: str = ""
    archive_url: str = ""
    sha256: str = ""
    origin: str = ""


class FetchedArchive(NamedTuple):
    """A verified archive: its file on this host, its source for messages, the expected version or ""."""

    path: str
    source: str
    version: str


def fetch_archive(install: CudnnInstall, directory: str, limits: DownloadLimits) -> FetchedArchive:
    """Download an archive to ``directory``, or use a local file, and verify it. Raises CudnnError."""
    if not install.manifest_url:
        return _fetch_given(install, directory, limits)
    listing = os.path.join(directory, "manifest.json")
    download(install.manifest_url, listing, limits, max_bytes=MANIFEST_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        entry = parse_manifest(handle.read(), install.key, install.manifest_url)
    if install.sha256 and entry.sha256 != install.sha256.lower():
        raise CudnnError(
            "%s has sha256 %s for cuDNN %s, but the catalog has %s. Nothing was fetched. Find out who changed the "
            "manifest (a mirror?) before you trust it"
            % (install.manifest_url, entry.sha256, install.version, install.sha256)
        )
    url = install.archive_url or urllib.parse.urljoin(install.manifest_url, entry.path)
    archive = FetchedArchive(os.path.join(directory, entry.sha256), url, entry.version or install.version)
    _check_free_space(install, entry.size, directory, 0 if os.path.exists(archive.path) else entry.size)
    if os.path.exists(archive.path):
        return archive  # for another toolkit of the same run
    download(url, archive.path, limits, Checksum("sha256", entry.sha256), entry.size)
    return archive


def _fetch_given(install: CudnnInstall, directory: str, limits: DownloadLimits) -> FetchedArchive:
    """Return the operator's archive. One from a server needs a checksum, for one on this host it is optional."""
    source = install.archive_url
    named = os.path.basename(source)
    if "://" not in source:
        if not os.path.isfile(source):
            raise CudnnError("%s is not a file on this host. Correct cudnn_archive, then run again" % source)
        sha256 = files.checksum(source) if install.sha256 else ""
        archive = FetchedArchive(source, named, install.version)
    else:
        if not install.sha256:
            raise CudnnError("%s cannot be verified. Set cudnn_archive_sha256 to its checksum" % source)
        archive = FetchedArchive(os.path.join(directory, install.sha256.lower()), source, install.version)
        if not os.path.exists(archive.path):  # else for another toolkit of the same run
            download(source, archive.path, limits, Checksum("sha256", install.sha256), unpacked=UNPACKED)
        _check_free_space(install, os.path.getsize(archive.path), directory, 0)
        return archive
    if sha256 != install.sha256.lower():
        raise CudnnError(
            "%s has sha256 %s, expected %s (cudnn_archive_sha256). Nothing was changed. Correct the checksum, or find "
            "out who changed the file" % (archive.source, sha256, install.sha256.lower())
        )
    return archive


def _check_free_space(install: CudnnInstall, size: int, directory: str, fetched: int) -> None:
    """Raise CudnnError if the archive in ``directory`` or its files in the toolkit do not fit on the disks."""
    needs = {os.stat(install.cuda_path).st_dev: (install.cuda_path, size * UNPACKED)}
    device = os.stat(directory).st_dev
    where, more = needs.get(device, (directory, 0))
    needs[device] = (where, more + fetched)
    for where, needed in needs.values():
        free = shutil.disk_usage(where).free
        if free < needed:
            raise CudnnError(
                "cuDNN %s needs %d MiB in %s (archive and unpacked files), but %d MiB are free. Free disk space there, "
                "then run again" % (install.version, needed >> 20, where, free >> 20)
            )
