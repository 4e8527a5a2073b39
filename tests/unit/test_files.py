"""Files are replaced completely or not at all, and what could not be written is named."""

import errno
import os
import struct
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import errors, files


@pytest.mark.parametrize("call", ["fsync", "rename", "fchmod"])
def test_a_full_disk_names_the_file_and_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Errors of write(2) and fsync(2) have no path, those of mkstemp(3) a temporary one that nobody knows."""
    path = tmp_path / "manifest.json"
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError) as caught:
        files.write_atomic(str(path), b"new")
    monkeypatch.undo()
    assert path.read_text() == "old" and [each.name for each in tmp_path.iterdir()] == ["manifest.json"]
    assert errors.describe_os_error(caught.value) == (
        f"{path}: No space left on device. Free space on its file system, then run again."
    )


def test_a_missing_directory_is_named_by_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        files.write_atomic(str(tmp_path / "none/file"), b"x")
    assert caught.value.filename == str(tmp_path / "none/file")


ACL = b"\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff"


def test_label_and_access_list_of_a_replaced_file_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon.json without its label cannot be read by a confined docker; one without its ACL not by its readers."""
    path = tmp_path / "daemon.json"
    path.write_text("old")
    attributes = {
        "security.selinux": b"system_u:object_r:container_config_t:s0\0",
        "system.posix_acl_access": ACL,
        "user.note": b"x",
        "security.ima": b"a signature of the old content",
    }
    written: dict[str, bytes] = {}
    monkeypatch.setattr(os, "listxattr", lambda _: list(attributes))
    monkeypatch.setattr(os, "getxattr", lambda _, name: attributes[name])
    monkeypatch.setattr(os, "setxattr", lambda _, name, value: written.update({name: value}))
    files.write_atomic(str(path), b"new")
    assert written == {name: value for name, value in attributes.items() if name != "security.ima"}
    assert path.read_text() == "new"


@pytest.mark.parametrize("call", ["listxattr", "setxattr"])
def test_a_file_system_without_attributes_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "listxattr", lambda _: ["security.selinux"])
    monkeypatch.setattr(os, "getxattr", lambda *_: b"label")
    monkeypatch.setattr(os, call, refuse)
    files.write_atomic(str(path), b"new")
    assert path.read_text() == "new"


def test_attributes_are_kept_on_a_file_system_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text("old")
    path.chmod(0o640)
    try:
        os.setxattr(path, "user.note", b"x")
    except OSError:
        pytest.skip("no extended attributes below tmp_path")
    files.write_atomic(str(path), b"new")
    assert os.getxattr(path, "user.note") == b"x" and path.stat().st_mode & 0o777 == 0o640


def test_a_replaced_file_gets_no_access_list_from_its_directory(tmp_path: Path) -> None:
    """A new file inherits the directory's default ACL, and with it readers that the old one did not have."""
    path = tmp_path / "daemon.json"
    path.write_text("old")
    path.chmod(0o640)
    everyone = 0xFFFFFFFF
    entries = [(1, 7, everyone), (2, 7, 1), (4, 5, everyone), (0x10, 7, everyone), (0x20, 5, everyone)]
    try:
        value = b"".join(struct.pack("<HHI", *entry) for entry in entries)
        os.setxattr(tmp_path, "system.posix_acl_default", struct.pack("<I", 2) + value)
    except OSError:
        pytest.skip("no access lists below tmp_path")
    files.write_atomic(str(path), b"new")
    assert "system.posix_acl_access" not in os.listxattr(path) and path.stat().st_mode & 0o777 == 0o640
