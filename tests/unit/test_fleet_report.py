"""The files of a run: HTML, Prometheus, JSON, and how many are kept."""

from __future__ import annotations

import html.parser
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    changes,
    command_line,
    commands,
    index,
    metrics,
    model,
    page,
    read,
    store,
    timeline,
)
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.gpu_ready.rollout import fold

from tests.grid import sampled
from tests.unit import chromium, fleet_reports
from tests.unit.fleet_reports import FLEETS, ROW, STEPS, TIME, hosts_of, report_of, site
from tests.unit.lying_host import make_liar, run_playbook

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`&amp;{{ 7*7 }}{% raw %}\x1b]0;x\x07\x9b\u202e\u2066\u200b\ud800\x00]]>\\n"
VOID = {"meta", "input", "br"}


class Reader(html.parser.HTMLParser):
    """What a page consists of: elements with their attributes, and the text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def poisoned(value: Any) -> Any:
    """The value with the hostile text in every text and key that is not a name."""
    if isinstance(value, dict):
        return {key: poisoned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    return f"{value} {HOSTILE}" if isinstance(value, str) else value


def hostile(kind: str) -> Any:
    """A fleet whose hosts answer the hostile text wherever a text is accepted."""
    name = f"n{HOSTILE}"
    failed = {"step": poisoned("run | Verify"), "message": HOSTILE}
    checks = [
        {"name": HOSTILE, "ok": False, "expected": HOSTILE, "found": HOSTILE, "cause": HOSTILE, "remedy": HOSTILE}
    ]
    hosts: dict[str, dict[str, dict[str, Any]]] = {
        "site": {
            name: {"row": poisoned(ROW), "steps": poisoned(STEPS), "failure": failed, "verify": {"verify": {"ok": False, "checks": checks}}, "warnings": [{"message": HOSTILE, "remedy": HOSTILE}, HOSTILE]},
            "b": {"row": poisoned(ROW), "refusals": [{"message": HOSTILE, "remedy": HOSTILE}]},
        },
        "audit": {
            name: {"audit": {"state": HOSTILE, "why": [HOSTILE], "checks": [{"name": HOSTILE, "desired": HOSTILE, "found": HOSTILE, "ok": False, "why": HOSTILE}], "holders": [{"pid": 1, "name": HOSTILE, "command": HOSTILE}], "steps": [HOSTILE], "warnings": [HOSTILE], "summary": HOSTILE, "row": {"gpus": HOSTILE}}},
            "b": {"answer": {"unreachable": True, "msg": HOSTILE}},
        },
        "upgrade": {
            name: {"outcome": {"state": HOSTILE, "from": HOSTILE, "to": HOSTILE, "way": HOSTILE, "seconds_unavailable": 7, "reason": HOSTILE}},
        },
        "undrain": {name: {"turn": {"failed": True, "msg": HOSTILE}}, "b": {"turn": {"unreachable": True, "msg": HOSTILE}}},
        "uninstall": {name: {"removal": {"actions": [HOSTILE], "kept": [HOSTILE], "stops": [HOSTILE], "reboot_required": True}}, "b": {"removal": {"failed": True, "msg": HOSTILE}}},
    }  # fmt: skip
    found = read.read(kind, hosts[kind], TIME, False)
    run = model.Run(HOSTILE, HOSTILE, [HOSTILE], HOSTILE, HOSTILE, 7, HOSTILE, HOSTILE, HOSTILE)
    before = found._replace(
        run=run, hosts=[one._replace(state=HOSTILE[:9], cells={"gpus": HOSTILE}) for one in found.hosts]
    )
    members = {name: fold.RecordedHost(HOSTILE, "failed", "", 7, None, ((HOSTILE, 8),), 1)}
    runs = [fold.RecordedRun(7, HOSTILE, {}, [], [], 0, "")] * 2
    record = fold.RolloutRecord(7, "upgrade", 0, HOSTILE, members, runs)
    found = changes.compare(before, found._replace(run=run))
    return read.with_rollout(found, record) if kind == "upgrade" else found


@pytest.mark.parametrize("kind", FLEETS)
def test_no_text_of_a_host_becomes_markup(kind: str) -> None:
    made = page.page(hostile(kind))
    honest = {tag for tag, _ in Reader(page.page(FLEETS[kind]())).elements} | {"p", "details", "li", "ul", "br", "span"}
    reader = Reader(made)
    assert {tag for tag, _ in reader.elements} <= honest | {
        "rect",
        "title",
        "text",
        "line",
        "h3",
        "td",
        "th",
        "svg",
        "section",
        "table",
        "thead",
        "tbody",
        "tr",
        "defs",
        "pattern",
        "summary",
        "b",
    }
    assert [tag for tag, _ in reader.elements].count("script") == 1
    assert [tag for tag, _ in reader.elements].count("style") == 1
    names = {name for _, attributes in reader.elements for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "src")]
    assert all(
        re.fullmatch(r"#h\d+", value or "")
        for _, attributes in reader.elements
        for key, value in attributes.items()
        if key == "href"
    )
    assert "<script>alert" not in made and "49" not in "".join(reader.texts)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", made)
    assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in "".join(reader.texts), "shown as it is"
    made.encode("utf-8")


@pytest.mark.parametrize("kind", FLEETS)
def test_the_page_needs_no_other_file_and_is_readable_without_a_script(kind: str) -> None:
    fleet = FLEETS[kind]()
    made = page.page(fleet)
    reader = Reader(made)
    assert not [tag for tag, _ in reader.elements if tag in ("link", "iframe", "object", "embed", "image", "base")]
    assert (
        "http" not in re.sub(r'http-equiv="', "", made)
        and "@import" not in made
        and "url(" not in made.replace("url(#hatch)", "")
    )
    text = " ".join(reader.texts)
    for host in fleet.hosts:
        assert host.name in text and host.why.message[:100] in text
        for one in [*host.refusals, *host.warnings]:
            assert one.message in text and one.remedy in text
        for step in host.steps:
            assert step.name in text and step.why in text
        for check in host.checks:
            assert (
                check.name.replace("_", " ") in text
                and check.found in text
                and check.why in text
                and check.remedy in text
            )


def test_steps_before_the_failed_one_are_done() -> None:
    [broken] = [host for host in site().hosts if host.name == "broken"]
    assert [step.progress for step in broken.steps] == ["done", "done", "failed", "not_done", "not_done"]
    assert broken.why.remedy == "enrol the key of DKMS."


def test_the_json_of_a_rollout_has_every_turn_of_each_host() -> None:
    hosts = json.loads(model.as_json(fleet_reports.upgrade()))["hosts"]
    found = hosts["gpu-node-0006"]
    assert (found["state"], found["cells"]) == (
        "rolled_back",
        {"before": "580.95.05", "after": "595.91.07", "way": "reload", "unavailable": "66"},
    )
    (turn,) = found["turns"]
    assert turn["ended"] - turn["began"] == 134 and turn["phases"][-1][0] == "back"
    assert found["why"]["remedy"] == "see the log."
    assert found["why"]["message"] == "Verify: container_gpus failed. Rolled back to 580.95.05."
    assert [one["run"] for one in hosts["gpu-node-0011"]["turns"]] == [1, 2]


@pytest.mark.parametrize("kind", FLEETS)
def test_the_json_is_one_form_for_every_playbook_and_is_read_again(kind: str) -> None:
    for report in (FLEETS[kind](), hostile(kind)):
        assert model.from_json(model.as_json(report)) == report
        found = json.loads(model.as_json(report))
        one = json.loads(model.as_json(site()))
        assert set(found) == set(one) and found["kind"] == kind
        assert {frozenset(host) for host in found["hosts"].values()} == {
            frozenset(host) for host in one["hosts"].values()
        }


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "hosts": []}', "[" * 100_000])
def test_a_report_of_another_form_is_an_error_of_its_own(text: str) -> None:
    with pytest.raises(GpuReadyError):
        model.from_json(text)


def test_an_audit_names_what_holds_the_gpus_and_its_container() -> None:
    assert fleet_reports.audit().hosts[0].work == [model.Holder(4242, "python train.py", "train")]
    assert "python train.py (pid 4242) in container train" in page.page(fleet_reports.audit())


def test_steps_have_their_durations_and_the_slowest_ones_a_table() -> None:
    entry = {"row": ROW, "steps": STEPS, "verify": {"verify": {"ok": True}}, "seconds": {STEPS[1]["id"]: 700}}
    failed = entry | {"failure": {"step": STEPS[2]["id"], "message": "x", "seconds": {STEPS[2]["id"]: 90}}}
    report = report_of("site", {"gpu1": entry, "gpu2": entry | {"seconds": {STEPS[1]["id"]: 300}}, "gpu3": failed})
    assert [step.seconds for step in hosts_of(report)["gpu3"].steps] == [None, 700, 90, None, None]
    assert page.slowest(report) == [
        {"name": STEPS[1]["id"], "hosts": 3, "median": "11 min 40 s", "most": "11 min 40 s", "host": "gpu3"},
        {"name": STEPS[2]["id"], "hosts": 1, "median": "90 s", "most": "90 s", "host": "gpu3"},
    ]
    made = page.page(report)
    assert "What took longest" in made and "5 min to 11 min 40 s" in made


@pytest.mark.host_io
def test_the_durations_come_from_what_the_roles_have_registered(tmp_path: Path) -> None:
    plan = {"row": ROW, "plan": {"gpu_host": True, "steps": STEPS, "refusals": [], "warnings": []}}
    done = {"kernel_headers_executed": {"seconds": {STEPS[0]["id"]: 7}}}
    failed = {"nvidia_driver_executed": {"failed": True, "seconds": {STEPS[1]["id"]: 71}}, "docker_engine_executed": 7}
    hosts: dict[str, dict[str, Any]] = {
        "gpu1": {"gpu_plan_result": plan} | done | failed,
        "gpu2": {"gpu_plan_result": {"row": ROW}},
    }
    play = {"hosts": "all", "gather_facts": False, "roles": [{"role": "gpu_ready.nodes.gpu_report", "run_once": True}]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    run = run_playbook(tmp_path, tmp_path / "play.yml", hosts, "-e", "pin=hunter2", "--limit", "gpu1,gpu2")
    found = json.loads((tmp_path / "reports/latest.json").read_text())
    assert [step["seconds"] for step in found["hosts"]["gpu1"]["steps"]] == [7, 71, None, None, None], run.stdout
    assert found["run"]["command"].startswith("ansible-playbook ") and found["run"]["command"].endswith("-e 'pin=***' --limit gpu1,gpu2")  # fmt: skip
    assert found["run"]["limit"] == "gpu1,gpu2" and found["run"]["inventories"] == ["hosts.json"]
    assert "@" in found["run"]["operator"] and found["run"]["began"] <= found["time"]
    assert (found["run"]["gpu_ready"], found["run"]["catalog"][:2]) == ("0.1.0", "20") and found["run"]["ansible"]
    again = run_playbook(tmp_path, tmp_path / "play.yml", hosts)
    runs = json.loads((tmp_path / "reports/index.json").read_text())["runs"]
    assert len(runs) == 2 and (tmp_path / "reports/index.html").exists(), again.stdout + again.stderr


def test_a_refusal_names_no_step_that_failed() -> None:
    entry = {"row": ROW, "refusals": [{"message": "no", "remedy": "b"}], "failure": {"step": "plan", "message": "no"}}
    report = report_of("site", {"gpu1": entry})
    assert report.hosts[0].state == "refused" and "Failed at" not in page.page(report)


def test_a_cause_is_above_its_consequence() -> None:
    made = page.page(fleet_reports.upgrade())
    attention = made[made.index("What needs attention") : made.index("<h2>Timeline")]
    assert attention.index("container_gpus failed") < attention.index("the rollout did not reach this host")


def test_a_host_that_was_rolled_back_and_is_excluded_now_needs_attention() -> None:
    report = fleet_reports.upgrade()
    hosts = [host._replace(state="excluded", good=True) if host.turns[-1:] and host.turns[-1].state == "rolled_back" else host for host in report.hosts]  # fmt: skip
    made = page.page(report._replace(hosts=hosts))
    assert "1 host of this rollout was rolled back, is excluded now, and still is on the earlier driver." in made
    assert [host.tone for host in hosts if host.state == "excluded"] == ["none"], "neither green nor red"


def test_equal_hosts_are_on_a_page_once() -> None:
    made = page.page(site(60))
    assert made.count('<details class="host"') < 12
    rows, cards = page.group_details(site(60))
    assert sorted(n for card in cards for n in card.hosts) == sorted(row.n for row in rows if row.card >= 0)
    assert all(n in cards[rows[n].card].hosts for n in range(60) if rows[n].card >= 0)


def test_the_checks_of_all_hosts_are_a_table_of_cells() -> None:
    rows, _ = page.group_details(fleet_reports.audit())
    names, found = page.matrix(rows, page.AUDIT_RESULTS)
    assert names == ["loaded", "holds", "reboot", "verified"]
    assert [(one.hosts, [cell[1] for cell in one.cells]) for one in found] == [
        ([1, 2], ["\u2715", "\u2713", "\u2713", "\u2715"]),
        ([0], ["\u2713"] * 4),
    ], "worst first, equal ones once, none of a host without an answer"


def test_who_ran_what_is_on_the_page() -> None:
    run = model.Run("ansible-playbook site.yml -i staging", "alice@control", ["inventories/staging"], "gpu1", "2026-11-21T02:02:00Z", 600, "0.1.0", "2.19.4", "2026-11-21")  # fmt: skip
    text = " ".join(Reader(page.page(site()._replace(run=run))).texts)
    for one in (run.command, run.operator, run.limit, "Provisioning of staging", "2026-11-21 02:02:00 UTC to 2026-11-21 02:12:00 UTC, 10 min", "gpu-ready 0.1.0, ansible-core 2.19.4; catalog of 2026-11-21, 0 days old"):  # fmt: skip
        assert one in text


@pytest.mark.parametrize("kind", FLEETS)
def test_every_report_says_how_old_its_catalog_is(kind: str) -> None:
    report = FLEETS[kind]()._replace(time="2026-11-21T02:12:00Z", run=model.Run(catalog="2026-10-20"))
    line = "catalog of 2026-10-20, 32 days old"
    assert line in page.page(report) and json.loads(model.as_json(report))["catalog_age_days"] == 32
    assert 'gpu_ready_catalog_timestamp_seconds{playbook="' in metrics.metrics(report)
    if kind in ("site", "audit", "upgrade"):
        assert line in commands.shown_text(report, "table", 100, False, [], "").splitlines()
    for form in commands.FOR_PROGRAMS if kind == "audit" else ():
        assert line not in commands.shown_text(report, form, 100, False, [], "")
    for unknown in ("", "<b>", "2026-13-40"):
        other = report._replace(run=model.Run(catalog=unknown))
        assert other.catalog_age_days is None and "catalog of" not in page.page(other)


# ---- the last run ----------------------------------------------------------------------------------------------------


def audited(**states: str) -> Any:
    loaded = {"ok": "580.95.05", "drift": "580.82.07"}
    hosts = {
        name: {"answer": {"unreachable": True, "msg": "no route"}}
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


# ---- the timeline ----------------------------------------------------------------------------------------------------


def test_the_timeline_has_the_phases_of_all_runs_within_the_chart() -> None:
    chart = timeline.timeline(fleet_reports.upgrade())
    assert chart is not None and len(chart["labels"]) == 21 and timeline.timeline(site()) is None
    assert all(bar["x"] >= timeline.LEFT and bar["x"] + bar["width"] <= timeline.WIDTH + 1 for bar in chart["bars"])
    assert chart["lost"] == ["gpu-node-0010"]
    assert [one["label"] for one in chart["runs"]] == ["run 2"] and chart["runs"][0]["operator"] == "bob@control"
    resumed = [bar["title"].partition(", ")[2] for bar in chart["bars"] if bar["title"].startswith("gpu-node-0011:")]
    assert len(resumed) == 8
    colours = [bar["colour"] for bar in chart["bars"] if bar["title"].startswith("gpu-node-0011:")]
    assert colours == ["drain", "wait", "drain", "drain", "switch", "verify", "return", "soak"]
    assert {colour for colour, _ in chart["legend"]} == {"drain", "switch", "verify", "return", "soak", "back", "wait"}


def test_the_bars_of_a_host_are_as_long_as_it_was_out_of_service() -> None:
    """A host whose turn was interrupted and resumed: both turns, and the wait between them."""
    turns = [
        model.Turn(1, 100, None, "", [("draining", 100), ("switching", 120)]),
        model.Turn(2, 300, 400, "upgraded", [("draining", 300), ("switching", 310), ("verified", 390)]),
    ]
    found = timeline.segments(turns, 400)
    assert [(one.colour, one.began, one.ended) for one in found] == [
        ("drain", 100, 120), ("wait", 120, 300), ("drain", 300, 310), ("switch", 310, 390), ("return", 390, 400),
    ]  # fmt: skip
    assert [one.colour for one in timeline.segments(turns[:1], 150)] == ["drain", "switch"], "it is still at work"


def test_a_weekend_between_two_runs_does_not_hide_the_turns() -> None:
    scale = timeline.Scale([(0, 100), (200_000, 200_100)])
    assert scale.x(0) == timeline.LEFT and scale.x(200_100) == timeline.WIDTH
    assert scale.x(100) - scale.x(0) > 390 and len(scale.breaks) == 1
    assert scale.x(100) < scale.breaks[0] < scale.x(200_000)
    assert timeline.Scale([(0, 100), (104, 200)]).breaks == []


def test_the_timeline_names_the_days_of_a_rollout_over_midnight() -> None:
    report = fleet_reports.upgrade()
    same_day = timeline.timeline(report)
    assert same_day is not None and same_day["ticks"][0]["label"] == "01:53:20"
    first = report.hosts[0]
    turn = first.turns[0]._replace(
        began=first.turns[0].began - 85800, ended=(first.turns[0].ended or 0) - 85800, phases=[]
    )
    chart = timeline.timeline(report._replace(hosts=[first._replace(turns=[turn]), *report.hosts[1:]]))
    assert chart is not None and chart["breaks"]
    assert chart["ticks"][0]["label"] == "2025-11-20 02:03"
    assert "2025-11-20 02:03 to 2025-11-20 02:05" in chart["bars"][0]["title"]


# ---- many hosts ------------------------------------------------------------------------------------------------------


def count_calls(fleet: Any) -> int:
    """Calls of functions for one page: the same number on a busy machine, unlike seconds."""
    number = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        page.page(fleet)
    finally:
        sys.setprofile(None)
    return number


def test_a_page_of_2000_hosts_grows_with_the_hosts_and_not_faster() -> None:
    few, many = site(200), site(2000)
    sizes = [len(page.page(fleet)) for fleet in (few, many)]
    assert sizes[1] <= 10.5 * sizes[0]
    assert sizes[1] <= 1_000_000, "bytes"
    assert count_calls(many) <= 10.5 * count_calls(few)
    rollout = fleet_reports.upgrade(2000)
    chart = timeline.timeline(rollout)
    assert chart is not None and chart["height"] <= timeline.TALLEST + 40
    assert len(page.page(rollout)) <= 1_200_000


def test_a_page_of_2000_hosts_that_are_all_different_is_bounded() -> None:
    hosts = {
        f"gpu{n}": {"row": ROW, "steps": STEPS, "failure": {"step": "x", "message": "m" * (n % 700) + "."}, "warnings": ["w" * n]}
        for n in range(2000)
    }  # fmt: skip
    made = page.page(report_of("site", hosts))
    assert len(made) <= 3_000_000
    assert "more messages are in the details" in made


# ---- Prometheus ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made", [*[FLEETS[kind] for kind in FLEETS], *[lambda kind=kind: hostile(kind) for kind in FLEETS]]
)
def test_metrics_have_the_exposition_format(made: Any, tmp_path: Path) -> None:
    text = metrics.metrics(made())
    head = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            head = line.split()[2]
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {head} gauge"
        else:
            label = r'[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"'
            assert re.fullmatch(rf"{head}\{{{label}(?:,{label})*\}} \d+", line), line
    heads = re.findall(r"^# HELP (\w+)", text, re.MULTILINE)
    assert len(heads) == len(set(heads))


def test_metrics_of_an_audit() -> None:
    text = metrics.metrics(fleet_reports.audit())
    assert 'gpu_ready_host_drift{host="up-b",playbook="audit"} 1' in text
    assert 'gpu_ready_host_drift{host="up-a",playbook="audit"} 0' in text
    assert 'gpu_ready_host_verified{host="up-a",playbook="audit"} 1' in text
    assert 'gpu_ready_host_failed{host="up-d",playbook="audit"} 1' in text
    assert 'gpu_ready_host_drift{host="up-d"' not in text, "unknown is not false"
    assert 'gpu_ready_hosts{state="drift",playbook="audit"} 2' in text
    assert 'gpu_ready_last_run_timestamp_seconds{playbook="audit"} 1795227120' in text


@pytest.mark.host_io
@pytest.mark.usefixtures("prometheus")
@pytest.mark.parametrize("kind", FLEETS)
def test_promtool_accepts_the_metrics(kind: str) -> None:
    for fleet in (FLEETS[kind](), hostile(kind)):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=metrics.metrics(fleet), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


# ---- files -----------------------------------------------------------------------------------------------------------


CONTENTS = {"json": "{}", "html": "x", "prometheus": "m"}


def test_the_newest_runs_of_each_playbook_are_kept_and_nothing_else_is_removed(tmp_path: Path) -> None:
    foreign = [tmp_path / name for name in ("notes.json", "2026-11-21.json", "site-2026-01-01T00-00-00Z.json.bak")]
    for path in foreign:
        path.write_text("x")
    with store.opened(tmp_path, "gpu_report_directory") as directory:

        def write(kind: str, time: str, contents: dict[str, str]) -> None:
            name = store.free_name(directory.names(), store.base(kind, time))
            store.write_run(directory, kind, name, contents)

        for day in range(1, 6):
            for kind in ("site", "audit"):
                write(kind, f"2026-11-0{day}T00-00-00Z", CONTENTS)
        write("site", "2026-11-05T00-00-00Z", {"json": "{}"})
        removed = store.prune(directory, "site", 2)
        assert store.prune(directory, "audit", 0) == []
    names = {path.name for path in tmp_path.iterdir()}
    assert {path.name for path in foreign} <= names and len(removed) == 8
    assert {name for name in names if name.startswith("2026") and name != "2026-11-21.json"} == {
        "2026-11-05T00-00-00Z.json", "2026-11-05T00-00-00Z.html", "2026-11-05T00-00-00Z-2.json",
    }  # fmt: skip
    assert len([name for name in names if name.startswith("audit-")]) == 10
    assert {"latest.json", "latest.html", "latest.prom", "latest-audit.prom"} <= names
    assert not [name for name in names if name.startswith(".")]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_a_file_has_the_mode_of_the_umask_and_its_writer_as_owner(tmp_path: Path, mask: int) -> None:
    """Another operator's file is replaced, not written into: neither its mode nor its owner stays."""
    old = tmp_path / "latest.json"
    old.write_text("old")
    old.chmod(0o604)
    before = old.stat().st_ino
    given = os.umask(mask)
    try:
        with store.opened(tmp_path, "x") as directory:
            directory.write("latest.json", b"new")
    finally:
        os.umask(given)
    found = old.stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0o644 & ~mask, os.geteuid())
    assert found.st_ino != before and old.read_text() == "new"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "bashrc"
    target.write_text("mine")
    (tmp_path / "latest.json").symlink_to(target)
    (tmp_path / "dangling.json").symlink_to(tmp_path / "new")
    with store.opened(tmp_path, "gpu_report_directory") as directory:
        for name in ("latest.json", "dangling.json"):
            with pytest.raises(GpuReadyError) as caught:
                directory.write(name, b"of a host")
            assert str(caught.value) == (
                f"{tmp_path}/{name}: it is a link, and reports are written through none. "
                "Remedy: remove it, or set gpu_report_directory to another path."
            )
        assert directory.read("latest.json") is None and "latest.json" not in directory.names()
    assert target.read_text() == "mine" and not (tmp_path / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bashrc", "dangling.json", "latest.json"]


def test_a_directory_that_is_replaced_meanwhile_gets_nothing(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "other").mkdir()
    with store.opened(tmp_path / "reports", "x") as directory:
        (tmp_path / "reports").rename(tmp_path / "moved")
        (tmp_path / "reports").symlink_to(tmp_path / "other")
        directory.write("a.json", b"x")
    assert (tmp_path / "moved/a.json").exists() and not list((tmp_path / "other").iterdir())


def test_a_path_that_cannot_be_written_is_named_with_cause_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "latest.json").mkdir()
    with pytest.raises(GpuReadyError, match=r"file: it is no directory\. Remedy: set gpu_report_directory to a path"):
        store.opened(tmp_path / "file", "gpu_report_directory").__enter__()
    with pytest.raises(
        GpuReadyError, match=r"/latest.json: Is a directory\. Remedy: set gpu_audit_path to a path that"
    ):
        store.write_file(tmp_path / "latest.json", "x", "gpu_audit_path")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "latest.json"], "no temporary file is left"


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


# ---- the command -----------------------------------------------------------------------------------------------------

PUBLIC = {"nvidia_driver_branch", "gpu_ready_mirror", "docker_engine_daemon_options"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("/x/bin/ansible-playbook site.yml -i gpu_hosts", "ansible-playbook site.yml -i gpu_hosts"),
        ("p x -e nvidia_driver_branch=595", "p x -e nvidia_driver_branch=595"),
        ("p x --extra-vars nvidia_driver_branch=595", "p x --extra-vars nvidia_driver_branch=595"),
        ("p x -e db_password=hunter2", "p x -e 'db_password=***'"),
        ("p x -e pin=hunter2", "p x -e 'pin=***'"),
        ("p x -epin=hunter2", "p x '-epin=***'"),
        ("p x --extra-vars=pin=hunter2", "p x '--extra-vars=pin=***'"),
        ("p x --extra pin=hunter2", "p x --extra 'pin=***'"),
        ("p x -CDe pin=hunter2", "p x -CDe 'pin=***'"),
        ("p x -e 'nvidia_driver_branch=595 pin=hunter2'", "p x -e 'nvidia_driver_branch=595 pin=***'"),
        ("p x -e gpu_ready_mirror=https://u:hunter2@m/x", "p x -e 'gpu_ready_mirror=https://***@m/x'"),
        ("p x -e @secrets.yml", "p x -e @secrets.yml"),
        ("""p x -e '{"pin": "hunter2", "nvidia_driver_branch": 595}'""", """p x -e '{"pin": "***", "nvidia_driver_branch": 595}'"""),
        ("p x -e '{pin: hunter2}'", "p x -e '***'"),
        ("p x -e hunter2", "p x -e '***'"),
        ("p x -e 'pin=\"hunter2'", "p x -e '***'"),
        ("""p x -e '{"docker_engine_daemon_options": {"log-opts": {"splunk-token": "hunter2"}}}'""",
         """p x -e '{"docker_engine_daemon_options": {"log-opts": {"splunk-token": "***"}}}'"""),
        ("p x --become-password-file /p --limit a,b", "p x --become-password-file '***' --limit a,b"),
    ],
)  # fmt: skip
def test_a_command_is_shown_without_its_secrets(words: str, expected: str) -> None:
    shown = command_line.command_text(
        shlex.split(words, posix=True) if "\"hunter2'" not in words else ["p", "x", "-e", 'pin="hunter2'], PUBLIC
    )
    assert "hunter2" not in shown and shown == expected


# Ansible itself does not decode half of a surrogate pair: that host has failed.
ANSWER = {"row": {"distribution": "Debian 12", "why": HOSTILE.replace("\ud800", "")}}


@pytest.mark.host_io
def test_site_writes_every_format(tmp_path: Path) -> None:
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_node_plan": ANSWER}), "wrong": make_liar(tmp_path, "wrong", {"gpu_node_plan": {"lines": [7]}})}  # fmt: skip
    formats = json.dumps({"gpu_report_formats": ["json", "html", "prometheus"], "gpu_report_directory": str(tmp_path / "out")})  # fmt: skip
    done = run_playbook(tmp_path, "site.yml", hosts, "-e", formats, given_plans=True)
    assert done.returncode == 2 and "/out/" in done.stdout, done.stdout + done.stderr
    out = tmp_path / "out"
    found = json.loads((out / "latest.json").read_text())
    assert found["counts"] == {"ready": 1, "refused": 1}, found
    made = (out / "latest.html").read_text()
    assert "gpu1" in made and "find out what changes the host" in made and "<script>alert" not in made
    assert 'gpu_ready_host_failed{host="wrong",playbook="site"} 1' in (out / "latest.prom").read_text()


@pytest.mark.host_io
def test_a_wrong_format_and_an_unwritable_directory_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "play.yml").write_text("- {hosts: all, gather_facts: false, roles: [gpu_ready.nodes.gpu_report]}\n")
    for variables, status, message in (
        (
            {"gpu_report_formats": ["pdf"]},
            0,
            "must be a list with any of json, html, prometheus. The default is used.",
        ),
        (
            {"gpu_report_directory": str(tmp_path / "file")},
            2,
            "file: it is no directory. Remedy: set gpu_report_directory to a path that",
        ),
    ):
        directory = tmp_path / next(iter(variables))
        directory.mkdir()
        hosts = {"gpu1": make_liar(directory, "gpu1", {})}
        done = run_playbook(directory, tmp_path / "play.yml", hosts, "-e", json.dumps(variables))
        shown = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == status and message in shown, shown


@pytest.mark.host_io
def test_an_audit_is_written_where_the_directory_of_reports_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_audit": {"audit": {"state": "ok"}}})}
    given = json.dumps({"gpu_report_directory": str(tmp_path / "file"), "gpu_audit_path": str(tmp_path / "audit.txt")})
    done = run_playbook(tmp_path, "playbooks/audit.yml", hosts, "-e", given, given_plans=True)
    assert done.returncode == 2 and "it is no directory. Remedy: set gpu_report_directory" in done.stdout
    assert "1 host: 1 ok" in (tmp_path / "audit.txt").read_text()


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        ([], ".json"),
        (["--check"], ""),
        (["-e", "gpu_report_formats=html"], ".html"),
        (["-e", "gpu_report_directory="], ""),
    ],
)
def test_a_table_refers_to_a_file_only_if_that_file_was_written(
    tmp_path: Path, arguments: list[str], file: str
) -> None:
    play = {"hosts": "all", "gather_facts": False, "roles": ["gpu_ready.nodes.gpu_report"]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    hosts = {
        f"w{number}": {"gpu_ready_failure": {"step": "Install", "message": "x" * number}} for number in range(1, 61)
    }
    done = run_playbook(tmp_path, tmp_path / "play.yml", hosts, *arguments, ANSIBLE_STDOUT_CALLBACK="default")
    named = re.findall(r"(\S+) has all of them", " ".join(done.stdout.split()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert bool(named) is bool(file) and all((tmp_path / "reports" / name).exists() for name in named), done.stdout
    assert all(name.endswith(file) for name in named)
    assert named or all(f"w{number}: " in done.stdout for number in range(1, 61))


@pytest.mark.host_io
def test_an_uninstallation_is_reported_for_hosts_that_failed_too(tmp_path: Path) -> None:
    answer = {"changed": True, "actions": ["delete /x"], "stops": [], "kept": ["/y: yours"], "reboot_required": False, "held_by": None}  # fmt: skip
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_uninstall": answer}), "gpu2": make_liar(tmp_path, "gpu2", {"gpu_uninstall": {"failed": True, "msg": "not permitted"}})}  # fmt: skip
    done = run_playbook(tmp_path, "playbooks/uninstall.yml", hosts, "-e", f"gpu_report_directory={tmp_path}")
    found = json.loads((tmp_path / "latest-uninstall.json").read_text())["hosts"]
    assert done.returncode == 2, done.stdout
    assert {name: one["state"] for name, one in found.items()} == {"gpu1": "removed", "gpu2": "failed"}
    assert "not permitted" in (tmp_path / "latest-uninstall.html").read_text()


@pytest.mark.host_io
def test_an_undrain_is_reported_for_hosts_that_failed_too(tmp_path: Path) -> None:
    answer = {"failed": True, "msg": "the disk is full. Remedy: free some space"}
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_lease": answer, "gpu_upgrade_journal": answer})}
    done = run_playbook(tmp_path, "playbooks/undrain.yml", hosts, "-e", f"gpu_report_directory={tmp_path}/out")
    found = json.loads((tmp_path / "out/latest-undrain.json").read_text())["hosts"]["gpu1"]
    assert (done.returncode, found["state"]) == (2, "failed"), done.stdout
    assert "Report: " in done.stdout and found["why"]["message"], found


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("playbook", "files"),
    sampled(
        [
            ("playbooks/audit.yml", {"latest-audit.json", "audit.txt"}),
            ("site.yml", {"latest.json"}),
            ("playbooks/kubernetes.yml", {"nodes.yml"}),
            ("playbooks/uninstall.yml", {"latest-uninstall.json"}),
        ],
        2,
    ),
)
def test_variables_of_a_group_say_where_the_files_go_whichever_host_is_the_first(
    tmp_path: Path, playbook: str, files: set[str]
) -> None:
    """Tasks that run once do so for the first host of the play, which the operator's group may not have."""
    removed = {"changed": False, "actions": [], "stops": [], "kept": [], "reboot_required": False, "held_by": None}
    labels = {"labels": {"nvidia.com/gpu.present": "true"}, "gpus": []}
    answers = {
        "gpu_node_plan": ANSWER, "gpu_audit": {"audit": {"state": "ok"}}, "gpu_uninstall": removed, "gpu_kubernetes_labels": labels,
    }  # fmt: skip
    hosts = {name: make_liar(tmp_path, name, answers) for name in ("another", "gpu1")}
    settings = {
        "gpu_report_directory": "{{ inventory_dir }}/out", "gpu_audit_path": "{{ inventory_dir }}/out/audit.txt",
        "gpu_kubernetes_directory": "{{ inventory_dir }}/out",
    }  # fmt: skip
    (tmp_path / "out").mkdir()
    groups = {"gpu_hosts": {"hosts": {"gpu1": {}}, "vars": settings}}
    done = run_playbook(tmp_path, playbook, hosts, given_plans=True, groups=groups, PWD=str(tmp_path / "default"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert files <= {path.name for path in (tmp_path / "out").iterdir()}, done.stdout
    pages = re.findall(r"^Report: (\S+[.]html)$", done.stdout, re.MULTILINE)
    assert [Path(page).exists() for page in pages] == [True] * (playbook != "playbooks/kubernetes.yml"), done.stdout


# ---- in a browser ----------------------------------------------------------------------------------------------------


@pytest.mark.host_io
@pytest.mark.usefixtures("browser")
def test_the_page_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    visible = "[...document.querySelectorAll('tr[data-state]')].filter((row) => row.offsetHeight > 0).length"
    with chromium.Browser(tmp_path / "profile") as browser:
        for kind in FLEETS:
            path.write_text(page.page(hostile(kind)))
            browser.size(400, 800)
            browser.open(path)
            assert browser.evaluate("document.querySelectorAll('script').length") == 1
            assert browser.evaluate("document.documentElement.scrollWidth") <= 400, f"long texts widen {kind}"
            browser.size(1400, 1000)
            path.write_text(page.page(FLEETS[kind]()))
            browser.open(path)
            assert browser.evaluate(visible) == len(FLEETS[kind]().hosts)
            assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
            browser.size(400, 800)
            assert browser.evaluate("document.documentElement.scrollWidth <= 400"), (
                f"{kind} is too wide for a telephone"
            )
            least = "Math.min(...[...document.querySelectorAll('svg text')].map((text) => text.getBoundingClientRect().height))"
            assert kind != "upgrade" or browser.evaluate(least) >= 9, "the names of the timeline are readable there"
            browser.size(1400, 1000)
        path.write_text(page.page(site()))
        browser.open(path)
        browser.evaluate("document.querySelector('input[type=search]').focus()")
        browser.type("gpu1")
        assert browser.evaluate(visible) == 1
        browser.evaluate("document.querySelector('input[type=search]').value = ''")
        browser.evaluate("document.querySelector('input[value=ready]').click()")
        assert browser.evaluate(visible) == 5
        assert browser.evaluate("document.querySelector('output').textContent") == "5 of 12"
        colours = []
        for scheme in ("light", "dark"):
            browser.scheme(scheme)
            colours.append(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert colours == ["rgb(255, 255, 255)", "rgb(20, 23, 28)"]
        browser.evaluate('document.querySelector(\'a[href="#h6"], a[href^="#h"]\').click()')
        browser.pdf(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
        browser.call("Emulation.setEmulatedMedia", media="print")
        breaks = "[...document.querySelectorAll('.host')].map((card) => getComputedStyle(card).breakInside)"
        assert set(browser.evaluate(breaks)) == {"avoid"}, "a card that fits a page is on one page"
        browser.call("Emulation.setEmulatedMedia", media="")
        path.write_text(page.page(site(2000)))
        browser.open(path)
        browser.evaluate("document.querySelector('input[type=search]').focus()")
        browser.type("gpu1995")
        assert browser.evaluate(visible) == 1
        browser.call("Emulation.setScriptExecutionDisabled", value=True)
        browser.open(path)
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
        assert (
            browser.evaluate(visible) == 2000
            and browser.evaluate("document.querySelector('.filter').offsetHeight") == 0
        )
        assert browser.console == []
        assert set(browser.requests) == {path.as_uri()}
