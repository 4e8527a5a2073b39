"""Services that a live reload of the kernel module stopped, recorded until they run again."""

import json
import os
from typing import List

from ..base import files, manifest
from ..base.host import Host

STOPPED = manifest.FOLDER + "/services-stopped.json"
"""Services that a live reload stopped. It outlives a run that was killed, or whose module did not load."""


def read_stopped(host: Host, path: str = STOPPED) -> List[str]:
    """Services that a live reload stopped and has not started again, in the order in which they were stopped.

    Empty where the mark cannot be read: ours is written atomically, so a damaged one is not ours.
    """
    try:
        found = json.loads(host.read(path) or "[]")
    except ValueError:
        return []
    return [str(unit) for unit in found] if isinstance(found, list) else []


def record_stopped(host: Host, units: List[str], path: str = STOPPED) -> List[str]:
    """Record services before they are stopped; returns them with those of an earlier run."""
    before = read_stopped(host, path)
    after = before + [unit for unit in units if unit not in before]
    if after != before:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        files.write_atomic(path, (json.dumps(after) + "\n").encode("utf-8"), 0o600)
    return after


def clear_stopped(path: str = STOPPED) -> None:
    """Remove the mark after the services were started."""
    if os.path.exists(path):
        os.unlink(path)
