"""The campaign's parts, its record and its page."""

from pathlib import Path

import pytest

from tools import campaign
from tools.campaign import PARTS, ROOT, Result

GREEN = Result(commit="abc1234567", date="2026-11-22", result="passed", minutes=3.5, stale=False)


def test_every_integration_file_is_a_part() -> None:
    files = {path.stem.removeprefix("test_") for path in (ROOT / "tests/integration").glob("test_*.py")}
    assert files - {"zz_lab_down"} <= {part.name for part in PARTS}
    assert len({part.name for part in PARTS}) == len(PARTS)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_inputs_of_a_part_exist(part: campaign.Part) -> None:
    assert [path for path in part.inputs if not (ROOT / path).exists()] == []


def test_the_page_is_made_of_the_record() -> None:
    assert campaign.PAGE.read_text() == campaign.page(campaign.read_record()), "run tools/campaign.py --page"


def test_a_part_without_a_result_is_never_green() -> None:
    rows = {row[0]: row for row in campaign.rows({"unit": GREEN})}
    assert rows["`unit`"][2:] == ("abc1234567", "2026-11-22", "passed", "3.5")
    assert {row[4] for name, row in rows.items() if name != "`unit`"} == {"not recorded"}


def test_a_stale_part_is_marked_and_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "is_stale", lambda part, result: part.name == "demo")
    record = {part.name: GREEN for part in PARTS}
    assert [part.name for part in campaign.due(record)] == ["demo"]
    record["cuda"] = Result(**{**GREEN, "result": "FAILED (status 1)"})
    assert [part.name for part in campaign.due(record)] == ["demo", "cuda"]
    rows = {row[0]: row[4] for row in campaign.rows({"demo": Result(**{**GREEN, "stale": True})})}
    assert rows["`demo`"] == "passed, stale"


def test_the_record_keeps_known_parts_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(campaign, "is_stale", lambda part, result: True)
    monkeypatch.setattr(campaign, "RECORD", tmp_path / "campaign.json")
    monkeypatch.setattr(campaign, "PAGE", tmp_path / "campaign.md")
    campaign.write_record({"unit": GREEN, "removed": GREEN})
    assert list(campaign.read_record()) == ["unit"]
    assert campaign.read_record()["unit"]["stale"]
    assert campaign.PAGE.read_text() == campaign.page(campaign.read_record())
