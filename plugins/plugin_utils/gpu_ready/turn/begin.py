# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What comes between the plan of a host and its first step: the lease, a new plan where it is outdated, the refusal."""

from __future__ import annotations

from collections.abc import Callable

from ..execute.model import Answer, StepFailed, fail
from .model import NOTE, LeasedHost
from .phases import refusals, refuse, repair_packages, take_lease
from .table import UNREACHABLE


def begin(host: LeasedHost, plan: Answer, ask: Callable[[], Answer], keep: Callable[[Answer], None]) -> None:
    """Take the lease of a host whose plan is to be carried out. Raises StepFailed, Unreachable.

    A host with nothing to do is left as it is. ``ask`` plans again, ``keep`` gets each plan that takes the place of the
    one before. Under --check nothing is taken.
    """
    if plan.get("unreachable"):
        raise fail(str(plan.get("msg") or "the host does not answer").removeprefix("Task failed: "), UNREACHABLE)
    if plan.get("todo") and not refusals(plan):
        # From now on no other run changes the host. One that did so since the plan has made that outdated, and so has
        # the last step of a killed one.
        try:
            waited, lease = take_lease(host)
        except StepFailed as error:
            raise StepFailed({**error.result, "step": "lease"}) from error
        if lease.get("held_by"):  # only under --check; else the host is refused
            host.show(NOTE, "plan", str(lease["held_by"]))
        before = lease.get("before")
        if before is not None and (waited or before != (plan.get("lease") or "")):
            plan = ask()
            keep(plan)
    refuse(plan, "plan")
    if repair_packages(host, plan):
        plan = ask()
        keep(plan)
        refuse(plan, "plan")
