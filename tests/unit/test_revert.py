"""gpu_revert: own changes are reverted and removed from the manifest, other files stay."""

import base64
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.lifecycle import revert
from plugins.module_utils.gpu_ready.lifecycle.revert import RevertRequest
from plugins.module_utils.gpu_ready.packaging.manager import Manager


@pytest.fixture
def run_revert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function, with its manifest in a directory of the test."""
    recorded = str(tmp_path / "manifest.json")
    monkeypatch.setattr(manifest.read, "__defaults__", (recorded,))
    monkeypatch.setattr(manifest_notes.drop, "__defaults__", (recorded,))

    def run(check: bool = False, **values: Any) -> dict[str, Any]:
        request = RevertRequest(**{"packages": [], "paths": [], "leftovers": [], **values})
        return revert.revert(Host(), Manager(Host()), request, check)

    return run


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A directory with own files, one that gpu-ready changed, and one of others."""
    before = base64.b64encode(b"theirs").decode()
    (tmp_path / "volume/lib64").mkdir(parents=True)
    for name in ("ours", "changed", "other"):
        (tmp_path / name).write_text(name)
    recorded = str(tmp_path / "manifest.json")
    files = {"ours": None, "changed": before}
    for name, old in files.items():
        path = str(tmp_path / name)
        written = [list(manifest.read_state(Host(), path))]
        manifest_notes.note("files", {path: {"before": old, "mode": 0o644, "written": written}}, recorded)
    manifest_notes.note("directories", {str(tmp_path / "volume"): {}}, recorded)
    return tmp_path


def test_own_files_are_removed_also_from_the_manifest(host: Path, run_revert: Any) -> None:
    paths = [str(host / name) for name in ("ours", "changed", "other", "volume", "absent")]
    values = {"paths": paths, "leftovers": [str(host / "left")]}
    (host / "left").write_text("left")
    removed = [str(host / name) for name in ("ours", "changed", "volume", "left")]
    assert run_revert(check=True, **values)["paths"] == removed
    assert sorted(path.name for path in host.iterdir()) == ["changed", "left", "manifest.json", "other", "ours", "volume"]  # fmt: skip
    assert run_revert(**values)["paths"] == removed
    assert sorted(path.name for path in host.iterdir()) == ["changed", "manifest.json", "other"]
    assert (host / "changed").read_text() == "theirs"
    assert manifest.read(str(host / "manifest.json")) == {}
    assert run_revert(**values) == {"changed": False, "packages": [], "paths": [], "diff": [], "warnings": []}


def test_a_file_that_somebody_changed_is_kept_and_forgotten(host: Path, run_revert: Any) -> None:
    (host / "ours").write_text("ours, and a line of the administrator")
    found = run_revert(paths=[str(host / "ours")])
    assert not found["changed"] and (host / "ours").exists()
    assert found["warnings"] == [
        f"{host}/ours is kept: somebody changed it after gpu-ready wrote it. Delete it if nothing needs it"
    ]
    assert str(host / "ours") not in manifest.read(str(host / "manifest.json"))["files"]


def test_a_file_of_others_at_a_released_path_stays(host: Path, run_revert: Any) -> None:
    run_revert(paths=[str(host / "ours")])
    (host / "ours").write_text("somebody else's now")
    assert run_revert(paths=[str(host / "ours")])["changed"] is False
    assert (host / "ours").exists()
