"""Reports of what modules answered, for every playbook. Pure: answers in, a report out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...module_utils.gpu_ready.base import records, secret_values
from ..gpu_ready.report.bounds import Budget
from ..gpu_ready.report.host_audit import HostAudit
from ..gpu_ready.report.layout import counted, natural_order, one_line
from ..gpu_ready.rollout.fold import RolloutRecord
from ..gpu_ready.rollout.results import good_states
from ..gpu_ready.turn.table import UNREACHABLE
from . import audit_table, run
from .model import (
    DRIFTING,
    NOT_REACHED,
    Advice,
    Check,
    Holder,
    Host,
    Report,
    Rollout,
    RolloutRun,
    Step,
    Turn,
)
from .texts import MOST, advice, flag, line, mapping, number, rows, text

GOOD = ("ready", "no_gpu", "planned")
UNINSTALL_GOOD = ("removed", "nothing_to_remove", "listed")
OUTCOME = " -- "
"""What follows it in the reason of a turn is what was done to the host after the failure (turn/run.py)."""
TASK_FAILED = "Task failed: "
"""What ansible-core 2.19 and newer put before a message: the state says it."""
NOT_REACHED_WHY = "the run did not reach this host"
ANOTHER_FORM = "the host: its answer has another form (%s). Run again"
ROW = (*(key for key, _, _ in run.COLUMNS), "driver_flavour")
"""Facts of a host that its plan answers, and a report keeps."""
Parts = Mapping[str, Mapping[str, Any]]
"""What is known of each host, by part; plugin_utils/registered.py has the parts of each kind."""


def read(kind: str, hosts: Parts, time: str, check_mode: bool) -> Report:
    """Return the report of a run of any kind. A host takes no more of it than a budget allows."""
    readers: dict[str, Callable[[str, Mapping[str, Any]], Host]] = {
        "site": lambda name, given: run_host(name, given, check_mode),
        "audit": audit_host,
        "undrain": undrain_host,
        "uninstall": lambda name, given: uninstall_host(name, given, check_mode),
    }
    reader = readers.get(kind) or (lambda name, given: upgrade_host(kind, name, given))
    found = []
    for name in sorted(hosts, key=natural_order):
        try:
            found.append(reader(line(name), Budget().cut_value(hosts[name])))
        except (TypeError, KeyError, AttributeError, records.RecordError) as error:
            found.append(failed_host(line(name), "failed", ANOTHER_FORM % one_line(error)[:200]))
    return Report(kind, time, check_mode, found)


def failed_host(name: str, state: str, why: object) -> Host:
    """Return a host of which nothing but a reason is known."""
    return Host(name, state, False, advice(line(why)))


# ---- site.yml --------------------------------------------------------------------------------------------------------


def run_host(name: str, given: Mapping[str, Any], check_mode: bool) -> Host:
    """Return one host of site.yml. TypeError, KeyError for an answer of another form."""
    answer, failure = checked_mapping(given.get("verify")), checked_mapping(given.get("failure"))
    verify = checked_mapping(answer.get("verify"))
    row = {**checked_mapping(given.get("row")), **checked_mapping(answer.get("row"))}
    refusals = [advice(one) for one in rows(checked_list(given.get("refusals")))]
    planned = rows(checked_list(given.get("steps")))
    gpu_host = given.get("gpu_host") is not False
    failed_at = line(failure.get("step"))
    message = (one_line(failure.get("message")) or "no reason given") if failure else ""
    state, why = run_state(row, planned, refusals, verify, (failed_at, message), gpu_host, check_mode)
    checks = [verify_check(checked_mapping(one)) for one in checked_list(verify.get("checks"))[:MOST]]
    seconds = {**mapping(given.get("seconds")), **mapping(failure.get("seconds"))}
    steps = list(run_steps(secret_values.mask_values(planned), state, failed_at, seconds))
    waits = any(step.disruption == "reboot" and step.progress != "done" for step in steps)
    verified = bool(verify["ok"]) if "ok" in verify else bool(row.get("verified")) if row else None
    return Host(
        name,
        state,
        state in GOOD,
        advice(why) if state != "refused" else Advice(text(why)),
        {key: line(row[key]) for key in ROW if one_line(row.get(key))},
        steps,
        refusals,
        [advice(one) for one in rows(checked_list(given.get("warnings")))],
        checks,
        failed_at if state == "failed" else "",
        seen={name: verify[name] for name in ("nvml", "container") if verify.get(name)},
        verified=verified if state != "no_gpu" else None,
        drift=False if state == "ready" else True if state == "planned" else None,
        reboot_required=waits if row and state != "no_gpu" else None,
    )


def checked_mapping(value: object) -> dict[str, Any]:
    """Return a mapping, {} for none. Raises TypeError."""
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} in place of a mapping")
    return value or {}


def checked_list(value: object) -> list[Any]:
    """Return a list, [] for none. Raises TypeError."""
    if value is not None and not isinstance(value, (list, tuple)):
        raise TypeError(f"{type(value).__name__} in place of a list")
    return list(value or [])


def run_state(
    row: Mapping[str, Any],
    steps: list[Any],
    refusals: list[Advice],
    verify: Mapping[str, Any],
    failure: tuple[str, str],
    gpu_host: bool,
    check_mode: bool,
) -> tuple[str, str]:
    """Return the state in one word, and why. ``failure``: step and message, both "" for none."""
    step, message = failure
    if message:
        if refusals:
            return "refused", message
        if step == UNREACHABLE:
            return UNREACHABLE, message
        return "failed", f"{step}: {message}" if step else message
    why = one_line(row.get("why"))
    if not row:
        return NOT_REACHED, NOT_REACHED_WHY
    if refusals:
        return "refused", why
    if not gpu_host:
        return "no_gpu", why or "no NVIDIA GPU: left alone"
    if not steps:
        return "ready", "nothing to do"
    number_of_steps = counted(len(steps), "step")
    if verify.get("ok"):
        return "ready", number_of_steps + " done"
    if check_mode:
        return "planned", number_of_steps + " to do"
    if all(isinstance(one, Mapping) and one.get("verify_after") is False for one in steps):
        return "ready", number_of_steps + " done"
    return "unfinished", "the run ended before the verification"


def run_steps(steps: Iterable[Any], state: str, failed: str, seconds: Mapping[Any, Any]) -> Iterator[Step]:
    """Yield the steps with their progress and duration; ``failed``: the id of the step that failed."""
    found = [mapping(step) for step in steps]
    names = [line(step.get("id")) for step in found]
    at = names.index(failed) if failed in names else -1
    for index, (name, step) in enumerate(zip(names, found, strict=True)):
        if state == "ready":
            progress = "done"
        elif state == "planned":
            progress = "planned"
        elif state in ("refused", UNREACHABLE, NOT_REACHED):
            progress = "not_done"
        elif at >= 0:
            progress = "failed" if index == at else "done" if index < at else "not_done"
        else:
            progress = ""
        yield Step(name, text(step.get("why")), line(step.get("disruption")), progress, number(seconds.get(name)))


def verify_check(check: Mapping[str, Any]) -> Check:
    """Return a check of a verification. Raises KeyError."""
    return Check(
        line(check["name"]),
        flag(check["ok"]),
        line(check.get("expected")),
        line(check["found"]),
        text(check.get("cause")),
        text(check.get("remedy")),
    )


# ---- audit.yml -------------------------------------------------------------------------------------------------------


def audit_host(name: str, given: Mapping[str, Any]) -> Host:
    """Return one audited host. Raises RecordError."""
    if given.get("unreachable"):
        reason = one_line(given.get("message")).removeprefix(TASK_FAILED)
        return failed_host(name, UNREACHABLE, reason or "no answer")
    if given.get("failure"):
        return failed_host(name, "failed", given["failure"])
    if not given.get("audit"):
        return failed_host(name, NOT_REACHED, NOT_REACHED_WHY)
    one = records.from_json(HostAudit, given["audit"])
    checks = {check.name: check for check in one.checks[:MOST]}
    holders = [
        Holder(holder.pid, line(holder.command or holder.name), line(holder.container), holder.service)
        for holder in one.holders
    ]
    reasons = [line(why) for why in one.why[:MOST]]
    cells = {key: line(one.row[key]) for key in ROW if one_line(one.row.get(key))}
    work = [holder for holder in holders if not holder.service]
    return Host(
        name,
        line(one.state),
        one.is_good,
        advice("; ".join(reasons) or line(one.summary)),
        cells | audit_table.cells(one, len(work)),
        [Step(line(step), progress="planned") for step in one.steps[:MOST]],
        [advice(reason) for reason in reasons] if one.state != "drift" else [],
        [advice(line(warning)) for warning in one.warnings[:MOST]],
        [
            Check(line(check.name), check.ok, line(check.desired), line(check.found), *advice(line(check.why))[:2])
            for check in checks.values()
        ],
        holders=holders,
        verified=checks["verified"].ok if "verified" in checks else None,
        drift=one.state in DRIFTING if one.state in ("ok", *DRIFTING) else None,
        reboot_required=bool(checks["reboot"].why or checks["reboot"].ok is False) if "reboot" in checks else None,
    )


# ---- upgrade_drivers.yml, rollback_drivers.yml, undrain.yml ----------------------------------------------------------


def upgrade_host(kind: str, name: str, given: Mapping[str, Any]) -> Host:
    """Return one host of a rollout from its ``outcome``; :func:`with_rollout` adds what the record says."""
    outcome = mapping(given.get("outcome"))
    state = line(outcome.get("state")) or NOT_REACHED
    unavailable, way = number(outcome.get("seconds_unavailable")), line(outcome.get("way"))
    cells = {
        "before": line(outcome.get("from")),
        "after": line(outcome.get("to")),
        "way": "" if way == "none" else way,
        "unavailable": "" if unavailable is None else str(unavailable),
    }
    return Host(
        name,
        state,
        state in (*good_states(kind), "excluded"),
        reason_of(outcome.get("reason")),
        {key: value for key, value in cells.items() if value},
        verified=True if state in ("upgraded", "rolled_back") else None,
        drift=False if state == "current" else None,
    )


def reason_of(value: object) -> Advice:
    """Read why a turn ended as it did: what failed, its remedy, and after OUTCOME what was done to the host then."""
    failure, _, outcome = text(value).partition(OUTCOME)
    found = advice(failure)
    message = found.message if not outcome or found.message.endswith((".", "!", "?")) else found.message + "."
    return Advice(f"{message} {outcome}".strip(), found.remedy)


def with_rollout(report: Report, record: RolloutRecord) -> Report:
    """Return the report of a rollout with the turns of all its runs, by the record of the control node."""
    hosts = [
        host._replace(
            turns=[
                Turn(one.run, one.began, one.ended, one.state, list(one.phases))
                for one in record.hosts[host.name].turns
            ]
        )
        if host.name in record.hosts
        else host
        for host in report.hosts
    ]
    targets = sorted({one.target for one in record.hosts.values()} - {""})
    runs = [RolloutRun(one.time, line(one.operator), len(one.hosts)) for one in record.runs]
    return report._replace(hosts=hosts, rollout=Rollout(record.id, record.undoes, targets, runs))


def undrain_host(name: str, given: Mapping[str, Any]) -> Host:
    """Return one host of undrain.yml. ``turn``: the answer of gpu_turn."""
    turn = mapping(given.get("turn"))
    if turn.get("unreachable") or turn.get("failed"):
        reason = line(turn.get("msg")).removeprefix(TASK_FAILED) or "no reason given"
        return failed_host(name, UNREACHABLE if turn.get("unreachable") else "failed", reason)
    if mapping(turn.get("state")).get("phase") != "undrained":
        return failed_host(name, NOT_REACHED, NOT_REACHED_WHY)
    return Host(name, "in_service", True, Advice("gpu-ready keeps it drained nowhere"))


# ---- uninstall.yml ---------------------------------------------------------------------------------------------------


def uninstall_host(name: str, given: Mapping[str, Any], check_mode: bool) -> Host:
    """Return one host of an uninstallation. The parts: ``removal``, the answer of gpu_uninstall, and ``failure``."""
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
        state, why = UNREACHABLE, Advice(line(removal.get("msg")) or "no answer")
    elif failure or removal.get("failed"):
        state, why = "failed", advice(failure or text(removal.get("msg")))
    elif "actions" not in removal:
        state, why = NOT_REACHED, Advice(NOT_REACHED_WHY)
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
    return Host(name, state, state in UNINSTALL_GOOD, why, cells, lists=lists, reboot_required=reboot)
