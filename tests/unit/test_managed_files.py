"""gpu_files and its rebuild: the next run completes what a killed run left."""

import functools
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import files, managed_files, manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host


class Killed(BaseException):
    """The run ends here."""


class Node:
    """A directory as a node: runs the module on one file with the rebuild ``touch <directory>/built``."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file, self.built, self.mark = directory / "x.conf", directory / "built", directory / "rebuild-pending"
        self.manifest = str(directory / "manifest.json")
        recorded = functools.partial(manifest_notes.note_files, path=self.manifest)
        monkeypatch.setattr(manifest_notes, "note_files", recorded)
        self.patch = monkeypatch
        self.write = files.write_atomic

    def run(self, kill: str = "", argv: "list[str] | None" = None, mode: int = 0o644, content: bytes = b"x\n") -> Any:
        def write(path: str, data: bytes, mode: int) -> None:
            if kill == "before the file" and path == str(self.file):
                raise Killed
            self.write(path, data, mode)
            if kill == "after the file" and path == str(self.file):
                raise Killed

        self.patch.setattr(files, "write_atomic", write)
        argv = ["touch", str(self.built)] if argv is None else argv
        expected = [managed_files.ManagedFile(str(self.file), content, mode)]
        return managed_files.converge(Host(), expected, argv, False, str(self.mark))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_a_changed_file_is_followed_by_its_rebuild_once(node: Node) -> None:
    assert node.run()["rebuilt"] and node.built.exists() and not node.mark.exists()
    second = node.run()
    assert (second["changed"], second["rebuilt"]) == (False, False)


def test_content_and_mode_of_before_are_recorded(node: Node) -> None:
    node.file.write_bytes(b"theirs")
    node.file.chmod(0o600)
    assert node.run(argv=[])["diff"][0]["before"] == "theirs"
    written = [[hashlib.sha256(b"x\n").hexdigest(), 0o644, os.geteuid()]]
    assert manifest.read(node.manifest)["files"] == {
        str(node.file): {"before": "dGhlaXJz", "mode": 0o600, "written": written}
    }
    assert node.file.stat().st_mode & 0o777 == 0o644 and node.run(argv=[], mode=0o600)["changed"]


@pytest.mark.parametrize("kill", ["before the file", "after the file"])
def test_a_killed_run_is_repaired_by_the_next(node: Node, kill: str) -> None:
    with pytest.raises(Killed):
        node.run(kill)
    assert node.mark.exists() and not node.built.exists()
    # nouveau may be unloaded after a reboot: the plan then has no rebuild, but the outstanding one is still done.
    later = node.run(argv=[])
    assert (later["changed"], later["rebuilt"]) == (True, True)
    assert node.file.exists() and node.built.exists() and not node.mark.exists()
    assert node.run()["changed"] is False


def test_a_failed_rebuild_stays_due(node: Node) -> None:
    for argv in (["false"], ["true"]):
        with pytest.raises(GpuReadyError, match="`false` ended with 1"):
            node.run(argv=argv)
    assert node.mark.exists()
