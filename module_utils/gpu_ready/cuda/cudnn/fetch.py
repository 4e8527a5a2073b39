"""Fetch and prove archives of cuDNN: by the manifests of NVIDIA's server, from an URL, or a file of this host."""

import os
import shutil
import urllib.parse
from typing import NamedTuple

from ...base import files
from ...base.download import Checksum, DownloadLimits, download
from . import model as cudnn
from .model import CudnnError

MANIFEST_LIMIT = 8 << 20
UNPACKED = 3
"""How many times its own size an archive is taken to need when unpacked (9.x: about two and a half times)."""


class Install(NamedTuple):
    """One cuDNN that is wanted in one toolkit; ``archive_url`` and ``sha256`` are "" where only the manifest knows.

    Without a ``manifest_url`` the archive is the operator's: ``archive_url`` is an URL or a path on this host, and
    ``version`` is "" where only the archive tells it.
    """

    cuda: str
    version: str = ""
    cuda_path: str = ""
    manifest_url: str = ""
    key: str = ""
    archive_url: str = ""
    sha256: str = ""
    origin: str = ""


class Archive(NamedTuple):
    """An archive that was fetched and checked: its file here, where it came from, the version it should hold or ""."""

    path: str
    source: str
    version: str


def fetch(install: Install, folder: str, limits: DownloadLimits) -> Archive:
    """Have an archive in ``folder``, or where it lies already, and prove it."""
    if not install.manifest_url:
        return _fetch_given(install, folder, limits)
    listing = os.path.join(folder, "manifest.json")
    download(install.manifest_url, listing, limits, max_bytes=MANIFEST_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        entry = cudnn.read_redist(handle.read(), install.key, install.manifest_url)
    if install.sha256 and entry.sha256 != install.sha256.lower():
        raise CudnnError(
            "%s gives sha256 %s for cuDNN %s, but the catalog knows %s: nothing was fetched; ask who changed the "
            "manifest (a mirror?) before you trust it"
            % (install.manifest_url, entry.sha256, install.version, install.sha256)
        )
    url = install.archive_url or urllib.parse.urljoin(install.manifest_url, entry.path)
    proved = Archive(os.path.join(folder, entry.sha256), url, entry.version or install.version)
    _room(install, entry.size, folder, 0 if os.path.exists(proved.path) else entry.size)
    if os.path.exists(proved.path):
        return proved  # for another toolkit of the same run
    download(url, proved.path, limits, Checksum("sha256", entry.sha256), entry.size)
    return proved


def _fetch_given(install: Install, folder: str, limits: DownloadLimits) -> Archive:
    """Have the operator's archive: one from a server has to have the checksum, one of this host where one is given."""
    source = install.archive_url
    named = os.path.basename(source)
    if "://" not in source:
        if not os.path.isfile(source):
            raise CudnnError("%s is no file of this host; correct cudnn_archive, then run again" % source)
        sha256 = files.checksum(source) if install.sha256 else ""
        proved = Archive(source, named, install.version)
    else:
        if not install.sha256:
            raise CudnnError("nothing proves %s: set cudnn_archive_sha256 to its checksum" % source)
        proved = Archive(os.path.join(folder, install.sha256.lower()), source, install.version)
        if os.path.exists(proved.path):
            return proved  # for another toolkit of the same run
        download(source, proved.path, limits, Checksum("sha256", install.sha256))
        return proved
    if sha256 != install.sha256.lower():
        raise CudnnError(
            "%s has sha256 %s, expected %s: it is not the archive that cudnn_archive_sha256 means; nothing was "
            "changed; correct the checksum, or find out who changed the file"
            % (proved.source, sha256, install.sha256.lower())
        )
    return proved


def _room(install: Install, size: int, folder: str, fetched: int) -> None:
    """Refuse what the disks cannot hold: the archive in ``folder``, what it unpacks to in the toolkit."""
    needs = {os.stat(install.cuda_path).st_dev: (install.cuda_path, size * UNPACKED)}
    device = os.stat(folder).st_dev
    where, more = needs.get(device, (folder, 0))
    needs[device] = (where, more + fetched)
    for where, needed in needs.values():
        free = shutil.disk_usage(where).free
        if free < needed:
            raise CudnnError(
                "cuDNN %s needs %d MiB under %s (archive and unpacked files), but %d MiB are free; make room there, "
                "then run again" % (install.version, needed >> 20, where, free >> 20)
            )
