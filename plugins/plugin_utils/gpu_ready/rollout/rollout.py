"""Which hosts take part in a rollout, in which order and batches. Runs on the control node."""

import json
import re
import time
from collections.abc import Mapping, Sequence

from .answers import LONGEST_VALUE, format_wrong_value
from .model import CURRENT, DONE, DUE, UNASKED, FleetError, HostUpgrade, Lineup, Rollout, RolloutRequest, format_date

NO_RECORD = "no rollback: no upgrade changed this host"
LEFT_OUT = "no rollback: another rollout changed this host last"
OTHER_ROLLOUT = (
    "An upgrade of this host did not come to its end, and it belongs to %s. A rollback undoes one rollout. Remedy: "
    "roll this host back alone (--limit), or leave it out with gpu_upgrade_exclude."
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


def batch_sizes(count: int, canaries: int, done: int, sizes: Sequence[object], passed: int = 0) -> list[int]:
    """Return sizes of the batches for the ``count`` hosts that are left, canaries first. The last size repeats.

    Shares are of the whole rollout. ``done``: hosts of an earlier run of this rollout, whose batches are over. Of them
    ``passed`` were canaries. The ``canaries`` that are left are a batch of their own, whatever was done after them.
    """
    total, done = count + done, done - passed
    listed = [batch_size(value, total) for value in sizes]
    if not listed:
        raise FleetError("gpu_upgrade_batches: it is empty. Give at least one size, such as 1 or 100%.")
    planned: list[int] = []
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


def build_lineup(due: list[str], sizes: list[int], limited: bool) -> Lineup:
    """Add one name for the control node to each batch.

    Ansible ends a run, without its report, if all hosts of a batch are lost. The control node never is. With a --limit
    (``limited``) such names would not be part of the play, and all batches would shift.
    """
    if limited:
        return Lineup(due, sizes, [])
    names: list[str] = []
    watch: list[str] = []
    for number, count in enumerate(sizes, 1):
        begin = sum(sizes[: number - 1])
        watch.append("gpu_upgrade_batch_%d" % number)
        names += due[begin : begin + count] + watch[-1:]
    return Lineup(names, [count + 1 for count in sizes], watch)


def plan_rollout(
    hosts: list[str], upgrades: Mapping[str, HostUpgrade], request: RolloutRequest, now: int | None = None
) -> Rollout:
    """Return who takes part, in which order. FleetError for a wrong variable. ``now``: seconds since 1970."""
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
    """Return True if the operator's first batch has one host."""
    return bool(sizes) and batch_size(sizes[0], total) == 1


def rollout_to_undo(upgrades: Mapping[str, HostUpgrade], chosen: int) -> int:
    """Return the rollout that the operator chose, or the last one. FleetError if no host belongs to the chosen one."""
    known = {upgrade.rollout for upgrade in upgrades.values()}
    if chosen and chosen not in known:
        found = ", ".join("%d of %s" % (one, format_date(one)) for one in sorted(known, reverse=True)[:5] if one)
        raise FleetError(
            "gpu_upgrade_rollout: no host of this run belongs to rollout %d. Known are: %s." % (chosen, found or "none")
        )
    return chosen or newest_rollout(upgrades)


def hosts_without_rollback(upgrades: Mapping[str, HostUpgrade], undone: int) -> dict[str, str]:
    """Return why hosts keep their driver in a rollback: the rollout ``undone`` was not the last to change them."""
    found = {}
    for name, upgrade in upgrades.items():
        if upgrade.state in ("", UNASKED):
            continue
        if not upgrade.opened and not upgrade.rollback:
            found[name] = NO_RECORD
        elif not upgrade.opened and upgrade.rollout != undone:
            found[name] = LEFT_OUT
    return found


def hosts_of_other_rollouts(upgrades: Mapping[str, HostUpgrade], undone: int) -> dict[str, str]:
    """Return why hosts are refused in a rollback.

    Their unfinished upgrade belongs to another rollout than ``undone``.
    """
    return {
        name: OTHER_ROLLOUT % ("the rollout of " + format_date(upgrade.rollout) if upgrade.rollout else "no rollout")
        for name, upgrade in upgrades.items()
        if upgrade.state and upgrade.opened and upgrade.rollout != undone
    }


def newest_rollout(upgrades: Mapping[str, HostUpgrade]) -> int:
    return max([upgrade.rollout for upgrade in upgrades.values()] or [0])


def begun_rollout(due: Mapping[str, HostUpgrade]) -> int:
    """Return the rollout that this run resumes, 0 for none: the newest in which a host to upgrade is unfinished.

    Its target must be that of this run. A rollout that finished all its hosts is over: hosts that are due now belong
    to another one, also with the same target.
    """
    return newest_rollout(
        {name: one for name, one in due.items() if one.phase not in ("", DONE) and one.has_same_target}
    )


def refusal_text(upgrade: HostUpgrade) -> str:
    return upgrade.refusal or upgrade.failure or "no facts were collected"
