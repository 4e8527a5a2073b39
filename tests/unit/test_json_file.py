"""State files: what is written is read, and what is damaged is named or counts as absent."""

from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.files import delete_file, write_json_file
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.base.json_file import (
    DamagedFileError,
    read_json_file,
    read_json_object,
    read_text_mark,
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = str(tmp_path / "state/journal.json")
    assert read_json_file(Host(), path) is None and read_json_object(Host(), path) is None
    write_json_file(path, {"schema": 1, "phase": "ä"})
    assert read_json_file(Host(), path) == {"schema": 1, "phase": "ä"} == read_json_object(Host(), path, 1)
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert read_json_object(Host(), path, 2) is None
    write_json_file(path, ["b", "a"])
    assert read_text_mark(Host(), path, "Repair it") == ["b", "a"] and read_json_object(Host(), path) is None
    delete_file(path)
    delete_file(path)
    assert not Path(path).exists()


@pytest.mark.parametrize("data", [b"", b"{", b"\0", b"null", b'{"a": "\xff"}'])
def test_a_damaged_file_is_named_or_counts_as_absent(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "journal.json"
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match=rf"^{path} is damaged \(.*\)\. Move it away"):
        read_json_file(Host(), str(path))
    assert read_json_object(Host(), str(path)) is None


@pytest.mark.parametrize("data", [b"", b"{", b"\0", b"null", b'{"schema": 2}', b"[1]", b"[" * 100_000])
def test_a_mark_of_another_form_does_not_mean_that_nothing_is_to_be_done(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rebuild-pending"
    assert read_text_mark(Host(), str(path), "Repair it") == []
    path.write_bytes(data)
    message = rf"^{path} is damaged, or of another release\. Repair it, delete it, then run again\.$"
    with pytest.raises(DamagedFileError, match=message):
        read_text_mark(Host(), str(path), "Repair it")
