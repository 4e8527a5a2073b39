# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""A run as one HTML page, which can be read without its script. Pure: a report in, the text of a page out."""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from ..gpu_ready.report.layout import names_text, without_host
from . import audit_table, run
from .html_page import render
from .model import GREY, NOT_REACHED, TITLES, WAITING, Advice, Host, Report
from .timeline import phase_seconds, timeline

COLUMNS: dict[str, list[tuple[str, str]]] = {
    "site": [(key, heading) for key, heading, _ in run.COLUMNS if key not in ("host", "why")],
    "audit": [(key, heading) for key, heading, _ in audit_table.COLUMNS if key not in ("host", "state")],
    "upgrade": [("before", "from"), ("after", "to"), ("way", "way"), ("unavailable", "seconds out of service")],
    "undrain": [],
    "uninstall": [("removed", "removed"), ("kept", "kept"), ("reboot", "reboot")],
}
"""By kind: the cells of the overview, in order."""
COLUMNS["rollback"] = COLUMNS["upgrade"]
PROGRESS = {
    "done": ("done", "good"),
    "failed": ("failed", "bad"),
    "planned": ("planned", "warn"),
    "not_done": ("not done", "none"),
    "": ("unknown", "none"),
}
RESULTS = {True: ("ok", "good"), False: ("failed", "bad"), None: ("not checked", "none")}
AUDIT_RESULTS = {True: ("ok", "good"), False: ("drift", "bad"), None: ("reported", "none")}
SIGNS = {True: "\N{CHECK MARK}", False: "\N{MULTIPLICATION X}", None: "\N{MIDDLE DOT}"}
NOTHING = ("", "-")
SAME = {
    "driver_loaded": "driver_installed",
    "driver_userspace": "driver_installed",
    "loaded": "driver",
    "userspace": "driver",
}
"""Columns that are shown only where they differ from another one: the module that is loaded from the one on disk."""
FEW = 40
"""Hosts up to which the details of failed ones are open, and all are printed."""
MOST_PROBLEMS, MOST_CARDS, MOST_ROWS, MOST_CHANGES = 50, 200, 100, 30
"""Messages, cards of details, rows of the checks and changes that a page has; the JSON file has all of them."""
MOST_NAMES = 40
LONGEST_WHY = 160
WIDTH = 1000
"""Units of the bars: their width."""
SLOWEST = 10
"""Steps in the table of the slowest ones."""


class Row(NamedTuple):
    """A host on the page. ``n``: its number. ``card``: the number of its details, -1 for none."""

    n: int
    host: Host
    cells: list[str]
    short: str
    card: int


class Card(NamedTuple):
    """The details of all hosts that have the same ones. ``hosts``: numbers of their rows; ``facts``: equal ones."""

    host: Host
    hosts: list[int]
    facts: list[tuple[str, str]]
    seconds: list[str]


class Problem(NamedTuple):
    """Hosts with the same messages: the numbers of the first ones, and how many more."""

    host: Host
    texts: list[Advice]
    hosts: list[int]
    more: int = 0


def shortened(value: str, most: int) -> str:
    return value if len(value) <= most else value[: most - 3] + "..."


def words(name: str) -> str:
    return name.replace("_", " ")


def duration(seconds: int | None) -> str:
    """Return seconds as a person writes them."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds} s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    return f"{minutes // 60} h {minutes % 60} min"


def used_columns(report: Report) -> list[tuple[str, str]]:
    """Return the columns in which some host has a value, without those that say of every host what another says."""
    return [
        (key, heading)
        for key, heading in COLUMNS[report.kind]
        if any(host.cells.get(key, "") not in NOTHING + (host.cells.get(SAME.get(key, "")),) for host in report.hosts)
    ]


def group_details(report: Report) -> tuple[list[Row], list[Card]]:
    """Return the rows of the overview, and the details: of hosts with equal ones once."""
    columns = used_columns(report)
    rows: list[Row] = []
    groups: dict[Any, list[int]] = {}
    for n, host in enumerate(report.hosts):
        if not host.good or host.steps or host.checks or host.warnings or host.lists or host.work:
            groups.setdefault(details_key(host), []).append(n)
    order = sorted(groups.values(), key=lambda group: (not is_failed(report.hosts[group[0]]), -len(group)))
    cards = [card_of(report, group, columns) for group in order[:MOST_CARDS]]
    numbers = {n: index for index, card in enumerate(cards) for n in card.hosts}
    for n, host in enumerate(report.hosts):
        # Of a time the day: the details have all of it.
        cells = [re.sub(r"(?<=\d)T\d\d:\d\d:\d\dZ$", "", host.cells.get(key, "")) for key, _ in columns]
        short = shortened(" ".join(host.why.message.split()), LONGEST_WHY)
        rows.append(Row(n, host, cells, short, numbers.get(n, -1)))
    return rows, cards


def is_failed(host: Host) -> bool:
    return not host.good and host.state not in GREY


def details_key(host: Host) -> Any:
    """Return what is equal for hosts that share their details: everything that is no measurement and no name."""
    name = host.name

    def plain(one: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(tuple(without_host(str(part), name) for part in entry) for entry in one)

    return (
        host.state,
        host.failed_step,
        plain([host.why]),
        plain(step[:4] for step in host.steps),
        plain(host.refusals),
        plain(host.warnings),
        plain(host.checks),
        tuple((heading, plain([entries])) for heading, entries in host.lists.items()),
        plain(host.holders),
    )


def card_of(report: Report, group: list[int], columns: Sequence[tuple[str, str]]) -> Card:
    """Return the details of a group of hosts, with the words of the first."""
    hosts = [report.hosts[n] for n in group]
    first = hosts[0]
    facts = [
        (heading, first.cells[key])
        for key, heading in columns
        if first.cells.get(key, "") not in NOTHING and all(one.cells.get(key) == first.cells[key] for one in hosts)
    ]
    seconds = [range_text([host.steps[index].seconds for host in hosts]) for index in range(len(first.steps))]
    return Card(first, group, facts, seconds)


def range_text(values: Iterable[int | None]) -> str:
    """Return durations as one text: the shortest and the longest."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return ""
    return duration(known[0]) if known[0] == known[-1] else f"{duration(known[0])} to {duration(known[-1])}"


def share_bar(parts: Sequence[tuple[str, str, int, str]], total: int) -> list[dict[str, Any]]:
    """Return the parts (key, words, number, tone) of a bar, in units of its width."""
    found, x = [], 0.0
    for key, text, number, tone in parts:
        width = WIDTH * number / max(total, 1)
        found.append(
            {"key": key, "state": text, "count": number, "tone": tone, "x": round(x, 2), "width": round(width, 2)}
        )
        x += width
    return found


def counts(report: Report) -> list[dict[str, Any]]:
    """Return the parts of the bar of states."""
    tones = {host.state: host.tone for host in report.hosts}
    return share_bar(
        [(state, words(state), number, tones[state]) for state, number in report.counts.items()], len(report.hosts)
    )


def drivers(report: Report) -> list[dict[str, Any]]:
    """Return the parts of the bar of driver versions, empty where all hosts have one."""
    key = "after" if report.kind in ("upgrade", "rollback") else "driver_installed"
    numbers: dict[str, int] = {}
    for host in report.hosts:
        version = current_driver(host, key)
        if version:
            numbers[version] = numbers.get(version, 0) + 1
    order = sorted(numbers, key=lambda version: (-numbers[version], version))
    parts = [(version, version, numbers[version], f"s{index}") for index, version in enumerate(order[:6])]
    rest = sum(numbers[version] for version in order[6:])
    parts += [("", f"{len(order) - 6} other versions", rest, "none")] if rest else []
    return share_bar(parts, sum(numbers.values())) if len(numbers) > 1 else []


def current_driver(host: Host, key: str) -> str:
    """Return the driver that a host has after the run, "" if unknown."""
    if key == "driver_installed":
        return host.cells.get(key, "")
    changed = host.state in ("upgraded", "current") or (host.state == "rolled_back" and host.good)
    return host.cells.get("after" if changed else "before", "") or host.cells.get("before", "")


def problems(report: Report, rows: Sequence[Row]) -> list[Problem]:
    """Return the messages of hosts that are not in a good state, equal ones once: causes before consequences."""
    found: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        if row.host.good:
            continue
        texts = row.host.refusals or [row.host.why]
        key = (row.host.state, *(without_host(f"{one.message}\n{one.remedy}", row.host.name) for one in texts))
        found.setdefault(key, []).append(row.n)

    def order(group: list[int]) -> tuple[int, int]:
        state = rows[group[0]].host.state
        return 2 if state == NOT_REACHED else 1 if state in WAITING else 0, -len(group)

    made = []
    for group in sorted(found.values(), key=order):
        host = rows[group[0]].host
        made.append(Problem(host, host.refusals or [host.why], group[:MOST_NAMES], len(group[MOST_NAMES:])))
    return made + left_behind(report, rows)


def left_behind(report: Report, rows: Sequence[Row]) -> list[Problem]:
    """Return the hosts that were rolled back in this rollout, and that the operator excluded since then."""
    found = [
        row.n
        for row in rows
        if row.host.state == "excluded" and any(turn.state == "rolled_back" for turn in row.host.turns[-1:])
    ]
    if report.kind != "upgrade" or not found:
        return []
    who = "1 host of this rollout was" if len(found) == 1 else f"{len(found)} hosts of this rollout were"
    verb = "is" if len(found) == 1 else "are"
    text = Advice(f"{who} rolled back, {verb} excluded now, and still {verb} on the earlier driver.")
    return [Problem(rows[found[0]].host, [text], found[:MOST_NAMES], len(found[MOST_NAMES:]))]


def drifts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the checks of an audit that failed, on most hosts first."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        for check in row.host.checks:
            if check.ok is False:
                new = {"check": check, "hosts": []}
                found.setdefault(check.name, new)["hosts"].append(row.n)
    return sorted(found.values(), key=lambda one: -len(one["hosts"]))


class MatrixRow(NamedTuple):
    hosts: list[int]
    cells: list[tuple[str, str, str]]
    """Colour, sign and words of each check, all "" where a host does not have it."""


def matrix(rows: Sequence[Row], results: dict[bool | None, tuple[str, str]]) -> tuple[list[str], list[MatrixRow]]:
    """Return the names of all checks, and their results: one row for all hosts with the same ones, worst first."""
    names = list(dict.fromkeys(check.name for row in rows for check in row.host.checks))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        if row.host.checks:
            by_name = {check.name: check.ok for check in row.host.checks}
            groups.setdefault(tuple(by_name.get(name, "") for name in names), []).append(row.n)
    found = []
    for key in sorted(groups, key=lambda key: (-sum(one is False for one in key), -len(groups[key]))):
        cells = [("", "", "") if one == "" else (results[one][1], SIGNS[one], results[one][0]) for one in key]
        found.append(MatrixRow(groups[key], cells))
    return names, found


def slowest(report: Report) -> list[dict[str, Any]]:
    """Return what took the longest on one host: steps, or the phases of a rollout."""
    found: dict[str, list[tuple[int, str]]] = {}
    for host in report.hosts:
        for name, seconds in [*((step.name, step.seconds) for step in host.steps), *phase_seconds(host)]:
            if seconds is not None:
                found.setdefault(name, []).append((seconds, host.name))
    order = sorted(found, key=lambda name: -max(found[name])[0])
    return [
        {
            "name": name,
            "hosts": len(found[name]),
            "median": duration(int(statistics.median(seconds for seconds, _ in found[name]))),
            "most": duration(max(found[name])[0]),
            "host": max(found[name])[1],
        }
        for name in order[:SLOWEST]
    ]


def provenance(report: Report) -> list[tuple[str, str]]:
    """Return who ran what, where and with which versions."""
    made = report.run
    span = f"{stamp(made.began)} to {stamp(report.time)}" if made.began else stamp(report.time)
    rows = [
        ("command", made.command),
        ("operator", made.operator),
        ("inventory", ", ".join(made.inventories)),
        ("limit", made.limit),
        ("time", f"{span}, {duration(made.seconds)}" if made.seconds is not None else span),
    ]
    versions = [("gpu-ready", made.gpu_ready), ("ansible-core", made.ansible)]
    named = [f"{name} {version}" for name, version in versions if version]
    rows.append(("versions", "; ".join(filter(None, [", ".join(named), report.catalog_text]))))
    if report.rollout:
        one = report.rollout
        targets = names_text(one.targets) or "unknown"
        undoes = f", undoes rollout {one.undoes}" if one.undoes else ""
        rows.append(
            ("rollout", f"{one.id} to {targets}, {len(one.runs)} run{'s' if len(one.runs) > 1 else ''}{undoes}")
        )
    return [(name, value) for name, value in rows if value]


def stamp(time: str) -> str:
    """Return an ISO time for people."""
    return time.replace("T", " ").replace("Z", " UTC")


def title_of(report: Report) -> str:
    """Return the title of a page, with the name of the inventory."""
    names = [one.rstrip("/").rpartition("/")[2] for one in report.run.inventories]
    return f"{TITLES[report.kind]} of {', '.join(names)}" if names else TITLES[report.kind]


def label_rules(headings: Sequence[str]) -> str:
    """Return style that writes the headings before the cells where rows are shown as cards; they are constants."""
    rules = "".join(
        f'.overview td:nth-child({number})::before{{content:"{heading}"}}'
        for number, heading in enumerate(headings, 1)
        if number > 1 and re.fullmatch(r"[\w -]+", heading)
    )
    return f"@media (max-width:40rem){{{rules}}}"


def page(report: Report, index: bool = False) -> str:
    """Return the page. ``index``: there is an index.html beside it."""
    rows, cards = group_details(report)
    found = problems(report, rows)
    results = AUDIT_RESULTS if report.kind == "audit" else RESULTS
    columns = used_columns(report)
    checks, matrix_rows = matrix(rows, results)
    return render(
        "page.html.j2",
        more_style=label_rules(["host", "state", "why", *(name for _, name in columns)]),
        report=report,
        title=title_of(report),
        index=index,
        provenance=provenance(report),
        few=len(rows) <= FEW,
        parts=counts(report),
        drivers=drivers(report),
        problems=found[:MOST_PROBLEMS],
        other_problems=len(found[MOST_PROBLEMS:]),
        changes=report.changes[:MOST_CHANGES],
        other_changes=len(report.changes[MOST_CHANGES:]),
        drifts=drifts(rows) if report.kind == "audit" else [],
        checks=checks,
        matrix=matrix_rows[:MOST_ROWS],
        other_rows=sum(len(one.hosts) for one in matrix_rows[MOST_ROWS:]),
        timeline=timeline(report),
        slowest=slowest(report),
        columns=columns,
        rows=rows,
        cards=cards,
        name=functools.partial(linked_name, rows),
        failed=is_failed,
        words=words,
        stamp=stamp,
        listed=names_text,
        progress=PROGRESS,
        results=results,
    )


def linked_name(rows: Sequence[Row], n: int) -> Markup:
    """Return a host's name, as a link to its details where it has some."""
    if rows[n].card < 0:
        return Markup.escape(rows[n].host.name)
    return Markup('<a href="#h{}">{}</a>').format(rows[n].card, rows[n].host.name)
