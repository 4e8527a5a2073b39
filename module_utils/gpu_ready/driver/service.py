"""Why a service does not run, by its journal since its last start."""

from typing import Tuple

from ..base.host import Host
from ..diagnostics import failure

KINDS = ("container-error", "nvidia-smi", "dmesg")
"""What the journals of docker, the fabric manager and the persistence daemon are searched for, in this order."""


def journal_command(unit: str) -> Tuple[str, ...]:
    """Prints the newest lines of a unit's journal without timestamps."""
    return ("journalctl", "--unit", unit, "--boot", "--quiet", "--no-pager", "--lines", "200", "--output", "cat")


def explain_service(host: Host, unit: str, output: str) -> str:
    """Message for a service that does not run; ``output`` of the start replaces an empty journal."""
    # The last lines may still be queued; systemd before 228 has no such option.
    host.run(["journalctl", "--sync"])
    lines = failure.since_start(host.run(list(journal_command(unit))).out, unit)
    texts = [(kind, lines) for kind in KINDS]
    if not lines.strip():
        texts = [("container-error", output)]
    because = failure.explain_failure(texts, "the output of `journalctl -u %s`" % unit)
    return "the service %s does not run: %s" % (unit, because)
