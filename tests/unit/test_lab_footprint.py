"""How two hosts differ, file by file."""

import json
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_ready_lab import footprint

MANIFEST = "/var/lib/gpu-ready/manifest.json"


def test_equal_hosts_have_no_differences() -> None:
    text = json.dumps({"/etc/x": "100644 0:0 abc", f"{MANIFEST}#holds": {"a": {"time": 1}}, "/etc/y": "link to {z"})
    other = text.replace('"time": 1', '"time": 2')
    assert footprint.differences(footprint.read(text), footprint.read(other)) == []


def test_times_and_boots_of_records_are_passed_over_at_every_depth() -> None:
    record = "/var/lib/gpu-ready/verified.json"
    first = {
        f"{record}#time": "1",
        f"{record}#boot_id": "a",
        f"{record}#ok": True,
        f"{MANIFEST}#packages": {"p": {"at": 1}},
    }
    other = first | {f"{record}#time": "2", f"{record}#boot_id": "b", f"{MANIFEST}#packages": {"p": {"at": 2}}}
    read = [footprint.read(json.dumps(one)) for one in (first, other, other | {f"{record}#ok": False})]
    assert footprint.differences(read[0], read[1]) == []
    assert footprint.differences(read[0], read[2]) == [f"{record}#ok: true became false"]


def test_a_record_differs_by_section_and_entry() -> None:
    before: footprint.Footprint = {f"{MANIFEST}#modules": {"m": {}}, f"{MANIFEST}#packages": {"b": {}, "same": {}}}
    after: footprint.Footprint = {f"{MANIFEST}#packages": {"c": {}, "same": {}}}
    assert footprint.differences(before, after) == [f'{MANIFEST}#packages: {{"b": {{}}}} became {{"c": {{}}}}']


def test_added_and_removed_files_are_absent_on_the_other_side() -> None:
    lines = footprint.differences({"/etc/x": "100644 0:0 abc"}, {"/etc/y": "link to z"})
    assert lines == ["/etc/x: 100644 0:0 abc became absent", "/etc/y: absent became link to z"]


@pytest.fixture(scope="module")
def content() -> Callable[[str], bytes]:
    """The reader of files that runs on the hosts."""
    scope: dict[str, Callable[[str], bytes]] = {}
    exec(footprint.ASK.partition("found = {}")[0], scope)
    return scope["content"]


def signed(key: bytes) -> bytes:
    return b"ELF of the module" + key + bytes(8) + struct.pack(">I", len(key)) + b"~Module signature appended~\n"


@pytest.mark.parametrize(("name", "pack"), [("nvidia.ko", bytes), ("nvidia.ko.xz", lzma.compress)])
def test_modules_that_differ_in_their_hosts_key_are_the_same(
    content: Callable[[str], bytes], name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    module = tmp_path / name
    for key in (b"one key", b"another one"):
        module.write_bytes(pack(signed(key)))
        assert content(str(module)) == b"ELF of the module"
    module.write_bytes(b"")  # as after a loss of power
    assert content(str(module)) == b""


def test_the_mock_differs_in_its_cards_only(content: Callable[[str], bytes], tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.550.163.01"
    for cards in (b"uuid = a\n", b"uuid = another\n"):
        library.write_bytes(b"ELF of the mock" + cards + b"%016xGRLNVML1" % len(cards))
        assert content(str(library)) == b"ELF of the mock"
