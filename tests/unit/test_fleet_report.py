"""The files of a run: HTML, Prometheus, JSON, and how many are kept."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    as_json,
    metrics,
    model,
    page,
    store,
)

from tests.grid import sampled
from tests.unit import chromium, fleet_reports
from tests.unit.fleet_reports import FLEETS, ROW, STEPS, TIME, columns, site
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
            "b": {"unreachable": HOSTILE},
        },
        "upgrade": {
            name: {"outcome": {"state": HOSTILE, "from": HOSTILE, "to": HOSTILE, "way": HOSTILE, "seconds_unavailable": 7, "reason": HOSTILE}, "began": 1763690000, "ended": HOSTILE},
        },
        "uninstall": {name: {"removal": {"actions": [HOSTILE], "kept": [HOSTILE], "stops": [HOSTILE], "reboot_required": True}}, "b": {"removal": {"failed": True, "msg": HOSTILE}}},
    }  # fmt: skip
    return model.read(kind, columns(hosts[kind]), TIME, False)


@pytest.mark.parametrize("kind", FLEETS)
def test_no_text_of_a_host_becomes_markup(kind: str) -> None:
    made = page.page(hostile(kind))
    honest = {tag for tag, _ in Reader(page.page(FLEETS[kind]())).elements} | {"p", "details", "li", "ul", "br", "span"}
    reader = Reader(made)
    assert {tag for tag, _ in reader.elements} <= honest | {"rect", "title", "text", "line", "h3", "td", "th"}
    assert [tag for tag, _ in reader.elements].count("script") == 1
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
    assert "http" not in re.sub(r'http-equiv="', "", made) and "@import" not in made and "url(" not in made
    text = " ".join(reader.texts)
    for host in fleet.hosts:
        assert host.name in text and host.why.message[:100] in text
        for one in [*host.refusals, *host.warnings]:
            assert one.message in text and one.remedy in text
        for step in host.steps:
            assert step.name in text and step.why in text
        for check in host.checks:
            assert check.found in text and check.why in text and check.remedy in text


def test_steps_before_the_failed_one_are_done() -> None:
    [broken] = [host for host in site().hosts if host.name == "broken"]
    assert [step.progress for step in broken.steps] == ["done", "done", "failed", "not_done", "not_done"]
    assert broken.why.remedy == "enrol the key of DKMS."


def test_the_json_of_a_rollout_has_the_turn_of_each_host() -> None:
    found = json.loads(as_json.as_json(fleet_reports.upgrade()))["hosts"]["gpu-node-0006"]
    assert (found["state"], found["from"], found["to"], found["seconds_unavailable"]) == ("rolled_back", "580.95.05", "595.91.07", 66)  # fmt: skip
    assert found["ended"] - found["began"] == 134
    assert (found["why"], found["remedy"]) == (
        "Verify: container_gpus failed. Rolled back to 580.95.05.",
        "see the log.",
    )


def test_an_audit_names_what_holds_the_gpus_and_its_container() -> None:
    assert fleet_reports.audit().hosts[0].lists == {"In use by": ["python train.py (pid 4242) in container train"]}


def test_the_timeline_has_a_bar_per_turn_within_the_chart() -> None:
    chart = page.timeline(page.host_rows(fleet_reports.upgrade()))
    assert chart is not None and len(chart["bars"]) == 21
    assert all(bar["x"] >= page.LEFT and bar["x"] + bar["width"] <= page.WIDTH + 1 for bar in chart["bars"])
    assert sum("no end" in bar["title"] for bar in chart["bars"]) == 1
    assert page.timeline(page.host_rows(site())) is None


def test_the_timeline_names_the_days_of_a_rollout_over_midnight() -> None:
    rows = page.host_rows(fleet_reports.upgrade())
    same_day = page.timeline(rows)
    assert same_day is not None and same_day["ticks"][0]["label"] == "01:53:20"
    turn = rows[0].host.turn
    assert turn is not None and turn.began is not None and turn.ended is not None
    earlier = dataclasses.replace(turn, began=turn.began - 85800, ended=turn.ended - 85800)
    host = dataclasses.replace(rows[0].host, turn=earlier)
    chart = page.timeline([dataclasses.replace(rows[0], host=host), *rows[1:]])
    assert chart is not None
    assert [tick["label"] for tick in chart["ticks"]][::4] == ["2025-11-20 02:03", "2025-11-21 02:07"]
    assert "2025-11-20 02:03 to 2025-11-20 02:05" in chart["bars"][0]["title"]


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
    assert sizes[1] <= 4 * len(json.dumps(many.record)), "the page against the JSON file of the same run"
    assert count_calls(many) <= 10.5 * count_calls(few)
    chart = page.timeline(page.host_rows(fleet_reports.upgrade(2000)))
    assert chart is not None and chart["height"] <= page.TALLEST + 30


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


def test_the_newest_runs_of_each_playbook_are_kept_and_nothing_else_is_removed(tmp_path: Path) -> None:
    foreign = [tmp_path / name for name in ("notes.json", "2026-11-21.json", "site-2026-01-01T00-00-00Z.json.bak")]
    for path in foreign:
        path.write_text("x")
    for day in range(1, 6):
        for kind in ("site", "audit"):
            store.write(tmp_path, kind, f"2026-11-0{day}T00:00:00Z", {"json": "{}", "html": "x", "prometheus": "m"})
    store.write(tmp_path, "site", "2026-11-05T00:00:00Z", {"json": "{}"})
    removed = store.prune(tmp_path, "site", 2)
    names = {path.name for path in tmp_path.iterdir()}
    assert {path.name for path in foreign} <= names and len(removed) == 8
    assert {name for name in names if name.startswith("2026") and name != "2026-11-21.json"} == {
        "2026-11-05T00-00-00Z.json", "2026-11-05T00-00-00Z.html", "2026-11-05T00-00-00Z-2.json",
    }  # fmt: skip
    assert len([name for name in names if name.startswith("audit-")]) == 10
    assert {"latest.json", "latest.html", "latest.prom", "latest-audit.prom"} <= names
    assert store.prune(tmp_path, "audit", 0) == []


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
        ({"gpu_report_directory": str(tmp_path / "file")}, 2, "set gpu_report_directory to a writable directory"),
    ):
        directory = tmp_path / next(iter(variables))
        directory.mkdir()
        hosts = {"gpu1": make_liar(directory, "gpu1", {})}
        done = run_playbook(directory, tmp_path / "play.yml", hosts, "-e", json.dumps(variables))
        shown = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == status and message in shown, shown


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
