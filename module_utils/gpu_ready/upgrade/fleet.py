"""A rollout over many hosts: who takes part, in which order and batches, and the tables. Runs on the control node.

What hosts answered is read by :func:`read_host` only: an answer of another form refuses that host.
"""

import re
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..base.errors import GpuReadyError
from ..report import run as report

CURRENT, DUE, REFUSED = "current", "due", "refused"
BACK, DONE = "back", "done"
PLAN_COLUMNS = ("host", "from", "to", "way", "drain", "what")
RESULT_COLUMNS = ("host", "result", "from", "to", "way", "downtime s", "why")
WIDTH = 150
LONGEST_CELL = 80
"""Characters of a reason in a host's row; a longer one is printed below the table."""
NO_RECORD = "no rollback: no upgrade changed this host"
LEFT_OUT = "no rollback: the last rollout did not change this host"
RETRY = "retry after a rollback"
RESUME = "resume an interrupted upgrade"
RUN_AGAIN = "Check that it is up, then run the same command again"


class FleetError(GpuReadyError):
    """A variable of a rollout has a wrong value."""


class HostUpgrade(NamedTuple):
    """What an upgrade would do with a host. ``state``: current, due, refused, or "" for a host without an answer.

    ``opened``: its last upgrade is unfinished. ``phase``, ``reached`` and ``rollout`` are those of its journal;
    ``rollback``: the journal names a driver to roll back to. ``failure``: why there is no answer.
    """

    state: str = ""
    opened: bool = False
    from_: Optional[str] = None
    to: Optional[str] = None
    way: Optional[str] = None
    why: str = ""
    refusal: str = ""
    installed: Optional[str] = None
    rollback: bool = False
    phase: str = ""
    reached: str = ""
    rollout: int = 0
    failure: str = ""

    @property
    def is_finished(self) -> bool:
        """An earlier run of this rollout upgraded the host."""
        return self.phase == DONE and (self.reached + ".").startswith("%s." % self.to)


class RolloutRequest(NamedTuple):
    """The operator's variables. ``batches``: numbers or shares. ``backwards``: roll back the last rollout."""

    groups: Mapping[str, List[str]] = {}
    canaries: Sequence[str] = ()
    first: Sequence[str] = ()
    exclude: Sequence[str] = ()
    batches: Sequence[object] = ("100%",)
    backwards: bool = False


class Rollout(NamedTuple):
    """``due``: hosts to upgrade, in order. ``serial``: sizes of their batches. ``done``: current ones of this rollout.

    ``kept`` and ``refused``: reasons by host; kept ones are current, because a rollback does not concern them.
    """

    due: List[str]
    serial: List[int]
    current: List[str]
    kept: Dict[str, str]
    done: List[str]
    refused: Dict[str, str]
    excluded: List[str]


class Lineup(NamedTuple):
    """Hosts in order, sizes of the batches, and the names among them that stand for the control node."""

    roll: List[str]
    sizes: List[int]
    watch: List[str]


class HostResult(NamedTuple):
    """``state``: upgraded, rolled_back, current, failed, left_out, excluded or not_reached."""

    host: str
    state: str
    from_: Optional[str] = None
    to: Optional[str] = None
    way: str = "none"
    seconds_unavailable: Optional[int] = None
    reason: str = ""


# ---- what hosts answered ---------------------------------------------------------------------------------------------


def read_host(answer: object, failure: object = None) -> HostUpgrade:
    """Read the value ``upgrade`` of gpu_node_plan; ``failure``: why a host has none."""
    if answer is None or answer == {}:
        return HostUpgrade(failure=report.one_line(failure))
    try:
        return _parse_host(answer)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        text = "%s: %s" % (type(error).__name__, error)
        return HostUpgrade(failure="the host: its plan has another form (%s). Run again" % report.one_line(text)[:200])


def _parse_host(answer: object) -> HostUpgrade:
    found = _mapping(answer)
    journal, installed = _mapping(found.get("journal")), _mapping(found.get("installed"))
    state = str(found["state"])
    if state not in (CURRENT, DUE, REFUSED):
        raise ValueError("state %s" % state[:40])
    return HostUpgrade(
        state,
        found.get("opened") is True,
        _text(found.get("from")),
        _text(found.get("to")),
        _text(found.get("way")),
        _text(found.get("why")) or "",
        _text(found.get("refusal")) or "",
        _text(installed.get("version")),
        bool(found.get("back")),
        _text(journal.get("phase")) or "",
        _text(journal.get("to")) or "",
        int(str(journal.get("rollout") or 0)),  # journals of the first releases have none
    )


def _mapping(value: object) -> Dict[str, object]:
    if value is not None and not isinstance(value, dict):
        raise TypeError("%s in place of a mapping" % type(value).__name__)
    return value or {}


def _text(value: object) -> Optional[str]:
    return None if value is None else report.one_line(value)


# ---- order and batches -----------------------------------------------------------------------------------------------


def resolve_hosts(
    names: Sequence[str], groups: Mapping[str, List[str]], hosts: Sequence[str], variable: str
) -> List[str]:
    """Hosts of the play for names of hosts and groups; FleetError for an unknown name."""
    found: List[str] = []
    for name in names:
        if name not in hosts and name not in groups and name not in groups.get("all", []):
            raise FleetError("%s: %s is neither a host nor a group of the inventory. Correct it." % (variable, name))
        found += [one for one in groups.get(name, [name]) if one in hosts and one not in found]
    return found


def batch_size(value: object, total: int) -> int:
    """Hosts of one batch: a number, or a share of the whole rollout such as ``10%``, at least one."""
    match = re.match(r"(\d+)(%?)$", str(value).strip())
    if not match or int(match.group(1)) < 1:
        raise FleetError(
            "gpu_upgrade_batches: %r is no size of a batch. Give numbers such as 5 or shares such as 10%%." % (value,)
        )
    number = int(match.group(1))
    return max(total * number // 100, 1) if match.group(2) else number


def batch_sizes(count: int, canaries: int, done: int, sizes: Sequence[object], passed: int = 0) -> List[int]:
    """Sizes of the batches for the ``count`` hosts that are left, canaries first. The last size repeats.

    Shares are of the whole rollout. ``done``: hosts of an earlier run of this rollout, whose batches are over. Of them
    ``passed`` were canaries. The ``canaries`` that are left are a batch of their own, whatever was done after them.
    """
    total, done = count + done, done - passed
    listed = [batch_size(value, total) for value in sizes]
    if not listed:
        raise FleetError("gpu_upgrade_batches: it is empty. Give at least one size, such as 1 or 100%.")
    planned: List[int] = []
    while sum(planned) < total - canaries - passed:
        left = total - canaries - passed - sum(planned)
        planned.append(min(listed.pop(0) if len(listed) > 1 else listed[0], left))
    found = [canaries] if canaries else []
    for number in planned:
        over = min(number, done)
        done -= over
        if number > over:
            found.append(number - over)
    return found


def build_lineup(due: List[str], sizes: List[int], limited: bool) -> Lineup:
    """Add one name for the control node to each batch.

    Ansible ends a run, without its report, if all hosts of a batch are lost. The control node never is. With a --limit
    (``limited``) such names would not be part of the play, and all batches would shift.
    """
    if limited:
        return Lineup(due, sizes, [])
    names: List[str] = []
    watch: List[str] = []
    for number, count in enumerate(sizes, 1):
        begin = sum(sizes[: number - 1])
        watch.append("gpu_upgrade_batch_%d" % number)
        names += due[begin : begin + count] + watch[-1:]
    return Lineup(names, [count + 1 for count in sizes], watch)


def plan_rollout(hosts: List[str], upgrades: Mapping[str, HostUpgrade], request: RolloutRequest) -> Rollout:
    """Who takes part, in which order. FleetError for a wrong variable."""
    canaries, first, excluded = (
        resolve_hosts(names, request.groups, hosts, "gpu_upgrade_" + variable)
        for names, variable in (
            (request.canaries, "canaries"), (request.first, "first"), (request.exclude, "exclude"),
        )
    )  # fmt: skip
    part = [name for name in hosts if name not in excluded]
    kept = hosts_without_rollback(upgrades, part) if request.backwards else {}
    states = {name: CURRENT if name in kept else upgrades[name].state for name in part}
    refused = {name: refusal_text(upgrades[name]) for name in part if states[name] not in (CURRENT, DUE)}
    ordered = canaries + first + hosts
    due = [name for name in sorted(set(part), key=ordered.index) if states[name] == DUE]
    current = [name for name in part if states[name] == CURRENT]
    done = [name for name in current if name not in kept and upgrades[name].is_finished]
    waiting = len([name for name in canaries if name in due])
    passed = len([name for name in canaries if name in done])
    if canaries and due and not waiting + passed:
        # None of the canaries can take part: one other host is the canary, so that not all are upgraded at once.
        waiting, passed = (0, 1) if done else (1, 0)
    serial = batch_sizes(len(due), waiting, len(done), request.batches, passed)
    return Rollout(due, serial, current, kept, done, refused, excluded)


def hosts_without_rollback(upgrades: Mapping[str, HostUpgrade], part: List[str]) -> Dict[str, str]:
    """Why hosts keep their driver in a rollback: the last rollout did not change them.

    Such a host may have the record of an earlier rollout. A host with an unfinished upgrade always takes part.
    """
    newest = newest_rollout(upgrades)
    found = {}
    for name in part:
        upgrade = upgrades[name]
        if upgrade.state and not upgrade.opened and not upgrade.rollback:
            found[name] = NO_RECORD
        elif upgrade.state and not upgrade.opened and upgrade.rollout < newest:
            found[name] = LEFT_OUT
    return found


def newest_rollout(upgrades: Mapping[str, HostUpgrade]) -> int:
    return max([upgrade.rollout for upgrade in upgrades.values()] or [0])


def rollout_id(upgrades: Mapping[str, HostUpgrade], now: int) -> int:
    """The id of this rollout; a new one is its begin in seconds since 1970, ``now``.

    A run resumes the newest rollout that these hosts know if that led to the same driver on a host that it finished.
    """
    newest = newest_rollout(upgrades)
    if newest and newest in [upgrade.rollout for upgrade in upgrades.values() if upgrade.is_finished]:
        return newest
    return max(now, newest + 1)


def refusal_text(upgrade: HostUpgrade) -> str:
    return upgrade.refusal or upgrade.failure or "no facts were collected"


# ---- tables ----------------------------------------------------------------------------------------------------------


def plan_table(
    roll: Rollout, upgrades: Mapping[str, HostUpgrade], drains: Mapping[str, object], width: int = WIDTH
) -> str:
    """What would happen on each host, and the refusals; ``drains``: gpu_upgrade_drain by host."""
    lines: List[List[Optional[str]]] = []
    for name in roll.due + roll.current + roll.excluded + sorted(roll.refused):
        upgrade = upgrades[name]
        if name in roll.due:
            what = resume_text(upgrade) if upgrade.opened else upgrade.why
            cells = [name, upgrade.from_, upgrade.to, upgrade.way, drain_text(drains.get(name)), what]
        else:
            what = roll.kept.get(name) or (
                "nothing to do" if name in roll.current else "excluded by gpu_upgrade_exclude"
            )
            what = "refused, see below" if name in roll.refused else what
            cells = [name, upgrade.installed, None, None, None, what]
        lines.append(cells)
    shown = format_columns(PLAN_COLUMNS, lines, width)
    for name in sorted(roll.refused):
        shown += ["", "%s:" % name] + report.paragraph(roll.refused[name], width)
    counts = ["%d to do" % len(roll.due), "%d current" % (len(roll.current) - len(roll.kept))]
    counts += ["%d without rollback" % len(roll.kept)] if roll.kept else []
    counts += ["%d refused" % len(roll.refused), "%d excluded" % len(roll.excluded)]
    sizes = "; batches of " + ", ".join(str(one) for one in roll.serial) if roll.serial else ""
    return "\n".join(shown + ["", ", ".join(counts) + sizes])


def drain_text(value: object) -> str:
    """gpu_upgrade_drain, one hook or a list of them, as a cell."""
    return " ".join(str(one) for one in value) if isinstance(value, list) else str(value or "none")


def resume_text(upgrade: HostUpgrade) -> str:
    """What happens to a host whose upgrade an earlier run began."""
    return RETRY if upgrade.phase == BACK else RESUME


def read_result(host: str, value: Mapping[str, object]) -> HostResult:
    """The result that the playbook set for a host; absent parts have their defaults."""
    seconds = value.get("seconds_unavailable")
    return HostResult(
        host,
        str(value.get("state") or "failed"),
        _text(value.get("from")),
        _text(value.get("to")),
        str(value.get("way") or "none"),
        int(str(seconds)) if str(seconds).isdigit() else None,
        str(value.get("reason") or ""),
    )


def result_to_json(result: HostResult) -> Dict[str, object]:
    return {name.rstrip("_"): value for name, value in result._asdict().items()}


def host_results(
    hosts: List[str],
    ended: Mapping[str, Mapping[str, object]],
    began: Sequence[str],
    upgrades: Mapping[str, HostUpgrade],
    lost: Sequence[str],
) -> Dict[str, HostResult]:
    """One result per host. ``ended``: set by the playbook. ``began``: their upgrade began. ``lost``: unreachable."""
    found = {}
    for name in hosts:
        upgrade = upgrades.get(name) or HostUpgrade()
        result = HostResult(
            name, "not_reached", upgrade.from_, upgrade.to, reason="the rollout did not reach this host"
        )
        if ended.get(name):
            given = read_result(name, ended[name])
            result = given._replace(from_=given.from_ or result.from_, to=given.to or result.to)
        elif name in began:
            reason = "unreachable during its upgrade. " + RUN_AGAIN
            result = result._replace(state="failed", way=upgrade.way or "none", reason=reason)
        elif name in lost:
            result = result._replace(state="left_out", reason="unreachable during its preparation. " + RUN_AGAIN)
        found[name] = result
    return found


def failed_hosts(results: Mapping[str, HostResult], good: Sequence[str], excluded: Sequence[str]) -> List[str]:
    """Hosts that are not in the desired state, except those that the operator excluded."""
    return [name for name, result in results.items() if result.state not in good and name not in excluded]


def stop_message(failed: int, left: int, budget: int) -> str:
    """Why the rollout stopped, and what to do, in two lines."""
    cause = "The rollout stopped: %d host%s failed and gpu_upgrade_max_failures is %d; %d %s unchanged." % (
        failed, "" if failed == 1 else "s", budget, left, "is" if left == 1 else "are",
    )  # fmt: skip
    remedy = "Repair the cause, or exclude the failed hosts (gpu_upgrade_exclude), then run the same command again."
    return cause + "\n" + remedy


def result_table(results: Mapping[str, HostResult], good: Sequence[str], budget: int, width: int = WIDTH) -> str:
    """The result of each host, and why the rollout stopped if it did."""
    failed = [one for one in results.values() if one.state not in (*good, "left_out", "excluded", "not_reached")]
    below = [one for one in results.values() if one in failed or len(one.reason) > LONGEST_CELL]
    lines = [
        [one.host, one.state.replace("_", " "), one.from_, one.to, one.way, one.seconds_unavailable,
         "see below" if one in below else one.reason]
        for one in results.values()
    ]  # fmt: skip
    shown = format_columns(RESULT_COLUMNS, lines, width)
    for one in below:
        shown += ["", "%s: %s" % (one.host, one.state.replace("_", " "))] + report.paragraph(one.reason, width)
    left = [one for one in results.values() if one.state == "not_reached"]
    if left and len(failed) > budget:
        shown += ["", stop_message(len(failed), len(left), budget)]
    counts: Dict[str, int] = {}
    for one in results.values():
        counts[one.state] = counts.get(one.state, 0) + 1
    return "\n".join(shown + ["", report.counts_text(counts, len(results))])


def format_columns(headings: Tuple[str, ...], lines: Sequence[Sequence[object]], width: int) -> List[str]:
    """Rows as columns; a last column that exceeds ``width`` is cut."""
    texts = [[report.one_line(cell) or report.NOTHING for cell in line] for line in [headings, *lines]]
    sizes = [max(len(line[index]) for line in texts) for index in range(len(headings))]
    shown = [report.GAP.join(cell.ljust(sizes[index]) for index, cell in enumerate(line)).rstrip() for line in texts]
    rule = report.GAP.join("-" * one for one in sizes)
    return [line if len(line) <= width else line[: width - 3] + "..." for line in [shown[0], rule] + shown[1:]]
