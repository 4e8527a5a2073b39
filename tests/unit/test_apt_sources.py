"""Debian's sources get components and keep everything else."""

import pytest
from gpu_ready import apt_sources

NAMES = ["contrib", "non-free"]

ONE_LINE = """# main archive
deb http://mirror.example/debian bookworm main   # keep me
deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://x.example/foo bookworm-updates main contrib
deb http://mirror.example/debian-security bookworm-security main
deb-src http://mirror.example/debian bookworm main
deb http://packages.example/tools bookworm main
deb [signed-by=/etc/apt/keyrings/vendor.gpg] http://vendor.example/debian bookworm main
deb http://vendor.example/debian bookworm stable
#deb http://mirror.example/debian bookworm-backports main
"""

DEB822 = """# See sources.list(5)
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: trixie-security
Components: main contrib
# a comment inside
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
Enabled: no
URIs: http://mirror.example/debian
Suites: trixie-backports
Components: main
"""


def test_one_line_entries_of_debian_get_the_components() -> None:
    change = apt_sources.enable("/etc/apt/sources.list", ONE_LINE, NAMES, "bookworm")
    expected = (
        ONE_LINE.replace("debian bookworm main   # keep", "debian bookworm main contrib non-free   # keep")
        .replace("bookworm-updates main contrib", "bookworm-updates main contrib non-free")
        .replace("bookworm-security main", "bookworm-security main contrib non-free")
    )
    # The source entry of Debian is another line kind and stays.
    expected = expected.replace("deb-src http://mirror.example/debian bookworm main contrib non-free", "deb-src http://mirror.example/debian bookworm main")  # fmt: skip
    assert change.after == expected
    assert change.entries == 3


def test_deb822_stanzas_of_debian_get_the_components() -> None:
    change = apt_sources.enable("/x/debian.sources", DEB822, NAMES, "trixie")
    assert change.entries == 2
    assert change.after == DEB822.replace(
        "Components: main\nSigned", "Components: main contrib non-free\nSigned"
    ).replace("Components: main contrib\n", "Components: main contrib non-free\n")


@pytest.mark.parametrize(("path", "text", "code"), [("a.list", ONE_LINE, "bookworm"), ("a.sources", DEB822, "trixie")])
def test_a_second_time_changes_nothing(path: str, text: str, code: str) -> None:
    once = apt_sources.enable(path, text, NAMES, code).after
    assert apt_sources.enable(path, once, NAMES, code).after == once


def test_a_repository_without_components_is_flat() -> None:
    text = apt_sources.source({"url": "http://x.example/r/", "suites": "/", "components": None}, "/k.gpg", "amd64")
    assert "Suites: /\n" in text and "Components" not in text and "Signed-By: /k.gpg\n" in text


def test_pins_are_stanzas() -> None:
    text = apt_sources.pins([{"package": ["a", "b"], "pin": "origin x", "priority": 600}, {"package": "c", "pin": "version 1*", "priority": 1}])  # fmt: skip
    assert "Package: a b\nPin: origin x\nPin-Priority: 600\n\nPackage: c\n" in text
