"""The audits of all hosts as a table, as differences, JSON or CSV. Pure: values in, text out."""

import csv
import io
import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from ....module_utils.gpu_ready.base import records
from ....module_utils.gpu_ready.base.plain_text import plain_text
from .host_audit import HostAudit
from .layout import (
    NOTHING,
    Message,
    counts_text,
    message_lines,
    natural_order,
    note_lines,
    one_line,
    paragraph,
    rows_text,
    table_rows,
)

SCHEMA = 1
UNREACHABLE, FAILED, NOT_REACHED = "unreachable", "failed", "not_reached"
TASK_FAILED = "Task failed: "
REST = "gpu_audit_format json or csv has all of them"
MOST_HOLDERS = 20
"""Processes that hold a GPU, in the table; JSON and CSV list all of them."""
COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("host", "host", 12),
    ("gpus", "GPUs", 12),
    ("driver_desired", "desired", 10),
    ("driver", "installed", 11),
    ("loaded", "loaded", 11),
    ("userspace", "userspace", 11),
    ("fabric_manager", "fabric", 6),
    ("next_boot", "next boot", 9),
    ("holds", "holds", 5),
    ("reboot", "reboot", 6),
    ("container", "container", 9),
    ("verified", "verified", 8),
    ("holders", "in use", 6),
    ("state", "state", 8),
)
"""Key, heading, and the least width that a column keeps when the table is too wide: that of a version, with ``!``."""
SAME = ("driver", "loaded", "userspace")
"""Columns that are equal on hosts where the driver is in order."""
FORMULA = re.compile("[=+@＝＋－＠-]")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?$")
CSV_COLUMNS = ("host", "state", "check", "desired", "found", "ok", "why")


class Audit(NamedTuple):
    """``counts``: hosts by state."""

    time: str
    counts: dict[str, int]
    hosts: dict[str, HostAudit]


def read_audit(given: Mapping[str, object]) -> HostAudit:
    """Read ``audit``, ``failure`` and ``unreachable`` of one host; each may be absent.

    An answer of another form is that host's failure.
    """
    if given.get("unreachable"):
        reason = one_line(given["unreachable"])
        # The prefix of ansible-core 2.19 and newer repeats what the state says.
        reason = reason[len(TASK_FAILED) :] if reason.startswith(TASK_FAILED) else reason
        return HostAudit(UNREACHABLE, [reason or "no answer"])
    if given.get("failure"):
        return HostAudit(FAILED, [one_line(given["failure"])])
    if not given.get("audit"):
        return HostAudit(NOT_REACHED, ["the run did not reach this host"])
    try:
        return records.from_json(HostAudit, given["audit"])
    except records.RecordError as error:
        return HostAudit(FAILED, ["the host: its answer has another form (%s). Run again" % one_line(error)[:200]])


def build(hosts: Mapping[str, Mapping[str, object]], time: str) -> Audit:
    audits = {name: read_audit(hosts[name]) for name in sorted(hosts, key=natural_order)}
    counts: dict[str, int] = {}
    for one in audits.values():
        counts[one.state] = counts.get(one.state, 0) + 1
    return Audit(time, counts, audits)


def to_json(audit: Audit) -> dict[str, object]:
    return dict(records.to_json(audit), schema=SCHEMA)


def text(audit: Audit, form: str, width: int, differences: bool = False) -> str:
    """Return the audit in one of the formats "table", "diff", "json" and "csv"; a table may have differences below."""
    if form == "json":
        return json.dumps(to_json(audit), indent=1, sort_keys=True)  # ASCII: other characters are escaped
    if form == "csv":
        return as_csv(audit)
    if form == "diff":
        return plain_text("\n".join(part for part in (diff(audit), counts(audit)) if part))
    below = diff(audit) if differences else ""
    return plain_text(table(audit, width) + ("\n\n" + below.rstrip("\n") if below else ""))


def cell(one: HostAudit, key: str, name: str) -> str:
    """Return a cell of the table; drift is marked with ``!``."""
    checks = {check.name: check for check in one.checks}
    if key == "host":
        return name
    if key == "state":
        return one.state.replace("_", " ")
    if key == "holders":
        return str(len(one.work)) if one.work else NOTHING
    if key not in checks:
        return one_line(one.row.get(key)) or NOTHING
    check = checks[key]
    shown = {
        "driver": one.row.get("driver_installed"),
        "loaded": one.row.get("driver_loaded"),
        "next_boot": "yes" if check.ok else "no module" if one_line(check.found).endswith("no module") else "no",
        "verified": "yes" if check.ok else "no",
    }.get(key, check.found)
    return ("" if check.ok in (True, None) else "!") + (one_line(shown) or "none")


def table(audit: Audit, width: int) -> str:
    """Return the table, the reasons of every host that is not in the desired state, who holds GPUs, and the counts."""
    rows = [(one.is_good, [cell(one, key, name) for key, _, _ in COLUMNS]) for name, one in audit.hosts.items()]
    messages = [
        Message(name, one.state.replace("_", " "), tuple(one_line(why) for why in one.why))
        for name, one in audit.hosts.items()
        if not one.is_good
    ]
    shown = rows_text(table_rows(rows, REST), COLUMNS, width, SAME) + message_lines(messages, width, REST)
    shown += format_notes(audit, width)
    held = [(name, holder) for name, one in audit.hosts.items() for holder in one.work]
    if held:
        shown += ["", "GPUs in use:"]
        for name, holder in held[:MOST_HOLDERS]:
            where = " in container %s" % holder.container if holder.container else ""
            shown += paragraph("%s: %s (pid %d)%s" % (name, holder.command, holder.pid, where), width)
        if len(held) > MOST_HOLDERS:
            shown.append("  and %d more; %s" % (len(held) - MOST_HOLDERS, REST))
    return "\n".join([*shown, "", counts(audit)])


def format_notes(audit: Audit, width: int) -> list[str]:
    """Return lines about what is no drift: what waits for a reboot, the warnings of the plan."""
    notes = [
        (name, check.why)
        for name, one in audit.hosts.items()
        for check in one.checks
        if check.name == "reboot" and check.ok is None
    ]
    notes += [(name, warning) for name, one in audit.hosts.items() for warning in one.warnings]
    return note_lines("notes:", notes, width, REST)


def diff(audit: Audit) -> str:
    """Return the differences of each host like a unified diff: found, then desired."""
    lines = []
    for name, one in audit.hosts.items():
        if one.is_good:
            continue
        lines += ["--- %s: found" % name, "+++ %s: desired" % name]
        for check in one.checks:
            if check.ok is False:
                lines += ["@@ %s @@ %s" % (one_line(check.name), one_line(check.why))]
                lines += ["-%s" % (one_line(check.found) or "none"), "+%s" % (one_line(check.desired) or "as planned")]
        if one.state != "drift":
            lines += ["@@ %s @@" % one_line(one.state).replace("_", " ")] + [" %s" % one_line(why) for why in one.why]
    return "".join(line + "\n" for line in lines)


def as_csv(audit: Audit) -> str:
    """Return one line per check and host, and one per process that holds a GPU."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, one in audit.hosts.items():
        why = one.summary if one.checks else "; ".join(one_line(part) for part in one.why)
        rows = [("host", "", "", yes_or_no(one.is_good), why)]
        rows += [
            (check.name, check.desired or "", check.found or "", yes_or_no(check.ok), check.why) for check in one.checks
        ]
        for holder in one.holders:
            where = "container %s" % holder.container if holder.container else ""
            rows.append(("holder", "", "%d %s" % (holder.pid, holder.command), "", where))
        writer.writerows([harmless_cell(text) for text in (name, one.state) + row] for row in rows)
    return out.getvalue()


def harmless_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula; numbers stay numbers.

    The characters and the apostrophe are those of OWASP (owasp.org/www-community/attacks/CSV_Injection).
    """
    text = one_line(text)
    return "'" + text if FORMULA.match(text) and not NUMBER.match(text) else text


def yes_or_no(ok: bool | None) -> str:
    """yes, no, or nothing for a check without a verdict."""
    return "" if ok is None else "yes" if ok else "no"


def counts(audit: Audit) -> str:
    """Return the last line: the number of hosts by state."""
    return counts_text(audit.counts, len(audit.hosts))


def bad(audit: Audit) -> dict[str, str]:
    """Return a message per host that is not in the desired state.

    Of drift only the parts, the table has the reasons.
    """
    return {name: verdict(one) for name, one in audit.hosts.items() if not one.is_good}


def verdict(one: HostAudit) -> str:
    """Return the state of a host with the parts that drift, or with the reason of any other state."""
    parts = [one_line(check.name) for check in one.checks if check.ok is False]
    if one.state == "drift":
        return "drift in %s; the audit above has the reasons, 'site.yml --check --diff' shows what would be done" % (
            ", ".join(parts)
        )
    return "%s: %s" % (one_line(one.state).replace("_", " "), "; ".join(one_line(why) for why in one.why))
