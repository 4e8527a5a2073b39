"""A rollout over many hosts: who takes part, in which order and batches, and the tables. Runs on the control node.

What hosts answered is read by :func:`read_host` only: an answer of another form refuses that host.
"""

import json
import re
import statistics
import time
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..base.errors import GpuReadyError
from ..report import layout
from .model import PHASES

CURRENT, DUE, REFUSED = "current", "due", "refused"
BACK, DONE = "back", "done"
PLAN_COLUMNS = ("host", "from", "to", "way", "drain", "what")
RESULT_COLUMNS = ("host", "result", "from", "to", "way", "downtime s", "why")
REST = "--limit shows fewer hosts with all of it"
ANSWERED = ("result", "from", "to", "way")
"""Columns with what a host answers, before the last one."""
LONGEST_ANSWER = 20
"""Characters of a cell in these columns: more than a version of a driver has."""
WIDTH = 150
LONGEST_VALUE = 60
"""Characters of a wrong value that are shown."""
LONGEST_CELL = 80
"""Characters of a reason in a host's row; a longer one is printed below the table."""
DAY = 24 * 3600
"""Seconds by which the clock of another control node may be ahead."""
NO_RECORD = "no rollback: no upgrade changed this host"
STILL_DRAINED = "nothing to do, but an earlier run left it drained: run playbooks/undrain.yml for it"
LEFT_OUT = "no rollback: another rollout changed this host last"
OTHER_ROLLOUT = (
    "An upgrade of this host did not come to its end, and it belongs to %s. A rollback undoes one rollout. Remedy: "
    "roll this host back alone (--limit), or leave it out with gpu_upgrade_exclude."
)
DAMAGED = (
    "/var/lib/gpu-ready/upgrade.json: %s. Remedy: check the host's driver, move the file away, then run again; or "
    "leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
OTHER_FORM = (
    "The answer of the host has another form: %s. Remedy: check the host's Python and its clock, then run again."
)
RETRY = "retry after a rollback"
RESUME = "resume an interrupted upgrade"
RUN_AGAIN = "Check that it is up, then run the same command again"


class FleetError(GpuReadyError):
    """A variable of a rollout has a wrong value."""


class AnswerError(GpuReadyError):
    """A host answered what gpu_node_plan does not."""


class HostUpgrade(NamedTuple):
    """What an upgrade would do with a host. ``state``: current, due, refused, or "" for a host without an answer.

    ``opened``: its last upgrade is unfinished. ``phase``, ``reached`` and ``rollout`` are those of its journal;
    ``rollback``: the journal names a driver to roll back to.
    ``drained``: an earlier run left it so. ``failure``: why there is no answer.
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
    drained: bool = False
    phase: str = ""
    reached: str = ""
    rollout: int = 0
    failure: str = ""

    @property
    def is_finished(self) -> bool:
        """An earlier run of this rollout upgraded the host."""
        return self.phase == DONE and self.has_same_target

    @property
    def has_same_target(self) -> bool:
        """The journal names the driver that is requested now, which may be a branch only."""
        return (self.reached + ".").startswith("%s." % self.to)


class RolloutRequest(NamedTuple):
    """The operator's variables. ``batches``: numbers or shares. ``backwards``: roll back one rollout.

    ``max_failures``: a number, or a share of the rollout such as ``10%``. ``rollout``: the one to roll back, 0 for the
    last.
    """

    groups: Mapping[str, List[str]] = {}
    canaries: Sequence[str] = ()
    first: Sequence[str] = ()
    exclude: Sequence[str] = ()
    batches: Sequence[object] = ("100%",)
    backwards: bool = False
    max_failures: object = 0
    rollout: int = 0


class Rollout(NamedTuple):
    """``due``: hosts to upgrade, in order. ``serial``: sizes of their batches. ``done``: current ones of this rollout.

    ``kept`` and ``refused``: reasons by host; kept ones are current, because a rollback does not concern them.
    ``rollout``: its id, the seconds since 1970 at which it began. ``budget``: the number of hosts that may fail.
    ``resumed``: an earlier run began it.
    """

    due: List[str]
    serial: List[int]
    current: List[str]
    kept: Dict[str, str]
    done: List[str]
    refused: Dict[str, str]
    excluded: List[str]
    rollout: int
    budget: int
    resumed: bool


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


def read_host(answer: object, failure: object = None, now: Optional[int] = None) -> HostUpgrade:
    """Read the value ``upgrade`` of gpu_node_plan; ``failure``: why a host has none. ``now``: seconds since 1970.

    A host whose answer has another form is refused by its own ``failure``; it never stops the others.
    """
    if answer is None or answer == {}:
        return HostUpgrade(failure=layout.one_line(failure))
    try:
        return _parse_host(answer, int(time.time()) if now is None else now)
    except AnswerError as error:
        return HostUpgrade(failure=str(error))


def _parse_host(answer: object, now: int) -> HostUpgrade:
    found = _mapping(answer, "upgrade")
    journal, installed = _mapping(found.get("journal"), "journal"), _mapping(found.get("installed"), "installed")
    state = _text(found, "state")
    if state not in (CURRENT, DUE, REFUSED):
        raise AnswerError(OTHER_FORM % ("state is %s" % _shown(found.get("state"))))
    if not isinstance(found.get("opened"), bool):
        raise AnswerError(OTHER_FORM % ("opened is %s" % _shown(found.get("opened"))))
    phase = _text(journal, "phase") or ""
    if phase not in ("", *PHASES):
        raise AnswerError(DAMAGED % ("the phase %s is unknown" % _shown(phase)))
    return HostUpgrade(
        state,
        found["opened"] is True,
        _text(found, "from"),
        _text(found, "to"),
        _text(found, "way"),
        _text(found, "why") or "",
        _text(found, "refusal") or "",
        _text(installed, "version"),
        bool(_mapping(found.get("back"), "back")),
        found.get("drained") is True,
        phase,
        _text(journal, "to") or "",
        _rollout(journal.get("rollout", 0), now),
    )


def _rollout(value: object, now: int) -> int:
    """The id of a rollout; 0 in journals of the first releases, and of upgrades outside of a rollout."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise AnswerError(DAMAGED % ("its rollout is %s, not a time in seconds" % _shown(value)))
    if value > now + DAY:
        raise AnswerError(DAMAGED % ("its rollout %s begins in the future" % _shown(value)))
    return value


def _mapping(value: object, name: str) -> Dict[str, object]:
    if value is not None and not isinstance(value, dict):
        raise AnswerError(OTHER_FORM % ("%s is %s" % (name, _shown(value))))
    return value or {}


def _text(found: Mapping[str, object], name: str) -> Optional[str]:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise AnswerError(OTHER_FORM % ("%s is %s" % (name, _shown(value))))
    return None if value is None else layout.one_line(value)


def _shown(value: object) -> str:
    """A wrong value for a message, short."""
    return layout.one_line(json.dumps(value, default=str) if value is not None else "missing")[:LONGEST_VALUE]


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


def failure_budget(value: object, total: int) -> int:
    """Hosts that may fail: a number from 0, or a share of the ``total`` hosts of the rollout such as ``10%``.

    A share is rounded down. FleetError for anything else.
    """
    text = str(value).strip()
    match = re.match(r"([0-9]{1,9})(%?)$", text)
    if isinstance(value, bool) or not match or (match.group(2) and int(match.group(1)) > 100):
        raise FleetError(
            "gpu_upgrade_max_failures: %s is no number of hosts. Give a number such as 5, or a share of the rollout "
            "such as 10%%." % _shown(value)
        )
    number = int(match.group(1))
    return total * number // 100 if match.group(2) else number


def require_equal_settings(values: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse settings of the whole rollout that differ between hosts; ``values``: by variable, then by host."""
    for variable, by_host in values.items():
        hosts: Dict[str, List[str]] = {}
        for name, value in by_host.items():
            text = json.dumps(value, sort_keys=True) if isinstance(value, (list, dict)) else str(value)
            hosts.setdefault(text, []).append(name)
        if len(hosts) > 1:
            found = "; ".join(
                "%s on %s" % (text[:LONGEST_VALUE], some_of(names))
                for text, names in sorted(hosts.items(), key=lambda item: (len(item[1]), item[0]))
            )
            raise FleetError(
                "%s: it is a setting of the whole rollout, and hosts have different values: %s. Set it for all hosts, "
                "in group_vars of all or with -e." % (variable, found)
            )


def some_of(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return names[0] if len(names) == 1 else "%s and %d more" % (names[0], len(names) - 1)


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


def plan_rollout(
    hosts: List[str], upgrades: Mapping[str, HostUpgrade], request: RolloutRequest, now: Optional[int] = None
) -> Rollout:
    """Who takes part, in which order. FleetError for a wrong variable. ``now``: seconds since 1970."""
    canaries, first, excluded = (
        resolve_hosts(names, request.groups, hosts, "gpu_upgrade_" + variable)
        for names, variable in (
            (request.canaries, "canaries"), (request.first, "first"), (request.exclude, "exclude"),
        )
    )  # fmt: skip
    part = [name for name in hosts if name not in set(excluded)]
    taking = {name: upgrades[name] for name in part}
    newest = newest_rollout(taking)
    undone = rollout_to_undo(taking, request.rollout) if request.backwards else 0
    kept = hosts_without_rollback(taking, undone) if request.backwards else {}
    refused = hosts_of_other_rollouts(taking, undone) if request.backwards else {}
    for name in part:
        if name not in kept and name not in refused and upgrades[name].state not in (CURRENT, DUE):
            refused[name] = refusal_text(upgrades[name])
    current = [name for name in part if name in kept or (name not in refused and upgrades[name].state == CURRENT)]
    place = {name: number for number, name in reversed(list(enumerate(canaries + first + hosts)))}
    due = sorted(set(part) - set(current) - set(refused), key=lambda name: place[name])
    begun = undone if request.backwards else begun_rollout({name: upgrades[name] for name in due})
    members = [name for name in current if name not in kept and begun and upgrades[name].rollout == begun]
    done = [name for name in members if upgrades[name].is_finished]
    budget = failure_budget(request.max_failures, len(due) + len(done))
    waiting = len([name for name in canaries if name in due])
    passed = len([name for name in canaries if name in done])
    if canaries and due and not waiting + passed:
        # None of the canaries can take part: one other host is the canary, so that not all are upgraded at once.
        waiting, passed = (0, 1) if done else (1, 0)
    fresh = [name for name in due if upgrades[name].rollout != begun]
    if done and fresh and not waiting and begins_with_one(request.batches, len(due) + len(done)):
        # Earlier batches say nothing about hosts that are new in this rollout.
        due, waiting = [fresh[0]] + [name for name in due if name != fresh[0]], 1
    serial = batch_sizes(len(due), waiting, len(done), request.batches, passed)
    number = begun or max(int(time.time()) if now is None else now, newest + 1)
    return Rollout(due, serial, current, kept, done, refused, excluded, number, budget, bool(begun))


def begins_with_one(sizes: Sequence[object], total: int) -> bool:
    """True if the operator's first batch has one host."""
    return bool(sizes) and batch_size(sizes[0], total) == 1


def rollout_to_undo(upgrades: Mapping[str, HostUpgrade], chosen: int) -> int:
    """The rollout that the operator chose, or the last one. FleetError if no host belongs to the chosen one."""
    known = {upgrade.rollout for upgrade in upgrades.values()}
    if chosen and chosen not in known:
        found = ", ".join("%d of %s" % (one, format_date(one)) for one in sorted(known, reverse=True)[:5] if one)
        raise FleetError(
            "gpu_upgrade_rollout: no host of this run belongs to rollout %d. Known are: %s." % (chosen, found or "none")
        )
    return chosen or newest_rollout(upgrades)


def hosts_without_rollback(upgrades: Mapping[str, HostUpgrade], undone: int) -> Dict[str, str]:
    """Why hosts keep their driver in a rollback: the rollout ``undone`` was not the last to change them."""
    found = {}
    for name, upgrade in upgrades.items():
        if upgrade.state and not upgrade.opened and not upgrade.rollback:
            found[name] = NO_RECORD
        elif upgrade.state and not upgrade.opened and upgrade.rollout != undone:
            found[name] = LEFT_OUT
    return found


def hosts_of_other_rollouts(upgrades: Mapping[str, HostUpgrade], undone: int) -> Dict[str, str]:
    """Why hosts are refused in a rollback: their unfinished upgrade belongs to another rollout than ``undone``."""
    return {
        name: OTHER_ROLLOUT % ("the rollout of " + format_date(upgrade.rollout) if upgrade.rollout else "no rollout")
        for name, upgrade in upgrades.items()
        if upgrade.state and upgrade.opened and upgrade.rollout != undone
    }


def newest_rollout(upgrades: Mapping[str, HostUpgrade]) -> int:
    return max([upgrade.rollout for upgrade in upgrades.values()] or [0])


def begun_rollout(due: Mapping[str, HostUpgrade]) -> int:
    """The rollout that this run resumes, 0 for none: the newest in which a host to upgrade is unfinished.

    Its target must be that of this run. A rollout that finished all its hosts is over: hosts that are due now belong
    to another one, also with the same target.
    """
    return newest_rollout(
        {name: one for name, one in due.items() if one.phase not in ("", DONE) and one.has_same_target}
    )


def format_date(rollout: int) -> str:
    """When a rollout began, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(rollout))


def refusal_text(upgrade: HostUpgrade) -> str:
    return upgrade.refusal or upgrade.failure or "no facts were collected"


# ---- tables ----------------------------------------------------------------------------------------------------------


def plan_table(
    roll: Rollout,
    upgrades: Mapping[str, HostUpgrade],
    drains: Mapping[str, object],
    width: int = WIDTH,
    backwards: bool = False,
) -> str:
    """What would happen on each host, and the refusals; ``drains``: gpu_upgrade_drain by host."""
    lines: List[Tuple[bool, List[object]]] = []
    for name in roll.due + roll.current + roll.excluded + sorted(roll.refused):
        upgrade = upgrades[name]
        if name in roll.due:
            what = resume_text(upgrade) if upgrade.opened else upgrade.why
            cells: List[object] = [name, upgrade.from_, upgrade.to, upgrade.way, drain_text(drains.get(name)), what]
        else:
            what = current_text(roll, name, upgrade) if name in roll.current else "excluded by gpu_upgrade_exclude"
            what = "refused, see below" if name in roll.refused else what
            cells = [name, upgrade.installed, None, None, None, what]
        lines.append((name not in roll.refused, cells))
    shown = format_columns(PLAN_COLUMNS, lines, width)
    refused = sorted(roll.refused, key=layout.natural_order)
    shown += layout.message_lines(
        [layout.Message(name, "refused", (roll.refused[name],)) for name in refused], width, REST
    )
    counts = ["%d to do" % len(roll.due), "%d current" % (len(roll.current) - len(roll.kept))]
    counts += ["%d without rollback" % len(roll.kept)] if roll.kept else []
    counts += ["%d refused" % len(roll.refused), "%d excluded" % len(roll.excluded)]
    sizes = "; batches of " + ", ".join(str(one) for one in roll.serial) if roll.serial else ""
    return "\n".join(shown + ["", ", ".join(counts) + sizes] + rollout_lines(roll, upgrades, backwards))


def rollout_lines(roll: Rollout, upgrades: Mapping[str, HostUpgrade], backwards: bool) -> List[str]:
    """Which rollout a run resumes, or rolls back and on how many hosts."""
    if not (roll.resumed and roll.due):
        return []
    which = "rollout %d of %s" % (roll.rollout, format_date(roll.rollout))
    if not backwards:
        return ["Resumes %s: %d done, %d to do." % (which, len(roll.done), len(roll.due))]
    # A host that was rolled back already has its old driver in the journal.
    reached = {layout.shortened(upgrades[name].reached, LONGEST_ANSWER) for name in roll.due}
    targets = sorted(reached - {""})
    hosts = "1 host" if len(roll.due) == 1 else "%d hosts" % len(roll.due)
    already = ", %d rolled back already" % len(roll.done) if roll.done else ""
    lines = ["Rolls back %s to %s: %s%s." % (which, ", ".join(targets) or "an unknown driver", hosts, already)]
    others: Dict[int, int] = {}
    for name in roll.kept:
        number = upgrades[name].rollout
        others[number] = others.get(number, 0) + (roll.kept[name] == LEFT_OUT)
    found = [
        "%d of rollout %d of %s" % (others[number], number, format_date(number))
        for number in sorted(others, reverse=True)[:5]
        if number
    ]
    return lines + (["Hosts of other rollouts keep their driver: %s." % ", ".join(found)] if found else [])


def current_text(roll: Rollout, name: str, upgrade: HostUpgrade) -> str:
    """Why nothing is done with a host."""
    return roll.kept.get(name) or (STILL_DRAINED if upgrade.drained else "nothing to do")


def drain_text(value: object) -> str:
    """gpu_upgrade_drain, one hook or a list of them, as a cell."""
    return " ".join(str(one) for one in value) if isinstance(value, list) else str(value or "none")


def resume_text(upgrade: HostUpgrade) -> str:
    """What happens to a host whose upgrade an earlier run began."""
    return RETRY if upgrade.phase == BACK else RESUME


def read_result(host: str, value: Mapping[str, object]) -> HostResult:
    """The result that the playbook set for a host; absent parts have their defaults."""
    seconds = re.match(r"[0-9]{1,9}$", str(value.get("seconds_unavailable")))
    from_, to = value.get("from"), value.get("to")
    return HostResult(
        host,
        str(value.get("state") or "failed"),
        layout.one_line(from_) if from_ else None,
        layout.one_line(to) if to else None,
        str(value.get("way") or "none"),
        int(seconds.group()) if seconds else None,
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
    times = [one.seconds_unavailable for one in results.values() if one.seconds_unavailable is not None]
    each = len(results) <= layout.EACH
    below = [one for one in results.values() if one in failed or len(one.reason) > LONGEST_CELL]
    lines: List[Tuple[bool, List[object]]] = [
        (one.state in good,
         [one.host, one.state.replace("_", " "), one.from_, one.to, one.way, one.seconds_unavailable if each else None,
          "see below" if one in below else one.reason])
        for one in results.values()
    ]  # fmt: skip
    shown = format_columns(RESULT_COLUMNS, lines, width)
    messages = [layout.Message(one.host, one.state.replace("_", " "), (one.reason,)) for one in below]
    shown += layout.message_lines(messages, width, REST)
    if times and not each:
        shown += [
            "",
            "Seconds out of service: %d to %d, median %d" % (min(times), max(times), statistics.median(times)),
        ]
    left = [one for one in results.values() if one.state == "not_reached"]
    if left and len(failed) > budget:
        shown += ["", stop_message(len(failed), len(left), budget)]
    counts: Dict[str, int] = {}
    for one in results.values():
        counts[one.state] = counts.get(one.state, 0) + 1
    return "\n".join(shown + ["", layout.counts_text(counts, len(results))])


def shorten_answer(heading: str, text: str) -> str:
    """The text of a cell; short in columns that a host's answer fills before the last one."""
    return layout.shortened(text, LONGEST_ANSWER) if heading in ANSWERED else text


def format_columns(headings: Tuple[str, ...], rows: Sequence[Tuple[bool, List[object]]], width: int) -> List[str]:
    """Rows, each with whether its host is in a good state, as columns.

    A last column that exceeds ``width`` is cut. No host's answer widens the columns before it.
    """
    shortened = [
        (
            good,
            [
                shorten_answer(headings[index], layout.one_line(cell)) or layout.NOTHING
                for index, cell in enumerate(row)
            ],
        )
        for good, row in rows
    ]
    texts = [list(headings), *layout.table_rows(shortened, REST)]
    sizes = [max(len(line[index]) for line in texts) for index in range(len(headings))]
    shown = [layout.GAP.join(cell.ljust(sizes[index]) for index, cell in enumerate(line)).rstrip() for line in texts]
    rule = layout.GAP.join("-" * one for one in sizes)
    return [line if len(line) <= width else line[: width - 3] + "..." for line in [shown[0], rule] + shown[1:]]
