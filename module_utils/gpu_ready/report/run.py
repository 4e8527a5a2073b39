"""The report of a run: one result per host, as a table and as plain values."""

import textwrap
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base import validation

SCHEMA = 1
WIDTH = 150
GAP = "  "
NOTHING = "-"

COLUMNS: Tuple[Tuple[str, str, int], ...] = (
    ("host", "host", 12),
    ("distribution", "distribution", 9),
    ("gpus", "GPUs", 12),
    ("driver_desired", "desired", 7),
    ("driver_installed", "installed", 9),
    ("driver_loaded", "loaded", 6),
    ("driver_userspace", "userspace", 9),
    ("cuda", "CUDA", 4),
    ("cudnn", "cuDNN", 5),
    ("docker_runtime", "docker", 6),
    ("verified", "verified", 8),
    ("why", "why", 24),
)
"""Key of the row, heading, and the least width that a column keeps when the table is too wide."""

GOOD = ("ready", "no_gpu", "planned")


class Outcome(NamedTuple):
    """Result of a host: ``result`` is one word, ``why`` a message, ``row`` the columns of the table."""

    result: str
    why: str
    row: Dict[str, Any]


def outcome(entry: Dict[str, Any], check_mode: bool = False) -> Outcome:
    """Return the result of one host.

    ``entry``: ``row``, ``steps``, ``refusals``, ``gpu_host`` of the plan, ``verify`` (answer of gpu_verify) and
    ``failure`` ({step, message}); each may be absent.
    """
    row = dict(entry.get("row") or {})
    verification = entry.get("verify") or {}
    row.update({key: value for key, value in (verification.get("row") or {}).items()})
    failure = entry.get("failure") or {}
    judged = verification.get("verify") or {}
    if failure:
        message = one_line(failure.get("message")) or "no reason given"
        if entry.get("refusals"):
            return Outcome("refused", message, row)
        step = one_line(failure.get("step"))
        if "cannot be reached" in step:
            return Outcome("unreachable", message, row)
        return Outcome("failed", "%s: %s" % (step, message) if step else message, row)
    if not row:
        return Outcome("not_reached", "the run did not reach this host", row)
    if entry.get("refusals"):
        return Outcome("refused", one_line(row.get("why")), row)
    if entry.get("gpu_host") is False:
        return Outcome("no_gpu", one_line(row.get("why")) or "no NVIDIA GPU: left alone", row)
    steps = entry.get("steps") or []
    if not steps:
        return Outcome("ready", "nothing to do", row)
    if judged.get("ok"):
        return Outcome("ready", "%s done" % steps_text(steps), row)
    if check_mode:
        return Outcome("planned", "%s to do" % steps_text(steps), row)
    return Outcome("unfinished", "the run ended before the verification", row)


def steps_text(steps: List[Any]) -> str:
    """Number of steps in words: "1 step", "3 steps"."""
    return "%d step%s" % (len(steps), "" if len(steps) == 1 else "s")


def one_line(value: Any) -> str:
    """A value as text without line breaks; "" for None."""
    return "" if value is None else " ".join(str(value).split())


def build(hosts: Dict[str, Dict[str, Any]], time: str, check_mode: bool = False) -> Dict[str, Any]:
    """The complete report as plain values: the content of the JSON file."""
    rows: Dict[str, Dict[str, Any]] = {}
    for name in sorted(hosts):
        entry = hosts[name]
        found = outcome(entry, check_mode)
        verification = entry.get("verify") or {}
        rows[name] = {
            "result": found.result,
            "why": found.why,
            "row": found.row,
            "steps": validation.mask_values(entry.get("steps") or []),
            "refusals": entry.get("refusals") or [],
            "warnings": entry.get("warnings") or [],
            "verify": verification.get("verify"),
            "failure": entry.get("failure") or None,
        }
    counts: Dict[str, int] = {}
    for row in rows.values():
        counts[row["result"]] = counts.get(row["result"], 0) + 1
    return {"schema": SCHEMA, "time": time, "check_mode": check_mode, "counts": counts, "hosts": rows}


def cells(name: str, entry: Dict[str, Any]) -> List[str]:
    """Cells of a host's table row."""
    row = dict(entry["row"], host=name)
    row["verified"] = "yes" if row.get("verified") else None
    row["why"] = entry["why"] if entry["result"] in GOOD else "%s, see below" % entry["result"].replace("_", " ")
    return [one_line(row.get(key)) or NOTHING for key, _, _ in COLUMNS]


def widths(
    lines: List[List[str]], width: int = WIDTH, columns: Tuple[Tuple[str, str, int], ...] = COLUMNS
) -> List[int]:
    """Width of each column: that of its text, reduced from the widest column on until the table fits."""
    found = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    available = width - len(GAP) * (len(columns) - 1)
    while sum(found) > available:
        spare = [(found[index] - least, index) for index, (_, _, least) in enumerate(columns) if found[index] > least]
        if not spare:
            break
        found[max(spare)[1]] -= 1
    return found


def table(report: Dict[str, Any], width: int = WIDTH) -> str:
    """The table, the messages of hosts that are not ready, and the counts; every line fits ``width``."""
    hosts = report["hosts"]
    lines = [[heading for _, heading, _ in COLUMNS]] + [cells(name, hosts[name]) for name in sorted(hosts)]
    sizes = widths(lines, width)
    shown = []
    for number, line in enumerate(lines):
        shown += wrap_row(line, sizes)
        if number == 0:
            shown.append(GAP.join("-" * size for size in sizes))
    for name in sorted(hosts):
        if hosts[name]["result"] not in GOOD:
            shown += ["", "%s: %s" % (name, hosts[name]["result"].replace("_", " "))]
            shown += paragraph(hosts[name]["why"], width)
    warnings = group_by_text(
        [(name, warning_text(warning)) for name in sorted(hosts) for warning in hosts[name]["warnings"]]
    )
    if warnings:
        shown += ["", "warnings:"]
        for text in warnings:
            shown += paragraph(text, width)
    skipped = skipped_checks(hosts)
    if skipped:
        shown += ["", "not verified:"]
        for text in skipped:
            shown += paragraph(text, width)
    shown += ["", counts_text(report["counts"], len(hosts))]
    return "\n".join(shown)


def skipped_checks(hosts: Dict[str, Dict[str, Any]]) -> List[str]:
    """Checks that verifications skipped and why, each text once with its hosts."""
    found = [
        (name, "%s %s" % (check["name"].replace("_", " "), one_line(check["found"])))
        for name in sorted(hosts)
        for check in (hosts[name].get("verify") or {}).get("checks") or []
        if check["ok"] is None and one_line(check["found"]).startswith("skipped: ")
    ]
    return group_by_text(sorted(found, key=lambda pair: pair[1]))


def warning_text(warning: Any) -> str:
    """A warning of the plan as one line."""
    parts = (warning.get("message"), warning.get("remedy")) if isinstance(warning, dict) else (warning,)
    return "; ".join(one_line(part) for part in parts if part)


def group_by_text(notes: List[Tuple[str, str]]) -> List[str]:
    """Texts about hosts, each once with its hosts: one line for 200 equal hosts."""
    about: Dict[str, List[str]] = {}
    for name, text in notes:
        about.setdefault(text, []).append(name)
    return ["%s: %s" % (names_text(names), text) for text, names in about.items()]


def names_text(names: List[str], most: int = 5) -> str:
    """Names separated by commas; only the first ones of many."""
    return ", ".join(names[:most]) + (" and %d more" % (len(names) - most) if len(names) > most else "")


def wrap_row(line: List[str], sizes: List[int]) -> List[str]:
    """One row of the table, over as many lines of text as its longest cell needs."""
    columns = [textwrap.wrap(cell, sizes[index], break_on_hyphens=False) or [""] for index, cell in enumerate(line)]
    height = max(len(column) for column in columns)
    return [
        GAP.join(
            (column[level] if level < len(column) else "").ljust(sizes[index]) for index, column in enumerate(columns)
        ).rstrip()
        for level in range(height)
    ]


def paragraph(text: str, width: int) -> List[str]:
    """A message in full, indented and wrapped; long paths and URLs are not broken."""
    return textwrap.wrap(
        text, width, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def counts_text(counts: Dict[str, int], total: int) -> str:
    """The last line: the number of hosts by result."""
    parts = [
        "%d %s" % (counts[key], key.replace("_", " ")) for key in sorted(counts, key=lambda key: (-counts[key], key))
    ]
    return "%d host%s: %s" % (total, "" if total == 1 else "s", ", ".join(parts) or "none")


def entries(parts: Dict[str, Optional[Dict[str, Any]]]) -> Dict[str, Dict[str, Any]]:
    """One entry per host, from mappings by part: ``{"row": {host: ...}, "steps": {host: ...}}``."""
    found: Dict[str, Dict[str, Any]] = {}
    for part, values in parts.items():
        for host, value in (values or {}).items():
            found.setdefault(host, {})[part] = value
    return found
