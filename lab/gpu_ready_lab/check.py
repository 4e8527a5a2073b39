"""Compares a run's report with what a fleet file expects."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .fleet import Fleet, Host
from .say import LabError


def main(fleet: Fleet, report: Path) -> int:
    """Print the result of each host; 0 if all are as expected, else 1."""
    try:
        rows = json.loads(report.read_text())["hosts"]
    except (OSError, ValueError, KeyError) as error:
        raise LabError(f"{report}: no readable report ({error}). Run a playbook first, which writes it") from None
    bad = 0
    for host in fleet.hosts:
        found = differences(host, rows.get(host.name))
        bad += bool(found)
        for line in found:
            print(f"{host.name}: {line}")
    judged = sum(1 for host in fleet.hosts if host.expect)
    if bad:
        print(f"{bad} of {judged} hosts are not as {fleet.name} expects")
        return 1
    print(f"all {judged} hosts are as expected")
    return 0


def differences(host: Host, entry: Mapping[str, Any] | None) -> list[str]:
    """What differs from the expectations of a host, one line per difference."""
    if not host.expect:
        return []
    if entry is None:
        return [f"expected {host.expect['result']}, and the report does not contain the host"]
    row: Mapping[str, Any] = entry.get("cells") or {}
    got: dict[str, Any] = {
        "result": entry.get("state"),
        "gpus": row.get("gpus"),
        "driver_branch": branch(row.get("driver_loaded")),
        "flavour": row.get("driver_flavour"),
        "cuda": sorted(filter(None, re.split(r",\s*", str(row.get("cuda") or "")))),
        "docker_runtime": row.get("docker_runtime"),
        "refusal_codes": sorted(refusal["code"] for refusal in entry.get("refusals") or []),
    }
    lines = []
    for key, value in host.expect.items():
        expected = sorted(map(str, value)) if isinstance(value, list) else value
        if key in got and got[key] != expected:
            lines.append(f"{key}: expected {expected!r}, found {got[key]!r}")
    if lines and entry.get("why"):
        lines.append(f"the report says: {entry['why']['message']}")
    return lines


def branch(version: object) -> int | None:
    """Return the branch of a driver version, None for none."""
    match = re.match(r"(\d+)\.", str(version))
    return int(match[1]) if match else None
