"""The acceptance table has every distribution and source, and claims no cell that the integration test does not run."""

import json
from pathlib import Path

import pytest
from gpu_ready.catalog import model as catalog

from tests.integration import matrix
from tools import distribution_table

ROOT = Path(__file__).resolve().parents[2]


def test_the_record_holds_exactly_the_cells_that_the_integration_test_runs() -> None:
    cells = json.loads(matrix.RECORD.read_text(encoding="utf-8"))["cells"]
    kept = {matrix.Cell(cell["distribution"], cell["source"], cell["column"]) for cell in cells}
    assert kept == set(matrix.claimed())


def test_every_host_of_the_fleet_is_of_a_distribution_of_the_catalog() -> None:
    assert {case.distribution for case in matrix.cases()} <= set(catalog.distros())


def test_the_page_has_every_distribution_and_source_with_every_column() -> None:
    text = distribution_table.FULL_PAGE.read_text(encoding="utf-8")  # current: `make lint-files` generates it again
    for name in catalog.distros():
        section = text.partition(f"(`{name}`)")[2].partition("\n## ")[0]
        for source in distribution_table.SOURCES:
            (line,) = [line for line in section.splitlines() if line.startswith(f"| `{source}` |")]
            cells = line.strip("|").split("|")[1:]
            assert len(cells) == len(matrix.COLUMNS)
            assert all(cell.strip().startswith((distribution_table.RUN, "planned only", "refused")) for cell in cells)


def test_a_cell_that_the_planner_refuses_cannot_be_claimed() -> None:
    rows = [distribution_table.row("debian12", "elrepo")]
    with pytest.raises(ValueError, match="claimed as run, but the planner says"):
        distribution_table.section("debian12", rows, {matrix.Cell("debian12", "elrepo", matrix.INSTALL): "host: x"})


def test_the_summary_has_one_row_per_distribution_and_claims_only_what_ran() -> None:
    rows = {"debian12": [distribution_table.row("debian12", source) for source in distribution_table.SOURCES]}
    (row,) = [line for line in distribution_table.summary_page(rows).splitlines() if "`debian12`" in line]
    assert row.startswith("| Debian 12 (bookworm) | `debian12` | `cuda_repo` 580 |")
    assert row.endswith("| tested | tested | - | tested |")
    for name in distribution_table.TESTED_ELSEWHERE.values():
        assert (ROOT / f"tests/integration/{name}.py").is_file()
