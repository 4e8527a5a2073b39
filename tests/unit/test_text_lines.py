"""Lines, joined text and quotes of pasted texts."""

import json
import re
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import long_lines
from plugins.plugin_utils.gpu_ready.diagnostics import message_table, messages, text_lines
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from plugins.plugin_utils.gpu_ready.explain import forms


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb", [(1, "a"), (2, "b")]),
        ("a\r\n\x1b[31mb\x1b[0m", [(1, "a"), (2, "b")]),
        ("a#012b\nc", [(1, "a"), (1, "b"), (2, "c")]),
        (r'stderr: "a\nb\nc"', [(1, 'stderr: "a'), (1, "b"), (1, 'c"')]),
        ('[\n  "a",\n  "b"\n]\n"c"', [(1, "["), (2, "a"), (3, "b"), (4, "]"), (5, "c")]),
    ],
)
def test_lines_keep_the_numbers_of_the_pasted_text(text: str, lines: list[tuple[int, str]]) -> None:
    assert [tuple(line) for line in text_lines.lines_of(text)] == lines


LONG = 10_000


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("a\nb", "a\nb"),
        ("x" * 8192, "x" * 8192),
        ("a" * LONG, "a" * 4096 + "..." + "a" * 4096),
        ("first\n" + "b" * LONG + "\nlast", "first\n" + "b" * 4096 + "..." + "b" * 4096 + "\nlast"),
        # A program's output on one line, and a progress bar: their parts are lines.
        ("line of output\\n" * 1000, "line of output\\n" * 1000),
        ("line of output#012" * 1000, "line of output#012" * 1000),
        ("50%\r" * 4000 + "e" * LONG, "50%\r" * 4000 + "e" * 4096 + "..." + "e" * 4096),
    ],
)
def test_long_lines_keep_their_ends(text: str, cut: str) -> None:
    assert long_lines.cut_lines(text) == cut
    assert long_lines.cut_lines(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("text", "patterns", "line"),
    [
        ("one\nrpmdb: x error\nthree", ["rpmdb", "error"], "rpmdb: x error"),
        ("error rpmdb\nrpmdb\nerror", ["rpmdb", "error"], None),
        ("nothing", ["rpmdb"], None),
    ],
)
def test_a_line_is_found_by_words_in_their_order(text: str, patterns: list[str], line: str | None) -> None:
    assert long_lines.find_line(text, *patterns) == line


def test_the_line_of_a_match_is_whole() -> None:
    for text, line in (("a\nb x c\nd", "b x c"), ("x", "x"), ("a x", "a x"), ("x b\n", "x b")):
        match = re.search("x", text)
        assert match and long_lines.line_of(match) == line


def test_every_position_of_a_joined_text_has_its_line() -> None:
    flat = text_lines.flat("one two\n\n  three\nfour")
    assert flat.text == "one two three four"
    words = ("one", "two", "three", "four")
    assert [flat.line(flat.text.index(word)) for word in words] == [1, 1, 3, 4]
    both = text_lines.chain(flat, " ;; ", text_lines.flat("five"))
    assert both.line(both.text.index("five")) == 1 and both.line(both.text.index("four")) == 4
    assert text_lines.flat("").line(0) is None


@pytest.mark.parametrize(
    ("text", "match", "quote"),
    [
        ("kgspExecuteFwsec_TU102: failed to run\nroot@host:~# uptime", "TU102: failed", "kgspExecuteFwsec_TU102: failed to run"),
        ("Error: setting up: unresolvable CDI devices x\nsee help", "CDI devices", "unresolvable CDI devices x"),
        ("<error>No devices found</error><gpu/>", "No devices", "<error>No devices found"),
        ('level=error msg="failed: no such device" id=7', "no such", "no such device"),
        ("first. Second part failed here. Third", "failed", "Second part failed here"),
        ("a message that\nis broken in two\nnext", "that is broken", "a message that is broken in two"),
        ("prefix " * 30 + "reason is shown here", "shown", "...prefix prefix prefix prefix reason is shown here"),
        # A list within a message, and numbers behind colons, are no beginnings.
        ("0/3 nodes are available: 1 node(s) had untolerated taint {a/control-plane: }, 2 Insufficient nvidia.com/gpu. x", "Insufficient nvidia.com/gpu",
         "0/3 nodes are available: 1 node(s) had untolerated taint {a/control-plane: }, 2 Insufficient nvidia.com/gpu"),
        ("kernel: Xid (PCI:0000:a3:00): 79, pid=7, name=a, GPU has fallen off the bus.", "GPU has fallen", "Xid (PCI:0000:a3:00): 79, pid=7, name=a, GPU has fallen off the bus"),
        ("setup failed (hook: exited): reason follows", "reason", "reason follows"),
        ("setup failed (hook: exited) with reason", "with", "setup failed (hook: exited) with reason"),
        ('ctr: msg="a: b" err="c: d" last word', "last", 'msg="a: b" err="c: d" last word'),
        ("E1112 04:17:09.123456 1 main.go:123] failed to start plugin", "plugin", "failed to start plugin"),
        ("see https://a.b/c?d=e; modprobe: cannot insert module", "insert", "cannot insert module"),
        ("uses libnvidia-ml v1. of it", "of it", "uses libnvidia-ml v1. of it"),
        ("错误：无法定位软件包 nvidia-x", "nvidia-x", "无法定位软件包 nvidia-x"),
    ],
)  # fmt: skip
def test_a_quote_is_the_whole_message_and_nothing_else(text: str, match: str, quote: str) -> None:
    flat = text_lines.flat(text)
    start = flat.text.index(match)
    assert flat.quote(start, start + len(match)) == quote


def test_a_message_that_the_driver_broke_is_quoted_from_its_beginning() -> None:
    log = (
        "[1.0] NVRM: request_irq() failed (-22)\n"
        "[1.1] NVRM: The NVIDIA GPU 0000:65:00.0\n"
        "[1.2] NVRM: (PCI ID: 10de:1db6) installed in this system has\n"
        "[1.3] NVRM: fallen off the bus and is not responding to commands.\n"
        "[1.4] NVRM: kgspBootstrap_GH100: RM cannot boot\n"
    )
    quotes = {found.code: (found.message, found.line) for found in messages.explain("dmesg", log)}
    whole = "The NVIDIA GPU 0000:65:00.0 (PCI ID: 10de:1db6) installed in this system has fallen off the bus and is not responding to commands"
    assert quotes["fallen_off_bus"] == (whole, 4)
    assert quotes["gsp_boot_failed"] == ("RM cannot boot", 5)


def test_every_row_has_a_severity_and_a_confidence() -> None:
    kinds = (message_table.NVIDIA_SMI, message_table.CONTAINER, message_table.INSTALLER, message_table.KERNEL)
    for entry in (entry for kind in kinds for entry in message_table.table(kind)):
        assert entry.severity in message_table.SEVERITIES, entry.code
        assert entry.confidence in (message_table.CERTAIN, message_table.LIKELY), entry.code


ANSWERS: list[tuple[str, str, dict[str, int]]] = [
    ("container-error", "$ docker run x\ncould not select device driver \"cdi\" with capabilities", {"problem": 2}),
    ("installer-log", "Building\n\nError! Bad return status for module build on kernel: 6.1.0-9-amd64", {"problem": 3}),
    ("nvidia-smi", "$ nvidia-smi\nNo devices were found", {"problem": 2}),
    ("dmesg", "[1.0] x: y\n[2.0] NVRM: GPU 0000:c1:00.0: RmInitAdapter failed! (0x61)", {"problem": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "lines"), ANSWERS)
def test_a_problem_names_its_line_its_severity_and_its_confidence(kind: str, text: str, lines: dict[str, int]) -> None:
    answer = explain.KINDS[kind].read(text.encode())
    (problem,) = answer["problems"]
    assert problem["line"] == lines["problem"]
    assert (problem["severity"], problem["confidence"]) in {
        ("critical", "certain"), ("error", "certain"), ("error", "likely"),
    }  # fmt: skip
    shown = explain.KINDS[kind].describe(answer)
    assert any(shown_line.startswith(f"Line {lines['problem']}") for shown_line in shown)


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("lspci", "text\n3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40] [10de:1b38]", 2),
        ("os-release", "NAME=x\nID=debian\nVERSION_ID=12", 2),
        ("proc-driver-version", "$ cat\nNVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep", 2),
        ("daemon-json", '{\n "runtimes": {},\n "default-runtime": "nvidia"\n}', 3),
        ("nvidia-smi", "\nGPU 0: NVIDIA L4 (UUID: GPU-1)", 2),
    ],
)
def test_a_fact_names_its_line(kind: str, text: str, line: int) -> None:
    shown = explain.KINDS[kind].describe(explain.KINDS[kind].read(text.encode()))
    assert any(shown_line.startswith(f"Line {line}: ") for shown_line in shown), shown


FOREIGN: list[tuple[str, str, str, str | None]] = [
    ("nvidia-smi", "GPU 0: NVIDIA A100\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n", "nvidia-smi nvlink", None),
    ("nvidia-smi", "01:00.0 VGA compatible controller: Intel Corporation HD (rev 09)\n", "lspci", "lspci"),
    ("lspci", "Failed to initialize NVML: Driver/library version mismatch\n", "nvidia-smi", "nvidia-smi"),
    ("lspci", "nvidia/580.95.05, 6.1.0-9-amd64, x86_64: installed\n", "dkms status", None),
    ("daemon-json", "PRETTY_NAME=x\nID=debian\n", "os-release", "os-release"),
    ("os-release", '{\n "runtimes": {}\n}', "daemon.json", "daemon-json"),
    ("installer-log", "ii  nvidia-driver  580.95.05-1  amd64  metapackage\n", "a list of packages (dpkg -l)", None),
    ("os-release", "Distributor ID:\tUbuntu\nRelease:\t24.04\n", "lsb_release", None),
    ("daemon-json", '[plugins."io.containerd.grpc.v1.cri"]\n', "config.toml", None),
    ("container-error", "[    1.000000] pci 0000:00:00.0: ok\n", "the kernel's log", "dmesg"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "form", "other"), FOREIGN)
def test_a_text_of_another_program_is_named_and_not_read(kind: str, text: str, form: str, other: str | None) -> None:
    answer = explain.KINDS[kind].read(text.encode())
    assert (answer["form"], answer["form_kind"]) == (form, other)
    assert not answer.get("gpus") and not answer.get("problems") and not answer.get("installer_failed")
    first, remedy = explain.KINDS[kind].describe(answer)
    assert form in first and remedy.startswith("Remedy: ")
    json.dumps(answer)


def test_every_kind_has_a_form_of_its_own() -> None:
    assert {form.kind for form in forms.FORMS} - {None} == set(explain.KINDS) - {"auto"}


def test_a_text_that_is_of_the_kind_too_is_read() -> None:
    text = "[    1.000000] x: y\nFailed to initialize NVML: Driver/library version mismatch\n"
    answer: dict[str, Any] = explain.KINDS["nvidia-smi"].read(text.encode())
    assert "form" not in answer and answer["state"] == "driver_library_mismatch"
