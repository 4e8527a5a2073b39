"""Progress messages, errors, locks, and calls of programs."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_START = time.monotonic()
_LOCK = threading.Lock()


class LabError(Exception):
    """An error that the user can act on: the message has the cause and the remedy."""


def say(message: str) -> None:
    """Print a line with the time since the lab command started."""
    with _LOCK:
        print(f"[{time.monotonic() - _START:6.1f} s] {message}", flush=True)


@contextlib.contextmanager
def locked(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Lock a file, made if it is missing: one lab command of this machine at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, kind)
        yield


def run(
    argv: Sequence[str],
    *,
    limit: float,
    what: str,
    stdin: bytes | None = None,
    env: dict[str, str] | None = None,
) -> str:
    """Run a program and return its standard output; a failure or a timeout becomes a LabError.

    `what` completes the message "could not ...".
    """
    try:
        done = subprocess.run(
            list(argv),
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=limit,
            env=env,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"could not {what}: {argv[0]} did not end within {limit:.0f} s") from None
    except OSError as error:
        raise LabError(f"could not {what}: {argv[0]}: {error.strerror}") from None
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise LabError(f"could not {what}: {argv[0]} ended with {done.returncode}: " + "\n  ".join(words[-8:]))
    return done.stdout.decode(errors="replace")


def succeeds(argv: Sequence[str], *, limit: float = 20, stdin: bytes = b"") -> bool:
    """True if a program ends with exit status 0; failure is no error."""
    try:
        return subprocess.run(list(argv), input=stdin, capture_output=True, timeout=limit, check=False).returncode == 0
    except (subprocess.TimeoutExpired, OSError):
        return False


def wait_for(check: Callable[[], bool], *, limit: float, what: str, pause: float = 0.2) -> None:
    """Wait until check() is true; after `limit` seconds raise a LabError."""
    end = time.monotonic() + limit
    while not check():
        if time.monotonic() > end:
            raise LabError(f"waited {limit:.0f} s in vain for {what}")
        time.sleep(pause)


def alive(pid: int, mark: object) -> bool:
    """True if a process lives and has a text in its command line: its number may belong to another by now."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z" and str(mark).encode() in command


def recorded(file: Path, mark: object) -> int | None:
    """Return the process id in a file, if that process is alive."""
    try:
        pid = int(file.read_text())
    except (OSError, ValueError):
        return None
    return pid if alive(pid, mark) else None


def end(pid: int, mark: object, what: str) -> None:
    """End a process, by force if it takes too long."""
    for number, limit in ((signal.SIGTERM, 90), (signal.SIGKILL, 30)):
        os.kill(pid, number)
        try:
            return wait_for(lambda: not alive(pid, mark), limit=limit, what=f"the end of {what} (process {pid})")
        except LabError:
            if number == signal.SIGKILL:
                raise


def warn(message: str) -> None:
    """Print a warning on standard error."""
    print(f"lab: {message}", file=sys.stderr, flush=True)
