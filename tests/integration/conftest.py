"""Lab fleets for the integration tests: started once, stopped at the end."""

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fleet import CAMPAIGN, lab

SECONDS = Path(__file__).with_name("seconds.json")
"""How long each file takes in `make test`, on two cores."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-lab", action="store_true", help="leave the lab running after the tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests to the campaign, and begin with the files that take longest: the last ones fill the gaps."""
    long = [item for item in items if item.get_closest_marker("long")]
    if not CAMPAIGN and long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    order = json.loads(SECONDS.read_text())
    items.sort(key=lambda item: -order.get(item.path.stem, 0))


@pytest.fixture(scope="session")
def lab_machine(request: pytest.FixtureRequest) -> None:
    """A machine that can run the lab, which is stopped when the last worker has ended."""
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the lab once, in the process that the workers belong to."""
    config = session.config
    ours = not hasattr(config, "workerinput") and not config.getoption("collectonly") and os.geteuid() == 0
    if ours and not config.getoption("--keep-lab"):
        lab("down")
