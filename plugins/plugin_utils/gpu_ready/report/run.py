"""The report of a run: one result per host, as a table and as plain values."""

from collections.abc import Mapping
from typing import NamedTuple

from ....module_utils.gpu_ready.base import records, secret_values
from ....module_utils.gpu_ready.base.plain_text import plain_text
from ..catalog.fleet import mixed_branches
from .bounds import Budget
from .layout import (
    NOTHING,
    WIDTH,
    Message,
    counted,
    counts_text,
    message_lines,
    natural_order,
    note_lines,
    one_line,
    rows_text,
    table_rows,
)

SCHEMA = 1
COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("host", "host", 12),
    ("distribution", "distribution", 9),
    ("gpus", "GPUs", 12),
    ("driver_desired", "desired", 10),
    ("driver_installed", "installed", 10),
    ("driver_loaded", "loaded", 10),
    ("driver_userspace", "userspace", 10),
    ("cuda", "CUDA", 4),
    ("cudnn", "cuDNN", 9),
    ("docker_runtime", "docker", 7),
    ("verified", "verified", 8),
    ("why", "why", 21),
)
"""Key of the row, heading, and the least width that a column keeps when the table is too wide.

A version fits: it has no blank to break it at, and another host's cells must not cut it.
"""

SAME = ("driver_installed", "driver_loaded", "driver_userspace")
"""Columns that are equal on hosts where the driver is in order."""
GOOD = ("ready", "no_gpu", "planned")


UNREACHABLE = "unreachable"
"""The step of a host that does not answer (turn/begin.py)."""


class HostEntry(NamedTuple):
    """What is known of a host: the plan, the verification (answers of its modules), and a failure of the run."""

    row: dict[str, object] = {}
    gpu_host: bool = True
    steps: list[object] = []
    refusals: list[object] = []
    warnings: list[object] = []
    verify: dict[str, object] | None = None
    step: str = ""
    failure: str = ""


class HostReport(NamedTuple):
    """``result``: one word. ``why``: a message. ``row``: the columns of the table. ``verify``: result of gpu_verify."""

    result: str
    why: str
    row: dict[str, object]
    steps: list[object] = []
    refusals: list[object] = []
    warnings: list[object] = []
    verify: dict[str, object] | None = None
    failure: dict[str, object] | None = None


class Report(NamedTuple):
    """``counts``: hosts by result."""

    time: str
    check_mode: bool
    counts: dict[str, int]
    hosts: dict[str, HostReport]


def to_json(report: Report) -> dict[str, object]:
    """Return the content of the JSON file."""
    return dict(records.to_json(report), schema=SCHEMA)


def read_entry(value: object) -> HostEntry:
    """Read the parts of one host, each of which may be absent. An answer of another form is that host's failure."""
    try:
        parts = _mapping(value)
        answer, failure = _mapping(parts.get("verify")), _mapping(parts.get("failure"))
        verify = answer.get("verify")
        entry = HostEntry(
            dict(_mapping(parts.get("row")), **_mapping(answer.get("row"))),
            parts.get("gpu_host") is not False,
            _list(parts.get("steps")),
            _list(parts.get("refusals")),
            _list(parts.get("warnings")),
            _mapping(verify) if verify else None,
            one_line(failure.get("step")),
            (one_line(failure.get("message")) or "no reason given") if failure else "",
        )
        _skipped(entry.verify)
        return entry
    except (TypeError, KeyError, AttributeError) as error:
        return HostEntry(failure="the host: its answer has another form (%s). Run again" % one_line(error)[:200])


def _mapping(value: object) -> dict[str, object]:
    if value is not None and not isinstance(value, dict):
        raise TypeError("%s in place of a mapping" % type(value).__name__)
    return value or {}


def _list(value: object) -> list[object]:
    if value is not None and not isinstance(value, (list, tuple)):
        raise TypeError("%s in place of a list" % type(value).__name__)
    return list(value or [])


def host_report(entry: HostEntry, check_mode: bool = False) -> HostReport:
    result, why = host_result(entry, check_mode)
    return HostReport(
        result,
        why,
        entry.row,
        secret_values.mask_values(entry.steps),
        entry.refusals,
        entry.warnings,
        entry.verify,
        {"step": entry.step, "message": entry.failure} if entry.failure else None,
    )


def host_result(entry: HostEntry, check_mode: bool) -> tuple[str, str]:
    """Return the result in one word, and why."""
    why = one_line(entry.row.get("why"))
    if entry.failure:
        if entry.refusals:
            return "refused", entry.failure
        if entry.step == UNREACHABLE:
            return "unreachable", entry.failure
        return "failed", "%s: %s" % (entry.step, entry.failure) if entry.step else entry.failure
    if not entry.row:
        return "not_reached", "the run did not reach this host"
    if entry.refusals:
        return "refused", why
    if not entry.gpu_host:
        return "no_gpu", why or "no NVIDIA GPU: left alone"
    if not entry.steps:
        return "ready", "nothing to do"
    steps = counted(len(entry.steps), "step")
    if entry.verify and entry.verify.get("ok"):
        return "ready", steps + " done"
    if check_mode:
        return "planned", steps + " to do"
    if all(isinstance(step, Mapping) and step.get("verify_after") is False for step in entry.steps):
        return "ready", steps + " done"
    return "unfinished", "the run ended before the verification"


def build(hosts: Mapping[str, object], time: str, check_mode: bool = False) -> Report:
    """Return the report of a run. ``hosts``: the parts of each host by name, see :class:`HostEntry`."""
    reports = {name: host_report(read_entry(hosts[name]), check_mode) for name in sorted(hosts, key=natural_order)}
    counts: dict[str, int] = {}
    for one in reports.values():
        counts[one.result] = counts.get(one.result, 0) + 1
    return Report(time, check_mode, counts, reports)


def cells(name: str, report: HostReport) -> list[str]:
    """Return cells of a host's table row."""
    row = dict(report.row, host=name)
    row["verified"] = "yes" if row.get("verified") else None
    row["why"] = report.why if report.result in GOOD else "%s, see below" % report.result.replace("_", " ")
    return [one_line(row.get(key)) or NOTHING for key, _, _ in COLUMNS]


def table(report: Report, width: int = WIDTH, file: str = "") -> str:
    """Return the table, the messages of hosts that are not ready, and the counts; every line fits ``width``.

    ``file``: name of a written file that has everything; without one nothing is left out.
    """
    rest = "%s has all of them" % file if file else ""
    rows = [(one.result in GOOD, cells(name, one)) for name, one in report.hosts.items()]
    messages = [Message(name, report.hosts[name].result.replace("_", " "), (why,)) for name, why in bad(report).items()]
    warnings = [(name, warning_text(warning)) for name, one in report.hosts.items() for warning in one.warnings]
    shown = rows_text(table_rows(rows, rest), COLUMNS, width, SAME) + message_lines(messages, width, rest)
    shown += note_lines("warnings:", warnings, width, rest)
    shown += note_lines("not verified:", skipped_checks(report), width, rest)
    mixed = mixed_branches(one_line(one.row.get("driver_desired")) for one in report.hosts.values())
    shown += ["", *([mixed] if mixed else []), counts_text(report.counts, len(report.hosts))]
    return plain_text("\n".join(shown))


def bad(report: Report) -> dict[str, str]:
    """Return why each host that is not in a good state is not, by name."""
    return {name: one.why for name, one in report.hosts.items() if one.result not in GOOD}


def skipped_checks(report: Report) -> list[tuple[str, str]]:
    """Return host and reason of each check that a verification skipped."""
    found = [(name, text) for name, one in report.hosts.items() for text in _skipped(one.verify)]
    return sorted(found, key=lambda pair: pair[1])


def _skipped(verify: dict[str, object] | None) -> list[str]:
    checks = [_mapping(check) for check in _list((verify or {}).get("checks"))]
    return [
        "%s %s" % (one_line(check["name"]).replace("_", " "), one_line(check["found"]))
        for check in checks
        if check["ok"] is None and one_line(check["found"]).startswith("skipped: ")
    ]


def warning_text(warning: object) -> str:
    """Return a warning of the plan as one line."""
    parts = (warning.get("message"), warning.get("remedy")) if isinstance(warning, dict) else (warning,)
    return "; ".join(one_line(part) for part in parts if part)


def entries(parts: Mapping[str, Mapping[str, object] | None]) -> dict[str, dict[str, object]]:
    """Return one entry per host, from mappings by part: ``{"row": {host: ...}, "steps": {host: ...}}``.

    Every report is made of these: they are as large as one host may make them.
    """
    found: dict[str, dict[str, object]] = {}
    for part, values in parts.items():
        for host, value in (values or {}).items():
            found.setdefault(host, {})[part] = value
    return {host: Budget().cut_value(entry) for host, entry in found.items()}
