"""Place a cuDNN archive into a CUDA toolkit, repair it, replace it by another, take it away: file by file.

The order makes a run that is killed anywhere repairable: everything is fetched, checked and unpacked beside the
toolkit; then our record lists every file that is about to be placed (``complete`` false) besides those of the version
before; then each file is renamed to its place, the header that states the version last; then files of the version
before go; then the record says complete.
"""

import contextlib
import errno
import fcntl
import hashlib
import http.client
import os
import shutil
import socket
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional

from . import cudnn, files, manifest
from .cudnn import CudnnError

STAGING = ".gpu-ready-cudnn-"
CHUNK = 1 << 20
MANIFEST_LIMIT = 8 << 20
UNPACKED = 3
"""How many times its own size an archive is taken to need when unpacked (9.x: about two and a half times)."""


class Install(NamedTuple):
    """One cuDNN that is wanted in one toolkit; ``archive_url`` and ``sha256`` are "" where only the manifest knows."""

    cuda: str
    version: str
    cuda_path: str
    manifest_url: str
    key: str
    archive_url: str = ""
    sha256: str = ""


class Paths(NamedTuple):
    """Where the records are kept."""

    records: str = cudnn.RECORDS
    manifest: str = manifest.PATH


class Limits(NamedTuple):
    """Seconds without a byte, and seconds for one whole download."""

    silence: float = 60.0
    total: float = 3600.0


class _Staged(NamedTuple):
    path: str
    target: str
    content: str


def recorded(cuda: str, paths: Paths) -> Optional[cudnn.Record]:
    """Return our record of a toolkit's cuDNN, None where there is none that can be read."""
    try:
        with open(cudnn.record_path(cuda, paths.records), encoding="utf-8") as handle:
            return cudnn.read_record(handle.read())
    except FileNotFoundError:
        return None


def is_placed(install: Install, paths: Paths) -> bool:
    """Return whether the wanted version is there as a finished run left it."""
    record = recorded(install.cuda, paths)
    if record is None or not record.complete or not cudnn.is_version(record.version, install.version):
        return False
    return all(_is_there(path, content) for path, content in record.files.items())


def _is_there(path: str, content: str) -> bool:
    if content.startswith("link:"):
        return os.path.islink(path) and os.readlink(path) == content[len("link:") :]
    return os.path.isfile(path) and not os.path.islink(path)


def place(install: Install, paths: Paths, limits: Limits, refresh: Callable[[], object]) -> str:
    """Bring one cuDNN to its place and return its full version. Raises CudnnError, nearly always with nothing placed.

    ``refresh`` tells the dynamic linker; it is called before the record says complete, so a failure is repaired later.
    """
    libraries = os.path.realpath(os.path.join(install.cuda_path, "lib64"))
    headers = os.path.realpath(os.path.join(install.cuda_path, "include"))
    for folder in (libraries, headers):
        if not os.path.isdir(folder):
            raise CudnnError(
                "%s is no whole CUDA toolkit (%s is missing), so cuDNN %s has no place there; "
                "reinstall CUDA %s or set cudnn_source to none"
                % (install.cuda_path, folder, install.version, install.cuda)
            )
    with _lock(paths), _staging(install.cuda_path) as staging:
        archive = _fetch(install, staging, limits)
        staged = _unpack(archive[0], archive[1], staging, libraries, headers, install.cuda_path)
        version = archive[2]
        before = recorded(install.cuda, paths)
        _refuse_foreign(staged, before)
        wanted = {item.target: item.content for item in staged}
        old = {} if before is None else before.files
        # Both versions' files are ours from here on, whatever happens.
        _write(cudnn.Record(install.cuda, version, False, dict(old, **wanted)), paths)
        for item in staged:
            folder = os.path.dirname(item.target)
            os.makedirs(folder, exist_ok=True)
            os.rename(item.path, item.target)
        for path in old:
            if path not in wanted and os.path.lexists(path):
                os.unlink(path)
        refresh()
        os.sync()
        _write(cudnn.Record(install.cuda, version, True, wanted), paths)
    return version


def remove(cuda: str, paths: Paths = Paths()) -> List[str]:  # noqa: B008 - an immutable value
    """Take away what :func:`place` put into a toolkit, and its record; return the paths that went.

    A file that is gone already is passed over, and so is a link that points elsewhere by now: it is not ours any more.
    """
    record = recorded(cuda, paths)
    gone = []
    if record is not None:
        for path, content in sorted(record.files.items()):
            if _is_there(path, content):
                os.unlink(path)
                gone.append(path)
        for folder in {os.path.dirname(path) for path in gone if path.endswith("/doc/cudnn/LICENSE")}:
            _remove_empty(folder)
            _remove_empty(os.path.dirname(folder))
    path = cudnn.record_path(cuda, paths.records)
    if os.path.exists(path):
        os.unlink(path)
    manifest.drop("cudnn", [cuda], paths.manifest)
    return gone


def _remove_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError as error:
        # Somebody else's file lies in it.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def _write(record: cudnn.Record, paths: Paths) -> None:
    os.makedirs(paths.records, mode=0o755, exist_ok=True)
    files.write_atomic(
        cudnn.record_path(record.cuda, paths.records), cudnn.write_record(record).encode("utf-8"), mode=0o644
    )
    # The first note of a key wins, and this one must name the newest files.
    manifest.drop("cudnn", [record.cuda], paths.manifest)
    manifest.note("cudnn", {record.cuda: {"version": record.version, "files": record.files}}, paths.manifest)


@contextlib.contextmanager
def _lock(paths: Paths) -> Iterator[None]:
    os.makedirs(paths.records, mode=0o755, exist_ok=True)
    name = os.path.join(paths.records, ".lock")
    with open(name, "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CudnnError(
                "another run is placing cuDNN on this host just now (%s is locked); wait for it, then run again" % name
            ) from error
        yield


@contextlib.contextmanager
def _staging(cuda_path: str) -> Iterator[str]:
    # Beside the toolkit's own folders: the same filesystem, so that placing is a rename.
    root = os.path.realpath(cuda_path)
    for name in os.listdir(root):
        if name.startswith(STAGING):
            # What a killed run left; the lock says that it runs no more.
            shutil.rmtree(os.path.join(root, name))
    folder = tempfile.mkdtemp(prefix=STAGING, dir=root)
    try:
        yield folder
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CudnnError(
                "the disk under %s is full: cuDNN was not placed; make room there, then run again" % cuda_path
            ) from error
        raise CudnnError(
            "cuDNN could not be placed in %s: %s: %s; repair the cause, then run again"
            % (cuda_path, error.filename or cuda_path, error.strerror or error)
        ) from error
    finally:
        shutil.rmtree(folder)


def _fetch(install: Install, staging: str, limits: Limits) -> "tuple[str, str, str]":
    """Fetch and check the archive; return its path, its URL and the full version."""
    listing = os.path.join(staging, "manifest.json")
    _download(install.manifest_url, listing, limits, MANIFEST_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        entry = cudnn.read_redist(handle.read(), install.key, install.manifest_url)
    if install.sha256 and entry.sha256 != install.sha256.lower():
        raise CudnnError(
            "%s gives sha256 %s for cuDNN %s, but the catalog knows %s: nothing was fetched; ask who changed the "
            "manifest (a mirror?) before you trust it"
            % (install.manifest_url, entry.sha256, install.version, install.sha256)
        )
    url = install.archive_url or urllib.parse.urljoin(install.manifest_url, entry.path)
    needed = entry.size * (1 + UNPACKED)
    free = shutil.disk_usage(staging).free
    if free < needed:
        raise CudnnError(
            "cuDNN %s needs %d MiB under %s (archive and unpacked files), but %d MiB are free; make room there, "
            "then run again" % (install.version, needed >> 20, install.cuda_path, free >> 20)
        )
    archive = os.path.join(staging, "archive")
    size, sha256 = _download(url, archive, limits, entry.size)
    if entry.size and size != entry.size:
        raise CudnnError(
            "%s is %d bytes long, expected %d: the download was cut short or the file on the server is damaged; "
            "nothing was changed; run again, or repair the mirror" % (url, size, entry.size)
        )
    if sha256 != entry.sha256:
        raise CudnnError(
            "%s has sha256 %s, expected %s: the file on the server is not the one that its manifest names; nothing was "
            "changed; repair the mirror, or find out what is between it and this host" % (url, sha256, entry.sha256)
        )
    return archive, url, entry.version or install.version


def _download(url: str, path: str, limits: Limits, most: int) -> "tuple[int, str]":
    """Write the body of ``url`` to ``path``; return its size and sha256. ``most`` bytes are read (0: any number)."""
    deadline = time.monotonic() + limits.total
    digest = hashlib.sha256()
    size = 0
    try:
        with urllib.request.urlopen(url, timeout=limits.silence) as answer, open(path, "wb") as handle:
            stated = answer.headers.get("Content-Length")
            while True:
                block = answer.read(CHUNK)
                if not block:
                    break
                handle.write(block)
                digest.update(block)
                size += len(block)
                if most and size > most:
                    raise CudnnError(
                        "%s is longer than the %d bytes expected: it is not the file that is meant; nothing was "
                        "changed; repair the mirror, or find out what is between it and this host" % (url, most)
                    )
                if time.monotonic() > deadline:
                    raise CudnnError(
                        "%s: only %d bytes came in %g s; nothing was changed; use a nearer mirror (gpu_ready_mirror)"
                        % (url, size, limits.total)
                    )
    except urllib.error.HTTPError as error:
        raise CudnnError(
            "%s: the server answered %d (%s); check cudnn_version and gpu_ready_mirror, and that the mirror "
            "holds this file" % (url, error.code, error.reason)
        ) from error
    except socket.timeout as error:
        raise _unreachable(url, "no answer in %g s" % limits.silence) from error
    except urllib.error.URLError as error:
        raise _unreachable(url, str(error.reason)) from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise _unreachable(url, "%s after %d bytes" % (str(error) or type(error).__name__, size)) from error
    except ValueError as error:
        raise _unreachable(url, str(error)) from error
    if stated is not None and stated.isdigit() and int(stated) != size:
        raise CudnnError(
            "%s: the connection ended after %d of %s bytes; nothing was changed; run again, or look at the server"
            % (url, size, stated)
        )
    return size, digest.hexdigest()


def _unreachable(url: str, cause: str) -> CudnnError:
    return CudnnError(
        "%s could not be fetched: %s; nothing was changed; check that this host reaches it (proxy, DNS, firewall), "
        "or set gpu_ready_mirror" % (url, cause)
    )


def _unpack(path: str, url: str, staging: str, libraries: str, headers: str, cuda_path: str) -> List[_Staged]:
    """Unpack what is cuDNN's own; return it in the order of placing. Raises CudnnError on anything odd inside."""
    folders: Dict[str, str] = {"include": headers, "lib": libraries, "lib64": libraries}
    found: Dict[str, _Staged] = {}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                parts = [part for part in member.name.split("/") if part not in ("", ".")]
                if member.name.startswith("/") or ".." in parts:
                    raise CudnnError("%s holds the path %r, which leads out of it: not used" % (url, member.name))
                if member.isdir():
                    continue
                if len(parts) == 2 and parts[1] == "LICENSE":
                    target = os.path.join(os.path.realpath(cuda_path), "doc", "cudnn", "LICENSE")
                elif len(parts) == 3 and parts[1] in folders and "cudnn" in parts[2]:
                    target = os.path.join(folders[parts[1]], parts[2])
                else:
                    continue
                staged = os.path.join(staging, "%d" % len(found))
                found[target] = _Staged(staged, target, _unpack_one(archive, member, staged, url))
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CudnnError(
            "%s has the right checksum but cannot be unpacked (%s); its manifest names a damaged file: choose another "
            "cudnn_version" % (url, error)
        ) from error
    os.unlink(path)
    if not any(item.target.startswith(headers + "/") for item in found.values()) or not any(
        item.target.startswith(libraries + "/") for item in found.values()
    ):
        raise CudnnError("%s holds no include/cudnn*.h and lib/libcudnn*: it is no cuDNN archive; not used" % url)
    # Libraries, links to them, then headers: cudnn_version.h speaks for all of them.
    return sorted(
        found.values(),
        key=lambda item: (item.target.startswith(headers + "/"), item.content.startswith("link:"), item.target),
    )


def _unpack_one(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, url: str) -> str:
    if member.issym():
        if "/" in member.linkname or member.linkname in ("", ".", ".."):
            raise CudnnError(
                "%s holds the link %s -> %s, which leads out of its folder: not used"
                % (url, member.name, member.linkname)
            )
        os.symlink(member.linkname, path)
        return "link:" + member.linkname
    source = archive.extractfile(member) if member.isreg() else None
    if source is None:
        raise CudnnError("%s holds %s, which is neither a file nor a symbolic link: not used" % (url, member.name))
    digest = hashlib.sha256()
    with open(path, "wb") as handle:
        while True:
            block = source.read(CHUNK)
            if not block:
                break
            digest.update(block)
            handle.write(block)
        os.fchmod(handle.fileno(), 0o755 if member.mode & 0o111 else 0o644)
    return digest.hexdigest()


def _refuse_foreign(staged: List[_Staged], before: Optional[cudnn.Record]) -> None:
    ours = {} if before is None else before.files
    foreign = sorted(item.target for item in staged if item.target not in ours and os.path.lexists(item.target))
    if foreign:
        raise CudnnError(
            "%s%s there already and not placed by gpu-ready: nothing was changed; remove the old cuDNN by hand, or set "
            "cudnn_source to none"
            % (foreign[0], " is" if len(foreign) == 1 else " and %d more are" % (len(foreign) - 1))
        )
