"""Compare what the metrics program read with what nvidia-smi printed in the same seconds. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

TOLERANCE = 5.0
"""Points by which two means may differ."""
LEAST_SAMPLES = 10
LEAST_LOAD, MOST_LOAD = 30.0, 90.0
"""Percent of the duty cycle between which a comparison says something: an idle or a full GPU is easy to read."""
MEMORY, DUTY = "memory", "duty cycle"
PROCESS_MEMORY, PROCESS_DUTY = "memory of processes", "duty cycle of processes"
REQUIRED = (MEMORY, DUTY)
"""What every GPU reports. Of processes a driver may report nothing, for instance in a namespace of its own."""


class Sample(NamedTuple):
    """One quantity of one GPU in percent, as both read it; None: not known. Memory is a part of the GPU's memory."""

    gpu: int
    quantity: str
    metrics: float | None
    smi: float | None


class Row(NamedTuple):
    """The means of one quantity over ``samples`` that both have; ``ok`` is None where there is none."""

    gpu: int
    quantity: str
    samples: int
    metrics: float | None
    smi: float | None
    ok: bool | None


class Verdict(NamedTuple):
    """``ok``: None if the samples cannot decide it. ``rows``: the means."""

    ok: bool | None
    message: str
    rows: list[Row]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def compare(samples: Sequence[Sample]) -> list[Row]:
    """One row per GPU and quantity, in the order of their first appearance."""
    rows = []
    for gpu, quantity in dict.fromkeys((sample.gpu, sample.quantity) for sample in samples):
        pairs = [
            (sample.metrics, sample.smi)
            for sample in samples
            if (sample.gpu, sample.quantity) == (gpu, quantity)
            and sample.metrics is not None
            and sample.smi is not None
        ]
        if not pairs:
            rows.append(Row(gpu, quantity, 0, None, None, None))
            continue
        ours, theirs = mean([ours for ours, _ in pairs]), mean([theirs for _, theirs in pairs])
        rows.append(Row(gpu, quantity, len(pairs), ours, theirs, abs(ours - theirs) <= TOLERANCE))
    return rows


def judge(samples: Sequence[Sample], loaded: int) -> Verdict:
    """The verdict. ``loaded``: the index of the GPU with the load."""
    rows = compare(samples)
    wrong = [row for row in rows if row.ok is False]
    if wrong:
        shown = "; ".join(f"GPU {row.gpu}: {describe(row)}" for row in wrong)
        return Verdict(False, f"more than {TOLERANCE:g} points apart: {shown}", rows)
    known = {row.quantity: row for row in rows if row.gpu == loaded and row.ok}
    for quantity in REQUIRED:
        row = known.get(quantity)
        if row is None:
            return Verdict(None, f"undecided: {quantity} of GPU {loaded} is not known", rows)
        if row.samples < LEAST_SAMPLES:
            return Verdict(None, f"undecided: {row.samples} samples of {LEAST_SAMPLES}", rows)
    duty = known[DUTY].smi or 0.0
    if not LEAST_LOAD <= duty <= MOST_LOAD:
        limits = f"{LEAST_LOAD:g} and {MOST_LOAD:g} %"
        return Verdict(None, f"undecided: the load was {duty:.1f} %, not between {limits}", rows)
    shown = ", ".join(describe(row) for row in known.values())
    return Verdict(True, f"within {TOLERANCE:g} points: {shown}", rows)


def describe(row: Row) -> str:
    """Both means of a row that has them."""
    return f"{row.quantity} {row.metrics or 0:.1f} % and {row.smi or 0:.1f} %"
