"""Verifies signatures of indexes with one pinned key, by gpgv, which trusts the keys of one file (gpgv(1))."""

import shutil
import subprocess
import tempfile
from pathlib import Path

LIMIT = 120.0
"""Seconds."""


class Unavailable(Exception):
    """Nothing is known of the signature."""


class Wrong(Exception):
    """The signature is not one of the pinned key."""


def verify(key: bytes, data: bytes, detached: bytes | None = None) -> bytes:
    """Return what is signed: ``data`` by a signature of its own, or the text of a signed message.

    Raises Wrong, and Unavailable without gpgv.
    """
    program = shutil.which("gpgv")
    if program is None:
        raise Unavailable("gpgv is not installed here")
    with tempfile.TemporaryDirectory(prefix="gpu-catalog-") as directory:
        keyring, signed, signature = (Path(directory, name) for name in ("key.gpg", "data", "data.asc"))
        keyring.write_bytes(key)
        signed.write_bytes(data)
        command = [program, "--homedir", directory, "--keyring", str(keyring)]
        if detached is None:
            output = Path(directory, "text")
            command += ["--output", str(output), str(signed)]
        else:
            output = signed
            signature.write_bytes(detached)
            command += [str(signature), str(signed)]
        try:
            answer = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"gpgv: {error}") from None
        if answer.returncode != 0 or not output.exists():
            lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
            raise Wrong(lines[-1].removeprefix("gpgv: ")[:200])
        return output.read_bytes()
