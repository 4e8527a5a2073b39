"""Locks between runs of gpu-ready on one host.

Whoever can open a file, for reading too, can lock it (flock(2)) and keep every run waiting for as long as he likes. So
nothing but these files is locked: no user except root can open them.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from typing import Iterator, Optional

from .errors import GpuReadyError
from .host import Host, process_user
from .validation import mask_command

DIRECTORY = "/run/gpu-ready"
LONGEST_COMMAND = 200


class LockError(GpuReadyError):
    """Another process has the lock, or the lock is not root's alone."""


@contextlib.contextmanager
def hold_lock(name: str, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of that name; LockError names who has it after ``wait`` seconds. The empty file stays in /run."""
    path = os.path.join(DIRECTORY, name + ".lock")
    handle = _open_lock(path)
    try:
        end = time.monotonic() + wait
        while not _take_lock(handle):
            if time.monotonic() >= end:
                raise LockError(
                    "%s: another run on this host has locked it%s: %s. Wait until it ends, or stop it, then run again."
                    % (path, " for more than %d s" % wait if wait else "", _describe_holder(handle))
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _take_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_lock(path: str) -> int:
    directory = os.path.dirname(path)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    _check(directory, os.lstat(directory), stat.S_IFDIR, 0o022)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):  # a link, a directory, a socket
            raise
        _check(path, os.lstat(path), stat.S_IFREG, 0o077)
        raise
    try:
        _check(path, os.fstat(handle), stat.S_IFREG, 0o077)
    except LockError:
        os.close(handle)
        raise
    return handle


def _check(path: str, found: os.stat_result, kind: int, forbidden: int) -> None:
    if stat.S_IFMT(found.st_mode) != kind or found.st_uid != os.geteuid() or found.st_mode & forbidden:
        raise LockError(
            "%s: it is %s of user %d, but must be %s that no user except root can change. Find out who made it "
            "(`ls -ld %s`), remove it (`rm -r %s`), then run again."
            % (path, stat.filemode(found.st_mode), found.st_uid, _KINDS[kind], path, path)
        )


_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFREG: "a file"}


# ---- who holds a lock ----------------------------------------------------------------------------------------------


def _describe_holder(handle: int) -> str:
    host = Host()
    pid = find_holder(host.read("/proc/locks") or "", os.fstat(handle))
    return describe_process(host, pid) if pid else "a process outside of this container"


def find_holder(text: str, file: os.stat_result) -> Optional[int]:
    """Return the process that holds the flock of a file by the text of /proc/locks, None where it is not visible.

    proc(5): "1: FLOCK  ADVISORY  WRITE 4711 00:19:815 0 EOF", with major and minor number of the file system and the
    inode; a process that waits for it has a line with "->" before FLOCK.
    """
    place = "%02x:%02x:%d" % (os.major(file.st_dev), os.minor(file.st_dev), file.st_ino)
    for line in text.splitlines():
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == place and words[4].isdigit():
            return int(words[4]) or None
    return None


def describe_process(host: Host, pid: int) -> str:
    """Return a process for a message, with its command and, unless it is root's, its user."""
    words = [word for word in host.command_lines([pid]).get(pid, []) if word]
    command = " ".join(" ".join(mask_command(words)).split())[:LONGEST_COMMAND]
    user = process_user(host, pid)
    return "process %d%s (%s)" % (pid, " of user %d" % user if user else "", command or "command unknown")
