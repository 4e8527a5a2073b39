"""The campaign: every long test is in it, it fits into a night, and its page shows the last whole run and nothing else."""

import fcntl
from pathlib import Path

import pytest

from tools import campaign
from tools.campaign import PARTS, ROOT, Result


def test_every_integration_file_is_a_part() -> None:
    files = {path.stem.removeprefix("test_") for path in (ROOT / "tests/integration").glob("test_*.py")}
    names = [part.name for part in PARTS]
    assert files - {"zz_lab_down"} == {part.name for part in PARTS if not part.command}
    assert len(set(names)) == len(names)


def test_every_part_says_what_it_checks_and_what_it_found() -> None:
    assert [part.name for part in PARTS if not (part.what and part.found and part.minutes)] == []


def test_a_whole_run_takes_ten_hours_at_most() -> None:
    assert sum(part.minutes for part in PARTS) <= 600


def test_the_seed_reaches_the_commands() -> None:
    (unit,) = [part for part in PARTS if part.name == "unit"]
    assert "--hypothesis-seed=2026-11-26" in unit.argv("2026-11-26")


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


class Repository:
    """In place of git and of the parts: ``ran`` has those that ran, and ``stops`` interrupts the run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.commit, self.changes, self.stops, self.ran = "abc", "", "", list[str]()
        monkeypatch.setattr(campaign, "BUILD", directory)
        monkeypatch.setattr(campaign, "PAGE", directory / "campaign.md")
        monkeypatch.setattr(campaign, "git", lambda command, *_: self.changes if command == "status" else self.commit)
        monkeypatch.setattr(campaign, "run_part", self.run)

    def run(self, part: campaign.Part, seed: str) -> Result:
        if part.name == self.stops:
            raise KeyboardInterrupt
        self.ran.append(part.name)
        return Result(result="FAILED (status 1)" if part.name == "cuda" else "passed", minutes=1.5)


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    return Repository(monkeypatch, tmp_path)


def test_an_interrupted_run_continues_at_the_same_commit_only(repository: Repository) -> None:
    names = [part.name for part in PARTS]
    repository.stops = "cuda"
    with pytest.raises(KeyboardInterrupt):
        campaign.main(["--seed", "7"])
    assert not campaign.PAGE.exists()  # the page has complete runs only
    repository.stops = ""
    assert campaign.main([]) == 1  # a part failed
    assert repository.ran == names
    text = campaign.PAGE.read_text()
    assert "Commit abc, " in text and f", seed 7: {len(names) - 1} of {len(names)} parts passed" in text
    assert "| `cuda` | FAILED (status 1) | 1.5 |" in text and text.count("\n| `") == len(names)


def test_a_run_of_another_commit_or_seed_runs_all_parts_again(repository: Repository) -> None:
    for repository.commit, seed in (("abc", "7"), ("def", "7"), ("def", "8")):
        repository.stops, repository.ran = PARTS[2].name, []
        with pytest.raises(KeyboardInterrupt):
            campaign.main(["--seed", seed])
        assert repository.ran == [part.name for part in PARTS[:2]]


def test_changes_that_are_not_committed_are_no_whole_run(repository: Repository) -> None:
    repository.changes = " M site.yml"
    with pytest.raises(SystemExit, match="uncommitted changes"):
        campaign.main([])
    assert campaign.main(["demo"]) == 0 and repository.ran == ["demo"]
    assert not campaign.PAGE.exists()


def test_the_page_says_so_where_there_was_no_whole_run() -> None:
    text = campaign.PAGE.read_text(encoding="utf-8")
    assert text.startswith(campaign.HEAD)
    found = text.removeprefix(campaign.HEAD)
    assert found == campaign.NO_RUN or (found.startswith("Commit ") and "\n| part | result | minutes |\n" in found)


def test_a_second_campaign_in_the_checkout_is_refused(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "running.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        assert campaign.main(["demo"]) == 1
    assert "another campaign runs in this checkout" in capsys.readouterr().err and not repository.ran
