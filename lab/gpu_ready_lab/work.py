"""Running work of lab hosts: scripts of lab/work, each of which starts one piece of it, or starts it again.

The first line of each script describes the work. It ends with its host: a boot starts none.
"""

import tempfile
from collections.abc import Collection
from functools import cache
from pathlib import Path

from . import engine, images, paths
from .say import run

SCRIPTS = paths.REPO / "lab/work"
FUNCTIONS = SCRIPTS / "_functions.sh"
DIRECTORY = "usr/lib/gpu-ready-lab/work"
LIMIT = 900.0
"""Seconds that one script may take; some install packages."""


@cache
def described() -> dict[str, str]:
    """Description of every kind of work by name."""
    scripts = sorted(path for path in SCRIPTS.glob("*.sh") if path != FUNCTIONS)
    return {path.stem: path.read_text().split("\n", 1)[0].removeprefix("# ") for path in scripts}


def start(container: str, host: str, names: Collection[str]) -> None:
    """Start work on a host, in this order."""
    if not names:
        return
    copy_program(container, host)
    for name in names:
        text = FUNCTIONS.read_text() + (SCRIPTS / f"{name}.sh").read_text()
        what = f"start the work {name} on {host}"
        engine.docker("exec", container, "sh", "-euc", text, f"lab/work/{name}.sh", limit=LIMIT, what=what)


def copy_program(container: str, host: str) -> None:
    """Give a host DIRECTORY with the program that keeps files open in containers."""
    engine.docker("cp", "-", f"{container}:/", stdin=_root(), what=f"copy the containers' program to {host}")


def _root() -> bytes:
    """The file system of the work's containers: one program, without libraries."""
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "hold")
        argv = ["/usr/bin/gcc", "-static", "-O2", "-s", "-o", str(made), str(SCRIPTS / "hold.c")]
        run(argv, limit=60, what="compile the program of the work's containers")
        return images.pack({f"{DIRECTORY}/hold": (made.read_bytes(), 0o755)})
