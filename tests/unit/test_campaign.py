"""The campaign's parts, its record and its page."""

import ast
import fcntl
import subprocess
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


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_files_that_a_test_names_are_inputs_of_its_part(part: campaign.Part) -> None:
    tests = [ROOT / path for path in part.inputs if path.startswith("tests/integration/test_")]
    named = {
        node.value
        for test in tests
        for node in ast.walk(ast.parse(test.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.split("/")[0] in ("deploy", "lab", "molecule", "playbooks", "tests") and "\n" not in node.value
        if (ROOT / node.value).exists()
    }
    covered = {path for path in named if {path, *map(str, Path(path).parents)} & {*part.inputs}}
    assert named - covered == set()


@pytest.mark.host_io
def test_a_result_of_changes_that_were_not_committed_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        done = subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "product").write_text("1")
    git("add", ".")
    git("commit", "-q", "-m", "x")
    monkeypatch.setattr(campaign, "ROOT", tmp_path)
    part = campaign.Part("one", "", (), ("product", "more"))
    clean = Result(**{**GREEN, "commit": git("rev-parse", "--short=10", "HEAD")})
    assert not campaign.is_stale(part, clean)
    assert campaign.is_stale(part, Result(**{**clean, "commit": clean["commit"] + "+"}))
    assert campaign.is_stale(part, Result(**{**clean, "commit": "0123456789"}))
    (tmp_path / "more").mkdir()
    (tmp_path / "more/new").write_text("a file that git does not track yet")
    assert campaign.is_stale(part, clean)


@pytest.mark.parametrize(
    ("status", "log", "result"),
    [
        (0, "=== 7 passed, 1 skipped in 3.01s ===\n", "passed"),
        (0, "2 failed cells\nwritten\n", "passed"),  # of a part that is no pytest
        (0, "SKIPPED [3] test_vm.py: no root\n=== 3 skipped, 1 deselected in 0.02s ===\n", "FAILED (all tests were skipped)"),
        (1, "=== 1 failed, 3 skipped in 2.00s ===\n", "FAILED (status 1)"),
        (0, "", "passed"),
    ],
)  # fmt: skip
def test_a_part_whose_tests_were_all_skipped_has_not_passed(status: int, log: str, result: str) -> None:
    assert campaign.outcome(status, log) == result


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


def test_a_second_campaign_in_the_checkout_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "LOGS", tmp_path)
    monkeypatch.setattr(campaign, "run", lambda part: pytest.fail("it ran"))
    with (tmp_path / "running.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        assert campaign.main(["demo"]) == 1
    assert "another campaign runs in this checkout" in capsys.readouterr().err
