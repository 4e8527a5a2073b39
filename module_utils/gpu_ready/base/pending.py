"""The rebuild that follows a changed file (the initial RAM disk's): marked before the file changes, until it is done.

A run that is killed in between leaves the mark, and the next one does the rebuild although the file is right already.
"""

import json
import os
from typing import List

from . import files, manifest
from .host import Host

PATH = manifest.FOLDER + "/rebuild-pending"


def read_pending_rebuild(host: Host, path: str = PATH) -> List[str]:
    """Return program and arguments of the rebuild that a run left out, [] where none did."""
    text = host.read(path)
    return [] if text is None else [str(word) for word in json.loads(text)]


def mark_rebuild(argv: List[str], path: str = PATH) -> None:
    """Mark that a rebuild is due."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.write_atomic(path, (json.dumps(argv) + "\n").encode("utf-8"), 0o600)


def clear_rebuild(path: str = PATH) -> None:
    """Take the mark away."""
    if os.path.exists(path):
        os.unlink(path)
