"""Asks NVML in a child process with a time limit: a driver may hang, and the next sample loads a replaced library."""

import json
import os
import select
import signal
import time
from typing import Any, Dict, List, Optional

from . import nvml

MOST_BYTES = 4 << 20
TIMED_OUT = "no answer from NVML within %d s"
WAITING = "an earlier question to NVML has not returned"


class Worker:
    """``limit``: seconds for a sample; the first after boot initialises every GPU. ``metrics``: with use and power.

    An answer has ``gpus`` and ``driver``, or ``error`` (a text) and ``code`` of NVML. ``silent``: NVML gave no answer
    in time, ``stuck``: nor can the process be ended that waits for it.
    """

    def __init__(self, library: str = nvml.LIBRARY, limit: float = 60.0, metrics: bool = True) -> None:
        self.library = library
        self.limit = limit
        self.metrics = metrics
        self.seen: Dict[str, int] = {}
        self.stuck: Optional[int] = None

    def sample(self) -> Dict[str, Any]:
        """Return what NVML answers now."""
        if self.stuck is not None and not has_ended(self.stuck):
            return {"error": WAITING, "code": 0, "silent": True, "stuck": True}
        self.stuck = None
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            answer_and_exit(writer, self.library, self.seen if self.metrics else None)
        os.close(writer)
        try:
            data = read_all(reader, self.limit)
        finally:
            os.close(reader)
        if data is None:
            os.kill(child, signal.SIGKILL)
            self.stuck = None if has_ended(child, 1.0) else child  # a process in a hanging driver cannot be ended
            return {"error": TIMED_OUT % self.limit, "code": 0, "silent": True, "stuck": self.stuck is not None}
        self.stuck = None if has_ended(child, 5.0) else child
        try:
            answer: Dict[str, Any] = json.loads(data.decode("utf-8"))
        except ValueError:
            return {"error": "the process that asked NVML ended without an answer", "code": 0}
        for gpu in answer.get("gpus", []):
            if gpu.get("seen"):
                self.seen[gpu["uuid"]] = gpu["seen"]
        return answer


def answer_and_exit(writer: int, library: str, seen: Optional[Dict[str, int]]) -> None:
    """Write the sample as JSON and end this process.

    It holds no pipe of whoever started the program: in a hanging driver it lives on, and they wait for the pipe's end.
    """
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        data = json.dumps(ask(library, seen)).encode("utf-8")
        while data:
            data = data[os.write(writer, data) :]
        code = 0
    finally:
        os._exit(code)


def ask(library: str, seen: Optional[Dict[str, int]]) -> Dict[str, Any]:
    try:
        known = nvml.Nvml(library)
    except nvml.NvmlError as error:
        return {"error": str(error), "code": error.code}
    try:
        gpus = nvml.read_gpus(known, seen)
        return {"driver": known.driver, "gpus": gpus, "calls": known.calls}
    except nvml.NvmlError as error:
        return {"error": str(error), "code": error.code}
    finally:
        known.close()


def read_all(reader: int, limit: float) -> Optional[bytes]:
    """Return everything until the writer ends; None where that takes longer, or is longer, than it may."""
    end, size = time.monotonic() + limit, 0
    parts: List[bytes] = []
    while size <= MOST_BYTES:
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return None
        part = os.read(reader, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
    return None


def has_ended(pid: int, wait: float = 0.0) -> bool:
    """Return True if a child has ended, and reap it."""
    end = time.monotonic() + wait
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True
