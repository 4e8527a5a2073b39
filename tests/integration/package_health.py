"""The package manager of a host works as well after a run as before, also where the run failed or was refused."""

import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from gpu_ready_lab import mirror_faults, paths

SCRIPT = Path(__file__).with_suffix(".sh").read_text()
LIMIT = 600
"""Seconds for one host; the package manager of a guest without hardware virtualization is slow."""
UNREACHABLE = 255
"""Exit status of ssh itself."""


def problems(ssh_config: Path, hosts: Iterable[str], since: float) -> dict[str, str]:
    """Return by host what its package manager prints that does not work and whose files were written since a time.

    A host that does not answer is left out: there is nothing to ask.
    """
    with ThreadPoolExecutor() as pool:
        found = dict(pool.map(lambda host: (host, _problem(ssh_config, host, since)), hosts))
    return {host: text for host, text in found.items() if text}


def _problem(ssh_config: Path, host: str, since: float) -> str:
    done = subprocess.run(
        ["/usr/bin/ssh", "-F", str(ssh_config), host, f"sh -s {int(since)}"],
        input=SCRIPT, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    if done.returncode == UNREACHABLE:
        return ""
    return (done.stdout + (done.stderr if done.returncode else "")).strip()


@contextmanager
def faults_suspended(addresses: Iterable[str]) -> Iterator[None]:
    """Suspend the faults of servers that a test has set: what a fault broke is not what the run left broken."""
    own = [mirror_faults.own_file(paths.STATE, address) for address in addresses]
    files = {path: path.read_text() for path in own if path.exists()}
    for path in files:
        path.unlink()
    try:
        yield
    finally:
        for path, text in files.items():
            path.write_text(text)
