"""Faults of one lab host: shell scripts of data/faults that run in it, with `inject ARGUMENTS` or `heal`.

The first line of each describes the fault and its arguments. If the fault is a mount or a process, a power cut heals
it too.
"""

from . import engine, images, paths
from .hosts import Running
from .say import LabError

SCRIPTS = paths.DATA / "faults"
LIMIT = 600.0
CLOCK = "usr/lib/gpu-ready-lab/clock.so"


def described() -> dict[str, str]:
    """Description of every fault by name."""
    scripts = sorted(path for path in SCRIPTS.iterdir() if not path.suffix)
    return {path.name: path.read_text().split("\n", 1)[0].removeprefix("# ") for path in scripts}


def inject(running: Running, name: str, arguments: list[str]) -> None:
    """Cause a fault on a host."""
    if name == "clock":
        _lay_clock(running)
    _in_host(running, name, "inject", *arguments)


def heal(running: Running, name: str) -> None:
    """End a fault of a host; a fault that it does not have is no error."""
    _in_host(running, name, "heal")


def _in_host(running: Running, name: str, *words: str) -> None:
    if running.kind != "container":
        raise LabError(f"{running.host} is a virtual machine: {name} is for hosts that are containers")
    engine.docker(
        "exec", "-i", running.container, "sh", "-eus", *words,
        stdin=(SCRIPTS / name).read_bytes(), limit=LIMIT, what=f"{words[0]} {name} on {running.host}",
    )  # fmt: skip


def _lay_clock(running: Running) -> None:
    """Copy the library that moves the time of day: it is small enough for every C library."""
    laid = images.compiled(SCRIPTS / "clock.c", CLOCK, "-shared", "-fPIC")
    engine.docker("cp", "-", f"{running.container}:/", stdin=laid, what="copy the wrong clock")
