"""A run in Prometheus' text format, for the textfile collector of node_exporter.

https://prometheus.io/docs/instrumenting/exposition_formats/: HELP and TYPE once per metric; backslash,
quotation mark and line feed are escaped in labels. The collector refuses files with timestamps, so the time of the run
is a value.
"""

import calendar
import time
from collections.abc import Callable

from .model import NO_ANSWER, Host, Report

LABELS = ("distribution", "gpus", "driver_installed", "driver_loaded")
FLAGS: tuple[tuple[str, str, Callable[[Host], bool | None]], ...] = (
    ("gpu_ready_host_verified", "Whether the last verification of the host holds.", lambda host: host.verified),
    ("gpu_ready_host_drift", "Whether the host differs from its desired state.", lambda host: host.drift),
    ("gpu_ready_host_reboot_required", "Whether a driver waits for a reboot.", lambda host: host.reboot_required),
    (
        "gpu_ready_host_failed",
        "Whether the host failed, was refused or did not answer.",
        lambda host: not host.good and not host.drift,
    ),
    ("gpu_ready_host_reached", "Whether the run reached the host.", lambda host: host.state not in NO_ANSWER),
)
"""Metric, HELP and value. A value that the run does not know is left out: absent is not false."""


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def sample(name: str, labels: dict[str, str], value: int) -> str:
    """Return one line."""
    pairs = ",".join(f'{key}="{escaped(one)}"' for key, one in labels.items())
    return f"{name}{{{pairs}}} {value}"


def family(name: str, text: str, samples: list[str]) -> list[str]:
    """Return a metric with its head, or nothing without a sample."""
    return [f"# HELP {name} {text}", f"# TYPE {name} gauge", *samples] if samples else []


def metrics(report: Report) -> str:
    """Return the content of the file."""
    run = {"playbook": report.kind}
    ended = calendar.timegm(time.strptime(report.time, "%Y-%m-%dT%H:%M:%SZ"))
    reached = [host for host in report.hosts if host.state not in NO_ANSWER]
    lines: list[str] = []
    for name, text, value in FLAGS:
        known = [(host, value(host)) for host in report.hosts]
        lines += family(
            name, text, [sample(name, {"host": host.name, **run}, int(one)) for host, one in known if one is not None]
        )
    name = "gpu_ready_host_last_run_timestamp_seconds"
    lines += family(
        name,
        "End of the last run that reached the host.",
        [sample(name, {"host": host.name, **run}, ended) for host in reached],
    )
    name = "gpu_ready_host_info"
    described = [(host, {key: host.cells[key] for key in LABELS if host.cells.get(key)}) for host in reached]
    lines += family(
        name,
        "What the host is; always 1.",
        [sample(name, {"host": host.name, **run, **cells}, 1) for host, cells in described if cells],
    )
    name = "gpu_ready_host_update_waiting"
    newer = [(host, check) for host in reached for check in host.checks if check.name.startswith("newer_")]
    lines += family(
        name,
        "Whether the host's package sources offer a newer version of what it has.",
        [
            sample(name, {"host": host.name, "component": check.name[6:], **run}, int(check.ok is None))
            for host, check in newer
            if check.expected
        ],
    )
    name = "gpu_ready_hosts"
    lines += family(
        name,
        "Hosts of the last run by state.",
        [sample(name, {"state": state, **run}, count) for state, count in report.counts.items()],
    )
    name = "gpu_ready_last_run_timestamp_seconds"
    lines += family(name, "End of the last run.", [sample(name, run, ended)])
    if report.catalog_age_days is not None:
        name = "gpu_ready_catalog_timestamp_seconds"
        dated = calendar.timegm(time.strptime(report.run.catalog, "%Y-%m-%d"))
        lines += family(name, "Date of the catalog that the last run used.", [sample(name, run, dated)])
    return "\n".join(lines) + "\n"
