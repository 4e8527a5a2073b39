#!/usr/bin/env python3
"""Write the alerts for Xids in deploy/monitoring/gpu-ready.rules.yml from catalog/xids.yml.

usage: tools/monitoring_rules.py [--check]      --check: write nothing, exit 1 if the file is not current.

One alert for each class of Xids, with its severity and its remedy. Classes of severity `info` raise none.
"""

import json
import sys
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "catalog/xids.yml"
RULES = ROOT / "deploy/monitoring/gpu-ready.rules.yml"
BEGIN = "  # BEGIN xids: generated from catalog/xids.yml by tools/monitoring_rules.py\n"
END = "  # END xids\n"
SEVERITIES = {"critical": "critical", "error": "warning", "warning": "info"}
"""Severity of the alert by that of the catalog."""
AGE = [
    "      # By its time, not by increase() of its count: a count begins with the first Xid after a boot.",
    "      - record: gpu_ready:xid_age:seconds",
    "        expr: time() - gpu_ready_xid_last_timestamp_seconds",
]
RECENT = 3600
"""Seconds for which an alert lasts after the last Xid of its number; a later one raises it again."""


def alert(group: str, data: dict[str, Any], numbers: list[int]) -> list[str]:
    """Return the lines of one alert."""
    expression = f"gpu_ready:xid_age:seconds{{xid=~{json.dumps('|'.join(map(str, numbers)))}}} < {RECENT}"
    summary = "{{ $labels.instance }}: Xid {{ $labels.xid }} of the GPU at {{ $labels.pci }}"
    return [
        "      - alert: GpuXid",
        f"        expr: '{expression}'",
        f"        labels: {{severity: {SEVERITIES[data['severity']]}, class: {group}}}",
        "        annotations:",
        f"          summary: {json.dumps(summary)}",
        f"          remedy: {json.dumps(data['remedy'])}",
    ]


def section() -> str:
    """Return the generated part of the file."""
    catalog = yaml_load(CATALOG.read_text(encoding="utf-8"))
    lines = ["  # yamllint disable rule:line-length", "  - name: gpu-ready-xids", "    rules:", *AGE]
    for group, data in catalog["classes"].items():
        numbers = [number for number, (of, _name) in catalog["xids"].items() if of == group]
        if data["severity"] in SEVERITIES and numbers:
            lines += alert(group, data, numbers)
    return "\n".join([*lines, "  # yamllint enable rule:line-length"]) + "\n"


def main(arguments: list[str]) -> int:
    """Write or compare the file."""
    before = RULES.read_text(encoding="utf-8")
    head, rest = before.split(BEGIN)
    after = head + BEGIN + section() + END + rest.split(END)[1]
    if arguments == ["--check"]:
        if after != before:
            print("deploy/monitoring/gpu-ready.rules.yml is not current: run tools/monitoring_rules.py")
        return int(after != before)
    RULES.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
