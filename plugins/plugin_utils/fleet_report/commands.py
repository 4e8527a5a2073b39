"""What a run ends with on the screen: its table, where the page is, and the command that comes next."""

import posixpath
import shlex
from collections.abc import Mapping, Sequence

from . import audit_table, run
from .model import Host, Report
from .texts import advice_text

MOST = 10
"""Hosts that a command names; with more it is for the whole inventory, and hosts in the desired state cost one call."""
FOR_PROGRAMS = ("json", "csv")
"""Formats of an audit that are shown alone."""


def shown_text(
    report: Report, form: str, width: int, differences: bool, paths: Sequence[str], following: str, time: str = ""
) -> str:
    """Return what the screen shows at the end of a run.

    ``form``: of an audit. ``paths``: the files that were written; of a rollout the table was shown before. ``time``:
    how long a plan takes, "" for none.
    """
    parts: list[str] = []
    if report.kind == "audit":
        parts = [audit_table.text(report, form, width, differences)]
        if form in FOR_PROGRAMS:
            return parts[0]
    elif report.kind == "site":
        complete = sorted(
            (posixpath.basename(path) for path in paths if path.endswith((".json", ".html"))), reverse=True
        )
        parts = [run.table(report, width, complete[0] if complete else "")]
    elif report.kind in ("upgrade", "rollback") and report.catalog_text:
        parts = [report.catalog_text]
    return "\n\n".join([*parts, *filter(None, [time, *pages_text(paths), following])])


def pages_text(paths: Sequence[str]) -> list[str]:
    """Return where the report is, in words: the page, or else the first file."""
    pages = [path for path in paths if path.endswith(".html")] or list(paths)
    return [f"Report: {path}" for path in pages[:1]]


def bad_hosts(report: Report) -> dict[str, str]:
    """Return why each host that is not in a good state is not, by name."""
    if report.kind == "audit":
        return audit_table.bad(report)
    return {host.name: advice_text(host.why) for host in report.hosts if not host.good}


def site_playbook(playbook: str) -> str:
    """Return site.yml beside a playbook of this project, as it was named: by path or by the collection's name."""
    directory, name = posixpath.split(playbook)
    if playbook.startswith("gpu_ready.nodes."):
        return "gpu_ready.nodes.site"
    if name == "audit.yml" and posixpath.basename(directory) == "playbooks":
        return posixpath.normpath(posixpath.join(directory, "..", "site.yml"))
    return "site.yml"


def sibling_command(playbook: str, name: str, inventories: Sequence[str], hosts: Sequence[str], variables: bool) -> str:
    """Return the command of another playbook of this project: ``name`` has no suffix.

    ``playbook``: the one that was called, as it was named; "" for a site's own, which imports the collection's.
    ``hosts``: limit it to these, if they are few. ``variables``: the command line had -e options.
    """
    directory, file = posixpath.split(playbook)
    if not file or playbook.startswith("gpu_ready.nodes."):
        called = f"gpu_ready.nodes.{name}"
    else:
        inside = directory if posixpath.basename(directory) == "playbooks" else posixpath.join(directory, "playbooks")
        called = posixpath.join(inside, f"{name}.yml")
    words = ["ansible-playbook", called, *(word for one in inventories for word in ("-i", one))]
    words += ["--limit", ",".join(hosts)] if 0 < len(hosts) <= MOST else []
    return " ".join(map(shlex.quote, words)) + (" with the same -e options" if variables else "")


def state_of(host: Host) -> str:
    """Return the state of a host, "remedy" for drift that site.yml does not repair, such as a lost GPU."""
    own = host.why.remedy or any(check.remedy for check in host.checks if check.ok is False)
    return "remedy" if host.state == "drift" and own else host.state


def next_command(
    kind: str, states: Mapping[str, str], total: int, playbook: str, inventories: Sequence[str], variables: bool
) -> str:
    """Return one line for the hosts that are not in a good state (``states``), of ``total`` hosts; "" for none.

    ``variables``: the command line has -e options, which are not repeated, since they may be secrets.
    """
    if not states or kind not in ("site", "audit"):
        return ""
    repaired = [name for name, state in states.items() if state == "drift"]
    named = repaired if kind == "audit" and repaired else list(states)
    words = ["ansible-playbook", site_playbook(playbook) if kind == "audit" else playbook]
    words += [word for one in inventories for word in ("-i", one)]
    if len(named) <= MOST and len(named) < total:
        words += ["--limit", ",".join(named)]
    command = " ".join(shlex.quote(word) for word in words)
    given = " with the same -e options" if variables else ""
    if kind == "audit" and len(repaired) == len(states):
        return f"Repair{given}: {command}"
    return f"Next: follow the remedies above, then run{given}: {command}"
