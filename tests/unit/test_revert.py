"""gpu_revert: what is ours goes back to what it was and is forgotten, what is not stays."""

import base64
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.base import manifest
from gpu_ready.base.host import Host
from gpu_ready.lifecycle import revert
from gpu_ready.lifecycle.revert import RevertRequest
from gpu_ready.packaging.manager import Manager


@pytest.fixture
def withdraw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the function, with its manifest in a folder of the test."""
    noted = str(tmp_path / "manifest.json")
    monkeypatch.setattr(manifest.read, "__defaults__", (noted,))
    monkeypatch.setattr(manifest.drop, "__defaults__", (noted,))

    def run(check: bool = False, **wanted: Any) -> dict[str, Any]:
        request = RevertRequest(**{"packages": [], "paths": [], "leftovers": [], **wanted})
        return revert.revert(Host(), Manager(Host()), request, check)

    return run


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder with files of ours, one that we changed, and one of others."""
    before = base64.b64encode(b"theirs").decode()
    (tmp_path / "volume/lib64").mkdir(parents=True)
    for name in ("ours", "changed", "other"):
        (tmp_path / name).write_text(name)
    noted = str(tmp_path / "manifest.json")
    files = {"ours": None, "changed": before}
    manifest.note("files", {str(tmp_path / name): {"before": old, "mode": 0o644} for name, old in files.items()}, noted)
    manifest.note("folders", {str(tmp_path / "volume"): {}}, noted)
    return tmp_path


def test_ours_go_and_are_forgotten(host: Path, withdraw: Any) -> None:
    paths = [str(host / name) for name in ("ours", "changed", "other", "volume", "absent")]
    wanted = {"paths": paths, "leftovers": [str(host / "left")]}
    (host / "left").write_text("left")
    gone = [str(host / name) for name in ("ours", "changed", "volume", "left")]
    assert withdraw(check=True, **wanted)["paths"] == gone
    assert sorted(path.name for path in host.iterdir()) == ["changed", "left", "manifest.json", "other", "ours", "volume"]  # fmt: skip
    assert withdraw(**wanted)["paths"] == gone
    assert sorted(path.name for path in host.iterdir()) == ["changed", "manifest.json", "other"]
    assert (host / "changed").read_text() == "theirs"
    assert manifest.read(str(host / "manifest.json")) == {}
    assert withdraw(**wanted) == {"changed": False, "packages": [], "paths": [], "diff": []}


def test_a_file_of_others_at_a_path_that_we_left_stays(host: Path, withdraw: Any) -> None:
    withdraw(paths=[str(host / "ours")])
    (host / "ours").write_text("somebody else's now")
    assert withdraw(paths=[str(host / "ours")])["changed"] is False
    assert (host / "ours").exists()
