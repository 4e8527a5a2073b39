"""Which journals a turn can write: a sequence of them is replayed through the table of the phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plugins.module_utils.gpu_ready.upgrade import model as journal
from plugins.plugin_utils.gpu_ready.turn import table

State = tuple[str, str, bool]
"""Kind of the turn, phase, and whether that phase has succeeded."""


def steps(state: State, soak: int) -> Iterator[tuple[str, State]]:
    """Yield what follows: what is written on the way, "" for nothing, and the state after it."""
    kind, phase, done = state
    if phase in table.ENDS:
        return
    if not done and phase in table.CLOSES:
        yield table.CLOSES[phase], (kind, phase, True)
    for touched in (False, True):
        for result in table.RESULTS:
            if phase in table.CLOSES and (result == table.OK) != done:
                continue  # what a phase writes where it succeeds comes before its end
            following = table.next_action(table.Journal(kind, phase, touched, soak), result)
            yield table.WRITES.get(following, ""), (kind, following, False)


def closure(states: set[State], soak: int) -> set[State]:
    """Return the states that are reached without a write."""
    found = set(states)
    while True:
        new = {after for state in found for written, after in steps(state, soak) if not written} - found
        if not new:
            return found
        found |= new


def wrong_write(writes: Sequence[str], backwards: bool = False, soak: int = 60) -> str:
    """Return the first write that no phase of a turn makes there, "" where all are of turns, one after the other.

    A turn begins with `draining`, and may be cut anywhere. The preparation of a rollout writes `staged`.
    """
    kind = table.ROLLBACK if backwards else table.UPGRADE
    states: set[State] = set()
    for number, write in enumerate(writes):
        if write == journal.STAGED:
            states = set()
        elif write == journal.DRAINING:
            states = {(kind, table.DRAIN, False)}
        else:
            states = {
                after for state in closure(states, soak) for written, after in steps(state, soak) if written == write
            }
            if not states:
                return f"{number}: {write} after {list(writes[:number])}"
    return ""
