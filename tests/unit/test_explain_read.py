"""`gpu-explain read`: its doors, its words, and that no text breaks a reader."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from gpu_ready import explain
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.sampled_from(
    [
        "01:00.0 ",
        "3D controller",
        " [0302]: ",
        "NVIDIA Corporation ",
        "[10de:1b38]",
        "(rev a1)",
        "\n",
        "\t",
        '"',
        "Slot:\t",
    ]
    + [
        "Class:\t",
        "Device:\t",
        "Kernel driver in use: ",
        "ID=",
        "VERSION_ID=",
        "'",
        "\\",
        "[",
        "]",
        "This device requires ",
    ]
    + [
        "the current ",
        "595.91.07",
        " NVIDIA driver ",
        "Your card is ",
        "NVRM version: NVIDIA UNIX ",
        "x86_64  Kernel Module ",
    ]
    + [
        "version:",
        "license:",
        "\r\n",
        "\ufeff",
        "Checking card:",
        "0x030000",
        "sys/bus/pci/devices/0000:01:00.0/class:",
    ]
)


@pytest.mark.parametrize("kind", sorted(explain.KINDS))
@given(data=st.one_of(st.binary(max_size=300), st.lists(WORDS, max_size=30).map(lambda parts: "".join(parts).encode())))
def test_every_reader_survives_empty_and_garbled_text(kind: str, data: bytes) -> None:
    try:
        answer = explain.KINDS[kind].read(data)
    except ValueError:
        assert data[:2] in (b"\x1f\x8b", b"BZ") or data[257:262] == b"ustar" or data[:1] == b"\xfd"
        return
    json.dumps(answer)
    assert explain.KINDS[kind].tell(answer)


@pytest.mark.parametrize("kind", sorted(explain.KINDS))
def test_an_empty_file_is_told_with_a_remedy(kind: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert explain.main(["read", kind, str(tmp_path / "empty")]) == 0
    assert "Remedy" in capsys.readouterr().out


def test_a_missing_file_is_an_error_with_its_name(capsys: Any) -> None:
    assert explain.main(["read", "lspci", "/nowhere/at-all"]) == 2
    assert "/nowhere/at-all" in capsys.readouterr().err


def test_a_card_above_the_catalog_and_a_legacy_one_are_told(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "lspci"
    path.write_text(
        "01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:3fff] (rev a1)\n"
        "02:00.0 3D controller [0302]: NVIDIA Corporation GK210GL [Tesla K80] [10de:102d] (rev a1)\n"
    )
    assert explain.main(["read", "lspci", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "newer than the catalog" in shown
    assert "branch 470 is the last one" in shown


def test_an_archive_of_sysfs_is_read_through_its_links() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        folder = "root/sys/devices/pci0000:00/0000:00:01.0/0000:41:00.0"
        for name, text in (("vendor", "0x10de\n"), ("device", "0x20b5\n"), ("class", "0x030200\n")):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in (
            (f"{folder}/driver", "../../../../bus/pci/drivers/vfio-pci"),
            ("root/sys/bus/pci/devices/0000:41:00.0", "../../../devices/pci0000:00/0000:00:01.0/0000:41:00.0"),
        ):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    (gpu,) = explain.read_lspci(stream.getvalue())["nvidia_gpus"]
    assert (gpu["slot"], gpu["device_id"], gpu["class_raw"], gpu["driver_in_use"]) == (
        "0000:41:00.0",
        "20b5",
        "0x030200",
        "vfio-pci",
    )


def test_a_broken_archive_is_a_sentence(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b\x08garbage")
    assert explain.main(["read", "lspci", str(tmp_path / "x.tar.gz")]) == 2
    assert "cannot be read" in capsys.readouterr().err
