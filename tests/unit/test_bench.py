"""bench/: how the time out of service is summed up, and the page that is written from the record."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import rollout
import run as bench


def test_seconds_without_a_task_are_those_that_no_interval_covers() -> None:
    turn = rollout.Turn("gpu1", 100.0, 200.0)
    assert rollout.time_without_tasks(turn, []) == 100
    # One begins before the turn, two overlap, one ends after it.
    assert rollout.time_without_tasks(turn, [(150, 160), (90, 110), (155, 170), (195, 300)]) == 100 - 10 - 20 - 5


def test_batches_are_found_by_when_their_hosts_began() -> None:
    turns = [rollout.Turn("b", 20, 31), rollout.Turn("a", 0, 10), rollout.Turn("c", 21, 33)]
    tasks = {"a": [(0.0, 9.0)], "b": [(20.0, 31.0)], "c": [(21.0, 30.0)]}
    one, two = rollout.summarise(turns, (1, 2), tasks, [(0, 0), (10, 5), (20, 15), (30, 35)])
    assert one == rollout.Batch(1, [10], [1], 0.5)
    assert two == rollout.Batch(2, [11, 12], [0, 3], 2.0)
    assert rollout.ratio([one, two], 2) == pytest.approx((1 + 12 / 9) / 2 / (10 / 9))


def test_a_host_that_begins_before_the_batch_before_it_has_ended_is_an_error() -> None:
    turns = [rollout.Turn("a", 0, 10), rollout.Turn("b", 9, 31)]
    with pytest.raises(RuntimeError, match="not in batches"):
        rollout.summarise(turns, (1, 1), {"a": [], "b": []})


def test_the_page_is_written_from_the_record() -> None:
    parts = json.loads((ROOT / "bench/record.json").read_text(encoding="utf-8"))
    assert (ROOT / "docs/dev/benchmarks.md").read_text(encoding="utf-8") == bench.page(parts)
