"""Writes small files whose earlier content is recorded, and the rebuild that follows them (the initial RAM disk's)."""

import os
from typing import Any, Dict, List, NamedTuple, Optional

from . import files, manifest_notes, pending
from .errors import GpuReadyError
from .host import Host

REBUILD_LIMIT = 1200.0


class ManagedFile(NamedTuple):
    """A file and its desired content; None: it is to be absent."""

    path: str
    content: Optional[bytes]
    mode: int


class FileChange(NamedTuple):
    """A file that differs, and its content now (None: absent)."""

    file: ManagedFile
    before: Optional[bytes]


def parse_file(entry: Dict[str, Any]) -> ManagedFile:
    """Return a file from an option of gpu_files."""
    content = entry["content"].encode("utf-8") if entry["state"] == "present" else None
    return ManagedFile(entry["path"], content, int(entry["mode"], 8))


def converge(
    host: Host, desired: List[ManagedFile], rebuild: List[str], check: bool, mark: str = pending.PATH
) -> Dict[str, Any]:
    """Write the files that differ, then run the rebuild, also one that an earlier run did not complete.

    ``rebuild`` is program and arguments; ``mark`` is the file that remembers a rebuild until it is done.
    """
    changes = find_changes(host, desired)
    unfinished = pending.read_pending_rebuild(host, mark)
    rebuild = (rebuild if changes else []) or unfinished
    if not check:
        if rebuild != unfinished:
            mark_rebuild(rebuild, mark)
        for change in changes:
            write(host, change)
        if rebuild:
            run_rebuild(host, rebuild)
            clear_rebuild(mark)
    return {
        "changed": bool(changes or rebuild),
        "paths": [change.file.path for change in changes],
        "rebuilt": bool(rebuild and not check),
        "diff": [
            {
                "before_header": change.file.path,
                "after_header": change.file.path,
                "before": decode(change.before),
                "after": decode(change.file.content),
            }
            for change in changes
        ],
    }


def find_changes(host: Host, desired: List[ManagedFile]) -> List[FileChange]:
    """Return the files whose content or mode differs."""
    found = []
    for file in desired:
        before = host.read_bytes(file.path)
        if before != file.content or (file.content is not None and host.mode(file.path) != file.mode):
            found.append(FileChange(file, before))
    return found


def write(host: Host, change: FileChange) -> None:
    """Record a file, then write or delete it."""
    manifest_notes.note_files(host, {change.file.path: change.file.content}, mode=change.file.mode)
    if change.file.content is None:
        os.unlink(change.file.path)
        return
    manifest_notes.make_parents(change.file.path)
    files.write_atomic(change.file.path, change.file.content, change.file.mode)


def run_rebuild(host: Host, argv: List[str]) -> None:
    answer = host.run(argv, REBUILD_LIMIT)
    if answer.rc != 0:
        raise GpuReadyError(
            "`%s` ended with %d (%s). Correct the cause on this host, then run again."
            % (" ".join(argv), answer.rc, (answer.err or answer.out).strip()[-500:])
        )
    host.sync_disks()


def decode(data: Optional[bytes]) -> str:
    """Return bytes as a diff shows them."""
    return "" if data is None else data.decode("utf-8", "replace")


def mark_rebuild(argv: List[str], path: str = pending.PATH) -> None:
    files.write_json_file(path, argv)


def clear_rebuild(path: str = pending.PATH) -> None:
    files.delete_file(path)
