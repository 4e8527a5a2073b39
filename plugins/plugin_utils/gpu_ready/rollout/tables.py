"""The tables of a rollout: what would be done, and what was done."""

import statistics
from collections.abc import Mapping, Sequence

from ....module_utils.gpu_ready.upgrade.model import DRAINING, GOING_BACK, STUCK, SWITCHING, VERIFIED
from ..report import layout
from .fold import EXCLUDED, LEFT_OUT, NOT_REACHED, PAUSED
from .model import BACK, HostResult, HostUpgrade, Rollout, format_date

PLAN_COLUMNS: layout.Columns = (
    ("host", "host", 8),
    ("from", "from", 10),
    ("to", "to", 10),
    ("way", "way", 6),
    ("drain", "drain", 8),
    ("what", "what", 20),
)
RESULT_COLUMNS: layout.Columns = (
    ("host", "host", 8),
    ("result", "result", 8),
    ("from", "from", 10),
    ("to", "to", 10),
    ("way", "way", 6),
    ("downtime", "downtime s", 10),
    ("why", "why", 15),
)
REST = "--limit shows fewer hosts with all of it"
ANSWERED = ("result", "from", "to", "way")
"""Columns with what a host answers, before the last one."""
MOST_TARGETS = 3
"""Drivers that the first line of a plan names."""
LONGEST_ANSWER = 20
"""Characters of a cell in these columns: more than a version of a driver has."""
WIDTH = 150
LONGEST_CELL = 80
"""Characters of a reason in a host's row; a longer one is printed below the table."""
STILL_DRAINED = "an earlier run left it drained: run playbooks/undrain.yml for it"
PAUSE = "Paused after the first batch (gpu_upgrade_pause_after): %s wait%s. The same command continues."
RETRY = "retry after a rollback"
RESUME = "resume: interrupted while %s"
PHASES = {
    DRAINING: "draining",
    SWITCHING: "replacing the driver",
    VERIFIED: "returning to service",
    GOING_BACK: "rolling back",
    STUCK: "rolling back, which failed",
}
"""What an earlier run did with a host at last, by the phase of its journal."""


def plan_table(
    roll: Rollout, upgrades: Mapping[str, HostUpgrade], drains: Mapping[str, object], width: int = WIDTH, time: str = ""
) -> str:
    """Return what would happen, first on all hosts and then on each, and the refusals.

    ``drains``: gpu_upgrade_drain by host. ``time``: how long it takes.
    """
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
    warnings = [(name, text) for name in roll.due for text in upgrades[name].warnings]
    shown += layout.note_lines("warnings:", warnings, width, REST)
    counts = ["%d to do" % len(roll.due), "%d current" % (len(roll.current) - len(roll.kept))]
    counts += ["%d without rollback" % len(roll.kept)] if roll.kept else []
    counts += ["%d refused" % len(roll.refused), "%d excluded" % len(roll.excluded)]
    sizes = "; batches of " + ", ".join(str(one) for one in roll.serial) if roll.serial else ""
    below = ["", ", ".join(counts) + sizes, *layout.wrapped(pause_text(roll), width), *layout.wrapped(time, width)]
    return "\n".join([*layout.wrapped(headline(roll, upgrades), width), "", *shown, *below])


def headline(roll: Rollout, upgrades: Mapping[str, HostUpgrade]) -> str:
    """Return what is done, the target first; and which rollout that resumes, or undoes."""
    if not roll.due:
        return "Nothing to roll back." if roll.undoes else "Nothing to upgrade."
    verb = "Rolls back" if roll.undoes else "Upgrades"
    text = "%s %s to %s" % (verb, layout.counted(len(roll.due), "host"), targets_text(roll, upgrades))
    if roll.undoes:
        which = "rollout %d (%s, to %s)" % (roll.undoes, format_date(roll.undoes), drivers_text(roll.replaced))
        return "%s: undoes %s%s." % (text, which, ", %d rolled back already" % len(roll.done) if roll.done else "")
    if roll.resumed:
        which = "rollout %d (%s)" % (roll.rollout, format_date(roll.rollout))
        return "%s: resumes %s, %d done." % (text, which, len(roll.done))
    return text + "."


def targets_text(roll: Rollout, upgrades: Mapping[str, HostUpgrade]) -> str:
    """Return the driver that the hosts get; of several each with its number of hosts, the most frequent first."""
    counts: dict[str, int] = {}
    for name in roll.due:
        to = upgrades[name].to or ""
        counts[to] = counts.get(to, 0) + 1
    ordered = sorted(counts, key=lambda to: -counts[to])
    if len(ordered) == 1:
        return drivers_text(ordered)
    named = ["%s (%d)" % (drivers_text([to]), counts[to]) for to in ordered]
    return layout.names_text(named, MOST_TARGETS)


def drivers_text(drivers: Sequence[str]) -> str:
    """Return versions of drivers, each short, whatever a host answered."""
    known = [layout.shortened(one, LONGEST_ANSWER) for one in drivers if one]
    return layout.names_text(known, MOST_TARGETS) or "an unknown driver"


def pause_text(roll: Rollout) -> str:
    """Return that a run pauses, "" where it does not."""
    if not (roll.pauses and len(roll.serial) > 1):
        return ""
    left = layout.counted(len(roll.due) - roll.serial[0], "host")
    return "Pauses after the first batch (gpu_upgrade_pause_after); the same command then upgrades %s." % left


def current_text(roll: Rollout, name: str, upgrade: HostUpgrade) -> str:
    """Return why nothing is done with a host."""
    return roll.kept.get(name) or (STILL_DRAINED if upgrade.drained else "nothing to do")


def drain_text(value: object) -> str:
    """gpu_upgrade_drain, one hook or a list of them, as a cell."""
    return " ".join(str(one) for one in value) if isinstance(value, list) else str(value or "none")


def resume_text(upgrade: HostUpgrade) -> str:
    """Return what happens to a host whose upgrade an earlier run began, and how that has left it."""
    if upgrade.phase == BACK:
        return RETRY
    text = RESUME % PHASES.get(upgrade.phase, "it was changed")
    text += ", %s is installed" % layout.shortened(upgrade.installed, LONGEST_ANSWER) if upgrade.installed else ""
    if upgrade.loaded != upgrade.installed:
        text += ", %s is loaded" % (layout.shortened(upgrade.loaded, LONGEST_ANSWER) if upgrade.loaded else "no driver")
    return text + (", drained" if upgrade.drained else "")


def stop_message(failed: int, left: int, budget: int) -> str:
    """Return why the rollout stopped, and what to do."""
    cause = "The rollout stopped: %s failed and gpu_upgrade_max_failures is %d; %d %s unchanged." % (
        layout.counted(failed, "host"), budget, left, "is" if left == 1 else "are",
    )  # fmt: skip
    remedy = "Repair the cause, or exclude the failed hosts (gpu_upgrade_exclude), then run the same command again."
    return cause + " " + remedy


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
        shown += ["", *layout.wrapped(stop_message(len(failed), len(left), budget), width)]
    waiting = len([one for one in results.values() if one.state == PAUSED])
    if waiting:
        shown += ["", *layout.wrapped(PAUSE % (layout.counted(waiting, "host"), "s" if waiting == 1 else ""), width)]
    counts: dict[str, int] = {}
    for one in results.values():
        counts[one.state] = counts.get(one.state, 0) + 1
    return "\n".join(shown + ["", layout.counts_text(counts, len(results))])


def shorten_answer(heading: str, text: str) -> str:
    """Return the text of a cell; short in columns that a host's answer fills before the last one."""
    return layout.shortened(text, LONGEST_ANSWER) if heading in ANSWERED else text


def format_columns(columns: layout.Columns, rows: Sequence[tuple[bool, list[object]]], width: int) -> list[str]:
    """Return rows, each with whether its host is in a good state, as columns.

    No host's answer widens the columns before the last one.
    """
    shortened = [
        (
            good,
            [
                shorten_answer(columns[index][1], layout.one_line(cell)) or layout.NOTHING
                for index, cell in enumerate(row)
            ],
        )
        for good, row in rows
    ]
    return layout.rows_text(layout.table_rows(shortened, REST), columns, width)
