"""The computation behind docs/scale.md, and that the page shows what it computes."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("scale", ROOT / "bench/scale.py")
assert SPEC and SPEC.loader
scale: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(scale)
KNOWN = json.loads((ROOT / "bench/scale_costs.json").read_text())
COSTS = scale.Costs(**{name: KNOWN[name] for name in scale.Costs._fields})


@pytest.mark.parametrize(
    ("hosts", "sizes", "expected"),
    [
        (10, ["1", "25%"], [1, 2, 2, 2, 2, 1]),
        (24, ["1", "10%", "50%"], [1, 2, 12, 9]),
        (3, ["5"], [3]),
        (5, ["10%"], [1, 1, 1, 1, 1]),
    ],
)
def test_batches_are_those_of_serial(hosts: int, sizes: list[str], expected: list[int]) -> None:
    assert scale.batches(hosts, sizes) == expected


def test_a_phase_is_as_slow_as_the_slower_side() -> None:
    costs = COSTS._replace(call_cpu=0.1)
    assert scale.wall(1000, scale.Phase(1, 60.0), costs, 100, 8) == 600.0  # ten waves of a minute
    assert scale.wall(1000, scale.Phase(10, 1.0), costs, 100, 8) == 125.0  # 10,000 calls of 0.1 s on 8 cores


def test_more_forks_are_never_slower_and_cost_memory() -> None:
    walls = [scale.wall(2000, scale.Phase(5, 60.0), COSTS, forks, 8) for forks in scale.FORKS]
    assert walls == sorted(walls, reverse=True)
    assert scale.memory(2000, COSTS, 400) > scale.memory(2000, COSTS, 50)


def test_the_page_shows_what_is_computed() -> None:
    page = (ROOT / "docs/scale.md").read_text()
    assert scale.tables(COSTS) in page
    assert scale.costs_table(KNOWN, COSTS) in page
