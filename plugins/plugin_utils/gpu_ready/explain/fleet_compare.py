"""Hosts of a fleet compared with each other, and two plans of the same host."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..report.layout import counted
from .fleet_plans import REFUSED, CapturedHost, HostPlan, outcome

RARE = 4
"""A value is unusual that at most one of so many hosts of a kind has, while more than half have the same other one."""
LEAST = 3
"""Hosts of a kind from which on one can be unlike the others."""


class Group(NamedTuple):
    """Hosts with the same GPUs and system for which a run would do the same. ``plan``: of the first one."""

    names: list[str]
    plan: HostPlan


class PlanChange(NamedTuple):
    """Hosts for which two settings, or two captures, lead to different plans; both in words."""

    names: list[str]
    kind: str
    before: str
    after: str


def kind_of(plan: HostPlan) -> tuple[str, str]:
    return plan.distribution, plan.gpus


def groups(hosts: Sequence[CapturedHost]) -> list[Group]:
    """Return the groups: refused ones first, then the largest."""
    found: dict[tuple[tuple[str, str], str, str], Group] = {}
    for host in hosts:
        key = (kind_of(host.plan), host.plan.installed, outcome(host.plan))
        found.setdefault(key, Group([], host.plan)).names.append(host.name)
    return sorted(found.values(), key=lambda one: (one.plan.state != REFUSED, -len(one.names), one.names))


def outliers(hosts: Sequence[CapturedHost]) -> list[tuple[str, str]]:
    """Return the hosts that are unlike the others with their GPUs and distribution, and in what."""
    kinds: dict[tuple[str, str], list[CapturedHost]] = {}
    for host in hosts:
        kinds.setdefault(kind_of(host.plan), []).append(host)
    found = []
    for members in kinds.values():
        if len(members) < LEAST:
            continue
        counted = {name: Counter(one.plan.features[name] for one in members) for name in members[0].plan.features}
        usual = {name: counts.most_common(1)[0] for name, counts in counted.items()}
        for host in members:
            texts = [
                "%s %s (%d others: %s)" % (name, value, usual[name][1], usual[name][0])
                for name, value in host.plan.features.items()
                if usual[name][1] * 2 > len(members) and 0 < counted[name][value] * RARE <= len(members)
            ]
            if texts:
                found.append((host.name, "; ".join(texts)))
    return sorted(found)


def changes(before: Sequence[CapturedHost], after: Sequence[CapturedHost]) -> list[PlanChange]:
    """Return what differs between two plans of the hosts: equal differences once, the most frequent first."""
    plans = {host.name: host.plan for host in before}
    found: dict[str, PlanChange] = {}
    for host in after:
        old = plans.pop(host.name, None)
        if old is None or outcome(old) != outcome(host.plan):
            kind = "%s, %s" % kind_of(host.plan)
            add(found, host.name, kind, describe(old) if old else "not captured", describe(host.plan))
    for name, old in plans.items():
        add(found, name, "%s, %s" % kind_of(old), describe(old), "not captured")
    return sorted(found.values(), key=lambda one: (-len(one.names), one.names))


def add(found: dict[str, PlanChange], name: str, kind: str, before: str, after: str) -> None:
    found.setdefault(json.dumps([kind, before, after]), PlanChange([], kind, before, after)).names.append(name)


def describe(plan: HostPlan) -> str:
    """Return a plan in a few words: the driver, what is disturbed, the steps."""
    driver = "driver %s; " % plan.desired if plan.desired and not plan.refusals else ""
    disturbed = "%s; " % ", ".join(plan.disruptions) if plan.disruptions else ""
    return driver + disturbed + steps_text(plan)


def steps_text(plan: HostPlan) -> str:
    """Return what a run would do: the refusals' codes, the roles of the steps, or that nothing is to do."""
    if plan.refusals:
        return "refused: %s" % ", ".join(sorted({one["code"] for one in plan.refusals}))
    if plan.steps:
        roles = dict.fromkeys(name.partition(".")[0] for name, _, _ in plan.steps)
        return "%s: %s" % (counted(len(plan.steps), "step"), ", ".join(roles))
    return "no GPU" if plan.state == "no_gpu" else "nothing to do"
