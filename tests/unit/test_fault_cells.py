"""The page of faults: a cell that was not run is never green."""

import pytest

from tools import fault_cells
from tools.fault_cells import HOSTS, START, Cell, Fault

TASKS = [("nvidia_driver : install | Driver packages", 30.0), ("nvidia_driver : hold | Hold", 1.0)]
UNDISTURBED = {"c-deb": {"commit": "abc", "seconds": 60, "tasks": TASKS}}


def row(colour: str = "green", message: str = "the mirror does not answer") -> dict[str, str]:
    return {
        "part": "environment", "host": "c-deb", "fault": "mirror-down", "moment": START, "colour": colour,
        "outcome": "stopped", "seconds": "9", "message": message, "afterwards": "as it was", "commit": "abc",
    }  # fmt: skip


def test_a_cell_that_was_not_run_is_marked() -> None:
    lines = fault_cells.page({"undisturbed": {}, "rows": []}).splitlines()
    cells = [line for line in lines if line.startswith(("| c-deb |", "| c-rpm |"))]
    assert len(cells) == len(fault_cells.cells({}))
    assert all("| not run |" in line for line in cells)


@pytest.mark.parametrize(("colour", "words"), [("green", "| stopped, 9 s |"), ("red", "| **red**: stopped, 9 s |")])
def test_a_cell_that_was_run_shows_outcome_message_and_commit(colour: str, words: str) -> None:
    text = fault_cells.page({"undisturbed": UNDISTURBED, "rows": [row(colour)]})
    line = next(line for line in text.splitlines() if line.startswith("| c-deb | `mirror-down` | from the start"))
    assert words in line and line.endswith("| the mirror does not answer | as it was | abc |")


def test_the_table_of_numbers_counts_each_cell_once() -> None:
    text = fault_cells.page({"undisturbed": UNDISTURBED, "rows": [row("red")]})
    expected = len(fault_cells.faults_of("c-deb"))
    assert f"| Faults of the environment | c-deb | {expected} | 0 | 1 | {expected - 1} |" in text
    assert "| Control node dies | c-deb | 3 | 0 | 0 | 3 |" in text


def test_a_row_of_a_removed_cell_is_omitted() -> None:
    old = {**row(), "fault": "mirror-removed"}
    assert "mirror-removed" not in fault_cells.page({"undisturbed": {}, "rows": [old]})


def test_markup_in_a_message_is_escaped() -> None:
    text = fault_cells.page({"undisturbed": {}, "rows": [row(message="a | b <c>")]})
    assert "a \\| b &lt;c>" in text


def test_a_long_task_is_also_cut_halfway() -> None:
    found = [(when, after) for when, _, after in fault_cells.cuts_of(TASKS)]
    assert found == [
        ("before nvidia_driver : install | Driver packages", 0.0),
        ("in the middle of nvidia_driver : install | Driver packages", 15.0),
        ("before nvidia_driver : hold | Hold", 0.0),
    ]


def test_each_fault_has_its_own_cell() -> None:
    found = fault_cells.cells(UNDISTURBED)
    assert len(found) == len(set(found))
    assert {cell.host for cell in found} == set(HOSTS)
    assert Cell("environment", "c-deb", "mirror-down", START) in found


def test_a_fault_before_a_task_matches_its_name() -> None:
    fault = Fault("mirror-down", before="nvidia_driver : install | *")
    assert fault_cells.task_of(fault, TASKS) == TASKS[0][0]
    assert fault_cells.task_of(Fault("x", before="docker*"), TASKS) is None
