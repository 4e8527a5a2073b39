"""Files are replaced whole or not at all, and what could not be written is named."""

import errno
import os
from pathlib import Path

import pytest
from gpu_ready.base import files


@pytest.mark.parametrize("call", ["fsync", "rename", "fchmod"])
def test_a_disk_that_is_full_names_the_file_and_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """write(2) and fsync(2) tell no path, and mkstemp(3) tells a temporary one that nobody knows."""
    path = tmp_path / "manifest.json"
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError) as caught:
        files.write_atomic(str(path), b"new")
    monkeypatch.undo()
    assert path.read_text() == "old" and [each.name for each in tmp_path.iterdir()] == ["manifest.json"]
    assert files.describe_os_error(caught.value) == (
        f"{path}: No space left on device. Free space on its file system, then run again."
    )


def test_a_folder_that_is_missing_is_told_by_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        files.write_atomic(str(tmp_path / "none/file"), b"x")
    assert caught.value.filename == str(tmp_path / "none/file")
