"""Debian's sources get components and keep everything else."""

import pytest

from plugins.module_utils.gpu_ready.packaging import apt_components, apt_sources
from plugins.module_utils.gpu_ready.packaging.repository import format_deb822, format_preferences, parse_repository

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
    change = apt_components.enable_components("/etc/apt/sources.list", ONE_LINE, NAMES, "bookworm")
    expected = (
        ONE_LINE.replace("debian bookworm main   # keep", "debian bookworm main contrib non-free   # keep")
        .replace("bookworm-updates main contrib", "bookworm-updates main contrib non-free")
        .replace("bookworm-security main", "bookworm-security main contrib non-free")
    )
    # The deb-src entry of Debian is another kind of line and stays.
    expected = expected.replace("deb-src http://mirror.example/debian bookworm main contrib non-free", "deb-src http://mirror.example/debian bookworm main")  # fmt: skip
    assert change.after == expected
    assert change.entries == 3


def test_deb822_stanzas_of_debian_get_the_components() -> None:
    change = apt_components.enable_components("/x/debian.sources", DEB822, NAMES, "trixie")
    assert change.entries == 2
    assert change.after == DEB822.replace(
        "Components: main\nSigned", "Components: main contrib non-free\nSigned"
    ).replace("Components: main contrib\n", "Components: main contrib non-free\n")


@pytest.mark.parametrize(("path", "text", "code"), [("a.list", ONE_LINE, "bookworm"), ("a.sources", DEB822, "trixie")])
def test_a_second_edit_changes_nothing(path: str, text: str, code: str) -> None:
    once = apt_components.enable_components(path, text, NAMES, code).after
    assert apt_components.enable_components(path, once, NAMES, code).after == once


@pytest.mark.parametrize(("path", "text", "code"), [("a.list", ONE_LINE, "bookworm"), ("a.sources", DEB822, "trixie")])
def test_changes_are_reverted_exactly(path: str, text: str, code: str) -> None:
    spaced = text.replace("Components: main\n", "Components: main  \n")
    ours = apt_components.enable_components(path, spaced, NAMES, code).after
    assert apt_components.disable_components(path, ours, spaced, NAMES, code) == spaced


ADDED = "deb http://vendor.example/debian bookworm-backports main contrib non-free\n"


def test_a_line_that_somebody_added_since_stays() -> None:
    ours = apt_components.enable_components("a.list", ONE_LINE, NAMES, "bookworm").after
    assert apt_components.disable_components("a.list", ADDED + ours, ONE_LINE, NAMES, "bookworm") == ADDED + ONE_LINE


def test_only_added_components_are_removed_from_an_entry() -> None:
    ours = apt_components.enable_components("a.list", ONE_LINE, NAMES, "bookworm").after
    edited = ours.replace("bookworm main contrib non-free", "bookworm main contrib non-free non-free-firmware")
    expected = ONE_LINE.replace("debian bookworm main  ", "debian bookworm main non-free-firmware  ")
    assert apt_components.disable_components("a.list", edited, ONE_LINE, NAMES, "bookworm") == expected


def test_an_entry_is_found_by_its_suites_if_its_mirror_changed() -> None:
    before = "deb http://mirror.example/debian bookworm main\n"
    ours = apt_components.enable_components("a.list", before, NAMES, "bookworm").after
    moved = ours.replace("mirror.example", "new.example")
    assert apt_components.disable_components("a.list", moved, before, NAMES, "bookworm") == before.replace(
        "mirror.ex", "new.ex"
    )
    theirs = moved.replace("new", "second")
    assert apt_components.disable_components("a.list", theirs + ours, before, NAMES, "bookworm") == theirs + before


@pytest.mark.parametrize(
    ("edit", "after"),
    [
        (("Types: deb deb-src", "Types: deb"), ("Types: deb deb-src", "Types: deb")),
        (("Components: main contrib non-free\nSigned", "Components:\n main\n contrib\n non-free\nSigned"),
         ("Components: main\nSigned", "Components:\n main\nSigned")),
        (("Components: main contrib non-free\nSigned", "Components: contrib main non-free my\nSigned"),
         ("Components: main\nSigned", "Components: main my\nSigned")),
    ],
)  # fmt: skip
def test_only_added_components_are_removed_from_an_edited_stanza(edit: tuple[str, str], after: tuple[str, str]) -> None:
    ours = apt_components.enable_components("a.sources", DEB822, NAMES, "trixie").after
    edited = ours.replace(*edit, 1)
    assert edited != ours
    assert apt_components.disable_components("a.sources", edited, DEB822, NAMES, "trixie") == DEB822.replace(*after, 1)


def test_a_repository_without_components_is_flat() -> None:
    values = {"id": "x", "url": "http://x.example/r/", "suites": "/", "components": None, "key_url": ""}
    text = format_deb822(parse_repository({**values, "keyring": "/k.gpg"}), "amd64")
    assert "Suites: /\n" in text and "Components" not in text and "Signed-By: /k.gpg\n" in text


def test_pins_are_stanzas() -> None:
    text = format_preferences([{"package": ["a", "b"], "pin": "origin x", "priority": 600}, {"package": "c", "pin": "version 1*", "priority": 1}])  # fmt: skip
    assert "Package: a b\nPin: origin x\nPin-Priority: 600\n\nPackage: c\n" in text


UBUNTU = """deb http://archive.ubuntu.com/ubuntu/ jammy main universe
deb http://security.ubuntu.com/ubuntu jammy-security main universe
deb http://ppa.launchpad.net/graphics-drivers/ppa/ubuntu jammy main
deb https://download.docker.com/linux/ubuntu jammy stable
deb http://mirror.example/ubuntu noble main
"""


def test_entries_of_ubuntu_get_the_components_and_personal_archives_do_not() -> None:
    change = apt_components.enable_components("/etc/apt/sources.list", UBUNTU, ["restricted"], "jammy")
    assert change.entries == 2
    assert change.after == UBUNTU.replace("main universe", "main universe restricted")


def test_a_stanza_of_ubuntu_is_found_by_its_keyring() -> None:
    text = "Types: deb\nURIs: http://m.example/u\nSuites: noble noble-updates\nComponents: main\nSigned-By: %s\n"
    ours = text % "/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    assert apt_components.enable_components("/x/ubuntu.sources", ours, ["restricted"], "noble").entries == 1
    assert (
        apt_components.enable_components("/x/ubuntu.sources", text % "/x/vendor.gpg", ["restricted"], "noble").entries
        == 0
    )


SPLIT = """deb http://m.example/debian bookworm main
deb http://m.example/debian bookworm contrib
deb http://m.example/debian bookworm-updates main
"""


def test_components_in_an_entry_of_their_own_are_not_added_a_second_time() -> None:
    """apt warns "configured multiple times" on every call otherwise."""
    after = apt_components.enable_components("a.list", SPLIT, NAMES, "bookworm").after
    assert after == SPLIT.replace("bookworm main", "bookworm main non-free").replace(
        "updates main", "updates main contrib non-free"
    )
    assert apt_components.enable_components("a.list", after, NAMES, "bookworm").after == after
    others = apt_sources.parse_entries("b.list", "deb https://m.example/debian/ bookworm contrib non-free\n")
    main = SPLIT.splitlines(True)[0]
    assert apt_components.enable_components("a.list", main, NAMES, "bookworm", others).after == main
    assert apt_components.disable_components("a.list", after, SPLIT, NAMES, "bookworm") == SPLIT
