"""Write containerd's files: noted first, asked of the engine afterwards, and put back where it does not take them."""

import base64
import os
import shutil
import time
from typing import Any, Dict, List, Optional

from ...base import files, manifest
from ...base.host import Host
from . import config

RESTART_MARK = "containerd-restart.json"
"""Written before the files; the next look compares its age with that of containerd's socket."""


class Refused(Exception):
    """The engine does not take the new files; the message says what it said."""


def write(host: Host, change: config.Change, main: str, folder: str = manifest.FOLDER) -> None:
    """Write all edits of a change, or none: raises Refused with the old files in place, or OSError."""
    noted = os.path.join(folder, "manifest.json")
    for edit in change.edits:
        if edit.path == main:
            manifest.note_containerd(main, encoded(edit.before), encoded(edit.after), change.record, noted)
            keep(main, folder)
        else:
            manifest.note("files", {edit.path: {"before": encoded(edit.before), "mode": host.mode(edit.path)}}, noted)
    mark = os.path.join(folder, RESTART_MARK)
    due = os.path.exists(mark)
    files.write_atomic(mark, b"{}\n", 0o600)
    done: List[config.Edit] = []
    try:
        for edit in change.edits:
            done.append(edit)
            put(edit.path, edit.after)
        said = complaint(host, change, main)
        if said:
            raise Refused(said)
    except (OSError, Refused):
        for edit in reversed(done):
            put(edit.path, edit.before)
        if not due:
            os.unlink(mark)
        raise
    for edit in change.edits:
        if edit.path == main:
            known = manifest.read(noted)["containerd"][main]["record"]
            manifest.forget_containerd(main, config.given_back(edit.after, known), noted)


def complaint(host: Host, change: config.Change, main: str) -> Optional[str]:
    """Return what containerd itself finds wrong with the files as they are now."""
    program = host.which("containerd")
    answer = host.run([program or "containerd", "--config", main, "config", "dump"], timeout=30.0)
    if answer.rc != 0:
        return (answer.err or answer.out).strip()[-500:] or "exit status %d" % answer.rc
    try:
        lost = config.lacks(answer.out, change.wanted)
    except config.ConfigError as error:
        return str(error)
    return "it does not take over %s" % ", ".join(lost) if lost else None


def put(path: str, text: Optional[str]) -> None:
    """Write or delete one file; owner and mode of one that is there stay."""
    if text is not None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        files.write_atomic(path, text.encode("utf-8"))
    elif os.path.lexists(path):
        os.unlink(path)


def keep(path: str, folder: str) -> None:
    """Keep a copy of a file as it is."""
    if os.path.exists(path):
        backups = os.path.join(folder, "backup")
        os.makedirs(backups, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        shutil.copy2(path, os.path.join(backups, "containerd-%s.%s" % (os.path.basename(path), stamp)))


def encoded(text: Optional[str]) -> Optional[str]:
    """Return a text as the manifest keeps it."""
    return None if text is None else base64.b64encode(text.encode("utf-8")).decode("ascii")


def decoded(text: Optional[str]) -> Optional[str]:
    """Return a text that the manifest keeps."""
    return None if text is None else base64.b64decode(text).decode("utf-8")


def edits_back(host: Host, noted: Dict[str, Dict[str, Any]]) -> List[config.Edit]:
    """Return the edits that take our work out of containerd's files; raises TomlError for one that became no TOML."""
    found = []
    for main, entry in sorted(noted.get("containerd", {}).items()):
        text = host.read(main)
        record = [(tuple(path), value) for path, value in entry["record"]]
        before, after = decoded(entry["before"]), decoded(entry.get("after"))
        left = None if text is None else config.taken_back(text, before, after, record)
        found += [config.Edit(main, text, left)] if left != text else []
    mine = host.read(config.DROP_IN) if config.DROP_IN in noted.get("files", {}) else None
    return found + ([config.Edit(config.DROP_IN, mine, None)] if mine is not None else [])
