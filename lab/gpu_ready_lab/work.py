"""Running work of lab hosts: scripts of lab/work, each of which starts one piece of it, or starts it again.

The first line of each script describes the work. It ends with its host: a boot starts none.
"""

from collections.abc import Collection
from functools import cache

from . import engine, images, paths

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
    program = images.compiled(SCRIPTS / "hold.c", f"{DIRECTORY}/hold", "-static", "-s")
    engine.docker("cp", "-", f"{container}:/", stdin=program, what=f"copy the containers' program to {host}")
