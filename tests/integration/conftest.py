"""Lab fleets for the integration tests: started once, stopped at the end."""

import collections
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.integration.fleet import ROOT, lab

SECONDS = Path(__file__).with_name("seconds.json")
"""How long each file takes in `make test`, on two cores, as the end of a run prints it. INDEPENDENT: the longest test."""
INDEPENDENT = ("test_sudo", "test_upgrade_play")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-lab", action="store_true", help="leave the lab running after the tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: the last ones fill the gaps."""
    order = json.loads(SECONDS.read_text())
    items.sort(key=lambda item: -order.get(item.path.stem, 0))


class Scheduler(LoadFileScheduling):
    """Gives a worker a whole file, whose tests share lab hosts, or a single test of a file whose tests share nothing."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if Path(nodeid.partition("::")[0]).stem in INDEPENDENT else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduler:
    return Scheduler(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Give this session and its workers a file that says whether they used the lab."""
    if not hasattr(config, "workerinput"):
        os.environ["GPU_READY_LAB_USED"] = str(ROOT / f".lab/used-by-{os.getpid()}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how long each file took, in the form of seconds.json."""
    seconds: collections.Counter[str] = collections.Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[Path(report.location[0]).stem] += round(report.duration)
    if seconds:
        terminalreporter.section("seconds by file")
        terminalreporter.write_line(json.dumps(dict(seconds.most_common()), indent=1))


@pytest.fixture(scope="session")
def lab_machine() -> None:
    """A machine that can run the lab, which is taken down when the session ends."""
    if os.geteuid() != 0:
        pytest.skip("lab hosts need root")
    used = Path(os.environ["GPU_READY_LAB_USED"])
    used.parent.mkdir(exist_ok=True)
    used.touch()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take the fleets of this checkout down once, in the process that the workers belong to, if any test used the lab.

    The lab ends with its last host: hosts of another checkout may be at work in it.
    """
    used = Path(os.environ["GPU_READY_LAB_USED"])
    if hasattr(session.config, "workerinput") or not used.exists():
        return
    used.unlink()
    if not session.config.getoption("--keep-lab"):
        fleets = [path.parent.name for path in sorted((ROOT / ".lab").glob("*/id_ed25519"))]
        for name in fleets or ["none"]:
            lab("down", name)
