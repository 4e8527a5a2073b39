"""Programs that several files of tests run for real, and how `make programs` shares out the tests that start programs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.unit import catalogs, chromium, real_programs

TOGETHER = ("test_collection", "test_own_playbook")
"""Files whose tests share a run of Ansible or a built collection: for one process.

pytest-xdist's own mark for this (xdist_group, 3.8.0) has no effect with pytest 9.2, whose items have no _nodeid.
"""
WAITING = (
    "test_interrupt",
    "test_time_limits",
    "test_hostile",
    "test_two_controllers",
    "test_operator_files",
    "test_drain_play",
)
"""Files whose tests wait for long: begun first, they use the time in which others compute."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: (item.path.stem not in TOGETHER, item.path.stem not in WAITING))


class Scheduler(LoadFileScheduling):
    """Gives a worker a single test, or all of a file whose tests belong together."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid) if Path(nodeid.partition("::")[0]).stem in TOGETHER else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    return Scheduler(config, log)


@pytest.fixture(scope="session")
def prometheus() -> None:
    """Prometheus, with its promtool."""
    real_programs.need_on_path("promtool", "prometheus")


@pytest.fixture(scope="session")
def browser() -> None:
    """A Chromium, or a Chrome."""
    if chromium.find_browser() is None:
        real_programs.need_on_path("chromium", "chromium")


@pytest.fixture(scope="module")
def catalog_of_2026() -> Iterator[None]:
    """The catalog without branches that came after 620: the numbers of a test are examples of the rules."""
    with catalogs.until(620):
        yield


@pytest.fixture(scope="module")
def catalog_of_the_lab() -> Iterator[None]:
    """The catalog without branches that the lab's mirror has no packages of yet."""
    with catalogs.until(catalogs.newest_of_the_lab()):
        yield


@pytest.fixture
def hook(tmp_path: Path) -> str:
    path = tmp_path / "balancer.yml"
    path.write_text("[]\n")
    return str(path)
