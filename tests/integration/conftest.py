"""Lab fleets for the integration tests: started once, taken down at the end."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fleet import lab


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-lab", action="store_true", help="leave the lab running after the tests")


@pytest.fixture(scope="session")
def lab_machine(request: pytest.FixtureRequest) -> None:
    """A machine that can run the lab, which is taken down when the last worker has ended."""
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take the lab down once, in the process that the workers belong to."""
    config = session.config
    ours = not hasattr(config, "workerinput") and not config.getoption("collectonly") and os.geteuid() == 0
    if ours and not config.getoption("--keep-lab"):
        lab("down")
