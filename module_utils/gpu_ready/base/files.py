"""Write files atomically, also JSON files of gpu-ready's own state, and calculate checksums."""

import errno
import hashlib
import json
import os
import tempfile
from typing import Any, List, Optional

SUFFIX = ".gpu-ready"
CHUNK = 1 << 20
PRIVATE = 0o600
ACL = "system.posix_acl_access"
KEPT_ATTRIBUTES = ("security.selinux", ACL)


def write_atomic(path: str, data: bytes, mode: Optional[int] = None) -> None:
    """Replace the file at ``path``; on failure keeps the old file and raises an OSError that names ``path``.

    A symbolic link is followed (its target is replaced). Owner, mode (unless ``mode`` is given), SELinux label, ACL and
    user attributes of an existing file are kept; a new file gets ``mode`` or 0644. The directory must exist. Data and
    directory entry are flushed to the disk.
    """
    try:
        _write_atomic(os.path.realpath(path), data, mode)
    except OSError as error:
        error.filename = path  # not the temporary one, and a full disk names none
        raise


def _write_atomic(target: str, data: bytes, mode: Optional[int]) -> None:
    directory = os.path.dirname(target)
    try:
        before = os.stat(target)
    except FileNotFoundError:
        before = None
    handle, temporary = tempfile.mkstemp(prefix="." + os.path.basename(target) + ".", suffix=SUFFIX, dir=directory)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            if before is not None:
                os.fchown(stream.fileno(), before.st_uid, before.st_gid)
                _copy_attributes(target, temporary)
            os.fchmod(stream.fileno(), mode if mode is not None else (before.st_mode & 0o7777 if before else 0o644))
            os.fsync(stream.fileno())
        os.rename(temporary, target)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _copy_attributes(source: str, target: str) -> None:
    """Copy label, ACL and user attributes where both file systems have them.

    Signatures of the content (security.ima, security.evm) and attributes of file systems (trusted) are not copied. An
    ACL that a new file inherits from its directory is removed if the source has none.
    """
    try:
        names = os.listxattr(source)
        if ACL in os.listxattr(target) and ACL not in names:
            os.removexattr(target, ACL)
    except OSError:
        return
    for name in names:
        if name in KEPT_ATTRIBUTES or name.startswith("user."):
            try:
                os.setxattr(target, name, os.getxattr(source, name))
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENODATA):
                    raise


def checksum(path: str, total: Any = None) -> str:
    """Return the hexadecimal digest of a file: sha256, or the algorithm of the empty hashlib object ``total``."""
    total = total or hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(CHUNK), b""):
            total.update(block)
    return str(total.hexdigest())


def leftovers(path: str) -> List[str]:
    """Return temporary files that killed writers of ``path`` left beside it."""
    directory, name = os.path.split(os.path.realpath(path))
    start = "." + name + "."
    return [
        os.path.join(directory, one) for one in os.listdir(directory) if one.startswith(start) and one.endswith(SUFFIX)
    ]


def write_json_file(path: str, value: object, mode: int = PRIVATE) -> None:
    """Write ``value`` atomically; missing directories are created."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    write_atomic(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8"), mode)


def write_mark(path: str) -> None:
    """Write a mark: a file whose presence and time count, not its content."""
    write_json_file(path, {})


def delete_file(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
