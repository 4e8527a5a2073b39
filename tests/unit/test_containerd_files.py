"""containerd's files are written all or none, recorded first, and restored."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.containers.containerd import config, edits
from plugins.module_utils.gpu_ready.containers.containerd import files as containerd_files
from tests.unit.test_toml import DEBIAN

DUMPS = {
    True: "version = 2\n" + '[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = true\n',
    False: 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\nenable_cdi = false\n',
}


class Answering(Host):
    """This machine's files, and a containerd that answers as a test sets."""

    def __init__(self, answer: Result) -> None:
        self.answer = answer

    def run(self, argv: list[str], timeout: float = 30.0, env: Any = None) -> Result:
        assert argv[1] == "--config" and argv[-2:] == ["config", "dump"]
        return self.answer


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "etc/config.toml"
    path.parent.mkdir()
    path.write_text(DEBIAN)
    path.chmod(0o640)
    return path


def change(main: Path) -> config.ContainerdChange:
    return edits.plan_edits((1, 7, 24), [config.ConfigFile(str(main), main.read_text())], "cdi", False, [])


def write(main: Path, tmp_path: Path, answer: Result) -> None:
    containerd_files.write(Answering(answer), change(main), str(main), str(tmp_path / "var"))


def recorded(tmp_path: Path) -> Any:
    return manifest.read(str(tmp_path / "var/manifest.json"))


def test_files_are_recorded_written_and_reverted(main: Path, tmp_path: Path) -> None:
    write(main, tmp_path, Result(0, DUMPS[True], ""))
    assert "enable_cdi = true" in main.read_text() and main.stat().st_mode & 0o777 == 0o640
    (entry,) = recorded(tmp_path)["containerd"].values()
    assert config.decode_text(entry["before"]) == DEBIAN
    assert entry["record"] == [[["plugins", "io.containerd.grpc.v1.cri", "enable_cdi"], None]]
    assert (tmp_path / "var" / config.RESTART_MARK).exists()
    (copy,) = (tmp_path / "var/backup").iterdir()
    assert copy.read_text() == DEBIAN
    (edit,) = containerd_files.revert_edits(Host(), recorded(tmp_path))
    assert (edit.path, edit.after) == (str(main), DEBIAN)
    main.write_text(main.read_text() + "\n[debug]\nlevel = 'info'\n")
    (edit,) = containerd_files.revert_edits(Host(), recorded(tmp_path))
    assert edit.after == DEBIAN + "\n[debug]\nlevel = 'info'\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Result(1, "", "containerd: invalid plugin key"), "invalid plugin key"),
        (Result(0, DUMPS[False], ""), "does not show enable_cdi"),
        (Result(0, "no toml", ""), "not valid TOML"),
    ],
)
def test_files_that_containerd_refuses_are_restored(main: Path, tmp_path: Path, answer: Result, words: str) -> None:
    with pytest.raises(containerd_files.ContainerdRejected, match=words):
        write(main, tmp_path, answer)
    assert main.read_text() == DEBIAN and main.stat().st_mode & 0o777 == 0o640
    assert containerd_files.revert_edits(Host(), recorded(tmp_path)) == []
    assert not (tmp_path / "var" / config.RESTART_MARK).exists()


def test_the_first_record_is_kept(main: Path, tmp_path: Path) -> None:
    for _ in range(2):
        write(main, tmp_path, Result(0, DUMPS[True], ""))
        main.write_text(DEBIAN.replace("enable_cdi = true", "enable_cdi = false"))
    (entry,) = recorded(tmp_path)["containerd"].values()
    assert config.decode_text(entry["before"]) == DEBIAN and len(entry["record"]) == 1
    assert json.loads((tmp_path / "var/manifest.json").read_text())["containerd"]


def test_a_new_file_is_removed_again(tmp_path: Path) -> None:
    path = str(tmp_path / "conf.d/99.toml")
    containerd_files.write_or_delete(path, "a = 1\n")
    assert Path(path).read_text() == "a = 1\n"
    containerd_files.write_or_delete(path, None)
    containerd_files.write_or_delete(path, None)
    assert not Path(path).exists()


@pytest.mark.parametrize("more", ["", "\n[debug]\nlevel = 'info'\n"], ids=["as we left it", "others wrote since"])
def test_reverted_keys_are_removed_from_the_manifest(main: Path, tmp_path: Path, more: str) -> None:
    write(main, tmp_path, Result(0, DUMPS[True], ""))
    (entry,) = recorded(tmp_path)["containerd"].values()
    main.write_text(main.read_text() + more)
    files = [config.ConfigFile(str(main), main.read_text())]
    record = [(tuple(path), value) for path, value in entry["record"]]
    texts = [config.decode_text(entry[name]) for name in ("before", "after")]
    back = edits.plan_removal(files, texts[0], texts[1], record)
    containerd_files.write(Answering(Result(0, DUMPS[False], "")), back, str(main), str(tmp_path / "var"))
    assert main.read_text() == DEBIAN + more
    assert recorded(tmp_path)["containerd"] == {}  # others may set them again without their being taken for own keys
