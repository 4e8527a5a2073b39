# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""A run as one HTML page, which can be read without its script."""

from __future__ import annotations

import dataclasses
import functools
import re
import time
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from ..gpu_ready.report.layout import without_host
from .html_page import render
from .model import NO_ANSWER, TITLES, Advice, Fleet, Host

WAITING = ("drift", "upgrading", "planned", "left_out", "unfinished", "listed", "excluded")
"""States of hosts that did not fail, but are not in the desired state."""
PROGRESS = {
    "done": ("done", "good"),
    "failed": ("failed", "bad"),
    "planned": ("planned", "warn"),
    "not_done": ("not done", "none"),
    "": ("unknown", "none"),
}
RESULTS = {True: ("ok", "good"), False: ("failed", "bad"), None: ("not checked", "none")}
AUDIT_RESULTS = {True: ("ok", "good"), False: ("drift", "bad"), None: ("reported", "none")}
NOTHING = ("", "-")
FEW = 40
"""Hosts up to which the details of failed ones are open, and all are printed."""
MOST_PROBLEMS = 50
MOST_NAMES = 40
LONGEST_WHY = 160
WIDTH = 1000
LEFT = 170
"""Units of the charts: their width, and the column of names in the timeline."""
TALLEST = 1200
LABELLED = 12
"""Units: the greatest height of the timeline's bars together, and the least height of a row that has a name."""


@dataclasses.dataclass
class Row:
    """A host on the page. ``n`` is its number in anchors, which have no text of a host."""

    n: int
    host: Host
    tone: str
    state: str
    cells: list[str]
    short: str
    facts: list[tuple[str, str]]

    @property
    def details(self) -> bool:
        """Whether there is more to read than the row of the overview."""
        host = self.host
        return not host.good or bool(host.steps or host.checks or host.warnings or host.lists)


@dataclasses.dataclass
class Problem:
    """Hosts with the same messages: the first ones, and how many more."""

    state: str
    tone: str
    texts: list[Advice]
    hosts: list[int]
    more: int = 0


def tone(host: Host) -> str:
    """Return the class of a host's colour."""
    if host.good:
        return "none" if host.state == "no_gpu" else "good"
    return "warn" if host.state in WAITING else "none" if host.state in NO_ANSWER else "bad"


def state_text(state: str) -> str:
    return state.replace("_", " ")


def shortened(value: str, most: int) -> str:
    return value if len(value) <= most else value[: most - 3] + "..."


def used_columns(fleet: Fleet) -> list[tuple[str, str]]:
    """Return the columns in which some host has a value."""
    return [
        (key, heading)
        for key, heading in fleet.columns
        if any(host.cells.get(key, "") not in NOTHING for host in fleet.hosts)
    ]


def host_rows(fleet: Fleet) -> list[Row]:
    """Return the rows of the overview."""
    found, columns = [], used_columns(fleet)
    for n, host in enumerate(fleet.hosts):
        facts = [(heading, host.cells[key]) for key, heading in columns if host.cells.get(key, "") not in NOTHING]
        # Of a time the day: the details have all of it.
        cells = [re.sub(r"(?<=\d)T\d\d:\d\d:\d\dZ$", "", host.cells.get(key, "")) for key, _ in columns]
        short = shortened(" ".join(host.why.message.split()), LONGEST_WHY)
        found.append(Row(n, host, tone(host), state_text(host.state), cells, short, facts))
    return found


def counts(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the parts of the bar of states, in units of its width."""
    tones = {host.state: tone(host) for host in fleet.hosts}
    found, x, total = [], 0.0, max(len(fleet.hosts), 1)
    for state, count in fleet.counts.items():
        width = WIDTH * count / total
        found.append(
            {
                "key": state,
                "state": state_text(state),
                "count": count,
                "tone": tones[state],
                "x": round(x, 2),
                "width": round(width, 2),
            }
        )
        x += width
    return found


def problems(rows: Sequence[Row]) -> list[Problem]:
    """Return the messages of hosts that are not in a good state, equal ones once, those of the most hosts first."""
    found: dict[tuple[str, ...], Problem] = {}
    sizes: dict[tuple[str, ...], int] = {}
    for row in rows:
        if row.host.good:
            continue
        texts = list(row.host.refusals) or [row.host.why]
        key = (row.host.state, *(without_host(f"{one.message}\n{one.remedy}", row.host.name) for one in texts))
        sizes[key] = sizes.get(key, 0) + 1
        one = found.setdefault(key, Problem(row.state, row.tone, texts, []))
        if len(one.hosts) < MOST_NAMES:
            one.hosts.append(row.n)
        else:
            one.more += 1
    return [found[key] for key in sorted(found, key=lambda key: -sizes[key])]


def drifts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the checks of an audit that failed, those of the most hosts first."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        for check in row.host.checks:
            if check.ok is False:
                new = {"check": check.name, "hosts": [], "expected": check.expected, "found": check.found}
                found.setdefault(check.name, new)["hosts"].append(row.n)
    return sorted(found.values(), key=lambda one: -len(one["hosts"]))


SAME_DAY, DAY = "%H:%M:%S", "%Y-%m-%d"


def clock(seconds: float, form: str) -> str:
    return time.strftime(form, time.gmtime(seconds))


def timeline(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return the bars of a rollout, in the order in which the turns began; None where no host had one."""
    turns = [(row, row.host.turn) for row in rows if row.host.turn is not None and row.host.turn.began is not None]
    if not turns:
        return None
    turns.sort(key=lambda pair: (pair[1].began or 0, pair[0].n))
    begin = min(turn.began or 0 for _, turn in turns)
    ends = [turn.ended for _, turn in turns if turn.ended is not None]
    end = max([*ends, *(turn.began or 0 for _, turn in turns), begin + 1])
    form = SAME_DAY if clock(begin, DAY) == clock(end, DAY) else f"{DAY} %H:%M"
    scale = (WIDTH - LEFT) / (end - begin)
    height = max(min(18.0, TALLEST / len(turns)), 0.5)
    bars = []
    for index, (row, turn) in enumerate(turns):
        began = turn.began or begin
        ended = end if turn.ended is None else max(turn.ended, began)
        out = "" if turn.unavailable is None else f", {turn.unavailable} s out of service"
        lost = ", no end: the run lost this host" if turn.ended is None else ""
        bars.append(
            {
                "label": shortened(row.host.name, 24) if height >= LABELLED else "",
                "tone": row.tone,
                "x": round(LEFT + (began - begin) * scale, 1),
                "y": round(22 + index * height, 1),
                "width": round(max((ended - began) * scale, 1), 1),
                "height": round(height * 0.8, 1),
                "title": f"{row.host.name}: {row.state}, {clock(began, form)} to {clock(ended, form)}{out}{lost}",
            }
        )
    ticks = [
        {
            "x": round(LEFT + (WIDTH - LEFT) * part / 4, 1),
            "label": clock(begin + (end - begin) * part / 4, form),
            "anchor": "start" if part == 0 else "end" if part == 4 else "middle",
        }
        for part in range(5)
    ]
    note = "" if height >= LABELLED else "Too many hosts for their names: point at a bar, or see the table."
    return {"bars": bars, "ticks": ticks, "height": round(24 + len(turns) * height, 1), "row": height, "note": note}


def page(fleet: Fleet) -> str:
    """Return the page."""
    rows = host_rows(fleet)
    found = problems(rows)
    return render(
        "page.html.j2",
        fleet=fleet,
        title=TITLES[fleet.kind],
        few=len(rows) <= FEW,
        parts=counts(fleet),
        problems=found[:MOST_PROBLEMS],
        other_problems=len(found[MOST_PROBLEMS:]),
        drifts=drifts(rows) if fleet.kind == "audit" else [],
        timeline=timeline(rows),
        columns=used_columns(fleet),
        rows=rows,
        details=[row for row in rows if row.details],
        name=functools.partial(linked_name, rows),
        progress=PROGRESS,
        results=AUDIT_RESULTS if fleet.kind == "audit" else RESULTS,
    )


def linked_name(rows: Sequence[Row], n: int) -> Markup:
    """Return a host's name, as a link to its details where it has some."""
    if not rows[n].details:
        return Markup.escape(rows[n].host.name)
    return Markup('<a href="#h{}">{}</a>').format(n, rows[n].host.name)
