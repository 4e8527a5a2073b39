"""Reports of all kinds: the page, the JSON and the metrics."""

from __future__ import annotations

import html.parser
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    audit_table,
    changes,
    commands,
    metrics,
    model,
    page,
    read,
    timeline,
)
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.gpu_ready.rollout import fold

from tests.unit import chromium, fleet_reports
from tests.unit.fleet_reports import FLEETS, ROW, STEPS, TIME, hosts_of, report_of, site
from tests.unit.lying_host import run_playbook

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
            "b": {"unreachable": True, "message": HOSTILE},
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


def test_newer_versions_that_wait_are_notes_of_the_table_rows_of_csv_checks_of_the_page_and_a_metric() -> None:
    waits = {"name": "newer_driver", "desired": "2", "found": "1", "ok": None, "why": "2 is offered, 1 is installed"}
    newest = {"name": "newer_docker", "desired": "28", "found": "28", "ok": True, "why": ""}
    unknown = {"name": "newer_container_toolkit", "desired": None, "found": "1", "ok": None, "why": "not known: x"}
    row = {"audit": {"state": "ok", "row": {}, "checks": [waits, newest, unknown]}}
    report = report_of("audit", {"a": row})
    table = audit_table.text(report, "table", 120)
    assert "newer driver: 2 is offered, 1 is installed" in table and "newer docker" not in table
    assert "a,,ok,newer_driver,2,1,," in audit_table.text(report, "csv", 120)
    assert "newer driver" in page.page(report)
    text = metrics.metrics(report)
    assert 'gpu_ready_host_update_waiting{host="a",component="driver",playbook="audit"} 1' in text
    assert 'gpu_ready_host_update_waiting{host="a",component="docker",playbook="audit"} 0' in text
    assert 'component="container_toolkit"' not in text, "unknown is not false"


@pytest.mark.host_io
@pytest.mark.usefixtures("prometheus")
@pytest.mark.parametrize("kind", FLEETS)
def test_promtool_accepts_the_metrics(kind: str) -> None:
    for fleet in (FLEETS[kind](), hostile(kind)):
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=metrics.metrics(fleet), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


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
