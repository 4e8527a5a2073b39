"""Place a cuDNN archive into a CUDA toolkit, repair it, replace it by another, take it away: file by file.

The order makes a run that is killed anywhere repairable: the archive is fetched and checked, once for all toolkits that
get it, and unpacked beside the toolkit; then our record lists every file that is about to be placed (``complete``
false) besides those of the version before; then each file is renamed to its place, the header that states the version
last; then files of the version before go; then the record says complete.
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import posixpath
import re
import shutil
import tarfile
import tempfile
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set

from ...base import files, manifest
from ...base.download import DownloadLimits
from .. import toolkit as cuda
from . import model as cudnn
from .fetch import Archive, Install, fetch
from .model import CudnnError

STAGING = ".gpu-ready-cudnn-"
SHELF = ".archives-"
LINKER = "/etc/ld.so.conf"
LINKER_FILE = "gpu-ready-cudnn.conf"
HEADERS = re.compile(r"cudnn(_version(_v\d+)?)?\.h$")


class Paths(NamedTuple):
    """Where the records are kept, the link of the default toolkit, and what the dynamic linker reads."""

    records: str = cudnn.RECORDS
    manifest: str = manifest.PATH
    default: str = cuda.LINK
    linker: str = LINKER


class _Staged(NamedTuple):
    path: str
    target: str
    content: str


def recorded(toolkit: str, paths: Paths) -> Optional[cudnn.Record]:
    """Return our record of a toolkit's cuDNN, None where there is none that can be read."""
    try:
        with open(cudnn.record_path(toolkit, paths.records), encoding="utf-8") as handle:
            return cudnn.read_record(handle.read())
    except FileNotFoundError:
        return None


def is_placed(install: Install, paths: Paths) -> bool:
    """Return whether the wanted version is there as a finished run left it."""
    record = recorded(install.cuda, paths)
    if record is None or not record.complete or record.origin != install.origin:
        return False
    if install.version and not cudnn.is_version(record.version, install.version):
        return False
    return all(_is_there(path, content) for path, content in record.files.items())


def _is_there(path: str, content: str) -> bool:
    if content.startswith("link:"):
        return os.path.islink(path) and os.readlink(path) == content[len("link:") :]
    return os.path.isfile(path) and not os.path.islink(path)


def _is_ours(path: str, content: str) -> bool:
    """Return whether a file is as it was placed, to the byte."""
    return _is_there(path, content) and (content.startswith("link:") or files.checksum(path) == content)


@contextlib.contextmanager
def shelf(paths: Paths) -> Iterator[str]:
    """Keep other runs away, and give a folder for archives that is gone afterwards (also that of a killed run)."""
    with _lock(paths):
        for name in os.listdir(paths.records):
            if name.startswith(SHELF):
                shutil.rmtree(os.path.join(paths.records, name))
        folder = tempfile.mkdtemp(prefix=SHELF, dir=paths.records)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def place(install: Install, paths: Paths, limits: DownloadLimits, refresh: Callable[[], object], folder: str) -> str:
    """Bring one cuDNN to its place and return its full version. Raises CudnnError, nearly always with nothing placed.

    ``refresh`` tells the dynamic linker; it is called before the record says complete, so a failure is repaired later.
    ``folder`` is that of :func:`shelf`: an archive that lies there already is not fetched again.
    """
    libraries = os.path.realpath(os.path.join(install.cuda_path, "lib64"))
    headers = os.path.realpath(os.path.join(install.cuda_path, "include"))
    for needed in (libraries, headers):
        if not os.path.isdir(needed):
            raise CudnnError(
                "%s is no whole CUDA toolkit (%s is missing), so cuDNN %s has no place there; "
                "reinstall CUDA %s or set cudnn_source to none"
                % (install.cuda_path, needed, install.version, install.cuda)
            )
    with _explained(paths.records):
        archive = fetch(install, folder, limits)
    with _explained(install.cuda_path), _staging(install.cuda_path) as staging:
        staged = _unpack(archive, staging, libraries, headers, install.cuda_path)
        version = _version(archive, staged)
        before = recorded(install.cuda, paths)
        _refuse_foreign(staged, before)
        linker = _linker_file(paths, libraries)
        wanted = {item.target: item.content for item in staged}
        wanted.update({path: hashlib.sha256(text).hexdigest() for path, text in linker.items()})
        old = {} if before is None else before.files
        shared = _of_others(install.cuda, paths)
        stale = [path for path in old if path not in wanted and path not in shared and os.path.lexists(path)]
        if before is not None and before.complete:
            # What somebody changed since is not ours any more.
            stale = [path for path in stale if _is_ours(path, old[path])]
        # Both versions' files are ours from here on, whatever happens.
        _write(cudnn.Record(install.cuda, version, False, dict(old, **wanted), install.origin), paths)
        for item in staged:
            os.makedirs(os.path.dirname(item.target), exist_ok=True)
            os.rename(item.path, item.target)
        for path, text in linker.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            files.write_atomic(path, text, 0o644)
        for path in stale:
            os.unlink(path)
        refresh()
        os.sync()
        _write(cudnn.Record(install.cuda, version, True, wanted, install.origin), paths)
    return version


def remove(toolkit: str, paths: Paths, refresh: Callable[[], object]) -> List[str]:
    """Take away what :func:`place` put into a toolkit, and its record; return the paths that went.

    A file that is gone already is passed over, and so is one that somebody changed since: it is not ours any more.
    """
    record = recorded(toolkit, paths)
    gone = []
    if record is not None:
        ours = _is_ours if record.complete else _is_there
        shared = _of_others(toolkit, paths)
        for path, content in sorted(record.files.items()):
            if path not in shared and ours(path, content):
                os.unlink(path)
                gone.append(path)
        _prune(record.files)
        if gone:
            refresh()
    path = cudnn.record_path(toolkit, paths.records)
    if os.path.exists(path):
        os.unlink(path)
    manifest.drop("cudnn", [toolkit], paths.manifest)
    return gone


def _of_others(toolkit: str, paths: Paths) -> Set[str]:
    """Return the files in the records of other toolkits: the linker's file may be in several."""
    names = [name[: -len(".json")] for name in os.listdir(paths.records) if name.endswith(".json")]
    records = [recorded(name, paths) for name in names if name != toolkit]
    return {path for record in records if record is not None for path in record.files}


def _prune(placed: Iterable[str]) -> None:
    """Remove empty folders: those of the licence, and all of a toolkit that went before its cuDNN."""
    for path in sorted(placed):
        folders = [os.path.dirname(path)]
        while folders[-1] != "/" and not cuda.version_of_folder(os.path.basename(folders[-1])):
            folders.append(os.path.dirname(folders[-1]))
        root = folders[-1]
        if root != "/" and (path.endswith("/doc/cudnn/LICENSE") or not _is_toolkit(root)):
            for folder in folders[:-1] if _is_toolkit(root) else folders:
                _remove_empty(folder)


def _is_toolkit(root: str) -> bool:
    return any(os.path.exists(os.path.join(root, name)) for name in ("version.json", "version.txt", "bin/nvcc"))


def _linker_file(paths: Paths, libraries: str) -> Dict[str, bytes]:
    """Return the file that shows the dynamic linker the default toolkit's libraries, {} where that is not needed.

    NVIDIA's packages and installers write one of their own. Only the default: two toolkits have libraries of one name.
    """
    own = os.path.join(paths.linker + ".d", LINKER_FILE)
    if os.path.realpath(os.path.join(paths.default, "lib64")) != libraries:
        return {}
    known = [os.path.realpath(folder) for folder in linker_folders(paths.linker, own)]
    return {} if libraries in known else {own: (paths.default + "/lib64\n").encode("utf-8")}


def linker_folders(path: str, without: str = "") -> List[str]:
    """Return the folders that ldconfig(8) reads from its file and from those that it includes, but for one of them."""
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
    manifest.replace_note("cudnn", record.cuda, {"version": record.version, "files": record.files}, paths.manifest)


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
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _explained(where: str) -> Iterator[None]:
    """Turn what the system says into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CudnnError(
                "the disk under %s is full: cuDNN was not placed; make room there, then run again" % where
            ) from error
        raise CudnnError(
            "cuDNN could not be placed in %s: %s: %s; repair the cause, then run again"
            % (where, error.filename or where, error.strerror or error)
        ) from error


def _unpack(archive: Archive, staging: str, libraries: str, headers: str, cuda_path: str) -> List[_Staged]:
    """Unpack what is cuDNN's own; return it in the order of placing. Raises CudnnError on anything odd inside."""
    url = archive.source
    folders: Dict[str, str] = {"include": headers, "lib": libraries, "lib64": libraries}
    found: Dict[str, _Staged] = {}
    try:
        with tarfile.open(archive.path, "r|*") as members:
            for number, member in enumerate(members):
                parts = _inside(member, url)
                if member.isdir():
                    continue
                if len(parts) == 2 and parts[1] == "LICENSE":
                    target = os.path.join(os.path.realpath(cuda_path), "doc", "cudnn", "LICENSE")
                elif len(parts) == 3 and parts[1] in folders and "cudnn" in parts[2]:
                    target = os.path.join(folders[parts[1]], parts[2])
                else:
                    continue
                staged = os.path.join(staging, "%d" % number)
                found[target] = _Staged(staged, target, _unpack_one(members, member, staged, url))
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CudnnError(
            "%s cannot be unpacked (%s): it is damaged or no tar archive; get it again, or choose another "
            "cudnn_version" % (url, error)
        ) from error
    if not any(item.target.startswith(headers + "/") for item in found.values()) or not any(
        item.target.startswith(libraries + "/") for item in found.values()
    ):
        raise CudnnError("%s holds no include/cudnn*.h and lib/libcudnn*: it is no cuDNN archive; not used" % url)
    # Libraries, links to them, then headers: cudnn_version.h speaks for all of them.
    return sorted(
        found.values(),
        key=lambda item: (item.target.startswith(headers + "/"), item.content.startswith("link:"), item.target),
    )


def _inside(member: tarfile.TarInfo, url: str) -> List[str]:
    """Return the parts of a member's path; refuse a path, and a link's target, outside of the archive's folder."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise CudnnError("%s holds the path %r, which leads out of it: not used" % (url, member.name))
    if member.issym() or member.islnk():
        start = posixpath.dirname("/".join(parts)) if member.issym() else ""
        target = posixpath.normpath(posixpath.join(start, member.linkname))
        if not parts or target.split("/")[0] != parts[0]:
            raise CudnnError(
                "%s holds the link %s -> %s, which leads out of its folder: not used"
                % (url, member.name, member.linkname)
            )
    return parts


def _version(archive: Archive, staged: List[_Staged]) -> str:
    """Return the full version; the header of the archive must agree with the version that is expected."""
    header = None
    for item in staged:
        if HEADERS.match(os.path.basename(item.target)) and not item.content.startswith("link:"):
            with open(item.path, encoding="utf-8", errors="replace") as handle:
                header = header or cudnn.read_header(handle.read())
    if header is None and not archive.version:
        raise CudnnError("%s states no version in its headers: it is no cuDNN archive; not used" % archive.source)
    stated = archive.version or str(header)
    if header is not None and not cudnn.is_version(stated, header) and not cudnn.is_version(header, stated):
        raise CudnnError(
            "%s holds cuDNN %s, and %s is expected: nothing was changed; give the archive that is meant, or its version"
            % (archive.source, header, stated)
        )
    return max(stated, header or "", key=lambda version: version.count("."))


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
            block = source.read(files.CHUNK)
            if not block:
                break
            digest.update(block)
            handle.write(block)
        os.fchmod(handle.fileno(), 0o755 if member.mode & 0o111 else 0o644)
        handle.flush()
        os.fsync(handle.fileno())  # before its rename: the record that it is there outlives a loss of power
    return digest.hexdigest()


def _refuse_foreign(staged: List[_Staged], before: Optional[cudnn.Record]) -> None:
    ours = {} if before is None else before.files
    sure = before is not None and before.complete
    foreign = sorted(
        item.target
        for item in staged
        if os.path.lexists(item.target)
        and (item.target not in ours or (sure and not _is_ours(item.target, ours[item.target])))
    )
    if foreign:
        raise CudnnError(
            "%s%s there already and not as gpu-ready placed it: nothing was changed; remove the old cuDNN by hand, or "
            "set cudnn_source to none"
            % (foreign[0], " is" if len(foreign) == 1 else " and %d more are" % (len(foreign) - 1))
        )
