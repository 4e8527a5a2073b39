# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""How much memory and processor time a process may take that asks a host, or plans for a captured one."""

from __future__ import annotations

import contextlib
import math
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator

MEMORY = 256 * 2**20
"""Bytes by which the process that asks a host may grow: connections hold an answer until it ends."""
PLANNING = 60.0
"""Seconds of processor time that a plan may take.

The largest hosts are planned in 0.3 seconds, 2 MB of facts that are made for it in 30."""
CHECK_EVERY = 0.1
"""Seconds of processor time between two looks at the memory: reading takes processor time, waiting does not."""


class LimitExceeded(BaseException):
    """Raised by a signal, wherever the process is; no Exception, because connections try again after one."""


@contextlib.contextmanager
def process_limits(memory: int = MEMORY, seconds: float = math.inf) -> Iterator[None]:
    """Raise LimitExceeded where this process grows by more bytes, or takes more processor time than this.

    A limit of the system (RLIMIT_AS) would hold for the processes that it starts too: with the connection ``local``
    those are compilers and CUDA. A timer of the processor time is this process's alone (setitimer(2)).
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can have a handler
        return
    most, end = most_memory() + memory, time.process_time() + seconds

    def look(*_: object) -> None:
        if most_memory() > most or time.process_time() > end:
            signal.setitimer(signal.ITIMER_PROF, 0)
            large = f"more than {memory // 2**20} MiB of memory"
            raise LimitExceeded(large if most_memory() > most else f"more than {seconds:.0f} seconds of processor time")

    before = signal.signal(signal.SIGPROF, look)
    outer = signal.setitimer(signal.ITIMER_PROF, CHECK_EVERY, CHECK_EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        signal.setitimer(signal.ITIMER_PROF, *outer)  # of limits around these


def most_memory() -> int:
    """Return the most memory that this process had at once, in bytes (getrusage(2): KiB on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
