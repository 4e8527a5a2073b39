"""Grids of cases: a few of them in `make test`, more in `make campaign`, of the largest a sample that a seed draws."""

import os
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

Case = TypeVar("Case")
CAMPAIGN = os.environ.get("GPU_READY_CAMPAIGN") == "1"
"""Whether `make campaign` runs these tests: with all hosts of the fleets, and with the tests that are marked long."""
# The date, so that each campaign draws other samples; set for the workers of this session too.
SEED = os.environ.setdefault("GPU_READY_SEED", datetime.now(UTC).date().isoformat())


def sampled(cases: Iterable[Any], each: int) -> list[ParameterSet]:
    """Return the cases as parameters: the first and then each n-th for every run, the others only for the campaign."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.long] if number % each else [])
        for number, case in enumerate(cases)
    ]


def drawn(cases: Sequence[Case], count: int) -> list[Case]:
    """Return as many of the cases as that, in their order: which ones, the seed says."""
    chosen = set(random.Random(SEED).sample(range(len(cases)), min(count, len(cases))))
    return [case for number, case in enumerate(cases) if number in chosen]
