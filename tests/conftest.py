"""What every test needs: the code under test as a host imports it, and the path of the shared corpus."""

import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

# No deadline: a test that fails because a machine is busy says nothing about the code. The gate tries the same examples
# every time, so that a red run is the change's doing; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("gate", deadline=None, derandomize=True, max_examples=40)
settings.register_profile("search", deadline=None, max_examples=500)
settings.load_profile("gate")
# Thousands of collected tests stay until the end; by default the collector looks at all of them again and again.
gc.set_threshold(50_000, 20, 100)
# A shell starts what runs in the background with SIGINT ignored, and so would be all programs that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Workers of pytest-xdist have the width of a terminal, which programs that they start would take for their own.
os.environ.pop("COLUMNS", None)
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "lab"), str(ROOT), str(ROOT / "collections")]


class OneNameEach(MetaPathFinder, Loader):
    """Makes what plugins import as parts of the collection the modules that tests import: one class, one constant."""

    collection = "ansible_collections.gpu_ready.nodes."
    shared = (f"{collection}plugins.module_utils.gpu_ready", f"{collection}plugins.plugin_utils.")

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.startswith(self.shared) else None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(module.__name__.removeprefix(self.collection))


sys.meta_path.insert(0, OneNameEach())

from plugins.module_utils.gpu_ready.base import files, locks, manifest, manifest_notes  # noqa: E402  importable from here on
from tests.grid import CAMPAIGN, SEED  # noqa: E402
from tests.shared import SHARED  # noqa: E402

WITHOUT_SHARED = pytest.StashKey[int]()


def pytest_report_header() -> str:
    """Print what repeats the samples of this run."""
    return f"samples: GPU_READY_SEED={SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests to the campaign, and out those that need ../shared where it is absent."""
    left_out = [] if CAMPAIGN else ["long"]
    left_out += [] if SHARED.is_dir() else ["shared"]
    chosen = [item for item in items if not any(item.get_closest_marker(name) for name in left_out)]
    config.stash[WITHOUT_SHARED] = len([item for item in items if item.get_closest_marker("shared")])
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests a checkout without ../shared leaves out."""
    if not SHARED.is_dir():
        count = config.stash.get(WITHOUT_SHARED, 0)
        terminalreporter.write_line(
            f"{SHARED} is not there: {count} tests that read it are deselected, and of samples only those of tests/corpus "
            "are read (CONTRIBUTING.md)"
        )


@pytest.fixture(autouse=True, scope="session")
def no_manifest_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail a test whose code would write the manifest of the machine that runs the tests; lock elsewhere too."""
    write = files.write_json_file

    def refuse(path: str, value: object) -> None:
        assert path != manifest.PATH, "this test writes " + path
        write(path, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_notes, "write_json_file", refuse)
        patch.setattr(locks, "DIRECTORY", str(tmp_path_factory.mktemp("locks")))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_reports_in_this_checkout() -> Iterator[None]:
    """Fail if a test wrote into the reports of the checkout, where those of a user's last run are."""
    before = reports_of_checkout()
    yield
    written = sorted(name for name, _ in reports_of_checkout() ^ before)
    assert not written, f"a test wrote reports/{written[0]}: give its playbook a gpu_report_directory of its own"


def reports_of_checkout() -> set[tuple[str, int]]:
    """Return the files there with the time of their last change."""
    directory = ROOT / "reports"
    return {(path.name, path.stat().st_mtime_ns) for path in directory.iterdir()} if directory.is_dir() else set()
