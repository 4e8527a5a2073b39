"""The control node's record of rollouts: one file per rollout, to which every run and every turn of a host appends.

A host's journal says what the host says. This file says what the control node did, so no host can change it.
"""

import contextlib
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ....module_utils.gpu_ready.base.errors import GpuReadyError
from ..report import layout
from .fold import (
    STATES,
    RecordedRun,
    RolloutRecord,
    complete_lines,
    fold,
    run_line,
)

DIRECTORY = ".gpu-ready"
"""Beside the inventory. Ansible ignores names that begin with a dot in a directory of inventories."""
STOP = "stop"
NAME = re.compile(r"rollout-([0-9]{1,11})\.jsonl$")
LONGEST_REASON = 2000
"""Characters of a reason that are recorded; the report has all of them."""
LOCK_SECONDS = 60.0
"""Each process holds the lock for milliseconds."""
WRITABLE = "%s: %s. Remedy: set gpu_ready_state_dir to a directory that this user can write."
STOPPED = "The rollout was stopped by the file %s. Remedy: delete it, then run the same command again."
OVER_BUDGET = (
    "The rollout stopped: %s failed and gpu_upgrade_max_failures is %d. Remedy: repair the cause, or exclude the "
    "failed hosts (gpu_upgrade_exclude), then run the same command again."
)
AT_WORK = (
    "%s: a run of %s, process %d, still works on this rollout. Remedy: wait for its end, or create the file %s, which "
    "ends it after the turns that it has begun; delete the file, then run the same command again."
)


class RecordFileError(GpuReadyError):
    """A record cannot be read or written; the message names its path and the remedy."""


def state_directory(setting: str, inventories: Sequence[str], current: Path) -> Path:
    """Return where the records are: gpu_ready_state_dir, or beside the first inventory that is a file or directory.

    Without one it is in the ``current`` directory.
    """
    if setting:
        return current / Path(setting).expanduser()
    for name in inventories:
        place = Path(name)
        if place.is_dir():
            return place / DIRECTORY
        if place.is_file():
            return place.parent / DIRECTORY
    return current / DIRECTORY


def refuse_stopped(directory: Path) -> None:
    """Raise GpuReadyError where the operator asked for a stop."""
    if os.path.lexists(directory / STOP):
        raise GpuReadyError(STOPPED % (directory / STOP))


def read_records(directory: Path) -> list[RolloutRecord]:
    """Return all records of a directory, the newest first. Raises GpuReadyError."""
    try:
        names = os.listdir(directory)  # noqa: PTH208  Path.iterdir() of Python 3.13 raises later
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(directory, error) from None
    numbers = [int(found[1]) for found in map(NAME.match, names) if found]
    return [RolloutFile(record_path(directory, number)).read() for number in sorted(numbers, reverse=True)]


def record_path(directory: Path, number: int) -> Path:
    return directory / ("rollout-%d.jsonl" % number)


def unusable(path: Path, error: OSError) -> RecordFileError:
    return RecordFileError(WRITABLE % (path, error.strerror or error))


class RolloutFile:
    """The record of one rollout. Processes that append to it at the same time wait for each other."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> RolloutRecord:
        """Return what the record says so far, without waiting for who writes. Raises GpuReadyError."""
        with self._opened(os.O_RDONLY) as handle:
            return self._fold(handle)

    def begin_run(
        self, header: Mapping[str, object], run: RecordedRun, resumed: bool, find_process: Callable[[str], int]
    ) -> None:
        """Append a run; make the file and its directory where they are missing. ``header``: of ``header_line``.

        ``find_process`` returns the process of a run that still runs, else 0. Raises GpuReadyError, also if another run
        has just begun a rollout with this id, or works on this one: the last run's budget of failures counts.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unusable(self.path.parent, error) from None
        with self._locked(os.O_CREAT) as handle:
            known = self._fold(handle)
            if known.runs and not resumed:
                raise RecordFileError(
                    "%s: another run began a rollout at the same second. Remedy: run the same command again."
                    % self.path
                )
            at_work = find_process(known.runs[-1].process) if known.runs else 0
            if at_work:
                raise RecordFileError(AT_WORK % (self.path, known.runs[-1].operator, at_work, self.path.parent / STOP))
            lines = [run_line(run)] if complete_lines(_content(handle)) else [dict(header), run_line(run)]
            self._append(handle, *lines)
            self._sync_directory()

    def begin_turn(self, host: str, now: int, lost: Sequence[str] = ()) -> str:
        """Record that the turn of a host begins, and return ""; or return why none begins.

        ``lost``: hosts that became unreachable in this run. Raises GpuReadyError.
        """
        with self._locked() as handle:
            if os.path.lexists(self.path.parent / STOP):
                return STOPPED % (self.path.parent / STOP)
            record = self._fold(handle)
            if not record.runs:
                raise RecordFileError(
                    "%s: it has no run, so it is not known how many hosts may fail. Remedy: run the same command again."
                    % self.path
                )
            failed, budget = record.failures(lost), record.runs[-1].budget
            if len(failed) > budget:
                names = "%s (%s)" % (layout.counted(len(failed), "host"), layout.names_text(failed))
                return OVER_BUDGET % (names, budget)
            self._append(handle, {"line": "begin", "host": host, "time": now})
        return ""

    def record_phase(self, host: str, phase: str, now: int) -> None:
        """Record that a phase of a host's turn begins. Raises GpuReadyError."""
        with self._locked() as handle:
            self._append(handle, {"line": "phase", "host": host, "time": now, "phase": phase})

    def end_turn(self, host: str, state: str, now: int, reason: str = "") -> None:
        """Record how a host's turn ended: one of the states of a result. Raises GpuReadyError."""
        if state not in STATES:
            raise ValueError("%r is no state of a result" % state)
        with self._locked() as handle:
            self._append(
                handle, {"line": "end", "host": host, "time": now, "state": state, "reason": reason[:LONGEST_REASON]}
            )

    def _fold(self, handle: int) -> RolloutRecord:
        found = NAME.match(self.path.name)
        return fold(complete_lines(_content(handle)), int(found[1]) if found else 0, str(self.path))

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """Open the file. No link is followed, and a named pipe keeps nobody waiting."""
        try:
            handle = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(self.path, error) from None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RecordFileError("%s: it is no regular file. Remedy: move it away, then run again." % self.path)
            yield handle
        except OSError as error:
            raise unusable(self.path, error) from None
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _locked(self, flags: int = 0) -> Iterator[int]:
        with self._opened(os.O_RDWR | os.O_APPEND | flags) as handle:
            _wait_for_lock(handle, self.path)
            yield handle

    def _append(self, handle: int, *lines: Mapping[str, object]) -> None:
        """Write lines after the last complete one; what a killed process left behind it is removed."""
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            os.ftruncate(handle, _content(handle).rfind(b"\n") + 1)
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        while data:
            data = data[os.write(handle, data) :]
        os.fsync(handle)

    def _sync_directory(self) -> None:
        """Make the name of a new file outlast a power failure."""
        handle = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _content(handle: int) -> bytes:
    size, found = os.fstat(handle).st_size, b""
    while len(found) < size:
        part = os.pread(handle, size - len(found), len(found))
        if not part:
            break
        found += part
    return found


def _wait_for_lock(handle: int, path: Path) -> None:
    """Take the lock of the open file. Only this user can open it, so nobody else can keep a run waiting."""
    end = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise RecordFileError(
                    "%s: another process has locked it for more than %d s. Remedy: see which with `fuser -v %s`, then "
                    "run the same command again." % (path, LOCK_SECONDS, path)
                ) from None
        time.sleep(0.01)
