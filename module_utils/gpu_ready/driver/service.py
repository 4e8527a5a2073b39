"""Starts and enables services, and says why one does not run, by its journal since its last start."""

from typing import Any, Dict, Tuple

from ..base import manifest, manifest_notes
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..diagnostics import failure

KINDS = ("container-error", "nvidia-smi", "dmesg")
"""What the journals of docker, the fabric manager and the persistence daemon are searched for, in this order."""
START_LIMIT = 300.0
"""Seconds for a start: systemd has 90 (DefaultTimeoutStartSec, systemd-system.conf(5)), docker's unit no limit."""
STARTED, RESTARTED, UNCHANGED = "started", "restarted", "unchanged"


def run_service(host: Host, unit: str, state: str, check: bool = False, path: str = manifest.PATH) -> Dict[str, Any]:
    """Enable a service and start or restart it now; record what it was before, for the uninstallation.

    ``state``: started, restarted, or unchanged for one that the next boot starts. Raises GpuReadyError with the cause
    for a service that cannot be enabled or does not run.
    """
    before = {"enabled": is_enabled(host, unit), "active": is_active(host, unit)}
    start = state == STARTED and not before["active"]
    changed = not before["enabled"] or start or state == RESTARTED
    if check or not changed:
        return {"changed": changed}
    if not all(before.values()):
        manifest_notes.note("services", dict(stopped_sockets(host, unit), **{unit: before}), path)
    if not before["enabled"]:
        answer = host.run(["systemctl", "enable", unit], START_LIMIT)
        if answer.rc != 0:
            raise GpuReadyError(
                "the service %s cannot be enabled: %s. Repair its unit, then run again"
                % (unit, (answer.err or answer.out).strip()[-300:])
            )
    if start or state == RESTARTED:
        answer = host.run(["systemctl", "restart" if state == RESTARTED else "start", unit], START_LIMIT)
        if answer.rc != 0:
            raise GpuReadyError(explain_service(host, unit, (answer.err or answer.out).strip()))
    return {"changed": True}


def is_enabled(host: Host, unit: str) -> bool:
    """True for a unit that is enabled or needs no link: exit status 0 (systemctl(1), "is-enabled")."""
    return host.run(["systemctl", "is-enabled", "--quiet", unit]).rc == 0


def is_active(host: Host, unit: str) -> bool:
    """True for a unit that runs."""
    return host.run(["systemctl", "is-active", "--quiet", unit]).rc == 0


def stopped_sockets(host: Host, unit: str) -> Dict[str, Dict[str, bool]]:
    """Return the state of the unit's sockets that do not listen. They listen from its start on, also after its stop."""
    _, _, names = host.run(["systemctl", "show", "--property=TriggeredBy", unit]).out.strip().partition("=")
    sockets = [name for name in names.split() if name.endswith(".socket") and not is_active(host, name)]
    return {name: {"enabled": is_enabled(host, name), "active": False} for name in sockets}


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
