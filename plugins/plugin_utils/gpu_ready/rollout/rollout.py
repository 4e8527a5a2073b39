"""Which hosts take part in a rollout, in which order and batches. Runs on the control node.

What concerns more than one host comes from the operator's variables and from the control node's records. What a host
answers decides about that host alone.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence

from ....module_utils.gpu_ready.upgrade.model import STAGED
from .answers import DAY, LONGEST_VALUE, format_wrong_value
from .fold import ROLLBACK, UPGRADE, RecordedHost, RolloutRecord
from .model import CURRENT, DUE, UNASKED, FleetError, HostUpgrade, Lineup, Rollout, RolloutRequest, format_date

NOT_CHANGED = "no rollback: this rollout did not change this host"
UNFINISHED = ", and an upgrade of another one is unfinished"
MOST_ROLLOUTS = 5
"""Ids that a message lists."""
UNKNOWN_ROLLOUT = (
    "An upgrade of this host did not come to its end, and no record of this control node knows its rollout %d of %s. "
    "Remedy: resume that rollout with -e gpu_upgrade_rollout=%d; or set gpu_ready_state_dir to that of the control "
    "node that began it; or leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
OTHER_ROLLOUT = (
    "Rollout %d changed this host, but the host's journal names %s. Remedy: if that is true, roll the host back with "
    "-e gpu_upgrade_rollout=ID of the rollout that changed it last; else see /var/lib/gpu-ready/upgrade.json on the "
    "host. Or leave it out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
NO_EARLIER_DRIVER = (
    "Rollout %d changed this host, but the host's journal names no driver to go back to. Remedy: set the driver with "
    "nvidia_driver_version and run upgrade_drivers.yml for this host, or leave it out with gpu_upgrade_exclude or "
    "gpu_upgrade_leave_out."
)
NOTHING_TO_UNDO = (
    "No record in gpu_ready_state_dir is of a rollout that changed a host of this run. The hosts' journals name: %s. "
    "Remedy: set gpu_ready_state_dir to that of the control node that began the rollout, or say which one to undo with "
    "-e gpu_upgrade_rollout=ID."
)


def resolve_hosts(
    names: Sequence[str], groups: Mapping[str, list[str]], hosts: Sequence[str], variable: str
) -> list[str]:
    """Return hosts of the play for names of hosts and groups; FleetError for an unknown name."""
    found: list[str] = []
    for name in names:
        if name not in hosts and name not in groups and name not in groups.get("all", []):
            raise FleetError("%s: %s is neither a host nor a group of the inventory. Correct it." % (variable, name))
        found += [one for one in groups.get(name, [name]) if one in hosts and one not in found]
    return found


def batch_size(value: object, total: int) -> int:
    """Return hosts of one batch: a number, or a share of the whole rollout such as ``10%``, at least one."""
    match = re.match(r"(\d+)(%?)$", str(value).strip())
    if not match or int(match.group(1)) < 1:
        raise FleetError(
            "gpu_upgrade_batches: %r is no size of a batch. Give numbers such as 5 or shares such as 10%%." % (value,)
        )
    number = int(match.group(1))
    return max(total * number // 100, 1) if match.group(2) else number


def failure_budget(value: object, total: int) -> int:
    """Return hosts that may fail: a number from 0, or a share of the ``total`` hosts of the rollout such as ``10%``.

    A share is rounded down. FleetError for anything else.
    """
    text = str(value).strip()
    match = re.match(r"([0-9]{1,9})(%?)$", text)
    if isinstance(value, bool) or not match or (match.group(2) and int(match.group(1)) > 100):
        raise FleetError(
            "gpu_upgrade_max_failures: %s is no number of hosts. Give a number such as 5, or a share of the rollout "
            "such as 10%%." % format_wrong_value(value)
        )
    number = int(match.group(1))
    return total * number // 100 if match.group(2) else number


def require_equal_settings(values: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse settings of the whole rollout that differ between hosts; ``values``: by variable, then by host."""
    for variable, by_host in values.items():
        hosts: dict[str, list[str]] = {}
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
    """Return the first of some names, and how many more there are."""
    return names[0] if len(names) == 1 else "%s and %d more" % (names[0], len(names) - 1)


def plan_batches(due: Sequence[str], canaries: Sequence[str], passed: bool, sizes: Sequence[object]) -> list[int]:
    """Return the sizes of the batches of hosts in this order, the canaries that take part first.

    If none of them takes part, and none has ``passed`` in an earlier run, one other host is the canary, so that not all
    are upgraded at once.
    """
    waiting = len(set(due) & set(canaries)) or int(bool(due and canaries) and not passed)
    return batch_sizes(len(due), waiting, sizes)


def batch_sizes(count: int, canaries: int, sizes: Sequence[object]) -> list[int]:
    """Return sizes of the batches for ``count`` hosts, of which the ``canaries`` are the first batch.

    Shares are of these hosts. The last size repeats.
    """
    listed = [batch_size(value, count) for value in sizes]
    if not listed:
        raise FleetError("gpu_upgrade_batches: it is empty. Give at least one size, such as 1 or 100%.")
    found = [canaries] if canaries else []
    while sum(found) < count:
        found.append(min(listed.pop(0) if len(listed) > 1 else listed[0], count - sum(found)))
    return found


def build_lineup(due: list[str], sizes: list[int], limited: bool, pauses: bool = False) -> Lineup:
    """Add one name for the control node to each batch; a rollout that ``pauses`` has the first batch only.

    Ansible ends a run, without its report, if all hosts of a batch are lost. The control node never is. With a --limit
    (``limited``) such names would not be part of the play, and all batches would shift.
    """
    if pauses:
        sizes = sizes[:1]
    due, paused = due[: sum(sizes)], due[sum(sizes) :]
    if limited:
        return Lineup(due, sizes, [], paused)
    names: list[str] = []
    watch: list[str] = []
    for number, count in enumerate(sizes, 1):
        begin = sum(sizes[: number - 1])
        watch.append("gpu_upgrade_batch_%d" % number)
        names += due[begin : begin + count] + watch[-1:]
    return Lineup(names, [count + 1 for count in sizes], watch, paused)


def plan_rollout(
    hosts: list[str],
    upgrades: Mapping[str, HostUpgrade],
    request: RolloutRequest,
    records: Sequence[RolloutRecord] = (),
    now: int | None = None,
) -> Rollout:
    """Return who takes part, in which order. FleetError for a wrong variable.

    ``records``: all that the control node has, the newest first. ``now``: seconds since 1970.
    """
    now = int(time.time()) if now is None else now
    canaries, first, excluded = (
        resolve_hosts(names, request.groups, hosts, "gpu_upgrade_" + variable)
        for names, variable in (
            (request.canaries, "canaries"), (request.first, "first"), (request.exclude, "exclude"),
        )
    )  # fmt: skip
    chosen = chosen_record(records, request.rollout, now)
    part = [name for name in hosts if name not in set(excluded)]
    taking = {name: upgrades[name] for name in part}
    undone, kept = None, dict[str, str]()
    if request.backwards:
        undone = chosen or rollout_to_undo(taking, request.rollout, records)
        kept, refused = members_of_rollback(taking, undone)
    else:
        refused = hosts_of_unknown_rollouts(taking, {request.rollout, *(record.id for record in records)})
    for name in part:
        if name not in kept and name not in refused and upgrades[name].state not in (CURRENT, DUE):
            refused[name] = refusal_text(upgrades[name])
    current = [name for name in part if name in kept or (name not in refused and upgrades[name].state == CURRENT)]
    place = {name: number for number, name in reversed(list(enumerate(canaries + first + hosts)))}
    due = sorted(set(part) - set(current) - set(refused), key=lambda name: place[name])
    if request.rollout and undone is None:
        begun = chosen
    else:
        begun = record_to_resume(records, {name: upgrades[name] for name in due}, undone.id if undone else 0)
    # A host that was upgraded and rolled back since is no host that is done.
    finished = set(begun.done).difference(due) if begun else set()
    number = begun.id if begun else max([now, request.rollout + 1, *(record.id + 1 for record in records)])
    passed = not finished.isdisjoint(canaries)
    return Rollout(
        due,
        plan_batches(due, canaries, passed, request.batches),
        current,
        kept,
        [name for name in current if name in finished],
        refused,
        excluded,
        request.rollout if request.rollout and undone is None else number,
        failure_budget(request.max_failures, len(due)),
        begun is not None,
        undone.id if undone else 0,
        canaries,
        passed,
        request.pause_after == "canary" and undone is None and not finished,
        sorted({undone.hosts[name].target for name in due} - {""}) if undone else [],
    )


def chosen_record(records: Sequence[RolloutRecord], chosen: int, now: int) -> RolloutRecord | None:
    """Return the record of the rollout that the operator chose, None if there is none.

    FleetError for an id that no upgrade can have.
    """
    if chosen > now + DAY:
        raise FleetError(
            "gpu_upgrade_rollout: rollout %d would begin at %s, in the future. Give the id that the plan, a refusal or "
            "the host's journal shows." % (chosen, format_date(chosen))
        )
    for record in records:
        if record.id == chosen and record.direction == ROLLBACK:
            raise FleetError(
                "gpu_upgrade_rollout: rollout %d is itself the rollback of rollout %d. Give the id of an upgrade."
                % (chosen, record.undoes)
            )
        if record.id == chosen and record.runs:
            return record
    return None


def record_to_resume(
    records: Sequence[RolloutRecord], due: Mapping[str, HostUpgrade], undoes: int
) -> RolloutRecord | None:
    """Return the newest record of this direction in which a host that is due now is not done, with the same target.

    ``undoes``: the rollout that a rollback undoes, 0 for an upgrade.
    """
    for record in records:
        if record.direction == (ROLLBACK if undoes else UPGRADE) and record.undoes == undoes:
            left = set(due).intersection(record.hosts).difference(record.done)
            if any(is_same_target(record.hosts[name].target, due[name].to) for name in left):
                return record
    return None


def is_same_target(recorded: str, target: str | None) -> bool:
    """True if two drivers are the same, each a version or a branch only."""
    first, second = recorded + ".", "%s." % target
    return bool(recorded and target) and (first.startswith(second) or second.startswith(first))


def hosts_of_unknown_rollouts(upgrades: Mapping[str, HostUpgrade], known: set[int]) -> dict[str, str]:
    """Return why hosts are refused in an upgrade: an unfinished one belongs to a rollout that no record knows."""
    return {
        name: UNKNOWN_ROLLOUT % (one.rollout, format_date(one.rollout), one.rollout)
        for name, one in upgrades.items()
        if one.state == DUE and one.is_unfinished and one.rollout and one.rollout not in known
    }


def rollout_to_undo(
    upgrades: Mapping[str, HostUpgrade], chosen: int, records: Sequence[RolloutRecord]
) -> RolloutRecord:
    """Return the newest upgrade that changed a host of this run.

    If the operator chose one that has no record, it is made of the hosts whose journals name it, and of those without
    an answer. FleetError if there is none.
    """
    counts: dict[int, int] = {}
    for one in upgrades.values():
        counts[one.rollout] = counts.get(one.rollout, 0) + 1
    counts.pop(0, None)
    most = sorted(counts, key=lambda number: (-counts[number], -number))[:MOST_ROLLOUTS]
    named = ", ".join("%d of %s on %d" % (number, format_date(number), counts[number]) for number in most) or "none"
    if chosen:
        if chosen not in counts:
            raise FleetError(
                "gpu_upgrade_rollout: there is no record of rollout %d, and no host of this run names it. The hosts' "
                "journals name: %s. Correct the id, or set gpu_ready_state_dir to that of the control node that began "
                "it." % (chosen, named)
            )
        members = {
            name: RecordedHost(one.reached, changed=True)
            for name, one in upgrades.items()
            if one.state in ("", UNASKED) or (one.rollout == chosen and one.phase != STAGED)
        }
        return RolloutRecord(chosen, UPGRADE, 0, "", members, [])
    for record in records:
        if record.direction == UPGRADE and any(
            record.hosts[name].may_be_changed for name in upgrades if name in record.hosts
        ):
            return record
    raise FleetError(NOTHING_TO_UNDO % named)


def members_of_rollback(
    upgrades: Mapping[str, HostUpgrade], undone: RolloutRecord
) -> tuple[dict[str, str], dict[str, str]]:
    """Return why hosts keep their driver in the rollback of ``undone``, and why others are refused.

    The record says who is a member. A member whose journal does not confirm that is refused, since it would go back to
    the driver before another upgrade. A host that was prepared for a later rollout still names the driver of before.
    """
    kept, refused = {}, {}
    for name, upgrade in upgrades.items():
        member = undone.hosts.get(name)
        prepared = upgrade.phase == STAGED
        if member is None or not member.may_be_changed or (prepared and not member.changed):
            kept[name] = NOT_CHANGED + (UNFINISHED if upgrade.is_unfinished else "")
        elif upgrade.state in ("", UNASKED):
            refused[name] = refusal_text(upgrade)
        elif upgrade.rollout != undone.id and not prepared:
            other = "rollout %d of %s" % (upgrade.rollout, format_date(upgrade.rollout))
            refused[name] = OTHER_ROLLOUT % (undone.id, other if upgrade.rollout else "no rollout")
        elif not upgrade.opened and not upgrade.rollback:
            refused[name] = NO_EARLIER_DRIVER % undone.id
    return kept, refused


def refusal_text(upgrade: HostUpgrade) -> str:
    return upgrade.refusal or upgrade.failure or "no facts were collected"
