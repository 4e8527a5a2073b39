"""Lab fleets for the integration tests: started once, taken down at the end."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fleet import lab


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-lab", action="store_true", help="leave the lab running after the tests")


@pytest.fixture(scope="session")
def lab_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """A machine that can run the lab; takes the lab down at the end."""
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    yield
    if not request.config.getoption("--keep-lab"):
        lab("down")
