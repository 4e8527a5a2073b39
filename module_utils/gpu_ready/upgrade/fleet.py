"""A rollout over many hosts: who comes when, in which batches, and the tables that tell of it. Pure."""

import re
from typing import Any, Dict, List, NamedTuple

from ..base.errors import GpuReadyError
from ..report import run as report
from .journal import BACK

PLAN_COLUMNS = ("host", "from", "to", "way", "drain", "what")
RESULT_COLUMNS = ("host", "result", "from", "to", "way", "seconds away", "why")
WIDTH = 150
IN_ROW = 80
"""Characters of a reason that stand in a host's row; a longer one comes below the table."""
NO_RECORD = "nothing to go back to: no upgrade has changed it"
LEFT_OUT = "nothing to go back to: the last rollout did not change it"


class FleetError(GpuReadyError):
    """The operator's wishes for a rollout cannot be; one sentence with the variable and what it may be."""


class Rollout(NamedTuple):
    """Who takes part, in order; sizes of the batches; and why others do not.

    ``kept``: those of the current hosts that a way back leaves as they are, and why.
    """

    due: List[str]
    serial: List[int]
    current: List[str]
    kept: Dict[str, str]
    done: List[str]
    refused: Dict[str, str]
    excluded: List[str]


class Line(NamedTuple):
    """Hosts in the order of their turns, sizes of the batches, and those that only stand for the control node."""

    roll: List[str]
    sizes: List[int]
    watch: List[str]


def members(names: List[Any], groups: Dict[str, List[str]], hosts: List[str], variable: str) -> List[str]:
    """Return the hosts that names of hosts and groups stand for; FleetError on an unknown name."""
    found = []  # type: List[str]
    for name in names:
        if name not in hosts and name not in groups and name not in groups.get("all", []):
            raise FleetError("%s names %s, which is neither a host nor a group of the inventory" % (variable, name))
        found += [one for one in groups.get(name, [name]) if one in hosts and one not in found]
    return found


def size(value: Any, total: int) -> int:
    """Return the hosts of one batch: a number, or a share of the whole rollout such as ``10%``, at least one."""
    match = re.match(r"(\d+)(%?)$", str(value).strip())
    if not match or int(match.group(1)) < 1:
        raise FleetError(
            "gpu_upgrade_batches has %r, which is no size of a batch: give numbers such as 5 or shares such as 10%%"
            % (value,)
        )
    number = int(match.group(1))
    return max(total * number // 100, 1) if match.group(2) else number


def batches(count: int, canaries: int, done: int, sizes: List[Any], passed: int = 0) -> List[int]:
    """Return the sizes of the batches for the ``count`` hosts that are left, canaries first.

    Shares are of the whole rollout. ``done`` hosts are ready from an earlier run, which this one goes on with: the
    batches that they made up are over. ``passed`` of them were canaries; ``canaries`` are those that are left, which
    stay a batch of their own whatever came after them. The last size repeats.
    """
    total, done = count + done, done - passed
    listed = [size(value, total) for value in sizes]
    if not listed:
        raise FleetError("gpu_upgrade_batches is empty: give at least one size, such as 1 or 100%")
    wanted = []  # type: List[int]
    while sum(wanted) < total - canaries - passed:
        left = total - canaries - passed - sum(wanted)
        wanted.append(min(listed.pop(0) if len(listed) > 1 else listed[0], left))
    found = [canaries] if canaries else []
    for number in wanted:
        over = min(number, done)
        done -= over
        if number > over:
            found.append(number - over)
    return found


def lined(due: List[str], sizes: List[int], limited: bool) -> Line:
    """Return the line of a rollout: after the hosts of each batch, one more that stands for the control node.

    Ansible ends a run, without its report, when all hosts of a batch are lost. This one never is. ``limited``: the run
    has a --limit, which leaves such names out, so that they would shift all batches.
    """
    if limited:
        return Line(due, sizes, [])
    names, watch = [], []  # type: List[str], List[str]
    for number, count in enumerate(sizes, 1):
        begin = sum(sizes[: number - 1])
        watch.append("gpu_upgrade_batch_%d" % number)
        names += due[begin : begin + count] + watch[-1:]
    return Line(names, [count + 1 for count in sizes], watch)


def rollout(hosts: List[str], entries: Dict[str, Dict[str, Any]], wishes: Dict[str, Any]) -> Rollout:
    """Return the rollout: ``entries`` hold ``upgrade`` (upgrade.status) and ``failure`` of each host.

    ``wishes``: groups, canaries, first, exclude, batches as the operator gave them; ``backwards``: the goal is the
    recorded driver, so that a host which the last rollout did not change keeps what it has, whatever else stands in its
    way.
    """
    groups = wishes["groups"]
    named = {
        key: members(wishes[key], groups, hosts, "gpu_upgrade_" + words)
        for key, words in (("canaries", "canaries"), ("first", "first"), ("exclude", "exclude"))
    }
    part = [name for name in hosts if name not in named["exclude"]]
    states = {name: (entries[name].get("upgrade") or {}).get("state") for name in part}
    kept = unchanged(entries, part) if wishes.get("backwards") else {}
    states.update(dict.fromkeys(kept, "current"))
    refused = {name: why_not(entries[name]) for name in part if states[name] not in ("current", "due")}
    ordered = named["canaries"] + named["first"] + hosts
    due = [name for name in sorted(set(part), key=ordered.index) if states[name] == "due"]
    ready = [name for name in part if states[name] == "current"]
    done = [name for name in ready if name not in kept and finished(entries[name]["upgrade"])]
    canaries = len([name for name in named["canaries"] if name in due])
    passed = len([name for name in named["canaries"] if name in done])
    if named["canaries"] and due and not canaries + passed:
        # None of them can take part, and all others must not come at once for that: one host stands in for them.
        canaries, passed = (0, 1) if done else (1, 0)
    return Rollout(
        due,
        batches(len(due), canaries, len(done), wishes["batches"], passed),
        ready,
        kept,
        done,
        refused,
        named["exclude"],
    )


def finished(upgrade: Dict[str, Any]) -> bool:
    """Return whether an earlier run of the same rollout brought this host to its end."""
    journal = upgrade.get("journal") or {}
    to, wanted = str(journal.get("to")), str(upgrade.get("to"))
    return journal.get("phase") == "done" and (to + ".").startswith(wanted + ".")


def unchanged(entries: Dict[str, Dict[str, Any]], part: List[str]) -> Dict[str, str]:
    """Return why hosts keep their driver on the way back: all that the last rollout did not change.

    One that it left out may have the record of an earlier one. A host in the middle of its turn always takes part.
    """
    newest = max([stamp(entry) for entry in entries.values()] or [0])
    found = {}
    for name in part:
        upgrade = entries[name].get("upgrade")
        if not upgrade or upgrade["opened"]:
            continue
        if not upgrade["back"]:
            found[name] = NO_RECORD
        elif stamp(entries[name]) < newest:
            found[name] = LEFT_OUT
    return found


def number(entries: Dict[str, Dict[str, Any]], now: int) -> int:
    """Return what tells this rollout from others; ``now``: seconds since 1970, which a new one is called by.

    A run that goes on belongs to the rollout of those that came to their end: the newest that these hosts know of, if
    it led where this one leads.
    """
    newest = max([stamp(entry) for entry in entries.values()] or [0])
    ended = [entry for entry in entries.values() if finished(entry.get("upgrade") or {})]
    if newest and newest in [stamp(entry) for entry in ended]:
        return newest
    return max(now, newest + 1)


def stamp(entry: Dict[str, Any]) -> int:
    """Return the rollout that changed a host last, 0 where none did; journals of earlier releases do not say it."""
    return int(((entry.get("upgrade") or {}).get("journal") or {}).get("rollout") or 0)


def why_not(entry: Dict[str, Any]) -> str:
    """Return why a host cannot take part."""
    refusal = (entry.get("upgrade") or {}).get("refusal")
    return report.one_line(refusal or entry.get("failure")) or "the host was not looked at"


# ---- for people -----------------------------------------------------------------------------------------------------


def plan_table(roll: Rollout, entries: Dict[str, Dict[str, Any]], drains: Dict[str, Any], width: int = WIDTH) -> str:
    """Return what would happen where, and what stands in the way; ``drains``: gpu_upgrade_drain of each host."""
    lines = []
    for name in roll.due + roll.current + roll.excluded + sorted(roll.refused):
        upgrade = entries[name].get("upgrade") or {}
        if name in roll.due:
            what = again(upgrade["journal"]) if upgrade["opened"] else upgrade["why"]
        else:
            what = roll.kept.get(name) or ("nothing to do" if name in roll.current else "excluded, as asked")
        if name in roll.refused:
            what = "refused, see below"
        there = upgrade.get("from") if name in roll.due else (upgrade.get("installed") or {}).get("version")
        moves = name in roll.due
        lines.append(
            [name, there, upgrade.get("to") if moves else None, upgrade.get("way") if moves else None,
             drain_words(drains.get(name)) if moves else None, what]
        )  # fmt: skip
    shown = columns(PLAN_COLUMNS, lines, width)
    for name in sorted(roll.refused):
        shown += ["", "%s:" % name] + report.paragraph(roll.refused[name], width)
    sizes = "; batches of " + ", ".join(str(one) for one in roll.serial) if roll.serial else ""
    stay = ", %d with nothing to go back to" % len(roll.kept) if roll.kept else ""
    wanted = len(roll.current) - len(roll.kept)
    shown += ["", "%d to do, %d as wanted%s, %d refused, %d excluded%s" % (
        len(roll.due), wanted, stay, len(roll.refused), len(roll.excluded), sizes)]  # fmt: skip
    return "\n".join(shown)


def drain_words(value: Any) -> str:
    """Return gpu_upgrade_drain, one hook or a list of them, as a cell."""
    return " ".join(str(one) for one in value) if isinstance(value, list) else str(value or "none")


def again(journal: Dict[str, Any]) -> str:
    """Return what becomes of a host whose turn an earlier run began."""
    if journal["phase"] == BACK:
        return "tried again: a run brought its old driver back"
    return "goes on with what a run began"


def results(
    hosts: List[str],
    ends: Dict[str, Dict[str, Any]],
    began: List[str],
    upgrades: Dict[str, Dict[str, Any]],
    lost: List[str],
) -> Dict[str, Dict[str, Any]]:
    """Return one result a host: what it said itself; ``failed`` where it was lost; ``not_reached`` for the rest.

    ``began``: hosts whose turn began; ``lost``: those that do not answer any longer, in their turn or before.
    """
    found = {}
    for name in hosts:
        upgrade = upgrades.get(name) or {}
        result = {"host": name, "from": upgrade.get("from"), "to": upgrade.get("to"), "way": "none",
                  "seconds_unavailable": None, "state": "not_reached", "reason": "its turn did not come"}  # fmt: skip
        if name in began:
            result.update(
                state="failed",
                way=upgrade.get("way") or "none",
                reason="the host was lost in its turn: see that it is up, then run the same command again",
            )
        elif name in lost:
            result.update(
                state="left_out",
                reason="lost while it was prepared: see that it is up, then run the same command again",
            )
        found[name] = dict(result, **(ends.get(name) or {}))
    return found


def bad(found: Dict[str, Dict[str, Any]], good: List[str], excluded: List[str]) -> List[str]:
    """Return the hosts that are not as wanted, but for those that the operator excluded."""
    return [name for name, one in found.items() if one["state"] not in good and name not in excluded]


def stopped(failed: int, left: int, budget: int) -> str:
    """Return why the rollout stopped, and what to do, in two lines."""
    why = "The rollout stopped: %d host%s failed and gpu_upgrade_max_failures is %d; %d %s untouched." % (
        failed, "" if failed == 1 else "s", budget, left, "is" if left == 1 else "are",
    )  # fmt: skip
    return why + "\nRepair the cause, or leave out what failed (gpu_upgrade_exclude), then run the same command again."


def result_table(found: Dict[str, Dict[str, Any]], good: List[str], budget: int, width: int = WIDTH) -> str:
    """Return what became of each host, and why the rollout stopped where it did."""
    failed = [one for one in found.values() if one["state"] not in (*good, "left_out", "excluded", "not_reached")]
    below = [one for one in found.values() if one in failed or len(one["reason"]) > IN_ROW]
    lines = [
        [one["host"], one["state"].replace("_", " "), one["from"], one["to"], one["way"], one["seconds_unavailable"],
         "see below" if one in below else one["reason"]]
        for one in found.values()
    ]  # fmt: skip
    shown = columns(RESULT_COLUMNS, lines, width)
    for one in below:
        shown += ["", "%s: %s" % (one["host"], one["state"].replace("_", " "))] + report.paragraph(one["reason"], width)
    left = [one for one in found.values() if one["state"] == "not_reached"]
    if left and len(failed) > budget:
        shown += ["", stopped(len(failed), len(left), budget)]
    counts = {}  # type: Dict[str, int]
    for one in found.values():
        counts[one["state"]] = counts.get(one["state"], 0) + 1
    return "\n".join(shown + ["", report.counts_text(counts, len(found))])


def columns(headings: "tuple[str, ...]", lines: List[List[Any]], width: int) -> List[str]:
    """Return lines as columns, the last one as wide as the rest allows; a longer text is cut there."""
    texts = [[report.one_line(cell) or report.NOTHING for cell in line] for line in [list(headings)] + lines]
    sizes = [max(len(line[index]) for line in texts) for index in range(len(headings))]
    shown = [report.GAP.join(cell.ljust(sizes[index]) for index, cell in enumerate(line)).rstrip() for line in texts]
    rule = report.GAP.join("-" * one for one in sizes)
    return [line if len(line) <= width else line[: width - 3] + "..." for line in [shown[0], rule] + shown[1:]]
