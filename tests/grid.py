"""Grids of cases: a sample of them in `make test`, all of them in `make campaign`."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

CAMPAIGN = os.environ.get("GPU_READY_CAMPAIGN") == "1"
"""Whether `make campaign` runs these tests: with all hosts of the fleets, and with the tests that are marked long."""


def sampled(cases: Iterable[Any], each: int) -> list[ParameterSet]:
    """Return the cases as parameters: the first and then each n-th for every run, the others only for the campaign."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.long] if number % each else [])
        for number, case in enumerate(cases)
    ]
