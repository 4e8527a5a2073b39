"""gpu_revert: what is ours goes back to what it was and is forgotten, what is not stays."""

import base64
import functools
import types
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.base import manifest
from gpu_ready.base.host import Host

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def withdraw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module's function, with its manifest in a folder of the test."""
    import ansible.module_utils

    monkeypatch.setattr(ansible.module_utils, "__path__", [*ansible.module_utils.__path__, str(ROOT / "module_utils")])
    path = ROOT / "library" / "gpu_revert.py"
    scope: dict[str, Any] = {"__name__": "gpu_revert"}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    noted = str(tmp_path / "manifest.json")
    scope["manifest"] = types.SimpleNamespace(
        read=functools.partial(manifest.read, noted), drop=functools.partial(manifest.drop, path=noted)
    )
    return lambda check=False, **wanted: scope["run"](Host(), {"packages": [], "paths": [], "remains": [], **wanted}, check)  # fmt: skip


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
    wanted = {"paths": paths, "remains": [str(host / "left")]}
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
