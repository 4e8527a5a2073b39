"""Texts with version and flavour of NVIDIA's module."""

import pytest

from plugins.module_utils.gpu_ready.system import nvrm_version
from plugins.plugin_utils.gpu_ready.diagnostics.pasted_version import parse_pasted_version, reports_absence

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.91.07  Release Build  (root@host)  Mon Jan 1 2026"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (OPEN, ("595.91.07", 595, "open", "x86_64", False)),
        (CLOSED + "\nGCC version:  gcc version 12.2.0", ("390.157", 390, "proprietary", "x86_64", False)),
        (CLOSED + " GCC version:  gcc version 4.8.5 20150623", ("390.157", 390, "proprietary", "x86_64", False)),
        ("n01: " + OPEN.replace("  ", " "), ("595.91.07", 595, "open", "x86_64", False)),
        (OPEN.replace("Module for", "Module\nfor"), ("595.91.07", 595, "open", "x86_64", False)),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  36.4.4  Release",
            ("36.4.4", 36, "open", "aarch64", True),
        ),
        (
            "version:        550.163.01\nlicense:        NVIDIA\nvermagic:       6.1.0-50-amd64 SMP",
            ("550.163.01", 550, "proprietary", None, False),
        ),
        ("  580.95.05\r\n", ("580.95.05", 580, None, None, False)),
        ("/sys/module/nvidia/version:580.95.05\n", ("580.95.05", 580, None, None, False)),
        ("580.95.05\nDual MIT/GPL\n", ("580.95.05", 580, "open", None, False)),
        ("n7: version: 550.163.01\nn7: license: NVIDIA\n", ("550.163.01", 550, "proprietary", None, False)),
        ("version: 540.4.0\nlicense: Dual MIT/GPL\nvermagic: 5.15.148-tegra SMP", ("540.4.0", 540, "open", None, True)),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build  (x@mobile-u64-1)",
            ("540.4.0", 540, "open", "aarch64", True),
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module 580.65", ("580.65", 580, "open", None, False)),
        (CLOSED.replace("390.157", "1.0-8776"), ("1.0-8776", 1, "proprietary", "x86_64", False)),
        (CLOSED.replace("x86_64", "**x86_64**"), ("390.157", 390, "proprietary", "x86_64", False)),
    ],
)
def test_version_and_flavour(text: str, answer: tuple[object, ...]) -> None:
    assert parse_pasted_version(text) == nvrm_version.DriverVersion(*answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("", False),
        ("GCC version: 12.2.0", False),
        ("cat: /proc/driver/nvidia/version: No such file or directory", True),
        ("cat: /proc/driver/nvidia/version: Datei oder Verzeichnis nicht gefunden", True),
        ("modinfo: ERROR: Module nvidia not found.", True),
    ],
)
def test_no_module_is_none(text: str, absent: bool) -> None:
    assert parse_pasted_version(text) is None
    assert reports_absence(text) == absent


def test_modinfo_of_a_signed_module() -> None:
    text = "filename: /x/nvidia.ko\nversion: 580.95.05\nlicense: Dual MIT/GPL\nsigner: DKMS module signing key\nsig_key: 1A\n"
    info = nvrm_version.read_modinfo(text)
    assert (info.version, info.flavour, info.signer) == ("580.95.05", "open", "DKMS module signing key")
    assert nvrm_version.read_modinfo("").version is None


def test_a_line_without_end_is_read_at_once() -> None:
    """A log of one huge line once kept the reader busy for minutes."""
    for text in (" " * 300_000, "' " * 150_000, "version: " + "a, " * 100_000, "x" * 300_000, "a: " * 100_000):
        assert parse_pasted_version(text) is None


def test_a_file_that_may_not_be_read_is_not_absent() -> None:
    assert not reports_absence("cat: /proc/driver/nvidia/version: Permission denied\n")
