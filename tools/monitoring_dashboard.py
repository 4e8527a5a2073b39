#!/usr/bin/env python3
"""Write deploy/monitoring/gpu-ready-dashboard.json, a dashboard for Grafana, from the panels below.

usage: tools/monitoring_dashboard.py [--check]      --check: write nothing, exit 1 if the file is not current.

Queries use the names of gpu-ready's metrics and of the recording rules, which hide where a value comes from.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATH = ROOT / "deploy/monitoring/gpu-ready-dashboard.json"
SCHEMA = 41
"""Of Grafana 12 (github.com/grafana/grafana, packages/grafana-schema); newer ones migrate it when they load it."""
HOST = 'instance=~"$instance"'
SOURCE = {"type": "prometheus", "uid": "$source"}


class Panel(NamedTuple):
    """``queries``: legend by expression. ``kind``: of Grafana's panels. ``width``: of 24 columns."""

    title: str
    queries: dict[str, str]
    unit: str
    kind: str = "timeseries"
    width: int = 8


GPU = "{{instance}} {{gpu}}"
CONTAINER = "{{instance}} {{engine}} {{namespace}} {{pod}} {{container}}"
ALERTS = 'count(ALERTS{alertstate="firing", alertname=~"(Gpu|Dcgm).*"}) or vector(0)'
XIDS = f"gpu_ready_xid_total{{{HOST}}} and (time() - gpu_ready_xid_last_timestamp_seconds{{{HOST}}} < 3600)"
LINKS = {
    f"gpu_ready_gpu_nvlinks{{{HOST}}}": GPU + " {{state}}",
    f"gpu_ready_gpu_fabric_state{{{HOST}}}": GPU + " fabric",
}
PANELS = [
    Panel("Nodes", {f"count(gpu_ready_verified{{{HOST}}})": ""}, "none", "stat", 4),
    Panel("Not verified", {f"count(gpu_ready_verified{{{HOST}}} == 0) or vector(0)": ""}, "none", "stat", 4),
    Panel("GPUs", {f"count(gpu:memory_used_bytes{{{HOST}}})": ""}, "none", "stat", 4),
    Panel("GPUs missing", {f"sum(gpu_ready:gpus_missing{{{HOST}}}) or vector(0)": ""}, "none", "stat", 4),
    Panel("Alerts", {ALERTS: ""}, "none", "stat", 4),
    Panel("Reboot required", {f"count(gpu_ready_reboot_required{{{HOST}}} == 1) or vector(0)": ""}, "none", "stat", 4),
    Panel("Utilization", {f"gpu:utilization_ratio{{{HOST}}}": GPU}, "percentunit"),
    Panel("Memory used", {f"gpu:memory_used_bytes{{{HOST}}}": GPU}, "bytes"),
    Panel("Power", {f"gpu:power_watts{{{HOST}}}": GPU}, "watt"),
    Panel("Temperature", {f"gpu:temperature_celsius{{{HOST}}}": GPU}, "celsius"),
    Panel("Clock of the multiprocessors", {f"gpu:sm_clock_hertz{{{HOST}}}": GPU}, "hertz"),
    Panel(
        "Reasons for lower clocks",
        {f'sum by (instance, reason) (gpu_ready_gpu_clock_event{{{HOST}, reason!~"idle|application_clocks"}}) > 0':
         "{{instance}} {{reason}}"}, "none",
    ),
    Panel(
        "Memory by container and pod",
        {f"gpu_ready:container_memory_used_bytes:sum{{{HOST}}}": CONTAINER},
        "bytes", width=12,
    ),
    Panel(
        "GPUs used by container and pod",
        {f"gpu_ready:container_gpus_used:sum{{{HOST}}}": CONTAINER},
        "none", width=12,
    ),
    Panel("Xids with a new one in the last hour", {XIDS: "{{instance}} {{pci}} Xid {{xid}}"}, "none"),
    Panel(
        "Uncorrected memory errors in a day",
        {f'increase(gpu_ready_gpu_ecc_errors_total{{{HOST}, type="uncorrected"}}[1d])': GPU}, "none",
    ),
    Panel("NVLinks", LINKS, "none"),
]  # fmt: skip


def variables() -> list[dict[str, Any]]:
    """Return what a user chooses: the data source and hosts."""
    query = "label_values(up, instance)"
    return [
        {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        {
            "name": "instance", "label": "Host", "type": "query", "datasource": SOURCE, "query": query,
            "definition": query, "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]  # fmt: skip


def panels() -> list[dict[str, Any]]:
    """Return the panels from left to right, row by row."""
    found: list[dict[str, Any]] = []
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        height = 4 if panel.kind == "stat" else 8
        if x + panel.width > 24:
            x, y = 0, y + found[-1]["gridPos"]["h"]
        targets = [
            {"refId": chr(64 + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries.items(), 1)
        ]
        found.append(
            {
                "id": number, "type": panel.kind, "title": panel.title, "datasource": SOURCE, "targets": targets,
                "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "options": {},
            }
        )  # fmt: skip
        x += panel.width
    return found


def text() -> str:
    """Return the file."""
    dashboard = {
        "uid": "gpu-ready",
        "title": "GPU nodes",
        "tags": ["gpu"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": variables()},
        "panels": panels(),
    }
    return json.dumps(dashboard, indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Write or compare the file."""
    if arguments == ["--check"]:
        current = PATH.exists() and PATH.read_text(encoding="utf-8") == text()
        if not current:
            print("deploy/monitoring/gpu-ready-dashboard.json is not current: run tools/monitoring_dashboard.py")
        return int(not current)
    PATH.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
