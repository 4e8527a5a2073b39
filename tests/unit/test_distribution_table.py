"""docs/distributions.md claims only what the integration tests install, and what the planner plans."""

from pathlib import Path

import pytest
from gpu_ready.catalog import model as catalog

from tests.integration import matrix
from tools import distribution_table

ROOT = Path(__file__).resolve().parents[2]


def test_every_host_of_the_fleet_is_of_a_distribution_of_the_catalog() -> None:
    assert {case.distribution for case in matrix.cases()} <= set(catalog.distros())


def test_a_source_that_the_planner_refuses_cannot_be_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "installed", lambda: {("debian12", "elrepo")})
    with pytest.raises(ValueError, match="a test installs it, but the planner says"):
        distribution_table.cell("debian12", "elrepo")


def test_a_row_says_what_is_tested_and_what_is_only_planned() -> None:
    assert distribution_table.row("debian12") == (
        "| Debian 12 (bookworm) | `debian12` | `cuda_repo` 580 | tested | tested | - | tested |"
    )
    for name in distribution_table.TESTED_ELSEWHERE.values():
        assert (ROOT / f"tests/integration/{name}.py").is_file()
