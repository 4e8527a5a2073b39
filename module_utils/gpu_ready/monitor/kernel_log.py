"""Counts Xids and SXids of the kernel's log.

The sequence number of a record keeps a restart of the service from counting a message twice; the counts are kept in
/run, which a boot empties as it empties the log.
"""

import contextlib
import json
import os
import time
from typing import Dict, NamedTuple, Optional

from ..check import kmsg

STATE = "/run/gpu-ready-monitoring/xids.json"
MOST_COUNTERS = 1024


class Xids(NamedTuple):
    """How often each occurred, and when last (seconds since 1970), by "Xid 79 0000:3b:00.0"."""

    counts: Dict[str, int]
    times: Dict[str, int]


class KernelLog:
    """``xids``: as far as the log went back at the first start. ``followed``: what was logged before has been read."""

    def __init__(self, path: str = kmsg.KMSG, state: str = STATE) -> None:
        self.path = path
        self.state = state
        self.next = 0
        self.xids = Xids({}, {})
        self.followed = False
        self.handle: Optional[int] = None
        self.restore()
        self.open()

    def open(self) -> None:
        with contextlib.suppress(OSError):  # a container has none; `available` says so
            self.handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def available(self) -> bool:
        return self.handle is not None

    def restore(self) -> None:
        try:
            with open(self.state, "rb") as stream:
                value = json.loads(stream.read().decode("utf-8"))
            counts = {str(key): int(number) for key, number in value["counts"].items()}
            self.xids = Xids(counts, {key: int(value["times"][key]) for key in counts})
            self.next = int(value["next"])
            self.followed = True
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            self.next, self.xids = 0, Xids({}, {})

    def read(self) -> None:
        """Count what is new; without a readable log nothing is counted, and the next sample tries again."""
        before = self.next
        if self.handle is None:
            self.open()
        for _ in range(kmsg.MOST_RECORDS if self.handle is not None else 0):
            record = self.read_record()
            if not record:
                break
            self.count(record)
        self.followed = self.followed or self.handle is not None
        if self.next != before:
            self.save()

    def read_record(self) -> Optional[bytes]:
        """Return the next record. A log that ends, as no device does, is opened again: it may have grown."""
        assert self.handle is not None
        try:
            record = kmsg.read_record(self.handle)
            ended = record == b""
        except OSError:
            record, ended = None, False
            self.close()
        if ended:
            self.close()
            self.open()
        return record

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def count(self, record: bytes) -> None:
        found = kmsg.split_record(record)
        if found is None or found[0] < self.next:
            return
        self.next = found[0] + 1
        when = int(time.time() if self.followed else recorded_at(found[1]))
        for kind, address, number in kmsg.XID.findall(found[2]):
            key = "%s %d %s" % (kind, int(number), kmsg.place(address))
            if key in self.xids.counts or len(self.xids.counts) < MOST_COUNTERS:
                self.xids.counts[key] = self.xids.counts.get(key, 0) + 1
                self.xids.times[key] = when

    def save(self) -> None:
        # Without it a restart counts the messages again that the log still has: from 0, as after a boot.
        with contextlib.suppress(OSError):
            with open(self.state + ".tmp", "w") as stream:
                json.dump({"next": self.next, "counts": self.xids.counts, "times": self.xids.times}, stream)
            os.rename(self.state + ".tmp", self.state)


def recorded_at(microseconds: int) -> float:
    """Return when a record was written, in seconds since 1970.

    The kernel's stamps are not corrected as the clocks are, so they are minutes wrong after months (dmesg(1), --ctime):
    only good for what was written before somebody read it.
    """
    return time.time() - max(0.0, time.monotonic() - microseconds / 1e6)
