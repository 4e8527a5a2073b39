"""The page about hosts with a past claims what was run, and each script of lab/pasts has a host."""

import json

from gpu_ready_lab import fleet
from gpu_ready_lab import pasts as scripts

from tests.integration import pasts
from tools import past_table


def test_every_past_is_that_of_a_host() -> None:
    used = {name for case in pasts.cases() for name in case.past}
    assert used == set(scripts.described())


def test_every_host_has_an_expectation_that_the_test_can_check() -> None:
    fleet.read(pasts.FLEET_FILE)
    for case in pasts.cases():
        assert case.outcome in pasts.OUTCOMES, case.host
        assert (case.outcome == "refuse") == bool(case.refusal_codes), case.host
        assert {*case.keeps} <= set(pasts.STEPS), case.host


def test_the_record_has_no_cell_that_the_test_does_not_run() -> None:
    cells = json.loads(pasts.RECORD.read_text(encoding="utf-8"))["cells"]
    hosts = {case.host for case in pasts.cases()}
    assert all(cell["host"] in hosts and cell["column"] in pasts.COLUMNS for cell in cells)
    assert len({(cell["host"], cell["column"]) for cell in cells}) == len(cells)


def test_the_page_names_what_failed_and_what_was_not_run() -> None:
    case = pasts.cases()[0]
    line = past_table.row(case, {(case.host, pasts.PLAN): "", (case.host, pasts.RUN): "apt: exit status 100"})
    assert line.endswith("| passed | **FAILED** | not run | not run | not run | not run |")
    assert f"| `{case.host}` | {case.distribution} | {pasts.expectation(case)} |" in line


def test_cells_that_were_run_again_replace_those_of_the_record_and_the_others_keep_their_date() -> None:
    def cell(host: str, date: str, error: str) -> dict[str, str]:
        return {"host": host, "column": pasts.PLAN, "date": date, "error": error}

    old = [cell("a", "2026-11-01", ""), cell("b", "2026-11-01", "apt: exit status 100")]
    new = [cell("b", "2026-11-02", "")]
    assert past_table.with_cells(old, new) == [old[0], new[0]]
    assert past_table.dates_text(["2026-11-02", "2026-11-01"]) == "the oldest on 2026-11-01, the newest on 2026-11-02"
    assert past_table.dates_text(["2026-11-02"] * 2) == "on 2026-11-02"
