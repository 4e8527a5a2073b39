"""The audits of all hosts as a table, as differences, JSON or CSV. Pure: values in, text out."""

import csv
import io
import json
from typing import Any, Dict, List, Tuple

from . import run as report
from .run import one_line

SCHEMA = 1
UNREACHABLE, FAILED, NOT_REACHED = "unreachable", "failed", "not_reached"
TASK_FAILED = "Task failed: "
GOOD = ("ok", "no_gpu")
"""States with exit status 0."""
MOST_HOLDERS = 20
"""Processes that hold a GPU, in the table; JSON and CSV list all of them."""
COLUMNS: Tuple[Tuple[str, str, int], ...] = (
    ("host", "host", 12),
    ("gpus", "GPUs", 12),
    ("driver_desired", "desired", 7),
    ("driver", "installed", 9),
    ("loaded", "loaded", 6),
    ("userspace", "userspace", 9),
    ("fabric_manager", "fabric", 6),
    ("next_boot", "next boot", 9),
    ("holds", "holds", 5),
    ("reboot", "reboot", 6),
    ("container", "container", 9),
    ("verified", "verified", 8),
    ("holders", "in use", 6),
    ("state", "state", 8),
)
"""Key, heading, and the least width that a column keeps when the table is too wide."""
CSV_COLUMNS = ("host", "state", "check", "desired", "found", "ok", "why")


def entry(given: Dict[str, Any]) -> Dict[str, Any]:
    """The audit of one host; ``given``: ``audit``, ``failure`` and ``unreachable``, each may be absent."""
    found = dict(given.get("audit") or {})
    empty: Dict[str, Any] = {"checks": [], "holders": [], "steps": [], "warnings": [], "summary": "", "row": {}}
    if given.get("unreachable"):
        reason = one_line(given["unreachable"])
        # The prefix of ansible-core 2.19 and newer repeats what the state says.
        reason = reason[len(TASK_FAILED) :] if reason.startswith(TASK_FAILED) else reason
        return dict(empty, state=UNREACHABLE, why=[reason or "no answer"])
    if given.get("failure"):
        return dict(empty, state=FAILED, why=[one_line(given["failure"])])
    if not found:
        return dict(empty, state=NOT_REACHED, why=["the run did not reach this host"])
    return found


def build(hosts: Dict[str, Dict[str, Any]], time: str) -> Dict[str, Any]:
    """The complete audit as plain values: the content of the JSON."""
    entries = {name: entry(hosts[name]) for name in sorted(hosts)}
    counts: Dict[str, int] = {}
    for one in entries.values():
        counts[one["state"]] = counts.get(one["state"], 0) + 1
    return {"schema": SCHEMA, "time": time, "counts": counts, "hosts": entries}


def text(made: Dict[str, Any], form: str, width: int, differences: bool = False) -> str:
    """The audit in one of the formats "table", "diff", "json" and "csv"; a table may have differences below."""
    if form == "json":
        return json.dumps(made, indent=1, sort_keys=True)
    if form == "csv":
        return as_csv(made)
    if form == "diff":
        return "\n".join(part for part in (diff(made), counts(made)) if part)
    below = diff(made) if differences else ""
    return table(made, width) + ("\n\n" + below.rstrip("\n") if below else "")


def cell(one: Dict[str, Any], key: str, name: str) -> str:
    """A cell of the table; drift is marked with ``!``."""
    checks = {check["name"]: check for check in one["checks"]}
    if key == "host":
        return name
    if key == "state":
        return str(one["state"]).replace("_", " ")
    if key == "holders":
        return str(len(working(one))) if working(one) else report.NOTHING
    if key not in checks:
        return one_line(one["row"].get(key)) or report.NOTHING
    check = checks[key]
    shown = {
        "driver": one["row"].get("driver_installed"),
        "loaded": one["row"].get("driver_loaded"),
        "next_boot": "yes" if check["ok"] else "no module",
        "verified": "yes" if check["ok"] else "no",
    }.get(key, check["found"])
    return ("" if check["ok"] in (True, None) else "!") + (one_line(shown) or "none")


def working(one: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Processes that hold the GPUs of a host, without the driver's own services."""
    return [holder for holder in one["holders"] if not holder["service"]]


def table(made: Dict[str, Any], width: int) -> str:
    """The table, the reasons of every host that is not in the desired state, who holds GPUs, and the counts."""
    hosts = made["hosts"]
    lines = [[heading for _, heading, _ in COLUMNS]]
    lines += [[cell(hosts[name], key, name) for key, _, _ in COLUMNS] for name in sorted(hosts)]
    sizes = report.widths(lines, width, COLUMNS)
    shown = []
    for number, line in enumerate(lines):
        shown += report.wrap_row(line, sizes)
        if number == 0:
            shown.append(report.GAP.join("-" * size for size in sizes))
    for name in sorted(hosts):
        if hosts[name]["state"] not in GOOD:
            shown += ["", "%s: %s" % (name, hosts[name]["state"].replace("_", " "))]
            for why in hosts[name]["why"]:
                shown += report.paragraph(one_line(why), width)
    shown += format_notes(hosts, width)
    held = [(name, holder) for name in sorted(hosts) for holder in working(hosts[name])]
    if held:
        shown += ["", "GPUs in use:"]
        for name, holder in held[:MOST_HOLDERS]:
            where = " in container %s" % holder["container"] if holder["container"] else ""
            shown += report.paragraph("%s: %s (pid %d)%s" % (name, holder["command"], holder["pid"], where), width)
        if len(held) > MOST_HOLDERS:
            shown.append("  and %d more; gpu_audit_format json or csv has all of them" % (len(held) - MOST_HOLDERS))
    return "\n".join([*shown, "", counts(made)])


def format_notes(hosts: Dict[str, Dict[str, Any]], width: int) -> List[str]:
    """Lines about what is no drift: what waits for a reboot, the warnings of the plan."""
    notes = [
        (name, check["why"])
        for name in sorted(hosts)
        for check in hosts[name]["checks"]
        if check["name"] == "reboot" and check["ok"] is None
    ]
    notes += [(name, warning) for name in sorted(hosts) for warning in hosts[name]["warnings"]]
    if not notes:
        return []
    return ["", "notes:"] + [line for note in report.group_by_text(notes) for line in report.paragraph(note, width)]


def diff(made: Dict[str, Any]) -> str:
    """The differences of each host like a unified diff: found, then desired."""
    lines = []
    for name, one in sorted(made["hosts"].items()):
        if one["state"] in GOOD:
            continue
        lines += ["--- %s: found" % name, "+++ %s: desired" % name]
        for check in one["checks"]:
            if check["ok"] is False:
                lines += ["@@ %s @@ %s" % (check["name"], check["why"])]
                lines += ["-%s" % (check["found"] or "none"), "+%s" % (check["desired"] or "as planned")]
        if one["state"] != "drift":
            lines += ["@@ %s @@" % one["state"].replace("_", " ")] + [" %s" % one_line(why) for why in one["why"]]
    return "".join(line + "\n" for line in lines)


def as_csv(made: Dict[str, Any]) -> str:
    """One line per check and host, and one per process that holds a GPU."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, one in sorted(made["hosts"].items()):
        why = "; ".join(one_line(part) for part in one["why"]) if not one["checks"] else one.get("summary", "")
        ok = one["state"] in GOOD
        writer.writerow([name, one["state"], "host", "", "", yes_or_no(ok), why])
        for check in one["checks"]:
            values = [check["desired"] or "", check["found"] or "", yes_or_no(check["ok"]), check["why"]]
            writer.writerow([name, one["state"], check["name"]] + values)
        for holder in one["holders"]:
            where = "container %s" % holder["container"] if holder["container"] else ""
            values = ["", "%d %s" % (holder["pid"], holder["command"]), "", where]
            writer.writerow([name, one["state"], "holder"] + values)
    return out.getvalue()


def yes_or_no(ok: Any) -> str:
    """yes, no, or nothing for a check without a verdict."""
    return "" if ok is None else "yes" if ok else "no"


def counts(made: Dict[str, Any]) -> str:
    """The last line: the number of hosts by state."""
    return report.counts_text(made["counts"], len(made["hosts"]))


def bad(made: Dict[str, Any]) -> Dict[str, str]:
    """A message per host that is not in the desired state; of drift only the parts, the table has the reasons."""
    return {name: verdict(one) for name, one in made["hosts"].items() if one["state"] not in GOOD}


def verdict(one: Dict[str, Any]) -> str:
    """The state of a host with the parts that drift, or with the reason of any other state."""
    parts = [check["name"] for check in one["checks"] if check["ok"] is False]
    if one["state"] == "drift":
        return "drift in %s; the audit above has the reasons, 'site.yml --check --diff' shows what would be done" % (
            ", ".join(parts)
        )
    return "%s: %s" % (one["state"].replace("_", " "), "; ".join(one_line(why) for why in one["why"]))
