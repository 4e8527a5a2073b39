"""Pasts of lab hosts: scripts of lab/pasts that set a host up as a published page says, before anybody uses it.

The first line of each script describes the past, with its number in the notes on such hosts; the second names the page.
"""

from functools import cache

from . import engine, paths
from .say import say

SCRIPTS = paths.REPO / "lab/pasts"
FUNCTIONS = SCRIPTS / "_functions.sh"
LIMIT = 900.0
"""Seconds that one script may take; some compile a kernel module."""


@cache
def described() -> dict[str, str]:
    """Description of every past by name."""
    scripts = sorted(path for path in SCRIPTS.glob("*.sh") if path != FUNCTIONS)
    return {path.stem: path.read_text().split("\n", 1)[0].removeprefix("# ") for path in scripts}


def make(container: str, host: str, name: str) -> None:
    """Run the script of a past on a host; the error of one that fails has the end of its output."""
    say(f"{host}: past {name}")
    text = "exec 2>&1\n" + FUNCTIONS.read_text() + (SCRIPTS / f"{name}.sh").read_text()
    what = f"give {host} the past {name}; remove the host with `down FLEET` before another `up`"
    engine.docker("exec", container, "sh", "-euc", text, f"lab/pasts/{name}.sh", limit=LIMIT, what=what)
