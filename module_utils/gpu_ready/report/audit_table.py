"""The audits of all hosts told at once: a table, differences as text, JSON, CSV. Pure: values in, text out."""

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
"""States that are no reason for an exit status other than 0."""
MOST_HOLDERS = 20
"""Processes that hold a GPU and that the table names; JSON and CSV have all of them."""
COLUMNS: Tuple[Tuple[str, str, int], ...] = (
    ("host", "host", 12),
    ("gpus", "GPUs", 12),
    ("driver_wanted", "wanted", 6),
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
CSV_COLUMNS = ("host", "state", "check", "wanted", "found", "ok", "why")


def entry(given: Dict[str, Any]) -> Dict[str, Any]:
    """Return the audit of one host; ``given``: ``audit``, ``failure`` and ``unreachable``, each may be absent."""
    found = dict(given.get("audit") or {})
    empty: Dict[str, Any] = {"checks": [], "holders": [], "steps": [], "warnings": [], "summary": "", "row": {}}
    if given.get("unreachable"):
        said = one_line(given["unreachable"])
        # ansible-core since 2.19 begins so; the state says it already.
        said = said[len(TASK_FAILED) :] if said.startswith(TASK_FAILED) else said
        return dict(empty, state=UNREACHABLE, why=[said or "no answer"])
    if given.get("failure"):
        return dict(empty, state=FAILED, why=[one_line(given["failure"])])
    if not found:
        return dict(empty, state=NOT_REACHED, why=["the run did not reach this host"])
    return found


def build(hosts: Dict[str, Dict[str, Any]], time: str) -> Dict[str, Any]:
    """Return the whole audit as plain values: what the JSON holds."""
    entries = {name: entry(hosts[name]) for name in sorted(hosts)}
    counts: Dict[str, int] = {}
    for one in entries.values():
        counts[one["state"]] = counts.get(one["state"], 0) + 1
    return {"schema": SCHEMA, "time": time, "counts": counts, "hosts": entries}


def text(made: Dict[str, Any], form: str, width: int, differences: bool = False) -> str:
    """Return the audit in one of the forms "table", "diff", "json" and "csv"; a table may have differences below."""
    if form == "json":
        return json.dumps(made, indent=1, sort_keys=True)
    if form == "csv":
        return as_csv(made)
    if form == "diff":
        return "\n".join(part for part in (diff(made), counts(made)) if part)
    below = diff(made) if differences else ""
    return table(made, width) + ("\n\n" + below.rstrip("\n") if below else "")


def cell(one: Dict[str, Any], key: str, name: str) -> str:
    """Return a cell of the table; drift has a ``!`` before it."""
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
    """Return who holds the GPUs of a host, without the driver's own services."""
    return [holder for holder in one["holders"] if not holder["service"]]


def table(made: Dict[str, Any], width: int) -> str:
    """Return the table, the reasons of every host that is not as wanted, who holds GPUs, and the counts."""
    hosts = made["hosts"]
    lines = [[heading for _, heading, _ in COLUMNS]]
    lines += [[cell(hosts[name], key, name) for key, _, _ in COLUMNS] for name in sorted(hosts)]
    sizes = report.widths(lines, width, COLUMNS)
    shown = []
    for number, line in enumerate(lines):
        shown += report.wrapped(line, sizes)
        if number == 0:
            shown.append(report.GAP.join("-" * size for size in sizes))
    for name in sorted(hosts):
        if hosts[name]["state"] not in GOOD:
            shown += ["", "%s: %s" % (name, hosts[name]["state"].replace("_", " "))]
            for why in hosts[name]["why"]:
                shown += report.paragraph(one_line(why), width)
    shown += told(hosts, width)
    held = [(name, holder) for name in sorted(hosts) for holder in working(hosts[name])]
    if held:
        shown += ["", "GPUs in use:"]
        for name, holder in held[:MOST_HOLDERS]:
            where = " in container %s" % holder["container"] if holder["container"] else ""
            shown += report.paragraph("%s: %s (pid %d)%s" % (name, holder["command"], holder["pid"], where), width)
        if len(held) > MOST_HOLDERS:
            shown.append("  and %d more; gpu_audit_format json or csv has all of them" % (len(held) - MOST_HOLDERS))
    return "\n".join([*shown, "", counts(made)])


def told(hosts: Dict[str, Dict[str, Any]], width: int) -> List[str]:
    """Return what is no drift and worth knowing: what waits for a reboot, the plan's warnings."""
    notes = [
        (name, check["why"])
        for name in sorted(hosts)
        for check in hosts[name]["checks"]
        if check["name"] == "reboot" and check["ok"] is None
    ]
    notes += [(name, warning) for name in sorted(hosts) for warning in hosts[name]["warnings"]]
    if not notes:
        return []
    return ["", "to know:"] + [line for note in report.grouped(notes) for line in report.paragraph(note, width)]


def diff(made: Dict[str, Any]) -> str:
    """Return what differs on each host as a unified diff shows it: what is there, then what is wanted."""
    lines = []
    for name, one in sorted(made["hosts"].items()):
        if one["state"] in GOOD:
            continue
        lines += ["--- %s: found" % name, "+++ %s: wanted" % name]
        for check in one["checks"]:
            if check["ok"] is False:
                lines += ["@@ %s @@ %s" % (check["name"], check["why"])]
                lines += ["-%s" % (check["found"] or "none"), "+%s" % (check["wanted"] or "as planned")]
        if one["state"] != "drift":
            lines += ["@@ %s @@" % one["state"].replace("_", " ")] + [" %s" % one_line(why) for why in one["why"]]
    return "".join(line + "\n" for line in lines)


def as_csv(made: Dict[str, Any]) -> str:
    """Return a line for each check of each host, and one for each process that holds a GPU."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for name, one in sorted(made["hosts"].items()):
        why = "; ".join(one_line(part) for part in one["why"]) if not one["checks"] else one.get("summary", "")
        ok = one["state"] in GOOD
        writer.writerow([name, one["state"], "host", "", "", words(ok), why])
        for check in one["checks"]:
            values = [check["wanted"] or "", check["found"] or "", words(check["ok"]), check["why"]]
            writer.writerow([name, one["state"], check["name"]] + values)
        for holder in one["holders"]:
            where = "container %s" % holder["container"] if holder["container"] else ""
            values = ["", "%d %s" % (holder["pid"], holder["command"]), "", where]
            writer.writerow([name, one["state"], "holder"] + values)
    return out.getvalue()


def words(ok: Any) -> str:
    """Return a judgement as a word: yes, no, or nothing for what is only told."""
    return "" if ok is None else "yes" if ok else "no"


def counts(made: Dict[str, Any]) -> str:
    """Return the last line: how many hosts are in which state."""
    return report.counts_text(made["counts"], len(made["hosts"]))


def bad(made: Dict[str, Any]) -> Dict[str, str]:
    """Return a sentence for each host that is not as wanted; of drift only the parts, the table has the reasons."""
    return {name: verdict(one) for name, one in made["hosts"].items() if one["state"] not in GOOD}


def verdict(one: Dict[str, Any]) -> str:
    """Return the state of a host with the parts that drift, or with the reason of any other state."""
    parts = [check["name"] for check in one["checks"] if check["ok"] is False]
    if one["state"] == "drift":
        return "drift in %s; the audit above has the reasons, 'site.yml --check --diff' what would be done" % (
            ", ".join(parts)
        )
    return "%s: %s" % (one["state"].replace("_", " "), "; ".join(one_line(why) for why in one["why"]))
