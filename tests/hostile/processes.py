"""Processes that a run over hostile hosts leaves."""

import contextlib
import os
import signal
from pathlib import Path


def end_programs(directory: Path) -> None:
    """Kill the programs that name a file below a directory: hosts that sleep, of which many have a session of their own."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            if os.fsencode(directory) + b"/" in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
