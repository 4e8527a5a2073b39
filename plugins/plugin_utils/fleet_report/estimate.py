# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""How long a plan of site.yml takes, by the steps that earlier runs recorded. Pure; nothing is guessed."""

import statistics
from collections.abc import Mapping, Sequence

from ..gpu_ready.report.layout import counted, names_text
from ..gpu_ready.rollout.estimate import duration_text
from .model import Report

RUNS = 10
"""Earlier runs that are read, the newest ones."""
MOST = 3
"""Steps that are named as unknown."""


def recorded_seconds(reports: Sequence[Report]) -> dict[str, list[int]]:
    """Return the seconds that each step took on each host that carried it out."""
    found: dict[str, list[int]] = {}
    for report in reports:
        for host in report.hosts:
            for step in host.steps:
                if step.progress == "done" and step.seconds is not None:
                    found.setdefault(step.name, []).append(step.seconds)
    return found


def plan_seconds(plans: Sequence[Sequence[str]], known: Mapping[str, Sequence[int]], forks: int) -> int:
    """Return the seconds of the plans of hosts: as long as the slowest takes, for every ``forks`` of them."""
    slowest = max(sum(statistics.median(known[step]) for step in steps) for steps in plans)
    return round(slowest * -(-len(plans) // max(forks, 1)))


def estimate_text(report: Report, earlier: Sequence[Report], forks: int) -> str:
    """Return how long the plans of a check take, as a line below the table; "" where nothing is planned."""
    plans = [[step.name for step in host.steps] for host in report.hosts if host.state == "planned"]
    if not plans:
        return ""
    known = recorded_seconds(earlier)
    unknown = sorted({step for steps in plans for step in steps} - set(known))
    if unknown:
        return f"Duration unknown: no run that is recorded here has carried out {names_text(unknown, MOST)}."
    runs = counted(len([one for one in earlier if recorded_seconds([one])]), "run")
    return f"About {duration_text(plan_seconds(plans, known, forks))}, by {runs} recorded here."
