"""The audits of all hosts as a table, as differences, JSON or CSV. Pure: values in, text out."""

import csv
import io
import re

from ...module_utils.gpu_ready.base.plain_text import plain_text
from ..gpu_ready.report.host_audit import HostAudit
from ..gpu_ready.report.layout import (
    NOTHING,
    Message,
    counts_text,
    message_lines,
    note_lines,
    one_line,
    paragraph,
    rows_text,
    table_rows,
)
from .model import Advice, Host, Report, as_json
from .texts import advice_text

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
"""Key, heading, and the least width that a column keeps when the table is too wide: a version with ``!`` fits."""
SAME = ("driver", "loaded", "userspace")
"""Columns that are equal on hosts where the driver is in order."""
FORMULA = re.compile("[=+@＝＋－＠-]")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?$")
CSV_COLUMNS = ("time", "inventory", "host", "gpus", "state", "check", "desired", "found", "ok", "why", "remedy")


def text(report: Report, form: str, width: int, differences: bool = False) -> str:
    """Return the audit in one of the formats "table", "diff", "json" and "csv"; a table may have differences below."""
    if form == "json":
        return as_json(report)
    if form == "csv":
        return as_csv(report)
    if form == "diff":
        return plain_text("\n".join(part for part in (diff(report), counts(report)) if part))
    below = diff(report) if differences else ""
    return plain_text(table(report, width) + ("\n\n" + below.rstrip("\n") if below else ""))


def cells(one: HostAudit, work: int) -> dict[str, str]:
    """Return the cells of a host by column; drift is marked with ``!``. ``work``: processes that use its GPUs."""
    checks = {check.name: check for check in one.checks}
    found = {"holders": str(work) if work else "", "state": one_line(one.state).replace("_", " ")}
    for key in (key for key, _, _ in COLUMNS if key not in found):
        if key not in checks:
            found[key] = one_line(one.row.get(key))
            continue
        check = checks[key]
        shown = {
            "driver": one.row.get("driver_installed"),
            "loaded": one.row.get("driver_loaded"),
            "next_boot": "yes" if check.ok else "no module" if one_line(check.found).endswith("no module") else "no",
            "verified": "yes" if check.ok else "no",
        }.get(key, check.found)
        found[key] = ("" if check.ok in (True, None) else "!") + (one_line(shown) or "none")
    return {key: cell for key, cell in found.items() if cell}


def table(report: Report, width: int) -> str:
    """Return the table, the reasons of every host that is not in the desired state, who holds GPUs, and the counts."""
    rows = [
        (host.good, [host.name, *[host.cells.get(key) or NOTHING for key, _, _ in COLUMNS[1:-1]], state_text(host)])
        for host in report.hosts
    ]
    messages = [Message(host.name, state_text(host), reasons(host)) for host in report.hosts if not host.good]
    shown = rows_text(table_rows(rows, REST), COLUMNS, width, SAME) + message_lines(messages, width, REST)
    shown += format_notes(report, width)
    held = [(host.name, holder) for host in report.hosts for holder in host.work]
    if held:
        shown += ["", "GPUs in use:"]
        for name, holder in held[:MOST_HOLDERS]:
            where = f" in container {holder.container}" if holder.container else ""
            shown += paragraph(f"{name}: {holder.command} (pid {holder.pid}){where}", width)
        if len(held) > MOST_HOLDERS:
            shown.append(f"  and {len(held) - MOST_HOLDERS} more; {REST}")
    return "\n".join([*shown, "", counts(report), *([report.catalog_text] if report.catalog_text else [])])


def state_text(host: Host) -> str:
    return host.state.replace("_", " ")


def reasons(host: Host) -> tuple[str, ...]:
    """Return why a host is not in the desired state, one paragraph each."""
    drift = [
        f"{check.name}: {advice_text(Advice(check.why, check.remedy))}"
        for check in host.checks
        if check.ok is False and host.state == "drift"
    ]
    return tuple(drift or [advice_text(one) for one in host.refusals or [host.why]])


def format_notes(report: Report, width: int) -> list[str]:
    """Return lines about what is no drift: what waits for a reboot, newer versions, the warnings of the plan."""
    notes = [
        (host.name, check.why)
        for host in report.hosts
        for check in host.checks
        if check.name == "reboot" and check.ok is None
    ]
    notes += [
        (host.name, f"{check.name.replace('_', ' ')}: {check.why}")
        for host in report.hosts
        for check in host.checks
        if check.name.startswith("newer_") and check.why
    ]
    notes += [(host.name, advice_text(warning)) for host in report.hosts for warning in host.warnings]
    return note_lines("notes:", notes, width, REST)


def diff(report: Report) -> str:
    """Return the differences of each host like a unified diff: found, then desired."""
    lines = []
    for host in report.hosts:
        if host.good:
            continue
        lines += [f"--- {host.name}: found", f"+++ {host.name}: desired"]
        for check in host.checks:
            if check.ok is False:
                lines += [f"@@ {check.name} @@ {advice_text(Advice(check.why, check.remedy))}"]
                lines += ["-%s" % (check.found or "none"), "+%s" % (check.expected or "as planned")]
        if host.state != "drift":
            lines += [f"@@ {state_text(host)} @@"] + [f" {why}" for why in reasons(host)]
    return "".join(line + "\n" for line in lines)


def as_csv(report: Report) -> str:
    """Return one line per check and host, and one per process that holds a GPU; two audits fit below each other."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for host in report.hosts:
        about = (report.time, " ".join(report.run.inventories), host.name, host.cells.get("gpus", ""), host.state)
        remedy = host.why.remedy or "; ".join(one.remedy for one in host.refusals if one.remedy)
        rows = [("host", "", "", yes_or_no(host.good), host.why.message, remedy)]
        rows += [
            (check.name, check.expected, check.found, yes_or_no(check.ok), check.why, check.remedy)
            for check in host.checks
        ]
        for holder in host.holders:
            where = f"container {holder.container}" if holder.container else ""
            rows.append(("holder", "", f"{holder.pid} {holder.command}", "", where, ""))
        writer.writerows([harmless_cell(text) for text in about + row] for row in rows)
    return out.getvalue()


def harmless_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula; numbers stay numbers.

    OWASP names the characters and the apostrophe (owasp.org/www-community/attacks/CSV_Injection).
    """
    text = one_line(text)
    return "'" + text if FORMULA.match(text) and not NUMBER.match(text) else text


def yes_or_no(ok: bool | None) -> str:
    """yes, no, or nothing for a check without a verdict."""
    return "" if ok is None else "yes" if ok else "no"


def counts(report: Report) -> str:
    """Return the last line: the number of hosts by state."""
    return counts_text(report.counts, len(report.hosts))


def bad(report: Report) -> dict[str, str]:
    """Return a message per host that is not in the desired state.

    Of drift only the parts, the table has the reasons.
    """
    return {host.name: verdict(host) for host in report.hosts if not host.good}


def verdict(host: Host) -> str:
    """Return the state of a host with the parts that drift, or with the reason of any other state."""
    if host.state == "drift":
        parts = ", ".join(check.name for check in host.checks if check.ok is False)
        return f"drift in {parts}; the audit above has the reasons, 'site.yml --check --diff' shows what would be done"
    return "{}: {}".format(state_text(host), "; ".join(reasons(host)))
