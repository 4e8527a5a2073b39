"""Verifies signatures of indexes with one pinned key, by gpgv, which trusts the keys of one file (gpgv(1))."""

import contextlib
import shutil
import subprocess
import tempfile
from typing import IO

LIMIT = 120.0
"""Seconds."""


class Unavailable(Exception):
    """Nothing is known of the signature."""


class Wrong(Exception):
    """The signature is not one of the pinned key."""


def verify(key: bytes, data: bytes, detached: bytes | None = None) -> bytes:
    """Return what is signed: ``data`` by a signature of its own, or the text of a signed message.

    gpgv reads files without a name, which nobody else can open. Raises Wrong, and Unavailable without gpgv.
    """
    program = shutil.which("gpgv")
    if program is None:
        raise Unavailable("gpgv is not installed here")
    with contextlib.ExitStack() as stack:
        keyring, *signed = (stack.enter_context(unnamed(one)) for one in (key, detached, data) if one is not None)
        command = [program, "--keyring", path_of(keyring), *(["--output", "-"] if detached is None else [])]
        command += map(path_of, signed)
        passed = [file.fileno() for file in (keyring, *signed)]
        try:
            answer = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False, pass_fds=passed)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"gpgv: {error}") from None
    if answer.returncode != 0:
        lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        raise Wrong(lines[-1].removeprefix("gpgv: ")[:200])
    return answer.stdout if detached is None else data


def unnamed(data: bytes) -> IO[bytes]:
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(data)
    file.flush()
    file.seek(0)
    return file


def path_of(file: IO[bytes]) -> str:
    return f"/dev/fd/{file.fileno()}"
