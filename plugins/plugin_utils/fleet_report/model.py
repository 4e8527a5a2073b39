# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What a report shows of a run: one record per host, the same for every playbook. Pure: answers in, records out.

Every text of a record is without control characters; escaping markup is left to each format.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...module_utils.gpu_ready.base.plain_text import plain_text
from ..gpu_ready.report import audit_table
from ..gpu_ready.report import run as run_report
from ..gpu_ready.report.host_audit import HostAudit
from ..gpu_ready.report.layout import natural_order, one_line
from ..gpu_ready.rollout.results import good_states

TITLES = {
    "site": "Provisioning",
    "audit": "Audit",
    "upgrade": "Driver upgrade",
    "rollback": "Driver rollback",
    "uninstall": "Uninstall",
}
"""Each kind of run and its name for people."""
UNINSTALL_GOOD = ("removed", "nothing_to_remove", "listed")
NO_ANSWER = ("unreachable", "not_reached", "")
REMEDY = "Remedy: "
OUTCOME = " -- "
"""As the tasks of roles/gpu_upgrade write it."""
LONGEST = 4000
"""Characters of one text: more than any honest message has. A build log is on the host."""
MOST = 200
"""Steps, checks or messages of one host that are kept: more than any honest host has."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """A message and what to do about it, which may be empty."""

    message: str
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of the plan. ``progress``: done, failed, planned, not_done, or empty if that is unknown."""

    name: str
    why: str
    disruption: str
    progress: str


@dataclasses.dataclass(frozen=True)
class Check:
    """A check of a verification or of an audit; ``ok`` is None where it was not run, or is only information."""

    name: str
    ok: bool | None
    expected: str
    found: str
    why: str
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class Turn:
    """The turn of a host in a rollout, in seconds since 1970; ``ended`` is None if the run lost the host."""

    began: int | None
    ended: int | None
    unavailable: int | None
    before: str
    after: str
    way: str


@dataclasses.dataclass(frozen=True)
class Host:
    """One host. ``cells``: short facts by name. ``lists``: other texts by heading. The flags are None if unknown."""

    name: str
    state: str
    good: bool
    why: Advice
    cells: Mapping[str, str] = dataclasses.field(default_factory=dict)
    steps: Sequence[Step] = ()
    refusals: Sequence[Advice] = ()
    warnings: Sequence[Advice] = ()
    checks: Sequence[Check] = ()
    failed_task: str = ""
    lists: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    turn: Turn | None = None
    verified: bool | None = None
    drift: bool | None = None
    reboot_required: bool | None = None


@dataclasses.dataclass(frozen=True)
class Fleet:
    """A run. ``time``: its end in ISO 8601, in UTC. ``columns``: the cells of the overview, in order.

    ``record``: the content of the JSON file. ``bad``: a message per host that is not in a good state. ``table``: makes
    the table that is shown, of a width and the name of a written file that has everything.
    """

    kind: str
    time: str
    check_mode: bool
    hosts: Sequence[Host]
    columns: Sequence[tuple[str, str]]
    record: Mapping[str, Any]
    bad: Mapping[str, str]
    table: Callable[[int, str], str] | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Number of hosts by state, the most frequent first."""
        found: dict[str, int] = {}
        for host in self.hosts:
            found[host.state] = found.get(host.state, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


# ---- texts -----------------------------------------------------------------------------------------------------------


def text(value: object) -> str:
    """Return a value as text without control characters, not longer than what a person reads."""
    shown = plain_text(str(value)).strip() if value is not None else ""
    return shown if len(shown) <= LONGEST else shown[:LONGEST] + " ..."


def line(value: object) -> str:
    """Return a value as one line."""
    return text(one_line(value))


def advice(value: object) -> Advice:
    """Read a message: a record with a remedy, or a text that ends with one."""
    if isinstance(value, Mapping):
        return Advice(text(value.get("message")), text(value.get("remedy")))
    message, found, remedy = text(value).partition(REMEDY)
    return Advice(message.strip(), remedy.strip()) if found else Advice(text(value))


def reason_of(value: object) -> Advice:
    """Read why a turn ended as it did: what failed, its remedy, and after OUTCOME what was done to the host then."""
    failure, _, outcome = text(value).partition(OUTCOME)
    read = advice(failure)
    return Advice(f"{read.message} {outcome}".strip(), read.remedy)


def mapping(value: object) -> Mapping[Any, Any]:
    """Return the value if it is a mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Any]:
    """Return the entries of a list, or none."""
    return list(value)[:MOST] if isinstance(value, Sequence) and not isinstance(value, str) else []


def flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def number(value: object) -> int | None:
    """Return a time or duration in seconds; texts of digits are what a template of Ansible gives."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    found = str(value)
    return int(found) if found.isascii() and found.isdigit() and len(found) < 12 else None


def bad_hosts(hosts: Iterable[Host]) -> dict[str, str]:
    """Return why each host that is not in a good state is not."""
    return {host.name: f"{host.why.message} {host.why.remedy}".strip() for host in hosts if not host.good}


# ---- site.yml --------------------------------------------------------------------------------------------------------

RUN_COLUMNS = tuple((key, heading) for key, heading, _ in run_report.COLUMNS if key not in ("host", "why"))


def of_run(parts: Mapping[str, Any], time: str, check_mode: bool) -> Fleet:
    """Return the record of site.yml from the same parts as the table."""
    made = run_report.build(run_report.entries(parts), time, check_mode)
    hosts = [run_host(name, one) for name, one in made.hosts.items()]
    record, bad = run_report.to_json(made), run_report.bad(made)
    return Fleet("site", time, check_mode, hosts, RUN_COLUMNS, record, bad, functools.partial(run_report.table, made))


def run_host(name: str, one: run_report.HostReport) -> Host:
    """Return the record of one host of site.yml."""
    verify = mapping(one.verify)
    failure = mapping(one.failure)
    verified = bool(verify["ok"]) if "ok" in verify else bool(one.row.get("verified")) if one.row else None
    steps = list(run_steps(rows(one.steps), one.result, line(failure.get("step"))))
    waiting = any(step.disruption == "reboot" and step.progress != "done" for step in steps)
    good = one.result in run_report.GOOD
    return Host(
        text(name),
        one.result,
        good,
        advice(one.why) if one.result != "refused" else Advice(text(one.why)),
        {key: line(one.row.get(key)) for key, _ in RUN_COLUMNS},
        steps,
        [advice(one) for one in rows(one.refusals)],
        [advice(one) for one in rows(one.warnings)],
        list(verify_checks(rows(verify.get("checks")))),
        line(failure.get("step")),
        verified=verified if one.result != "no_gpu" else None,
        drift=False if one.result == "ready" else True if one.result == "planned" else None,
        reboot_required=waiting if one.row and one.result != "no_gpu" else None,
    )


def run_steps(steps: Iterable[Any], result: str, failed: str) -> Iterator[Step]:
    """Yield the steps with their progress.

    A step ROLE.FILE has tasks named "FILE | ...": the failed task names its step, unless two steps have such a file.
    """
    found = [mapping(step) for step in steps]
    names = [line(step.get("id")) for step in found]
    file = failed.partition(" : ")[2] or failed
    file = file.partition(" | ")[0]
    at = [index for index, name in enumerate(names) if name.rpartition(".")[2] == file]
    for index, (name, step) in enumerate(zip(names, found, strict=True)):
        if result == "ready":
            progress = "done"
        elif result == "planned":
            progress = "planned"
        elif result in ("refused", "unreachable", "not_reached"):
            progress = "not_done"
        elif len(at) == 1:
            progress = "failed" if index == at[0] else "done" if index < at[0] else "not_done"
        else:
            progress = ""
        yield Step(name, text(step.get("why")), line(step.get("disruption")), progress)


def verify_checks(checks: Iterable[Any]) -> Iterator[Check]:
    """Yield the checks of a verification."""
    for check in map(mapping, checks):
        yield Check(
            line(check.get("name")).replace("_", " "),
            flag(check.get("ok")),
            line(check.get("expected")),
            line(check.get("found")),
            text(check.get("cause")),
            text(check.get("remedy")),
        )


# ---- audit.yml -------------------------------------------------------------------------------------------------------

AUDIT_COLUMNS = tuple((key, heading) for key, heading, _ in audit_table.COLUMNS if key not in ("host", "state"))


DRIFTING = ("drift", "upgrading")
"""States of a host that differs from what was requested."""


def of_audit(parts: Mapping[str, Any], time: str, check_mode: bool) -> Fleet:
    """Return the record of an audit from the same parts as the table."""
    made = audit_table.build(run_report.entries(parts), time)
    hosts = [audit_host(name, one) for name, one in made.hosts.items()]
    return Fleet("audit", time, check_mode, hosts, AUDIT_COLUMNS, audit_table.to_json(made), audit_table.bad(made))


def audit_host(name: str, one: HostAudit) -> Host:
    """Return the record of one audited host."""
    checks = {check.name: check for check in one.checks[:MOST]}
    answered = one.state in ("ok", *DRIFTING)
    held = [
        f"{holder.command or holder.name} (pid {holder.pid})"
        + (f" in container {holder.container}" if holder.container else "")
        for holder in one.work[:MOST]
    ]
    lists = {"In use by": [line(entry) for entry in held]} if held else {}
    return Host(
        text(name),
        line(one.state),
        one.is_good,
        advice("; ".join(one_line(why) for why in one.why[:MOST]) or one.summary),
        {key: line(audit_table.cell(one, key, name)) for key, _ in AUDIT_COLUMNS},
        [Step(line(step), "", "", "planned") for step in one.steps[:MOST]],
        warnings=[advice(one_line(warning)) for warning in one.warnings[:MOST]],
        checks=[
            Check(line(check.name).replace("_", " "), check.ok, line(check.desired), line(check.found), text(check.why))
            for check in checks.values()
        ],
        lists=lists,
        verified=checks["verified"].ok if "verified" in checks else None,
        drift=one.state in DRIFTING if answered else None,
        reboot_required=bool(checks["reboot"].why or checks["reboot"].ok is False) if "reboot" in checks else None,
    )


# ---- upgrade_drivers.yml and rollback_drivers.yml --------------------------------------------------------------------

UPGRADE_COLUMNS = (("before", "from"), ("after", "to"), ("way", "way"), ("unavailable", "seconds out of service"))


def of_upgrade(kind: str, parts: Mapping[str, Any], time: str, check_mode: bool) -> Fleet:
    """Return the record of a rollout.

    The parts: ``outcome``, the result of gpu_upgrade_fleet, and the times ``began`` and ``ended``.
    """
    entries = run_report.entries(parts)
    hosts = [upgrade_host(kind, name, entries[name]) for name in sorted(entries, key=natural_order)]
    record = {
        "schema": 1,
        "kind": kind,
        "time": time,
        "check_mode": check_mode,
        "hosts": {
            host.name: {
                "state": host.state,
                "why": host.why.message,
                "remedy": host.why.remedy,
                **turn_record(host.turn),
            }
            for host in hosts
            if host.turn
        },
    }
    return Fleet(kind, time, check_mode, hosts, UPGRADE_COLUMNS, record, bad_hosts(hosts))


def turn_record(turn: Turn) -> dict[str, Any]:
    """Return a turn with the names of gpu_upgrade_fleet's results."""
    return {
        "from": turn.before,
        "to": turn.after,
        "way": turn.way,
        "began": turn.began,
        "ended": turn.ended,
        "seconds_unavailable": turn.unavailable,
    }


def upgrade_host(kind: str, name: str, given: Mapping[str, Any]) -> Host:
    """Return the record of one host of a rollout."""
    outcome = mapping(given.get("outcome"))
    state = line(outcome.get("state")) or "not_reached"
    turn = Turn(
        number(given.get("began")),
        number(given.get("ended")),
        number(outcome.get("seconds_unavailable")),
        line(outcome.get("from")),
        line(outcome.get("to")),
        line(outcome.get("way")),
    )
    good = state in (*good_states(kind), "excluded")
    cells = {
        "before": turn.before,
        "after": turn.after,
        "way": "" if turn.way == "none" else turn.way,
        "unavailable": "" if turn.unavailable is None else str(turn.unavailable),
    }
    return Host(
        text(name),
        state,
        good,
        reason_of(outcome.get("reason")),
        cells,
        turn=turn,
        verified=True if state in ("upgraded", "rolled_back") else None,
        drift=False if state == "current" else None,
    )


# ---- uninstall.yml ---------------------------------------------------------------------------------------------------

UNINSTALL_COLUMNS = (("removed", "removed"), ("kept", "kept"), ("reboot", "reboot"))


def of_uninstall(parts: Mapping[str, Any], time: str, check_mode: bool) -> Fleet:
    """Return the record of an uninstallation. The parts: ``removal``, the answer of gpu_uninstall, and ``failure``."""
    entries = run_report.entries(parts)
    hosts = [uninstall_host(name, entries[name], check_mode) for name in sorted(entries, key=natural_order)]
    record = {
        "schema": 1,
        "kind": "uninstall",
        "time": time,
        "check_mode": check_mode,
        "hosts": {
            host.name: {"state": host.state, "why": host.why.message, "lists": dict(host.lists)} for host in hosts
        },
    }
    return Fleet("uninstall", time, check_mode, hosts, UNINSTALL_COLUMNS, record, bad_hosts(hosts))


def uninstall_host(name: str, given: Mapping[str, Any], check_mode: bool) -> Host:
    """Return the record of one host of an uninstallation."""
    removal, failure = mapping(given.get("removal")), text(given.get("failure"))
    lists = {
        heading: [text(entry) for entry in rows(removal.get(key))]
        for key, heading in (
            ("actions", "Would be removed" if check_mode else "Removed"),
            ("kept", "Kept"),
            ("stops", "Work that this stops"),
        )
        if rows(removal.get(key))
    }
    if removal.get("unreachable"):
        state, why = "unreachable", Advice(line(removal.get("msg")) or "no answer")
    elif failure or removal.get("failed"):
        state, why = "failed", advice(failure or text(removal.get("msg")))
    elif "actions" not in removal:
        state, why = "not_reached", Advice("the run did not reach this host")
    elif not rows(removal.get("actions")):
        state, why = "nothing_to_remove", Advice("nothing of gpu-ready is left")
    else:
        state, why = ("listed", Advice("would be removed")) if check_mode else ("removed", Advice("removed"))
    reboot = flag(removal.get("reboot_required"))
    if reboot:
        why = Advice(f"{why.message}; the driver stays loaded until a reboot")
    cells = {
        "removed": str(len(rows(removal.get("actions")))),
        "kept": str(len(rows(removal.get("kept")))),
        "reboot": "needed" if reboot else "",
    }
    return Host(text(name), state, state in UNINSTALL_GOOD, why, cells, lists=lists, reboot_required=reboot)


def read(kind: str, parts: Mapping[str, Any], time: str, check_mode: bool) -> Fleet:
    """Return the record of a run of any kind."""
    if kind == "site":
        return of_run(parts, time, check_mode)
    if kind == "audit":
        return of_audit(parts, time, check_mode)
    if kind == "uninstall":
        return of_uninstall(parts, time, check_mode)
    return of_upgrade(kind, parts, time, check_mode)
