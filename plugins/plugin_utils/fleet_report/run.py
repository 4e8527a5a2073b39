"""The report of a run as a table."""

from ...module_utils.gpu_ready.base.plain_text import plain_text
from ..gpu_ready.catalog.fleet import mixed_branches
from ..gpu_ready.report.layout import (
    NOTHING,
    WIDTH,
    Message,
    counts_text,
    message_lines,
    note_lines,
    one_line,
    rows_text,
    table_rows,
)
from .model import Advice, Host, Report
from .texts import advice_text

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


def cells(host: Host) -> list[str]:
    """Return cells of a host's table row."""
    row = dict(host.cells, host=host.name)
    row["verified"] = "yes" if row.get("verified") else ""
    row["why"] = host.why.message if host.good else "{}, see below".format(host.state.replace("_", " "))
    return [one_line(row.get(key)) or NOTHING for key, _, _ in COLUMNS]


def table(report: Report, width: int = WIDTH, file: str = "") -> str:
    """Return the table, the messages of hosts that are not ready, and the counts; every line fits ``width``.

    ``file``: name of a written file that has everything; without one nothing is left out.
    """
    rest = f"{file} has all of them" if file else ""
    rows = [(host.good, cells(host)) for host in report.hosts]
    messages = [
        Message(host.name, host.state.replace("_", " "), (advice_text(host.why),))
        for host in report.hosts
        if not host.good
    ]
    warnings = [(host.name, warning_text(one)) for host in report.hosts for one in host.warnings]
    shown = rows_text(table_rows(rows, rest), COLUMNS, width, SAME) + message_lines(messages, width, rest)
    shown += note_lines("warnings:", warnings, width, rest)
    shown += note_lines("not verified:", skipped_checks(report), width, rest)
    mixed = mixed_branches(host.cells.get("driver_desired") for host in report.hosts)
    shown += ["", *([mixed] if mixed else []), counts_text(report.counts, len(report.hosts))]
    shown += [report.catalog_text] if report.catalog_text else []
    return plain_text("\n".join(shown))


def skipped_checks(report: Report) -> list[tuple[str, str]]:
    """Return host and reason of each check that a verification skipped."""
    found = [
        (host.name, "{} {}".format(check.name.replace("_", " "), check.found))
        for host in report.hosts
        for check in host.checks
        if check.ok is None and check.found.startswith("skipped: ")
    ]
    return sorted(found, key=lambda pair: pair[1])


def warning_text(warning: Advice) -> str:
    """Return a warning of the plan as one line."""
    return "; ".join(one_line(part) for part in (warning.message, warning.remedy) if part)
