"""Why the real apt has no candidate of a package: no source, a pin, a virtual package, another architecture."""

from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.packaging import apt
from plugins.module_utils.gpu_ready.packaging.manager import PackageChange, PackageError, PackageSpec
from tests.unit.apt_root import AptRoot, apt_is_here

pytestmark = [pytest.mark.host_io, pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")]
STANZA = "Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: x <x@x.example>\nFilename: ./x.deb\nSize: 1\nDescription: x\n%s\n"
ROWS = (
    ("driver", "580.1-1", "amd64", ""),
    ("headless", "580.1-1", "amd64", "Depends: driver (>= 580), missing\n"),
    ("needs", "580.1-1", "amd64", "Depends: driver (>= 580)\n"),
    ("first", "1", "amd64", "Provides: agent\n"),
    ("second", "1", "amd64", "Provides: agent\n"),
    ("foreign", "1", "arm64", ""),
)
PIN = "Package: driver\nPin: release *\nPin-Priority: %d\n"
FORBIDDEN = "a pin forbids the package driver: its version 580.1-1 has the priority -1, by %s"
UNKNOWN = "is in no package source of this host for its architecture. Enable the source"


@pytest.fixture
def root(tmp_path: Path) -> AptRoot:
    host = AptRoot(tmp_path / "root")
    (tmp_path / "www").mkdir()
    text = "".join(STANZA % (name, version, arch, more) for name, version, arch, more in ROWS)
    (tmp_path / "www/Packages").write_text(text)
    host.write("/etc/apt/sources.list", f"deb [trusted=yes] file:{tmp_path}/www ./\n")  # third-party text
    assert host.run(["apt-get", "update"]).rc == 0
    return host


@pytest.mark.parametrize(
    ("files", "package", "words"),
    [
        ({}, "nowhere", "nowhere " + UNKNOWN),
        ({}, "foreign", "foreign " + UNKNOWN),
        ({}, "agent", "agent is a virtual package, provided by "),
        ({}, "missing", "other packages name the package missing, but no package source"),
        ({"preferences.d/site": PIN % -1}, "driver", FORBIDDEN % "/etc/apt/preferences.d/site line 1 (priority -1)"),
        ({"preferences.d/a.pref": "\n" + PIN % -1}, "driver", FORBIDDEN % "/etc/apt/preferences.d/a.pref line 2"),
        ({"preferences": PIN % -1}, "driver", FORBIDDEN % "/etc/apt/preferences line 1"),
        ({"preferences.d/site": PIN % -1}, "needs", FORBIDDEN % "/etc/apt/preferences.d/site line 1"),
        # A dependency that no source has, and another that a pin forbids.
        ({"preferences.d/site": PIN % -1}, "headless", FORBIDDEN % "/etc/apt/preferences.d/site line 1"),
        ({"preferences.d/site": PIN % -1}, "headless", "other packages name the package missing"),
        # apt reads no file with another ending (apt_preferences(5)), and another stanza is not the cause.
        ({"preferences.d/site.bak": PIN % -1, "preferences": PIN % -1}, "driver", "/preferences line 1 (priority -1). Ch"),
        ({"preferences": "Package: *\nPin: release *\nPin-Priority: 1\n\n" + PIN % -1}, "driver", "by /etc/apt/preferences line 5"),
    ],
)  # fmt: skip
def test_a_missing_candidate_is_explained_by_what_apt_says_of_it(
    root: AptRoot, files: dict[str, str], package: str, words: str
) -> None:
    for name, text in files.items():
        root.write("/etc/apt/" + name, text)
    with pytest.raises(PackageError) as found:
        apt.Apt(root, locks=()).plan_change("installing it", PackageChange([PackageSpec(package)], [], []))
    assert str(found.value).startswith("installing it: ") and words in str(found.value)


def test_a_pin_that_prefers_forbids_nothing(root: AptRoot) -> None:
    root.write("/etc/apt/preferences", PIN % 1)
    calls, _ = apt.Apt(root, locks=()).plan_change("x", PackageChange([PackageSpec("needs")], [], []))
    assert calls == [["--allow-downgrades", "install", "needs"]]
