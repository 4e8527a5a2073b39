"""What changed since the last run of a playbook, and the index of all runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    changes,
    index,
    model,
    page,
)

from tests.unit.fleet_reports import report_of, site
from tests.unit.test_fleet_report import HOSTILE, Reader

# ---- the last run ----------------------------------------------------------------------------------------------------


def audited(**states: str) -> Any:
    loaded = {"ok": "580.95.05", "drift": "580.82.07"}
    hosts = {
        name: {"unreachable": True, "message": "no route"}
        if state == "unreachable"
        else {"audit": {"state": state, "row": {"driver_loaded": loaded[state]}, "checks": [{"name": "loaded", "desired": None, "found": None, "ok": state == "ok", "why": "w"}]}}
        for name, state in states.items()
    }  # fmt: skip
    return report_of("audit", hosts)._replace(run=model.Run(inventories=["gpu_hosts"]))


def test_what_changed_since_the_last_run() -> None:
    before = audited(a="ok", b="ok", c="drift", d="ok", former="ok")._replace(time="2026-11-20T00:00:00Z")
    now = changes.compare(before, audited(a="ok", b="drift", c="ok", d="unreachable", e="ok"))
    assert now.previous == before.time
    assert {(one.text, one.tone): one.hosts for one in now.changes} == {
        ("ok -> drift", "warn"): ["b"],
        ("loaded module 580.95.05 -> 580.82.07", "none"): ["b"],
        ("loaded: now drift", "bad"): ["b"],
        ("drift -> ok", "good"): ["c"],
        ("loaded module 580.82.07 -> 580.95.05", "none"): ["c"],
        ("loaded: ok again", "good"): ["c"],
        ("ok -> unreachable", "none"): ["d"],
        ("new: ok", "good"): ["e"],
        ("no longer in the inventory", "none"): ["former"],
    }
    text = " ".join(Reader(page.page(now)).texts)
    assert "Since the last run" in text and "ok -> drift" in text and "2026-11-20 00:00:00 UTC" in text


def test_a_state_is_as_old_as_the_first_run_that_found_it() -> None:
    first = changes.compare(None, audited(a="drift")._replace(time="1"))
    second = changes.compare(first, audited(a="drift", b="ok")._replace(time="2"))
    third = changes.compare(second, audited(a="ok", b="ok")._replace(time="3"))
    assert [[host.since for host in one.hosts] for one in (first, second, third)] == [["1"], ["1", "2"], ["3", "2"]]


@pytest.mark.parametrize(
    "other",
    [{"kind": "site"}, {"check_mode": True}, {"run": model.Run(inventories=["staging"])}],
)
def test_runs_that_are_not_alike_are_not_compared(other: dict[str, Any]) -> None:
    now = changes.compare(audited(a="ok")._replace(**other), audited(a="drift"))
    assert (now.previous, now.changes) == ("", [])
    assert "Since the last run" not in page.page(now)


def test_a_run_of_some_hosts_says_nothing_of_the_others() -> None:
    limited = model.Run(inventories=["gpu_hosts"], limit="a")
    for before, now in (
        (audited(a="ok", b="ok"), audited(a="ok")._replace(run=limited)),
        (audited(a="ok")._replace(run=limited), audited(a="ok", b="ok")),
    ):
        assert changes.compare(before, now).changes == []


# ---- the index -------------------------------------------------------------------------------------------------------


def test_the_index_has_every_run_and_is_made_again_where_it_is_damaged() -> None:
    first, second = site()._replace(time="2026-11-20T00:00:00Z"), audited(a="drift")
    names = ["2026-11-20T00-00-00Z.json", "2026-11-20T00-00-00Z.html", "latest.json", "notes.txt", "audit-2026-11-21T02-12-00Z.html"]  # fmt: skip
    files = {"2026-11-20T00-00-00Z.json": model.as_json(first)}
    name = "audit-2026-11-21T02-12-00Z"
    for known in (
        index.parse(None),
        index.parse("damaged"),
        index.parse('{"schema": 7}'),
        index.parse('{"schema": 1, "runs": [1]}'),
    ):
        found = index.update(known, names, name, second, files.get)
        assert list(found) == [name, "2026-11-20T00-00-00Z"], "the newest first"
    assert index.parse(index.as_json(found)) == found
    again = index.update(index.parse(index.as_json(found)), names, name, second, lambda _: pytest.fail("read again"))
    assert again == found
    foreign = json.loads(index.as_json(found))
    foreign["runs"] = {"../../etc/x": foreign["runs"][name]}
    assert index.parse(json.dumps(foreign)) == {}, "a name of another operator leads nowhere"
    assert list(index.update(found, names[-1:], name, second, files.get)) == [name], "a removed run is in it no more"
    made = index.index_page(found)
    reader = Reader(made)
    links = [attributes["href"] for tag, attributes in reader.elements if tag == "a"]
    assert links == [f"{name}.html", "2026-11-20T00-00-00Z.html"]
    text = " ".join(reader.texts)
    assert "Audit of gpu_hosts" in text and "Provisioning" in text and "1 drift" in text and "7 ready" in text


def test_no_text_of_an_index_becomes_markup() -> None:
    entry = index.Entry(
        HOSTILE, HOSTILE, HOSTILE, 7, HOSTILE, HOSTILE, {HOSTILE: 3}, {HOSTILE: '"><script>'}, False, True
    )
    reader = Reader(index.index_page({"2026-11-20T00-00-00Z": entry}))
    assert "script" not in {tag for tag, _ in reader.elements}


def test_the_last_complete_run_over_the_same_inventory_is_compared() -> None:
    reports = {
        "audit-1": audited(a="ok")._replace(time="1"),
        "audit-2": audited(a="drift")._replace(time="2", interrupted=True),
        "audit-3": audited(a="drift")._replace(time="3", run=model.Run(inventories=["staging"])),
        "4": site()._replace(time="4"),
    }
    known = {name: index.entry_of(one) for name, one in reports.items()}
    found = index.previous(known, audited(a="ok"), lambda name: model.as_json(reports[name.removesuffix(".json")]))
    assert found == reports["audit-1"]
    assert index.previous({}, audited(a="ok"), lambda _: None) is None
    assert index.previous(known, audited(a="ok"), lambda _: "damaged") is None
