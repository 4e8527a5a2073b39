"""gpu_files and its rebuild: what a run that is killed in between leaves, the next one does."""

import functools
import types
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.base import pending as rebuild
from gpu_ready.base.host import Host

ROOT = Path(__file__).resolve().parents[2]


class Killed(BaseException):
    """The run ends here."""


class Node:
    """A folder as a node: runs the module on one file with the rebuild ``touch <folder>/built``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import ansible.module_utils

        monkeypatch.setattr(
            ansible.module_utils, "__path__", [*ansible.module_utils.__path__, str(ROOT / "module_utils")]
        )
        self.file, self.built, self.mark = folder / "x.conf", folder / "built", folder / "rebuild-pending"

    def run(self, kill: str = "", argv: "list[str] | None" = None) -> Any:
        path = ROOT / "library" / "gpu_files.py"
        scope: dict[str, Any] = {"__name__": "gpu_files"}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        entry = {"path": str(self.file), "content": "blacklist nouveau\n", "mode": "0644", "state": "present"}
        argv = ["touch", str(self.built)] if argv is None else argv

        def write(host: Host, change: Any) -> None:
            if kill == "before the file":
                raise Killed
            self.file.write_bytes(change[3])
            if kill == "after the file":
                raise Killed

        scope["write"] = write
        scope["rebuilds"] = types.SimpleNamespace(
            **{name: functools.partial(getattr(rebuild, name), path=str(self.mark)) for name in ("begin", "done")},
            pending=functools.partial(rebuild.pending, path=str(self.mark)),
        )
        return scope["run"](Host(), {"files": [entry], "rebuild": argv}, False)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_a_changed_file_is_followed_by_its_rebuild_once(node: Node) -> None:
    assert node.run()["rebuilt"] and node.built.exists() and not node.mark.exists()
    second = node.run()
    assert (second["changed"], second["rebuilt"]) == (False, False)


@pytest.mark.parametrize("kill", ["before the file", "after the file"])
def test_a_killed_run_is_repaired_by_the_next(node: Node, kill: str) -> None:
    with pytest.raises(Killed):
        node.run(kill)
    assert node.mark.exists() and not node.built.exists()
    # nouveau may be gone after a reboot: the plan then asks for no rebuild, and the one that is due comes all the same.
    later = node.run(argv=[])
    assert (later["changed"], later["rebuilt"]) == (True, True)
    assert node.file.exists() and node.built.exists() and not node.mark.exists()
    assert node.run()["changed"] is False


def test_a_rebuild_that_failed_stays_due(node: Node) -> None:
    for argv in (["false"], ["true"]):
        with pytest.raises(Exception, match="ended with"):
            node.run(argv=argv)
    assert node.mark.exists()
