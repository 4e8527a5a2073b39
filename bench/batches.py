"""How long a host is out of service during an upgrade, alone and in batches: simulated hosts, as if each had processors.

They answer after fixed times; what is added to these is the control node's part. Hosts differ in their work, so the
ratio of a batch is that of the seconds out of service per second of work on the host itself.
"""

import itertools
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

import simulate

BATCHES = (1, 3, 9)
"""Sizes of the batches of one rollout: every size is measured in the same run, in the same direction."""
SMALL = (1, 2)
SEED = 5


class Turn(NamedTuple):
    """A host out of service, in seconds of the run."""

    host: str
    began: float
    ended: float


Calls = dict[str, list[tuple[float, float]]]
"""By host, the intervals in which a call was at work on it."""


def seconds_of_work(turn: Turn, intervals: Iterable[tuple[float, float]]) -> float:
    """Return the seconds of a turn in which one of the intervals is."""
    covered, reached = 0.0, turn.began
    for begin, end in sorted(intervals):
        begin, end = max(begin, reached), min(end, turn.ended)
        if end > begin:
            covered += end - begin
            reached = end
    return covered


def stretched(turns: Sequence[Turn], sizes: Sequence[int], calls: Calls) -> dict[int, float]:
    """Return by size of batch the seconds out of service per second of work; raises if the turns are in other batches."""
    order = iter(sorted(turns, key=lambda turn: turn.began))
    end, found = 0.0, {}
    for size in sizes:
        batch = list(itertools.islice(order, size))
        if len(batch) != size or batch[0].began < end:
            raise RuntimeError(f"the turns are not in batches of {list(sizes)}: {turns}")
        end = max(turn.ended for turn in batch)
        found[size] = median((turn.ended - turn.began) / seconds_of_work(turn, calls[turn.host]) for turn in batch)
    return found


def measure(sizes: Sequence[int], scale: float) -> dict[int, float]:
    """Upgrade simulated hosts in these batches; ``scale``: of the seconds that calls take on real hosts."""
    with simulate.bench(sum(sizes), SEED, scale, {}) as one:
        ran = one.run(one.upgrade(gpu_upgrade_batches=list(sizes)))
        if ran.rc != 0 or one.fleet.errors:
            raise RuntimeError(f"{one.fleet.errors} {ran.output[-4000:]}")
        turns = [Turn(turn.host, turn.began, turn.ended or 0) for turn in one.fleet.turns]
        calls: Calls = {}
        for call in one.fleet.calls:
            calls.setdefault(call.host, []).append((call.began, call.ended))
    return stretched(turns, sizes, calls)
