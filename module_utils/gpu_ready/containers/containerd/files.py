"""Write containerd's files: recorded first, validated by the engine afterwards, and restored if it refuses them."""

import os
import shutil
import time
from typing import Any, Dict, List, Optional

from ...base import files, manifest, manifest_notes
from ...base.host import Host
from . import edits, toml
from .config import (
    DROP_IN,
    RESTART_MARK,
    ConfigError,
    ConfigFile,
    ContainerdChange,
    FileEdit,
    KeyValues,
    decode_text,
    encode_text,
)


class ContainerdRejected(Exception):
    """containerd refuses the new configuration; the text is its message."""


def write(host: Host, change: ContainerdChange, main: str, state_dir: str = manifest.DIRECTORY) -> None:
    """Write all edits of a change or none: raises ContainerdRejected or OSError with the old files restored."""
    manifest_path = os.path.join(state_dir, "manifest.json")
    for edit in change.edits:
        if edit.path == main:
            manifest_notes.note_containerd(
                main, encode_text(edit.before), encode_text(edit.after), change.record, manifest_path
            )
            _back_up(main, state_dir)
        else:
            after = None if edit.after is None else edit.after.encode("utf-8")
            manifest_notes.note_files(host, {edit.path: after}, manifest_path)
    mark = os.path.join(state_dir, RESTART_MARK)
    restart_was_due = os.path.exists(mark)
    files.write_mark(mark)
    written: List[FileEdit] = []
    try:
        for edit in change.edits:
            written.append(edit)
            write_or_delete(edit.path, edit.after)
        problem = _validate(host, change, main)
        if problem:
            raise ContainerdRejected(problem)
    except (OSError, ContainerdRejected):
        for edit in reversed(written):
            write_or_delete(edit.path, edit.before)
        if not restart_was_due:
            os.unlink(mark)
        raise
    for edit in change.edits:
        if edit.path == main:
            recorded = manifest.read(manifest_path)["containerd"][main]["record"]
            manifest_notes.forget_containerd(main, reverted_keys(edit.after, recorded), manifest_path)


def _validate(host: Host, change: ContainerdChange, main: str) -> Optional[str]:
    """Return containerd's message about the files as they are now, None if it accepts them."""
    program = host.which("containerd")
    answer = host.run([program or "containerd", "--config", main, "config", "dump"], timeout=30.0)
    if answer.rc != 0:
        return (answer.err or answer.out).strip()[-500:] or "exit status %d" % answer.rc
    try:
        missing = missing_keys(answer.out, change.required)
    except ConfigError as error:
        return str(error)
    return "'containerd config dump' does not show %s" % ", ".join(missing) if missing else None


def write_or_delete(path: str, text: Optional[str]) -> None:
    """Owner and mode of an existing file stay; None deletes it."""
    if text is not None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        files.write_atomic(path, text.encode("utf-8"))
    elif os.path.lexists(path):
        os.unlink(path)


def _back_up(path: str, state_dir: str) -> None:
    if os.path.exists(path):
        backups = os.path.join(state_dir, "backup")
        os.makedirs(backups, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        shutil.copy2(path, os.path.join(backups, "containerd-%s.%s" % (os.path.basename(path), stamp)))


def revert_edits(host: Host, recorded: Dict[str, Dict[str, Any]]) -> List[FileEdit]:
    """Return edits that remove our keys, by the manifest. Raises TomlError for a file that is no longer valid TOML."""
    found = []
    for main, entry in sorted(recorded.get("containerd", {}).items()):
        text = host.read(main)
        record = [(tuple(path), value) for path, value in entry["record"]]
        before, after = decode_text(entry.get("before")), decode_text(entry.get("after"))
        reverted = None if text is None else edits.revert_keys(text, before, after, record)
        found += [FileEdit(main, text, reverted)] if reverted != text else []
    drop_in = host.read(DROP_IN) if DROP_IN in recorded.get("files", {}) else None
    return found + ([FileEdit(DROP_IN, drop_in, None)] if drop_in is not None else [])


def reverted_keys(text: Optional[str], recorded: KeyValues) -> List[List[str]]:
    """Return recorded keys that have their previous value again; if they change later, somebody else changed them."""
    value = toml.parse(text).value
    return [list(path) for path, old in recorded if toml.get_value(value, path) == old]


def missing_keys(dump: str, required: KeyValues) -> List[str]:
    found = edits.cri_table(ConfigFile("the output of containerd config dump", dump)) or {}
    return [toml.dotted(path) for path, value in required if toml.get_value(found, path) != value]
