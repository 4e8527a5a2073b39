"""bench/: how the time out of service is summed up, and that the page is one whole run or says that there is none."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/simulation")]

import batches
import run as bench


def test_seconds_of_work_are_those_that_an_interval_covers() -> None:
    turn = batches.Turn("gpu1", 100.0, 200.0)
    assert batches.seconds_of_work(turn, []) == 0
    # One begins before the turn, two overlap, one ends after it.
    assert batches.seconds_of_work(turn, [(150, 160), (90, 110), (155, 170), (195, 300)]) == 10 + 20 + 5


def test_batches_are_found_by_when_their_hosts_began() -> None:
    turns = [batches.Turn("b", 20, 31), batches.Turn("a", 0, 10), batches.Turn("c", 21, 33)]
    calls = {"a": [(0.0, 9.0)], "b": [(20.0, 31.0)], "c": [(21.0, 30.0)]}
    assert batches.stretched(turns, (1, 2), calls) == {1: 10 / 9, 2: pytest.approx((1 + 12 / 9) / 2)}


def test_a_host_that_begins_before_the_batch_before_it_has_ended_is_an_error() -> None:
    turns = [batches.Turn("a", 0, 10), batches.Turn("b", 9, 31)]
    with pytest.raises(RuntimeError, match="not in batches"):
        batches.stretched(turns, (1, 1), {"a": [(0, 10)], "b": [(9, 31)]})


def test_a_missed_budget_is_shown() -> None:
    rows = [bench.Row("calls", 1, 1, "counted"), bench.Row("wall time", 1.3, 1.64, "median")]
    text = bench.page(rows, "Commit abc.")
    assert "| calls | 1 | 1 | yes | counted |" in text and "| wall time | 1.3 | 1.64 | **no** | median |" in text


def test_the_page_is_a_whole_run_or_says_that_there_is_none() -> None:
    text = bench.PAGE.read_text(encoding="utf-8")
    assert text == bench.HEAD + bench.NO_RUN or text.startswith(bench.HEAD + "Commit ")
