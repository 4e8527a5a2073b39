"""The timeline of a rollout: the phases of every turn, of all its runs. Pure."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...module_utils.gpu_ready.upgrade import model as journal
from ..gpu_ready.turn import table
from .model import Host, Report, Turn

PHASES = {
    journal.DRAINING: ("drain", "drain"),
    journal.SWITCHING: ("switch", "install and load"),
    table.VERIFY: ("verify", "verify"),
    journal.VERIFIED: ("return", "return to service"),
    journal.DONE: ("soak", "in service"),
    table.SOAK: ("soak", "soak"),
    journal.GOING_BACK: ("back", "roll back"),
    table.VERIFY_BACK: ("verify", "verify the earlier driver"),
    journal.BACK: ("back", "rolled back"),
    journal.STUCK: ("stuck", "out of service"),
    journal.UNTOUCHED: ("return", "return to service, unchanged"),
}
"""The phases that the record of a rollout has: their colour, and their words for people."""
IN_SERVICE = ("begin", "in service", "rolled back")
"""No work on the driver: it is not among what took longest."""
WAIT, LEGEND = "wait", "wait for the next run"
BEGIN = ("drain", "begin")
"""From the begin of a turn to its first phase: the lease of the host."""
WIDTH, LEFT, TOP = 1000.0, 170.0, 36.0
"""Units: the width of the chart, of its column of names, and the height of the times above it."""
TALLEST, ROW, LABELLED = 1200.0, 18.0, 12.0
"""Units: the greatest height of all rows, the height of one, and the least height of one that has a name."""
IDLE, SHORTENED = 0.08, 0.03
"""Idle times of more than this share of the busy time are shortened to that share: a rollout may wait for days."""
SAME_DAY, DAY = "%H:%M:%S", "%Y-%m-%d"


class Segment(NamedTuple):
    """A part of a turn. ``colour``: of PHASES, or WAIT."""

    colour: str
    words: str
    began: int
    ended: int


def segments(turns: Sequence[Turn], end: int) -> list[Segment]:
    """Return the phases of all turns of a host, and the waits between them; a turn that has no end lasts until then."""
    found: list[Segment] = []
    for number, turn in enumerate(turns):
        following = turns[number + 1].began if number + 1 < len(turns) else None
        begins = [(*BEGIN, turn.began)] + [(*PHASES.get(name, (WAIT, name)), began) for name, began in turn.phases]
        ends = [began for _, _, began in begins[1:]]
        last = turn.ended if turn.ended is not None else max(turn.began, begins[-1][2]) if following else end
        for (colour, words, began), ended in zip(begins, [*ends, last], strict=True):
            if ended > began:
                found.append(Segment(colour, words, began, ended))
        if following is not None and following > last:
            found.append(Segment(WAIT, LEGEND, last, following))
    return found


class Scale:
    """Places of times on the chart, in which long idle times are short."""

    def __init__(self, busy: Sequence[tuple[int, int]]) -> None:
        spans: list[list[int]] = []
        for began, ended in sorted(busy):
            if spans and began <= spans[-1][1]:
                spans[-1][1] = max(spans[-1][1], ended)
            else:
                spans.append([began, max(ended, began + 1)])
        total = sum(ended - began for began, ended in spans)
        self.marks: list[tuple[int, float]] = []
        self.breaks: list[float] = []
        place = 0.0
        for number, (began, ended) in enumerate(spans):
            idle = began - spans[number - 1][1] if number else 0
            if idle > IDLE * total:
                self.breaks.append(place + SHORTENED * total / 2)
                idle = int(SHORTENED * total)
            place += idle
            self.marks.append((began, place))
            place += ended - began
            self.marks.append((ended, place))
        self.unit = (WIDTH - LEFT) / max(place, 1.0)
        self.breaks = [round(LEFT + one * self.unit, 1) for one in self.breaks]

    def x(self, moment: float) -> float:
        """Return the place of a time in seconds since 1970."""
        before, place = self.marks[0]
        for at, where in self.marks[1:]:
            if moment <= at:
                share = (moment - before) / (at - before) if at > before else 0
                return round(LEFT + (place + max(share, 0) * (where - place)) * self.unit, 1)
            before, place = at, where
        return round(LEFT + place * self.unit, 1)


def clock(seconds: float, form: str) -> str:
    return time.strftime(form, time.gmtime(seconds))


def timeline(report: Report) -> dict[str, Any] | None:
    """Return the chart of a rollout, hosts in the order in which their turns began; None where no host had one."""
    hosts = sorted((host for host in report.hosts if host.turns), key=lambda host: (host.turns[0].began, host.name))
    if not hosts:
        return None
    known = [one for host in hosts for turn in host.turns for one in (turn.began, turn.ended or 0)]
    known += [began for host in hosts for turn in host.turns for _, began in turn.phases]
    begin, end = min(one for one in known if one), max(*known, 1)
    rows = [(host, segments(host.turns, end)) for host in hosts]
    busy = [(one.began, one.ended) for _, found in rows for one in found if one.colour != WAIT]
    scale = Scale(busy or [(begin, end)])
    form = SAME_DAY if clock(begin, DAY) == clock(end, DAY) else f"{DAY} %H:%M"
    height = max(min(ROW, TALLEST / len(rows)), 0.5)
    labelled = height >= LABELLED
    bars: list[dict[str, Any]] = []
    paths: dict[str, list[str]] = {}
    for index, (host, found) in enumerate(rows):
        y = round(TOP + index * height, 1)
        for one in found:
            x = scale.x(one.began)
            width = round(max(scale.x(one.ended) - x, 0.8), 1)
            if labelled:
                title = f"{host.name}: {one.words}, {clock(one.began, form)} to {clock(one.ended, form)}"
                bars.append({"colour": one.colour, "x": x, "y": y, "width": width, "title": title})
            else:
                paths.setdefault(one.colour, []).append(f"M{x:g} {y:g}h{width:g}v{height * 0.8:.2g}h-{width:g}z")
    used = {one.colour for _, found in rows for one in found}
    lost = [host.name for host in hosts if host.turns[-1].ended is None]
    return {
        "bars": bars,
        "paths": {colour: "".join(parts) for colour, parts in paths.items()},
        "labels": [(index, label(host)) for index, host in enumerate(hosts)] if labelled else [],
        "top": TOP,
        "row": height,
        "height": round(TOP + len(rows) * height + 2, 1),
        "ticks": ticks(scale, begin, end, form),
        "runs": run_lines(report, scale, begin, end),
        "breaks": scale.breaks,
        "legend": [(colour, words) for colour, words in legend() if colour in used],
        "lost": lost,
    }


def label(host: Host) -> dict[str, str]:
    name = host.name if len(host.name) <= 24 else host.name[:21] + "..."
    return {"name": name, "tone": host.tone}


def legend() -> list[tuple[str, str]]:
    """Return the colours with their words."""
    found: dict[str, str] = {}
    for colour, words in PHASES.values():
        found.setdefault(colour, words)
    return [*found.items(), (WAIT, LEGEND)]


def ticks(scale: Scale, begin: int, end: int, form: str) -> list[dict[str, Any]]:
    """Return times at about equal distances of the chart."""
    found: list[dict[str, Any]] = []
    for part in range(5):
        place = LEFT + (WIDTH - LEFT) * part / 4
        low, high = float(begin), float(end)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if scale.x(middle) < place else (low, middle)
        found.append(
            {"x": round(place, 1), "label": clock(high, form), "anchor": ("start", "middle", "end")[(part + 2) // 3]}
        )
    return found


def run_lines(report: Report, scale: Scale, begin: int, end: int) -> list[dict[str, Any]]:
    """Return where the runs of the rollout began, from the second one on."""
    runs = report.rollout.runs if report.rollout else []
    return [
        {"x": scale.x(min(max(run.time, begin), end)), "label": f"run {number}", "operator": run.operator}
        for number, run in enumerate(runs, 1)
        if number > 1
    ][-20:]


def phase_seconds(host: Host) -> list[tuple[str, int]]:
    """Return the durations of the phases of a host's turns that have an end."""
    return [
        (one.words, one.ended - one.began)
        for turn in host.turns
        if turn.ended is not None
        for one in segments([turn], turn.ended)
        if one.words not in IN_SERVICE
    ]
