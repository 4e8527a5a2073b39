"""The tables of a rollout: what would be done, and what was done."""

import statistics
from collections.abc import Mapping, Sequence

from ..report import layout
from .fold import EXCLUDED, LEFT_OUT, NOT_REACHED, PAUSED
from .model import BACK, HostResult, HostUpgrade, Rollout, format_date

PLAN_COLUMNS = ("host", "from", "to", "way", "drain", "what")
RESULT_COLUMNS = ("host", "result", "from", "to", "way", "downtime s", "why")
REST = "--limit shows fewer hosts with all of it"
ANSWERED = ("result", "from", "to", "way")
"""Columns with what a host answers, before the last one."""
LONGEST_ANSWER = 20
"""Characters of a cell in these columns: more than a version of a driver has."""
WIDTH = 150
LONGEST_CELL = 80
"""Characters of a reason in a host's row; a longer one is printed below the table."""
STILL_DRAINED = "nothing to do, but an earlier run left it drained: run playbooks/undrain.yml for it"
PAUSE = "Paused after the first batch (gpu_upgrade_pause_after): %s wait%s. The same command continues."
RETRY = "retry after a rollback"
RESUME = "resume an interrupted upgrade"


def plan_table(
    roll: Rollout, upgrades: Mapping[str, HostUpgrade], drains: Mapping[str, object], width: int = WIDTH
) -> str:
    """Return what would happen on each host, and the refusals; ``drains``: gpu_upgrade_drain by host."""
    lines: list[tuple[bool, list[object]]] = []
    for name in roll.due + roll.current + roll.excluded + sorted(roll.refused):
        upgrade = upgrades[name]
        if name in roll.due:
            what = resume_text(upgrade) if upgrade.opened else upgrade.why
            cells: list[object] = [name, upgrade.from_, upgrade.to, upgrade.way, drain_text(drains.get(name)), what]
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
    return "\n".join(shown + ["", ", ".join(counts) + sizes] + rollout_lines(roll))


def rollout_lines(roll: Rollout) -> list[str]:
    """Return which rollout a run resumes, or rolls back and on how many hosts, and whether it pauses."""
    lines = []
    if roll.undoes:
        which = "rollout %d of %s" % (roll.undoes, format_date(roll.undoes))
        drivers = ", ".join(layout.shortened(one, LONGEST_ANSWER) for one in roll.replaced) or "an unknown driver"
        already = ", %d rolled back already" % len(roll.done) if roll.done else ""
        lines.append("Rolls back %s to %s: %s%s." % (which, drivers, layout.counted(len(roll.due), "host"), already))
    elif roll.resumed and roll.due:
        which = "rollout %d of %s" % (roll.rollout, format_date(roll.rollout))
        lines.append("Resumes %s: %d done, %d to do." % (which, len(roll.done), len(roll.due)))
    if roll.pauses and len(roll.serial) > 1:
        left = layout.counted(len(roll.due) - roll.serial[0], "host")
        lines.append(
            "Pauses after the first batch (gpu_upgrade_pause_after); the same command then upgrades %s." % left
        )
    return lines


def current_text(roll: Rollout, name: str, upgrade: HostUpgrade) -> str:
    """Return why nothing is done with a host."""
    return roll.kept.get(name) or (STILL_DRAINED if upgrade.drained else "nothing to do")


def drain_text(value: object) -> str:
    """gpu_upgrade_drain, one hook or a list of them, as a cell."""
    return " ".join(str(one) for one in value) if isinstance(value, list) else str(value or "none")


def resume_text(upgrade: HostUpgrade) -> str:
    """Return what happens to a host whose upgrade an earlier run began."""
    return RETRY if upgrade.phase == BACK else RESUME


def stop_message(failed: int, left: int, budget: int) -> str:
    """Return why the rollout stopped, and what to do, in two lines."""
    cause = "The rollout stopped: %s failed and gpu_upgrade_max_failures is %d; %d %s unchanged." % (
        layout.counted(failed, "host"), budget, left, "is" if left == 1 else "are",
    )  # fmt: skip
    remedy = "Repair the cause, or exclude the failed hosts (gpu_upgrade_exclude), then run the same command again."
    return cause + "\n" + remedy


def result_table(results: Mapping[str, HostResult], good: Sequence[str], budget: int, width: int = WIDTH) -> str:
    """Return the result of each host, and why the rollout stopped if it did."""
    failed = [one for one in results.values() if one.state not in (*good, LEFT_OUT, EXCLUDED, NOT_REACHED)]
    times = [one.seconds_unavailable for one in results.values() if one.seconds_unavailable is not None]
    each = len(results) <= layout.EACH
    below = [one for one in results.values() if one in failed or len(one.reason) > LONGEST_CELL]
    lines: list[tuple[bool, list[object]]] = [
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
    left = [one for one in results.values() if one.state == NOT_REACHED]
    if left and len(failed) > budget:
        shown += ["", stop_message(len(failed), len(left), budget)]
    waiting = len([one for one in results.values() if one.state == PAUSED])
    if waiting:
        shown += ["", PAUSE % (layout.counted(waiting, "host"), "s" if waiting == 1 else "")]
    counts: dict[str, int] = {}
    for one in results.values():
        counts[one.state] = counts.get(one.state, 0) + 1
    return "\n".join(shown + ["", layout.counts_text(counts, len(results))])


def shorten_answer(heading: str, text: str) -> str:
    """Return the text of a cell; short in columns that a host's answer fills before the last one."""
    return layout.shortened(text, LONGEST_ANSWER) if heading in ANSWERED else text


def format_columns(headings: tuple[str, ...], rows: Sequence[tuple[bool, list[object]]], width: int) -> list[str]:
    """Return rows, each with whether its host is in a good state, as columns.

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
