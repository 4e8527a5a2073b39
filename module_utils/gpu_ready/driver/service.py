"""A service that does not start: why, by what it wrote to the journal since its last start."""

from typing import Tuple

from ..base.host import Host
from ..diagnostics import failure

KINDS = ("container-error", "nvidia-smi", "dmesg")
"""What the journals of docker, the fabric manager and the persistence daemon are searched for, in this order."""


def journal(unit: str) -> Tuple[str, ...]:
    """Return the call that prints the newest lines of a unit's journal without their heads."""
    return ("journalctl", "--unit", unit, "--boot", "--quiet", "--no-pager", "--lines", "200", "--output", "cat")


def why(host: Host, unit: str, said: str) -> str:
    """Return one sentence for a service that does not run; ``said``: what the start printed, for an empty journal."""
    # What was written last may still wait in the journal's queue; systemd before 228 has no such call.
    host.run(["journalctl", "--sync"])
    lines = failure.since_start(host.run(list(journal(unit))).out, unit)
    texts = [(kind, lines) for kind in KINDS]
    if not lines.strip():
        texts = [("container-error", said)]
    because = failure.because(texts, "what `journalctl -u %s` prints" % unit)
    return "the service %s does not run: %s" % (unit, because)
