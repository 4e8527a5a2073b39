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


def test_calls_and_seconds_of_a_rollout_by_phase() -> None:
    def event(task: str, action: str, at: float, status: str = "ok", host: str = "a") -> dict[str, Any]:
        return {"task": task, "action": action, "time": at, "status": status, "host": host}

    events = [
        event("gpu_plan : look | Look", "gpu_node_plan", 3.0),
        event("gpu_upgrade : prestage | Note", "gpu_upgrade_journal", 4.0),
        event("kernel_headers : install | Install", "gpu_packages", 6.0),
        event("gpu_upgrade : prestage | Remember", "ansible.builtin.set_fact", 6.5),
        event("gpu_upgrade : installers | Copy", "copy", 7.0, "skipped"),
        event("gpu_plan : look | Look", "gpu_node_plan", 7.5, host="b"),
        event("gpu_upgrade : turn | Remember", "ansible.builtin.set_fact", 8.0),
        event("nvidia_driver : install | Driver", "gpu_packages", 20.0),
    ]
    found = scale.phases(events, "a", 1.0, [(0.5, 10.0), (3.0, 10.5), (6.0, 12.0), (19.0, 20.0)])
    assert found == {"plan": (1, 2.0, 0.5), "stage": (2, 4.0, 1.5), "switch": (1, 13.0, 8.0)}
