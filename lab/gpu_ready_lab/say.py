"""Progress messages, errors, and calls of programs."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

_START = time.monotonic()
_LOCK = threading.Lock()


class LabError(Exception):
    """An error that the user can act on: the message has the cause and the remedy."""


def say(message: str) -> None:
    """Print a line with the time since the lab command started."""
    with _LOCK:
        print(f"[{time.monotonic() - _START:6.1f} s] {message}", flush=True)


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


def warn(message: str) -> None:
    """Print a warning on standard error."""
    print(f"lab: {message}", file=sys.stderr, flush=True)
