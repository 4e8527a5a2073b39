"""Install a cuDNN archive in a CUDA toolkit, repair it, replace it by another, remove it: file by file.

The order makes a killed run repairable: the archive is fetched and verified, once for all toolkits, and unpacked in the
toolkit's directory; our record lists every file to be installed (``complete`` false) and every file of the previous
version;
each file is renamed to its target, the header with the version last; files of the previous version are deleted; the
record becomes complete.
"""

import contextlib
import errno
import glob
import hashlib
import os
import posixpath
import re
import shutil
import tarfile
import tempfile
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set

from ...base import files, manifest, manifest_notes, work_directories
from ...base.download import DownloadLimits
from ...base.locks import hold_lock
from .. import toolkit as cuda
from . import model as cudnn
from .fetch import CudnnInstall, FetchedArchive, fetch_archive
from .model import CudnnError

STAGING = ".gpu-ready-cudnn-"
ARCHIVES = ".archives-"
LINKER = "/etc/ld.so.conf"
LINKER_FILE = "gpu-ready-cudnn.conf"
HEADERS = re.compile(r"cudnn(_version(_v\d+)?)?\.h$")


class CudnnPaths(NamedTuple):
    """Paths of the records, the manifest, the link of the default toolkit, and the dynamic linker's configuration."""

    records: str = cudnn.RECORDS
    manifest: str = manifest.PATH
    default: str = cuda.LINK
    linker: str = LINKER


class _StagedFile(NamedTuple):
    path: str
    target: str
    content: str


def read_record(toolkit: str, paths: CudnnPaths) -> Optional[cudnn.CudnnRecord]:
    """Return our record of a toolkit's cuDNN; from the manifest, as incomplete, if the file is missing or damaged."""
    try:
        with open(cudnn.record_path(toolkit, paths.records), encoding="utf-8", errors="replace") as handle:
            record = cudnn.parse_record(handle.read())
    except FileNotFoundError:
        record = None
    entry = manifest.read(paths.manifest).get("cudnn", {}).get(toolkit) if record is None else None
    return record if entry is None else cudnn.CudnnRecord(toolkit, entry["version"], False, entry["files"])


def is_installed(install: CudnnInstall, paths: CudnnPaths) -> bool:
    """Return True if a completed run installed this version and its files exist."""
    record = read_record(install.cuda, paths)
    if record is None or not record.complete or record.origin != install.origin:
        return False
    if install.version and not cudnn.is_version(record.version, install.version):
        return False
    return all(_exists(path, content) for path, content in record.files.items())


def _exists(path: str, content: str) -> bool:
    if content.startswith("link:"):
        return os.path.islink(path) and os.readlink(path) == content[len("link:") :]
    return os.path.isfile(path) and not os.path.islink(path)


def _is_ours(path: str, content: str) -> bool:
    """Return True if a file is unchanged since it was installed."""
    return _exists(path, content) and (content.startswith("link:") or files.checksum(path) == content)


@contextlib.contextmanager
def archive_directory(paths: CudnnPaths) -> Iterator[str]:
    """Yield a temporary directory for archives, locked against other runs; deletes what a killed run left."""
    os.makedirs(paths.records, mode=0o755, exist_ok=True)
    with hold_lock("cudnn"):
        work_directories.delete_leftover_directories(paths.records, ARCHIVES)
        directory = tempfile.mkdtemp(prefix=ARCHIVES, dir=paths.records)
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


def install_archive(
    install: CudnnInstall, paths: CudnnPaths, limits: DownloadLimits, refresh: Callable[[], object], directory: str
) -> str:
    """Install one cuDNN and return its full version. Raises CudnnError.

    ``refresh`` updates the dynamic linker's cache and flushes it to the disk; it is called before the record becomes
    complete, so that the next run repeats a failed one. ``directory`` comes from
    :func:`archive_directory`: an archive in it is not fetched again.
    """
    libraries = os.path.realpath(os.path.join(install.cuda_path, "lib64"))
    headers = os.path.realpath(os.path.join(install.cuda_path, "include"))
    for needed in (libraries, headers):
        if not os.path.isdir(needed):
            raise CudnnError(
                "the CUDA toolkit in %s is incomplete (%s is missing), so cuDNN %s cannot be installed there. "
                "Reinstall CUDA %s, or set cudnn_source to none"
                % (install.cuda_path, needed, install.version, install.cuda)
            )
    with _explained(paths.records):
        archive = fetch_archive(install, directory, limits)
    with _explained(install.cuda_path), _staging(install.cuda_path) as staging:
        staged = _unpack(archive, staging, libraries, headers, install.cuda_path)
        version = _find_version(archive, staged)
        before = read_record(install.cuda, paths)
        _refuse_foreign(staged, before)
        linker = _linker_file(paths, libraries)
        installed = {item.target: item.content for item in staged}
        installed.update({path: hashlib.sha256(text).hexdigest() for path, text in linker.items()})
        old = {} if before is None else before.files
        shared = _files_of_other_toolkits(install.cuda, paths)
        stale = [path for path in old if path not in installed and path not in shared and os.path.lexists(path)]
        if before is not None and before.complete:
            # A file that somebody changed since is not ours any more.
            stale = [path for path in stale if _is_ours(path, old[path])]
        # From here on the files of both versions are recorded, whatever happens.
        _write_record(cudnn.CudnnRecord(install.cuda, version, False, dict(old, **installed), install.origin), paths)
        for item in staged:
            os.makedirs(os.path.dirname(item.target), exist_ok=True)
            os.rename(item.path, item.target)
        for path, text in linker.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.write_atomic(path, text, 0o644)
        for path in stale:
            os.unlink(path)
        for directory in {os.path.dirname(path) for path in list(installed) + stale}:
            work_directories.flush_directory(directory)
        refresh()
        _write_record(cudnn.CudnnRecord(install.cuda, version, True, installed, install.origin), paths)
    return version


def remove_archive(toolkit: str, paths: CudnnPaths, refresh: Callable[[], object]) -> List[str]:
    """Remove what :func:`install_archive` installed in a toolkit, and its record; returns the deleted paths.

    Missing files are skipped, and files that somebody changed since: they are not ours any more.
    """
    record = read_record(toolkit, paths)
    removed = []
    if record is not None:
        is_owned = _is_ours if record.complete else _exists
        shared = _files_of_other_toolkits(toolkit, paths)
        for path, content in sorted(record.files.items()):
            if path not in shared and is_owned(path, content):
                os.unlink(path)
                removed.append(path)
        _remove_empty_directories(record.files)
        if removed:
            refresh()
    path = cudnn.record_path(toolkit, paths.records)
    if os.path.exists(path):
        os.unlink(path)
    manifest_notes.drop("cudnn", [toolkit], paths.manifest)
    return removed


def _files_of_other_toolkits(toolkit: str, paths: CudnnPaths) -> Set[str]:
    """The linker's file may be in several records."""
    names = set(manifest.read(paths.manifest).get("cudnn", {}))
    if os.path.isdir(paths.records):
        names.update(name[: -len(".json")] for name in os.listdir(paths.records) if name.endswith(".json"))
    records = [read_record(name, paths) for name in names if name != toolkit]
    return {path for record in records if record is not None for path in record.files}


def _remove_empty_directories(installed: Iterable[str]) -> None:
    """Remove empty directories of the licence, and of a toolkit that was removed before its cuDNN."""
    for path in sorted(installed):
        directories = [os.path.dirname(path)]
        while directories[-1] != "/" and not cuda.version_of_directory(os.path.basename(directories[-1])):
            directories.append(os.path.dirname(directories[-1]))
        root = directories[-1]
        if root != "/" and (path.endswith("/doc/cudnn/LICENSE") or not _is_toolkit(root)):
            for directory in directories[:-1] if _is_toolkit(root) else directories:
                _remove_empty(directory)


def _is_toolkit(root: str) -> bool:
    return any(os.path.exists(os.path.join(root, name)) for name in ("version.json", "version.txt", "bin/nvcc"))


def _linker_file(paths: CudnnPaths, libraries: str) -> Dict[str, bytes]:
    """Return a file with the default toolkit's libraries for the dynamic linker, {} if another one lists them.

    NVIDIA's packages and installers write their own. Only the default: the libraries of two toolkits have equal names.
    """
    own = os.path.join(paths.linker + ".d", LINKER_FILE)
    if os.path.realpath(os.path.join(paths.default, "lib64")) != libraries:
        return {}
    known = [os.path.realpath(directory) for directory in linker_directories(paths.linker, own)]
    return {} if libraries in known else {own: (paths.default + "/lib64\n").encode("utf-8")}


def linker_directories(path: str, without: str = "") -> List[str]:
    """Return directories in ldconfig's configuration and the files that it includes, except in the file ``without``."""
    found: List[str] = []
    todo, seen = [path], {without}
    while todo:
        name = todo.pop(0)
        if name in seen or not os.path.isfile(name):
            continue
        seen.add(name)
        with open(name, encoding="utf-8", errors="replace") as handle:
            lines = [line.partition("#")[0].strip() for line in handle]
        for line in lines:
            if line.startswith("include "):
                pattern = os.path.join(os.path.dirname(path), line[len("include ") :].strip())
                todo += sorted(glob.glob(pattern))
            elif line.startswith("/"):
                found.append(line.partition("=")[0].rstrip())
    return found


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError as error:
        # It contains other files.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def _write_record(record: cudnn.CudnnRecord, paths: CudnnPaths) -> None:
    os.makedirs(paths.records, mode=0o755, exist_ok=True)
    files.write_atomic(
        cudnn.record_path(record.cuda, paths.records), cudnn.format_record(record).encode("utf-8"), mode=0o644
    )
    manifest_notes.replace_note(
        "cudnn", record.cuda, {"version": record.version, "files": record.files}, paths.manifest
    )


@contextlib.contextmanager
def _staging(cuda_path: str) -> Iterator[str]:
    # In the toolkit's directory: the same file system, so that a rename installs a file.
    root = os.path.realpath(cuda_path)
    work_directories.delete_leftover_directories(root, STAGING)  # the lock shows that no run is active
    directory = tempfile.mkdtemp(prefix=STAGING, dir=root)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn an OSError into a CudnnError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CudnnError(
                "the disk of %s is full. cuDNN was not installed. Free disk space there, then run again" % where
            ) from error
        raise CudnnError(
            "cuDNN could not be installed in %s: %s: %s. Repair the cause, then run again"
            % (where, error.filename or where, error.strerror or error)
        ) from error


def _unpack(archive: FetchedArchive, staging: str, libraries: str, headers: str, cuda_path: str) -> List[_StagedFile]:
    """Unpack cuDNN's files; returns them in the order of installation. Raises CudnnError for an unsafe archive."""
    url = archive.source
    directories: Dict[str, str] = {"include": headers, "lib": libraries, "lib64": libraries}
    found: Dict[str, _StagedFile] = {}
    try:
        with tarfile.open(archive.path, "r|*") as members:
            for number, member in enumerate(members):
                parts = _safe_parts(member, url)
                if member.isdir():
                    continue
                if len(parts) == 2 and parts[1] == "LICENSE":
                    target = os.path.join(os.path.realpath(cuda_path), "doc", "cudnn", "LICENSE")
                elif len(parts) == 3 and parts[1] in directories and "cudnn" in parts[2]:
                    target = os.path.join(directories[parts[1]], parts[2])
                else:
                    continue
                staged = os.path.join(staging, "%d" % number)
                found[target] = _StagedFile(staged, target, _unpack_one(members, member, staged, url))
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CudnnError(
            "%s cannot be unpacked (%s): it is damaged or not a tar archive. Fetch it again, or choose another "
            "cudnn_version" % (url, error)
        ) from error
    if not any(item.target.startswith(headers + "/") for item in found.values()) or not any(
        item.target.startswith(libraries + "/") for item in found.values()
    ):
        raise CudnnError(
            "%s is not a cuDNN archive: it has no include/cudnn*.h or lib/libcudnn*. It was not used" % url
        )
    # Libraries, links to them, then headers: cudnn_version.h is the last file.
    return sorted(
        found.values(),
        key=lambda item: (item.target.startswith(headers + "/"), item.content.startswith("link:"), item.target),
    )


def _safe_parts(member: tarfile.TarInfo, url: str) -> List[str]:
    """Return parts of a member's path.

    Raises CudnnError for a path or a link's target outside of the archive's directory.
    """
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise CudnnError(
            "%s contains the path %r, which is outside of its directory. It was not used" % (url, member.name)
        )
    if member.issym() or member.islnk():
        start = posixpath.dirname("/".join(parts)) if member.issym() else ""
        target = posixpath.normpath(posixpath.join(start, member.linkname))
        if not parts or target.split("/")[0] != parts[0]:
            raise CudnnError(
                "%s contains the link %s -> %s, which points outside of its directory. It was not used"
                % (url, member.name, member.linkname)
            )
    return parts


def _find_version(archive: FetchedArchive, staged: List[_StagedFile]) -> str:
    """Return the full version; the header in the archive must match the expected version."""
    header = None
    for item in staged:
        if HEADERS.match(os.path.basename(item.target)) and not item.content.startswith("link:"):
            with open(item.path, encoding="utf-8", errors="replace") as handle:
                header = header or cudnn.parse_header(handle.read())
    if header is None and not archive.version:
        raise CudnnError("%s is not a cuDNN archive: its headers have no version. It was not used" % archive.source)
    expected = archive.version or str(header)
    if header is not None and not cudnn.is_version(expected, header) and not cudnn.is_version(header, expected):
        raise CudnnError(
            "%s contains cuDNN %s, expected %s. Nothing was changed. Give the right archive, or its version"
            % (archive.source, header, expected)
        )
    return max(expected, header or "", key=lambda version: version.count("."))


def _unpack_one(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str, url: str) -> str:
    if member.issym():
        if "/" in member.linkname or member.linkname in ("", ".", ".."):
            raise CudnnError(
                "%s contains the link %s -> %s, which points outside of its directory. It was not used"
                % (url, member.name, member.linkname)
            )
        os.symlink(member.linkname, path)
        return "link:" + member.linkname
    source = archive.extractfile(member) if member.isreg() else None
    if source is None:
        raise CudnnError(
            "%s contains %s, which is neither a file nor a symbolic link. It was not used" % (url, member.name)
        )
    digest = hashlib.sha256()
    with open(path, "wb") as handle:
        while True:
            block = source.read(files.CHUNK)
            if not block:
                break
            digest.update(block)
            handle.write(block)
        os.fchmod(handle.fileno(), 0o755 if member.mode & 0o111 else 0o644)
        handle.flush()
        os.fsync(handle.fileno())  # before its rename: the record survives a loss of power
    return digest.hexdigest()


def _refuse_foreign(staged: List[_StagedFile], before: Optional[cudnn.CudnnRecord]) -> None:
    recorded = {} if before is None else before.files
    complete = before is not None and before.complete
    foreign = sorted(
        item.target
        for item in staged
        if os.path.lexists(item.target)
        and (item.target not in recorded or (complete and not _is_ours(item.target, recorded[item.target])))
    )
    if foreign:
        raise CudnnError(
            "%s%s not installed by gpu-ready, or changed since. Nothing was changed. Remove the old cuDNN by hand, or "
            "set cudnn_source to none"
            % (foreign[0], " was" if len(foreign) == 1 else " and %d more were" % (len(foreign) - 1))
        )
