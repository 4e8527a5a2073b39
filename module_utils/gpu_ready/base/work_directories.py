"""Directories in which gpu-ready works."""

import contextlib
import os
import shutil

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
