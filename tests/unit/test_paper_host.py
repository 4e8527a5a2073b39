"""A host on paper knows nothing but what it was given: no answer is about the machine that runs gpu-explain."""

import fcntl
import inspect
import os
from pathlib import Path

from plugins.module_utils.gpu_ready.base.host import MISSING, Host
from plugins.plugin_utils.gpu_ready.explain.cli import Archive
from plugins.plugin_utils.gpu_ready.explain.host import DescribedHost
from plugins.plugin_utils.gpu_ready.explain.paper_host import PaperHost

DERIVED = {"read"}
"""Methods of Host that only use others of its methods."""
QUERIES = {name for name, _ in inspect.getmembers(Host, inspect.isfunction) if not name.startswith("_")} - DERIVED


def test_every_query_of_a_host_has_an_answer_on_paper() -> None:
    assert set(vars(PaperHost)) >= QUERIES
    assert issubclass(DescribedHost, PaperHost) and issubclass(Archive, PaperHost)


def test_nothing_of_this_machine_is_reported(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with Path(path).open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        paper = PaperHost()
        assert paper.lock_holder(path) is None
        assert paper.command_lines([os.getpid()]) == {}
        assert (paper.stamp(path), paper.mode(path), paper.owner(path), paper.changed_at(path)) == (None,) * 4
        assert (paper.read(path), paper.read_foreign(path), paper.free("/")) == (None, None, None)
        assert (paper.exists("/"), paper.isdir("/"), paper.listdir("/"), paper.readlink("/proc/self")) == (
            False,
            False,
            [],
            None,
        )
        assert (paper.which("sh"), paper.run(["sh", "-c", "true"]).rc) == (None, MISSING)
        assert paper.http_unix(path, "/version") is None
        assert paper.realpath("/proc/self") == "/proc/self"
