"""Put a changed daemon.json in its place: checked by dockerd, noted, with a copy of what was there, in one step."""

import base64
import os
import shutil
import tempfile
import time
from typing import Optional

from ...base import files, manifest, validation
from ...base.host import Host
from . import merge as daemon_json

RESTART_MARK = "docker-restart.json"
"""Written before a change that needs a restart; the next look compares its age with that of dockerd."""


class Refused(Exception):
    """The engine does not take the new text; the message says what it said."""


def validate(host: Host, text: str) -> bool:
    """Have dockerd check the text; False where no engine can (before 23.0), raises Refused where it says no."""
    program = host.which("dockerd")
    if program is None:
        return False
    handle, path = tempfile.mkstemp(prefix="gpu-ready-daemon-", suffix=".json")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8"))
        answer = host.run([program, "--validate", "--config-file", path], timeout=30.0)
    finally:
        os.unlink(path)
    said = (answer.err + answer.out).strip()
    if answer.rc == 0:
        return True
    if "unknown flag" in said or "flag provided but not defined" in said:
        return False
    raise Refused(said.replace(path, "the new text") or "exit status %d" % answer.rc)


def write(
    path: str, before: Optional[bytes], change: daemon_json.Change, folder: str = manifest.FOLDER
) -> Optional[str]:
    """Write ``change.after``; returns where the copy of the old file lies (None: there was no file).

    The manifest and the mark come first: a run that is killed anywhere leaves what the next one and uninstall need.
    """
    noted = None if before is None else base64.b64encode(before).decode("ascii")
    manifest.note_keys(path, noted, change.record, os.path.join(folder, "manifest.json"))
    backup = None
    if before is not None:
        backups = os.path.join(folder, "backup")
        os.makedirs(backups, mode=0o700, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        backup = os.path.join(backups, "%s.%s" % (os.path.basename(path), stamp))
        shutil.copy2(path, backup)
    if change.activation == "restart":
        files.write_atomic(os.path.join(folder, RESTART_MARK), b"{}\n", 0o600)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    for leftover in files.leftovers(path):
        os.unlink(leftover)
    files.write_atomic(path, change.after.encode("utf-8"), mode(change))
    manifest.forget_keys(path, change.record, os.path.join(folder, "manifest.json"))
    return backup


def mode(change: daemon_json.Change) -> Optional[int]:
    """Return the mode for a text in which a secret is new, which only root may read; None: the file keeps its own."""
    before = validation.secrets(daemon_json.read(change.before).value)
    return 0o600 if set(validation.secrets(daemon_json.read(change.after).value)) - set(before) else None
