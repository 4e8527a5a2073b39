"""Write daemon.json: validated by dockerd, recorded in the manifest, backed up, replaced atomically."""

import base64
import os
import shutil
import tempfile
import time
from typing import Optional

from ...base import files, manifest, manifest_notes, secret_values, work_directories
from ...base.host import Host
from .document import parse
from .merge import RESTART_MARK, DaemonJsonChange


class DaemonJsonRejected(Exception):
    """dockerd refuses the new configuration; the text is its message."""


def validate(host: Host, text: str) -> bool:
    """Validate with dockerd; False if it cannot (before 23.0 or missing). Raises DaemonJsonRejected."""
    program = host.which("dockerd")
    if program is None:
        return False
    handle, path = tempfile.mkstemp(prefix="gpu-ready-daemon-", suffix=".json", dir=work_directories.SMALL_FILES)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8"))
        answer = host.run([program, "--validate", "--config-file", path], timeout=30.0)
    finally:
        os.unlink(path)
    output = (answer.err + answer.out).strip()
    if answer.rc == 0:
        return True
    if "unknown flag" in output or "flag provided but not defined" in output:
        return False
    raise DaemonJsonRejected(output.replace(path, "the new file") or "exit status %d" % answer.rc)


def write(
    path: str, before: Optional[bytes], change: DaemonJsonChange, state_dir: str = manifest.DIRECTORY
) -> Optional[str]:
    """Write ``change.after``; returns the path of the backup (None: there was no file).

    The manifest and the restart mark are written first, so a run that is killed at any point can be resumed and
    uninstalled.
    """
    encoded = None if before is None else base64.b64encode(before).decode("ascii")
    manifest_notes.note_keys(path, encoded, change.record, os.path.join(state_dir, "manifest.json"))
    backup = None
    if before is not None:
        backups = os.path.join(state_dir, "backup")
        os.makedirs(backups, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        backup = os.path.join(backups, "%s.%s" % (os.path.basename(path), stamp))
        shutil.copy2(path, backup)
    if change.activation == "restart":
        files.write_mark(os.path.join(state_dir, RESTART_MARK))
    manifest_notes.make_parents(path, os.path.join(state_dir, "manifest.json"))
    for leftover in files.leftovers(path):
        os.unlink(leftover)
    files.write_atomic(path, change.after.encode("utf-8"), _file_mode(change))
    manifest_notes.forget_keys(path, change.record, os.path.join(state_dir, "manifest.json"))
    return backup


def _file_mode(change: DaemonJsonChange) -> Optional[int]:
    """0600 if the change adds a secret; None: the file keeps its mode."""
    before = secret_values.find_secrets(parse(change.before).value)
    return 0o600 if set(secret_values.find_secrets(parse(change.after).value)) - set(before) else None
