"""Directories in which gpu-ready works."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from typing import Iterator

SMALL_FILES = "/run"
"""Where temporary files of a few megabytes are written: root's alone, unlike /tmp, which every user can fill."""


def delete_leftover_directories(parent: str, prefix: str) -> None:
    """Delete the directories that a killed run of gpu-ready left in ``parent``. Never raises.

    Third-party files, links and directories stay.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(parent)):
            if not entry.name.startswith(prefix) or not entry.is_dir(follow_symlinks=False):
                continue
            if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                shutil.rmtree(entry.path, ignore_errors=True)


def flush_directory(directory: str) -> None:
    """Flush the names in a directory to its disk, and wait for no other file system, as sync(2) does."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


REMOVER = 'read -r _; until rm -rf -- "$1" || [ "${2:-}" = xxxxxxxxxx ]; do set -- "$1" "${2:-}x"; sleep 1; done'
"""Removes a directory when its standard input ends, which the end of the process that holds it does, even by SIGKILL.

A program that still writes there makes rm fail, so it tries again for ten seconds."""


@contextlib.contextmanager
def vanishing_directory(parent: str, prefix: str) -> Iterator[str]:
    """Have a directory that everybody may enter, and that is removed afterwards, also where this process is killed."""
    path = tempfile.mkdtemp(prefix=prefix, dir=parent)
    remover = subprocess.Popen(
        ["/bin/sh", "-c", REMOVER, "sh", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        os.chmod(path, 0o755)  # apt and dnf read as an unprivileged user
        yield path
    finally:
        assert remover.stdin
        remover.stdin.close()
        remover.wait(timeout=60)
