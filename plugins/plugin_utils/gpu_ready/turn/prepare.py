# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What a rollout does with a host before its turn: the plan, and the downloads. Neither disturbs a running driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ....module_utils.gpu_ready.upgrade import model as journal
from ..execute import steps
from ..execute.copies import copy_files
from ..execute.model import COPY, Answer, Execution, StepFailed
from ..plan.driver.point_release import NEWEST
from . import table
from .model import STEP, Turn, TurnHost
from .phases import REPAIR, ask_plan, drains_of, plan_repaired, release_lease, take_lease

PREPARE = "prestage"
"""The word for this phase of a rollout on the screen."""
VERSION = re.compile(r"(?<=-)[0-9]{2,4}(?:[.][0-9]+){1,2}(?=(?:-[A-Za-z0-9_-]+)?[.]run$)")
IS_VERSION = re.compile(r"[0-9]{2,4}([.][0-9]+){1,2}")


def is_excluded(name: str, groups: Sequence[str], excluded: str | Sequence[str]) -> bool:
    """Return whether gpu_upgrade_exclude names a host or one of its groups: a list, or names separated by commas."""
    names = excluded.split(",") if isinstance(excluded, str) else excluded
    return bool({str(one).strip() for one in names} & {name, *groups})


@contextmanager
def leased(host: TurnHost) -> Iterator[bool]:
    """Have the lease of a host; whether that waited for the last step of a killed run."""
    waited, _ = take_lease(host)
    try:
        yield waited
    finally:
        release_lease(host)


def plan_host(host: TurnHost, backwards: bool) -> Answer:
    """Return the plan of a host, for the upgrade or for its rollback. Raises StepFailed, Unreachable."""
    drains, release = drains_of(Turn(phase=table.PLAN), host), "" if backwards else NEWEST
    answer = ask_plan(host, drains, {}, release)
    upgrade = answer.get("upgrade") or {}
    phase = (upgrade.get("journal") or {}).get("phase") or journal.DONE
    if phase not in journal.CLOSED:
        # A run that was killed leaves its last step running (DKMS, apt), often for minutes: what was seen meanwhile is
        # no basis for a plan. Where another run works, the preparation leaves this host out.
        try:
            with leased(host) as waited:
                if waited:
                    answer = ask_plan(host, drains, {}, release)
        except StepFailed as error:
            if not error.result.get("another_run"):
                raise
    if backwards and answer.get("upgrade") is not None:
        # Without a recorded driver there is no rollback: the host keeps its driver.
        answer = ask_plan(host, drains, answer["upgrade"]["back"] or {"nvidia_driver_source": "none"})
    return answer


def earlier_installer(runfile: str, earlier: str) -> str:
    """Return the path of the installer of an earlier driver, "" without one.

    It is expected beside the operator's own, with its own version in its name. The version is the host's answer: it
    must be one, so that the name still means an installer.
    """
    found = VERSION.search(runfile)
    return runfile.replace(found.group(), earlier) if found and IS_VERSION.fullmatch(earlier) else ""


def prepare_host(host: TurnHost, plan: Answer, backwards: bool) -> None:
    """Download what the turn of a host installs, and what its rollback does. Raises StepFailed, Unreachable."""
    planned, rollout = host.settings.planned, host.settings.rollout

    def begins(step: str) -> None:
        host.show(STEP, PREPARE, step)

    with leased(host):
        if not (planned["opened"] or backwards):
            record = {"driver": planned["installed"], "target": planned.get("to") or "", "rollout": rollout}
            host.run("gpu_ready.nodes.gpu_upgrade_journal", {"phase": journal.STAGED, **record})
        if REPAIR in plan["todo"]:
            overrides = (planned.get("back") or {}) if backwards else {}
            release = "" if backwards else str(planned.get("release") or "")
            plan = plan_repaired(host, drains_of(Turn(phase=table.PLAN), host), overrides, release)
        todo = plan["todo"]
        steps.execute("kernel_headers", todo, host, begins)
        repository = {name: todo[name] for name in ("nvidia_driver.repository",) if name in todo}
        steps.execute("nvidia_driver", repository, host, begins)
        if planned["staged"]:  # a resumed run has everything and needs no network
            return
        begins("downloads")
        runfiles = {"runfile": todo.get("nvidia_driver.runfile"), "installer": planned.get("installer")}
        request: dict[str, Any] = {name: one for name, one in runfiles.items() if one}
        request["transactions"] = steps.package_transactions("nvidia_driver", todo)
        copy_installers(host, planned, request)
        request["target"] = planned.get("to") or ""
        host.run("gpu_ready.nodes.gpu_upgrade_stage", request, COPY)


def copy_installers(host: TurnHost, planned: Mapping[str, Any], request: Mapping[str, Any]) -> None:
    """Copy installers of the control node that the host has not."""
    sources = [str(request[name]["source"]) for name in ("runfile", "installer") if name in request]
    if not any("://" not in source for source in sources):
        return
    own = Execution(host)
    asked = own.run("gpu_upgrade_stage", request, check=True)
    runfile = str(host.setting("nvidia_driver_runfile") or "")
    earlier = earlier_installer(runfile, str(planned.get("from") or ""))
    copy_files([runfile, *([earlier] if earlier else [])], asked["files"], own)
