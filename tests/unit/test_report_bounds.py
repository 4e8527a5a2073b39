"""What one host adds to the reports is bounded, whatever it answers; what an honest one answers is complete."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.plugin_utils.fleet_report import audit_table, model, run
from plugins.plugin_utils.gpu_ready.report import bounds
from tests.unit.fleet_reports import hosts_of, report_of
from tests.unit.test_accepted_answers import accept

AUDIT: dict[str, Any] = {
    "state": "drift",
    "why": ["loaded: the loaded module is another one"],
    "checks": [{"name": "loaded", "desired": "580", "found": "570", "ok": False, "why": "another"}],
    "holders": [{"pid": n, "name": "python3", "command": "python3 train.py " + "--x " * 45} for n in range(256)],
    "steps": ["nvidia_driver.activate"],
    "warnings": ["careful"],
    "summary": "1x Tesla T4",
    "row": {"gpus": "1x Tesla T4", "driver_installed": "580", "driver_loaded": None},
}
TEXT = "x" * 900_000
CHECK = {"name": "a", "ok": False, "found": "", "desired": "", "why": ""}
FLOODS: dict[str, dict[str, Any]] = {
    "long": {"state": TEXT, "why": [TEXT] * 10, "summary": TEXT},
    "many": {"why": ["why"] * 2000, "checks": [CHECK] * 2000, "steps": ["x"] * 2000, "warnings": ["x"] * 2000},
    "both": {"checks": [{name: TEXT if value == "" else value for name, value in CHECK.items()}] * 4},
    "row": {"row": {f"column{n}": "x" * 400 for n in range(9000)}},
    "holders": {"holders": [{"pid": n, "name": "x", "command": "y" * 4000} for n in range(900)]},
}
LIMIT = 4 * bounds.CHARACTERS


@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.parametrize("form", ["json", "csv", "table", "diff"])
def test_a_flood_of_one_host_leaves_an_audit_readable(name: str, form: str) -> None:
    """The honest host beside it is complete."""
    flood = accept("gpu_audit", {"audit": {**AUDIT, **FLOODS[name]}})["audit"]
    made = report_of("audit", {"liar": {"audit": flood}, "honest": {"audit": AUDIT}})
    hosts = hosts_of(made)
    assert hosts["honest"] == report_of("audit", {"honest": {"audit": AUDIT}}).hosts[0]
    assert not hosts["liar"].good
    text = audit_table.text(made, form, 150)
    assert len(text) < LIMIT and "honest" in text


@pytest.mark.parametrize("part", ["row", "steps", "warnings", "refusals"])
def test_a_flood_of_one_host_leaves_the_report_of_a_run_readable(part: str) -> None:
    rows = {f"c{n}": TEXT for n in range(20)}
    many: Any = rows if part == "row" else [{"id": TEXT, "why": TEXT, "message": TEXT}] * 2000
    made = report_of("site", {"liar": {"gpu_host": True, part: many}, "honest": {"gpu_host": True}})
    assert len(model.as_json(made)) < LIMIT
    assert len(run.table(made)) < LIMIT


def test_the_form_of_a_record_stays_when_nothing_is_left() -> None:
    given = {"why": "x" * 50, "steps": ["y"] * 9, "row": {"gpus": "z", "cuda": None}, "n": 7}
    assert bounds.Budget(10).cut_value(given) == {
        "why": "xxxxxxx ...",
        "steps": [],
        "row": {"gpus": " ...", "cuda": None},
        "n": 7,
    }
    many = bounds.Budget(10).cut_value({f"{n}" + "x" * 300: "" for n in range(99)})
    assert len(many) == bounds.FIELDS and max(map(len, many)) == bounds.LONGEST_NAME


def test_an_honest_answer_is_complete() -> None:
    assert bounds.Budget().cut_value(AUDIT) == AUDIT
    assert len(json.dumps(AUDIT)) * 3 < bounds.CHARACTERS
