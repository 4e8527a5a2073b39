"""`gpu-explain read`: its inputs, its texts, and that no text breaks a reader."""

import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from plugins.plugin_utils.gpu_ready.plan.driver import candidates

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
    + ["NVRM: ", "Xid (PCI:0000:01:00): ", "SXid (", "79, ", "The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b38) ", "#012"]
    + [
        "| NVIDIA-SMI 550.54.14  Driver Version: 550.54.14 |\n",
        "|   0  Tesla P4  Off | 00000000:86:00.0 Off | On |\n",
        "ERR!",
    ]
    + ["<nvidia_smi_log>", '<gpu id="0">', "</gpu>", "GPU 0: x (UUID: GPU-1)", "name, uuid\n", "NVSMI LOG", "N/A", ", "]
    + [
        "ERROR: ",
        "WARNING: ",
        "-> ",
        "(Answer: Continue",
        "is now complete",
        "Error! ",
        "unsatisfied condition: cuda>=",
    ]
    + [
        "unresolvable CDI devices ",
        "nvidia.com/gpu=",
        "nvidia-container-cli: ",
        "\x1b[31m",
        "\x00",
        "message repeated 9 times: [",
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
    assert explain.KINDS[kind].describe(answer)


KINDS_WITH_CAUSES = {"nvidia-smi", "container-error", "installer-log", "dmesg"}


@pytest.mark.parametrize("kind", sorted(KINDS_WITH_CAUSES))
@given(text=st.lists(st.characters(), max_size=400).map("".join))
def test_unknown_text_is_reported_as_unknown(kind: str, text: str) -> None:
    """Random letters contain no known message, so no cause is reported.

    Letter by letter, since st.text() also tries strings of the source code, among them the messages themselves.
    """
    answer = explain.KINDS[kind].read(text.encode("utf-8", "replace"))
    assert answer["problems"] == []


@pytest.mark.parametrize("kind", sorted(KINDS_WITH_CAUSES))
def test_no_pattern_hangs_on_a_long_log(kind: str) -> None:
    """Every pattern is bounded, also where a word never ends.

    Two seconds for 20 kB: a pattern whose time grows with the cube of the text reaches a minute at 60 kB.
    """
    for piece in (
        "nvidia-",
        "a",
        " ",
        "\\",
        "/usr/lib/wsl/",
        "BAR1 is ",
        "GPU 0: ",
        "NVRM: ",
        "| ",
        "<a>",
        "ERROR",
        "\n",
    ):
        started = time.process_time()
        explain.KINDS[kind].describe(explain.KINDS[kind].read((piece * (20000 // len(piece))).encode()))
        assert time.process_time() - started < 2, piece


@pytest.mark.parametrize("word", ["container_errors", "container-errors", "container-error"])
def test_a_kind_in_other_spellings(word: str) -> None:
    assert explain.kind_of(word) == "container-error"


def test_a_file_that_is_not_an_output_is_refused(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "LARGEST", 10)
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert explain.main(["read", "dmesg", str(tmp_path / "large")]) == 2
    assert "larger than" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "text", "output"),
    [
        ("dmesg", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "Do now: reboot; check power"),
        ("dmesg", "all quiet", "Nothing known is in this text"),
        ("nvidia-smi", "No devices were found", 'could not start any GPU: "No devices were found"'),
        ("nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)", "nvidia-smi answered: driver unknown, CUDA unknown, 1 GPU."),
        ("nvidia-smi", "bash: nvidia-smi: command not found", "nvidia-smi is not installed"),
        ("daemon-json", '{\n "a": 1\n "b": 2\n}', "Not valid in line 3, column 2: a comma is missing."),
        (
            "daemon-json",
            '{\n "a": 1,\n}',
            "Remedy: remove the comma at the end of line 2. Docker does not start with it, and gpu-ready does not edit it",
        ),
        (
            "daemon-json",
            " ",
            "Remedy: none is needed: docker starts with such a file, and gpu-ready treats it as an empty object.",
        ),
        ("os-release", "ID=arch", "ID arch, no version, family other."),
        ("container-error", "unsatisfied condition: cuda>=13.0, please", "requires a driver with CUDA 13.0 or newer"),
        (
            "container-error",
            "docker: something else failed",
            "The container engine reports an error that gpu-ready does not know",
        ),
        ("container-error", "docker: port is already allocated", "This failure is not related to GPUs"),
        ("installer-log", "ERROR: nvidia-installer must be run as root", "The installation failed."),
        ("installer-log", "ERROR: an error nobody knows", "reports an error that gpu-ready does not know"),
    ],
)
def test_texts(kind: str, text: str, output: str) -> None:
    shown = explain.KINDS[kind].describe(explain.KINDS[kind].read(text.encode()))
    assert output in " ".join(shown)


@pytest.mark.parametrize(
    ("kind", "text", "codes"),
    [
        (
            "nvidia-smi",
            "NVSMI LOG\nGPU 00000000:00:1E.0\n  GPU Reset Status\n    Reset Required : {}\n",
            {"No": [], "N/A": []},
        ),
        ("nvidia-smi", "NVSMI LOG\nGPU 00000000:00:1E.0\n    Reset Required : {}\n", {"Yes": ["gpu_reset_required"]}),
        (
            "container-error",
            "unresolvable CDI devices {}/gpu=4",
            {"nvidia.com": ["cdi_spec_wrong"], "amd.com": ["cdi_not_nvidia"]},
        ),
        (
            "container-error",
            'could not select device driver "{}" with capabilities: [[gpu]]',
            {"": ["toolkit_missing"], "cdi": ["cdi_not_enabled_in_docker"], "amd": ["cdi_not_nvidia"]},
        ),
    ],
)
def test_only_what_a_text_says_is_a_problem(kind: str, text: str, codes: dict[str, list[str]]) -> None:
    for word, expected in codes.items():
        answer = explain.KINDS[kind].read(text.format(word).encode())
        assert [problem["code"] for problem in answer["problems"]] == expected, word


@pytest.mark.parametrize("kind", sorted(explain.KINDS))
def test_an_empty_file_is_reported_with_a_remedy(kind: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert explain.main(["read", kind, str(tmp_path / "empty")]) == 0
    assert "Remedy" in capsys.readouterr().out


def test_a_missing_file_is_an_error_with_its_name(capsys: Any) -> None:
    assert explain.main(["read", "lspci", "/nowhere/at-all"]) == 2
    output = capsys.readouterr().err
    assert "/nowhere/at-all: No such file or directory; give a file" in output and "Errno" not in output


def test_a_card_above_the_catalog_and_a_legacy_card_are_reported(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "lspci"
    path.write_text(
        "01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:3fff] (rev a1)\n"
        "02:00.0 3D controller [0302]: NVIDIA Corporation GK210GL [Tesla K80] [10de:102d] (rev a1)\n"
    )
    assert explain.main(["read", "lspci", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "10de:3fff is not in the catalog" in shown and "that of a newer GPU: branch" in shown
    assert "branch 470 is the last one" in shown


UNKNOWN = sorted({f"{number:04x}" for number in range(0x0100, 0x4000, 0x61)} - set(catalog.gpus()))


@pytest.mark.parametrize("device", [*sorted(catalog.gpus())[::40], "1b8f", "3fff", *UNKNOWN[::8]])
def test_every_reader_and_the_plan_give_a_card_the_same_branches(device: str) -> None:
    pairs = candidates.pairs_of_gpu(device)
    listing = f"01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:{device}] (rev a1)\n"
    read = " ".join(explain.describe_lspci(explain.read_lspci(listing.encode())))
    detected = explain.describe_card({"device_id": device, "name": "Device"})
    known = catalog.gpu(device)
    if known is None and pairs:
        assert {f"branch {branch} with the {flavour} module" for branch, flavour in pairs} == {
            f"branch {catalog.newest_branch()} with the open module"
        }
        assert all(f"branch {catalog.newest_branch()} with the open module" in text for text in (read, detected))
    elif known is None:
        assert all("before Turing: its last branch is not known" in text for text in (read, detected))
        assert "best guess" not in read + detected
    elif known.last_branch is not None:
        assert f"branch {known.last_branch} is the last one" in read and f"branch {known.last_branch}" in detected
        assert not [branch for branch, _ in pairs if branch > known.last_branch]
    else:
        assert "is the last one" not in read and "current drivers" in detected


def test_an_archive_of_sysfs_is_read_through_its_links() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        directory = "root/sys/devices/pci0000:00/0000:00:01.0/0000:41:00.0"
        for name, text in (("vendor", "0x10de\n"), ("device", "0x20b5\n"), ("class", "0x030200\n")):
            member = tarfile.TarInfo(f"{directory}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in (
            (f"{directory}/driver", "../../../../bus/pci/drivers/vfio-pci"),
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


def test_message_of_a_broken_archive(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"\x1f\x8b\x08garbage")
    assert explain.main(["read", "lspci", str(tmp_path / "x.tar.gz")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_numbers_of_a_dump_are_read() -> None:
    """`lspci -x` shows no ids, but the bytes that contain them."""
    dump = "00: de 10 38 1b 06 04 10 00 a1 00 02 03 00 00 00 00\n10: 00 00 00 92 0c 00 00 e0 3b 00 00 00 0c 00 00 f0\n"
    head = "3b:00.0 3D controller: NVIDIA Corporation GP102GL [Tesla P40] (rev a1)\n"
    other = "00:1f.0 ISA bridge: Intel Corporation C621 (rev 09)\n00: 86 80 c1 a1 07 00 00 02 09 00 01 06 00 00 80 00\n"
    (gpu,) = explain.read_lspci((other + "\n" + head + dump).encode())["nvidia_gpus"]
    assert (gpu["device_id"], gpu["class_id"], gpu["name"]) == ("1b38", "0302", "GP102GL [Tesla P40]")
    (lost,) = explain.read_lspci((head + dump.replace("de 10 38 1b", "ff ff ff ff")).encode())["nvidia_gpus"]
    assert lost["device_id"] is None
