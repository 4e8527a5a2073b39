# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The index of the runs whose reports are in a directory: a file for programs, and a page. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ...module_utils.gpu_ready.base import records
from ...module_utils.gpu_ready.base.errors import GpuReadyError
from . import page, texts
from .html_page import render
from .model import TITLES, Report, from_json
from .store import RUN

FILE, PAGE = "index.json", "index.html"
SCHEMA = 1
MOST = 1000
"""Runs that the page shows, the newest ones."""


class Entry(NamedTuple):
    """A run. ``tones``: the colour of each state of ``counts``."""

    kind: str
    time: str
    title: str
    seconds: int | None
    operator: str
    command: str
    counts: dict[str, int]
    tones: dict[str, str]
    check_mode: bool
    interrupted: bool


def entry_of(report: Report) -> Entry:
    """Return the entry of a run."""
    return Entry(
        report.kind,
        report.time,
        page.title_of(report),
        report.run.seconds,
        report.run.operator,
        report.run.command,
        report.counts,
        {host.state: host.tone for host in report.hosts},
        report.check_mode,
        report.interrupted,
    )


def previous(known: Mapping[str, Entry], report: Report, read: Callable[[str], str | None]) -> Report | None:
    """Return the last complete run of this kind over this inventory, None if there is none that can be read."""
    title = page.title_of(report)
    same = [
        (one.time, name)
        for name, one in known.items()
        if (one.kind, one.title, one.interrupted) == (report.kind, title, False)
    ]
    return read_report(read(f"{max(same)[1]}.json")) if same else None


def update(
    known: Mapping[str, Entry], names: Iterable[str], name: str, report: Report, read: Callable[[str], str | None]
) -> dict[str, Entry]:
    """Return the entries of all runs by name, the newest first.

    ``known``: the index before. ``names``: of all files. ``name``: of this run. ``read`` returns the text of a file;
    only those are read that the index does not know, since another run may have written it at the same time.
    """
    found = {name: entry_of(report)}
    for stem in {one.rpartition(".")[0] for one in names if RUN.fullmatch(one)} - {name}:
        unknown = None if stem in known else read_report(read(f"{stem}.json"))
        if stem in known:
            found[stem] = known[stem]
        elif unknown:
            found[stem] = entry_of(unknown)
    return dict(sorted(found.items(), key=lambda pair: (pair[1].time, pair[0]), reverse=True))


def read_report(text: str | None) -> Report | None:
    """Return the report of a file, None if it cannot be read."""
    try:
        return from_json(text) if text else None
    except GpuReadyError:
        return None


def parse(text: str | None) -> dict[str, Entry]:
    """Return the entries of an index, none of one that is damaged or of another release: it is made again."""
    try:
        value: Any = json.loads(text or "{}")
        runs = texts.mapping(records.without_schema(value, SCHEMA, FILE).get("runs"))
        return {name: records.from_json(Entry, one) for name, one in runs.items() if RUN.fullmatch(f"{name}.json")}
    except (ValueError, TypeError, RecursionError, GpuReadyError):
        return {}


def as_json(entries: dict[str, Entry]) -> str:
    """Return the text of the file."""
    return json.dumps({"schema": SCHEMA, "runs": records.to_json(entries)}, indent=1) + "\n"


def index_page(entries: dict[str, Entry]) -> str:
    """Return the page."""
    shown = list(entries.items())[:MOST]
    rows = [
        {
            "name": name,
            "entry": one,
            "title": one.title if one.kind in TITLES else one.kind,
            "duration": page.duration(one.seconds),
            "parts": page.share_bar(
                [
                    (state, page.words(state), number, one.tones.get(state, "none"))
                    for state, number in one.counts.items()
                ],
                sum(one.counts.values()),
            ),
            "hosts": sum(one.counts.values()),
        }
        for name, one in shown
    ]
    return render("index.html.j2", rows=rows, more=len(entries) - len(shown), stamp=page.stamp)
