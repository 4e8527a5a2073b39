"""Starts and enables services, and says why one does not run, by its journal since its last start."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base import manifest, manifest_notes
from ..base.errors import GpuReadyError
from ..base.evidence import FailureEvidence, Search, explained_later, format_failure
from ..base.host import Host
from ..base.log_texts import since_last_start, since_start

KINDS = ("container-error", "nvidia-smi", "dmesg")
"""What the journals of docker, the fabric manager and the persistence daemon are searched for, in this order."""
START_LIMIT = 300.0
"""Seconds for a start: systemd has 90 (DefaultTimeoutStartSec, systemd-system.conf(5)), docker's unit no limit."""
DIRECTIVES = ("ExecCondition", "ExecStartPre", "ExecStartPost")
"""Commands of a unit beside the program of the service, which says itself why it ends (systemd.service(5))."""
UNKNOWN_COMMAND = "service_command"
"""Code of the explanation that only says that such a command failed."""
STARTED, RESTARTED, UNCHANGED, STOPPED = "started", "restarted", "unchanged", "stopped"


def run_service(host: Host, unit: str, state: str, check: bool = False, path: str = manifest.PATH) -> Dict[str, Any]:
    """Enable a service and start or restart it now; record what it was before, for the uninstallation.

    ``state``: started, restarted, stopped, or unchanged for one that the next boot starts. Raises GpuReadyError with
    the cause for a service that cannot be enabled or does not run.
    """
    before = {"enabled": is_enabled(host, unit), "active": is_active(host, unit)}
    if state == STOPPED:
        return stop_service(host, unit, before["active"], check, path)
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
            raise GpuReadyError(describe_service(host, unit, (answer.err or answer.out).strip()))
    return {"changed": True}


def stop_service(host: Host, unit: str, active: bool, check: bool, path: str) -> Dict[str, Any]:
    """Stop a service of ours, whose unit is deleted next; raises GpuReadyError if it does not stop."""
    if active and not check:
        answer = host.run(["systemctl", "stop", unit], START_LIMIT)
        if answer.rc != 0:
            raise GpuReadyError(
                "the service %s does not stop: %s. See `journalctl -u %s`, then run again"
                % (unit, answer.err.strip()[-300:], unit)
            )
    if not check:
        manifest_notes.drop("services", [unit], path)
    return {"changed": active}


def is_enabled(host: Host, unit: str) -> bool:
    """Return True for a unit that is enabled or needs no link: exit status 0 (systemctl(1), "is-enabled")."""
    return host.run(["systemctl", "is-enabled", "--quiet", unit]).rc == 0


def is_active(host: Host, unit: str) -> bool:
    """Return True for a unit that runs."""
    return host.run(["systemctl", "is-active", "--quiet", unit]).rc == 0


def stopped_sockets(host: Host, unit: str) -> Dict[str, Dict[str, bool]]:
    """Return the state of the unit's sockets that do not listen. They listen from its start on, also after its stop."""
    _, _, names = host.run(["systemctl", "show", "--property=TriggeredBy", unit]).out.strip().partition("=")
    sockets = [name for name in names.split() if name.endswith(".socket") and not is_active(host, name)]
    return {name: {"enabled": is_enabled(host, name), "active": False} for name in sockets}


def journal_command(unit: str) -> Tuple[str, ...]:
    """Prints the newest lines of a unit's journal without timestamps."""
    return ("journalctl", "--unit", unit, "--boot", "--quiet", "--no-pager", "--lines", "200", "--output", "cat")


def describe_service(host: Host, unit: str, output: str) -> str:
    """Return the message for a service that does not run; ``output`` of the start replaces an empty journal."""
    # The last lines may still be queued; systemd before 228 has no such option.
    host.run(["journalctl", "--sync"])
    journal = host.run(list(journal_command(unit))).out
    log = "the output of `journalctl -u %s`" % unit
    newest = [(kind, since_last_start(journal)) for kind in KINDS]
    command = find_failed_command(host.run(show_command(unit, *DIRECTIVES)).out)
    if command is not None:
        found = FailureEvidence(
            [Search(newest, [UNKNOWN_COMMAND])], log, unknown=describe_command(host, unit, command, log)
        )
    elif journal.strip():
        # The last start may end without any output; if that has no reason, since the last one with output.
        with_output = [(kind, since_start(journal, unit)) for kind in KINDS]
        found = FailureEvidence([Search(newest), Search(with_output)], log)
    else:
        found = FailureEvidence([Search([("container-error", output)])], log)
    return "the service %s does not run: %s" % (unit, explained_later(found))


class FailedCommand(NamedTuple):
    """A command of a unit: ``directive`` of systemd.service(5), command line, exit status."""

    directive: str
    command: str
    status: str


def show_command(unit: str, *properties: str) -> List[str]:
    return ["systemctl", "show", "--property=" + ",".join(properties), unit]


def find_failed_command(shown: str) -> Optional[FailedCommand]:
    """Return the command beside the service's own program that failed at the last start, from `systemctl show`.

    A command that has run has code and status of its end (print_exec in systemctl-show.c of systemd).
    """
    for line in shown.splitlines():
        directive, _, value = line.partition("=")
        command, counts, state = value.partition(" argv[]=")[2].partition(" ; ignore_errors=no ; ")
        match = re.search(r" code=(?:exited|killed|dumped) ; status=(\S{1,40})", state[:500])
        if counts and match and directive in DIRECTIVES and match.group(1) != "0":
            return FailedCommand(directive, command, match.group(1))
    return None


def describe_command(host: Host, unit: str, failed: FailedCommand, log: str) -> str:
    """Return the failure of a command of a unit, with the file that has it."""
    shown = host.run(show_command(unit, "FragmentPath", "DropInPaths")).out
    paths = [path for line in shown.splitlines() for path in line.partition("=")[2].split()]
    places = [path for path in paths if has_command(host.read(path) or "", failed)]
    cause = "%s=%s ended with status %s" % (failed.directive, failed.command, failed.status)
    where = " in %s" % places[-1] if places else ""
    remedy = (
        "correct or remove that line%s (`systemctl cat %s` shows the unit), run `systemctl daemon-reload`, then run "
        "this again"
    )
    return format_failure(cause, "", log, remedy % (where, unit))


def has_command(text: str, failed: FailedCommand) -> bool:
    """Return True for a unit file with a command: `systemctl show` prints it without its prefixes and quotes."""
    lines = [line.partition("=") for line in text.splitlines()]
    values = [value.strip().lstrip("@-:+!|") for name, _, value in lines if name.strip() == failed.directive]
    return failed.command.split() in [re.sub("[\"']", "", value).split() for value in values]
