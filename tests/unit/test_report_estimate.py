"""The duration in a plan of site.yml: the steps of earlier runs, as their reports recorded them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import estimate

from tests.unit.fleet_reports import ROW, STEPS, report_of
from tests.unit.lying_host import run_playbook

HEADERS, INSTALL = STEPS[0]["id"], STEPS[1]["id"]
VERIFIED: dict[str, Any] = {"verify": {"ok": True, "checks": []}}


def ran(*seconds: dict[str, int]) -> Any:
    """Return a run in which each host took these seconds for its steps."""
    hosts = {
        f"gpu{n}": {"row": ROW, "steps": STEPS[: len(one)], "seconds": one, "verify": VERIFIED}
        for n, one in enumerate(seconds)
    }
    return report_of("site", hosts)


def planned(*numbers: int) -> Any:
    """Return a check in which each host has so many steps to do."""
    return report_of("site", {f"gpu{n}": {"row": ROW, "steps": STEPS[:one]} for n, one in enumerate(numbers)}, True)


EARLIER = [ran({HEADERS: 10, INSTALL: 590}), ran({HEADERS: 20, INSTALL: 600}, {HEADERS: 30, INSTALL: 610}), ran({})]


@pytest.mark.parametrize(
    ("numbers", "forks", "text"),
    [
        ((0, 0), 5, ""),
        ((1,), 5, "About 20 s, by 2 runs recorded here."),
        ((2, 1, 0), 5, "About 10 min, by 2 runs recorded here."),
        ((2, 2, 2), 2, "About 21 min, by 2 runs recorded here."),
        ((3, 1), 5, "Duration unknown: no run that is recorded here has carried out nvidia_driver.activate."),
    ],
)
def test_a_plan_takes_as_long_as_its_slowest_host_for_every_so_many_hosts(
    numbers: tuple[int, ...], forks: int, text: str
) -> None:
    assert estimate.estimate_text(planned(*numbers), EARLIER, forks) == text


def test_a_step_that_failed_says_nothing_of_its_duration() -> None:
    entry = {"row": ROW, "steps": STEPS[:2], "seconds": {HEADERS: 7, INSTALL: 3}}
    failed = report_of("site", {"gpu1": {**entry, "failure": {"step": INSTALL, "message": "disk full"}}})
    assert estimate.recorded_seconds([failed]) == {HEADERS: [7]}


@pytest.mark.host_io
def test_a_check_shows_it_below_its_table_and_writes_nothing(tmp_path: Path) -> None:
    play = {"hosts": "all", "gather_facts": False, "roles": [{"role": "gpu_ready.nodes.gpu_report", "run_once": True}]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    plan = {"row": ROW, "plan": {"gpu_host": True, "steps": STEPS[:1], "refusals": [], "warnings": []}}
    hosts: dict[str, dict[str, Any]] = {"gpu1": {"gpu_plan_result": plan}}
    unknown = run_playbook(tmp_path, tmp_path / "play.yml", hosts, "--check").stdout
    assert "Duration unknown: no run that is recorded here has carried out kernel_headers.install." in unknown
    assert not (tmp_path / "reports").exists()
    done = {"kernel_headers_executed": {"seconds": {HEADERS: 41}}, "gpu_verify_result": {"verify": VERIFIED["verify"]}}
    run_playbook(tmp_path, tmp_path / "play.yml", {"gpu1": hosts["gpu1"] | done})
    known = run_playbook(tmp_path, tmp_path / "play.yml", hosts, "--check").stdout
    assert "About 41 s, by 1 run recorded here." in known, known
