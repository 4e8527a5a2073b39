# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What the hosts of a run have registered for its report, from the variables of all hosts.

As templates of a task they would be columns of 2,000 hosts, each made by Jinja.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .gpu_ready.execute import steps
from .rollout_outcomes import mapping
from .variables.rollout import read_hosts

PARTS: Mapping[str, Mapping[str, str]] = {
    "site": {
        "row": "gpu_plan_result.row",
        "gpu_host": "gpu_plan_result.plan.gpu_host",
        "steps": "gpu_plan_result.plan.steps",
        "refusals": "gpu_plan_result.plan.refusals",
        "warnings": "gpu_plan_result.plan.warnings",
        "verify": "gpu_verify_result",
        "failure": "gpu_ready_failure",
    },
    "audit": {
        "audit": "gpu_audit_result.audit",
        "unreachable": "gpu_audit_result.unreachable",
        "message": "gpu_audit_result.msg",
        "failure": "gpu_audit_failure",
    },
    "undrain": {"turn": "gpu_drain_turn"},
    "uninstall": {"removal": "gpu_ready_uninstalled"},
}
"""The parts of a host in each kind of report, by where it has registered them. Of a rollout the parts are computed:
rollout_outcomes.py."""
EXECUTED = tuple(f"{part}_{'result' if part == 'gpu_verify' else 'executed'}" for part in steps.PARTS)
"""What the roles of a plan register (tasks/steps.yml)."""


def read_parts(kind: str, hostvars: Mapping[str, Mapping[str, Any]], hosts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the parts of each host, without those that it did not register. Raises FleetError."""
    places = PARTS[kind]
    names = sorted({place.partition(".")[0] for place in places.values()})
    found = {}
    for host, known in read_hosts(hostvars, hosts, names).items():
        parts = {part: value_at(known, place) for part, place in places.items()}
        if parts.get("steps"):
            parts["seconds"] = seconds_of_steps(hostvars, host)
        found[host] = {part: value for part, value in parts.items() if value is not None}
    return found


def rollout_parts(outcomes: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return the parts of each host in the report of a rollout; ``outcomes``: the results as JSON."""
    return {host: {"outcome": outcome} for host, outcome in outcomes.items()}


def value_at(known: Mapping[str, Any], place: str) -> Any:
    """Return the value at a path such as ``gpu_plan_result.plan.steps``, None where there is none."""
    value: Any = known
    for key in place.split("."):
        value = mapping(value).get(key)
    return value


def seconds_of_steps(hostvars: Mapping[str, Mapping[str, Any]], host: str) -> dict[str, Any]:
    """Return how long each step of a host took, also of the part that failed."""
    registered = read_hosts(hostvars, [host], EXECUTED)[host]
    return {
        step: seconds for one in registered.values() for step, seconds in mapping(mapping(one).get("seconds")).items()
    }
