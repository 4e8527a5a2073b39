"""How long a rollout takes, by the turns that earlier rollouts of this control node recorded. Nothing is guessed."""

import statistics
from collections.abc import Sequence

from ..report import layout
from .fold import DONE_STATES, RolloutRecord

UNKNOWN = "Duration unknown: no finished turn is recorded here yet. The downloads: %s."
KNOWN = "About %s, by %s recorded here, and the downloads: %s."
UNKNOWN_SIZE = "their size is not known beforehand"
MINUTE, HOUR = 60, 3600


def turn_seconds(records: Sequence[RolloutRecord], direction: str) -> list[int]:
    """Return the seconds of the turns in this direction that succeeded."""
    return [
        host.ended - host.began
        for record in records
        for host in record.hosts.values()
        if record.direction == direction
        and host.state in DONE_STATES[direction]
        and host.began is not None
        and host.ended is not None
    ]


def rollout_seconds(batches: Sequence[int], forks: int, turns: Sequence[int]) -> int | None:
    """Return the seconds of all batches, in each of which ``forks`` hosts have their turn at once; None if unknown."""
    if not turns:
        return None
    waves = sum(-(-size // max(forks, 1)) for size in batches)
    return round(waves * statistics.median(turns))


def duration_text(seconds: int) -> str:
    """Return a duration as people say it: "40 s", "9 min", "2 h 10 min"."""
    if seconds < MINUTE:
        return "%d s" % seconds
    minutes = round(seconds / MINUTE)
    return "%d min" % minutes if minutes < HOUR // MINUTE else "%d h %d min" % divmod(minutes, HOUR // MINUTE)


def downloads_text(sizes: Sequence[int]) -> str:
    """Return the size of the downloads of all hosts; ``sizes``: bytes of each, 0 where that is not known."""
    if not any(sizes):
        return UNKNOWN_SIZE
    known = "%s in all" % layout.size_text(sum(sizes))
    unknown = sizes.count(0)
    return known + (", without %s of unknown size" % layout.counted(unknown, "host") if unknown else "")


def estimate_text(
    records: Sequence[RolloutRecord], direction: str, batches: Sequence[int], forks: int, sizes: Sequence[int] = ()
) -> str:
    """Return how long the rollout takes, as a line of its plan; "" where nothing is to be done."""
    if not batches:
        return ""
    turns = turn_seconds(records, direction)
    seconds = rollout_seconds(batches, forks, turns)
    size = downloads_text(sizes)
    if seconds is None:
        return UNKNOWN % size
    return KNOWN % (duration_text(seconds), layout.counted(len(turns), "turn"), size)
