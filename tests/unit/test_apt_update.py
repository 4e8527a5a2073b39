"""`apt-get update` of the real apt where sources of others are broken, and where another apt reads the lists."""

import contextlib
import fcntl
import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.packaging import apt, apt_lists, install
from plugins.module_utils.gpu_ready.packaging.manager import PackageChange, PackageError, PackageSpec
from tests.unit import web_server
from tests.unit.apt_root import AptRoot, apt_is_here

pytestmark = [pytest.mark.host_io, pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")]
PACKAGE = "Package: gpu-tool\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: x <x@x.example>\nFilename: ./a.deb\nSize: 1\nSHA256: {0}\nDescription: x\n\n"
DEAD = "/etc/apt/sources.list.d/dead.list"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[str]:
    """The URL of a server: /good has a package, /unsigned has a Release file without a signature, all else is missing."""
    for name in ("good", "unsigned"):
        directory = tmp_path / "www" / name
        directory.mkdir(parents=True)
        text = PACKAGE.format("0" * 64).encode()
        (directory / "Packages").write_bytes(text)
        (directory / "Packages.gz").write_bytes(gzip.compress(text))
    (tmp_path / "www/unsigned/Release").write_text("Origin: x\n")

    with web_server.serve_directory(tmp_path / "www") as url:
        yield url


@pytest.fixture
def root(tmp_path: Path, archive: str, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    """A host with a good source; its signature is not checked, which is another test's subject."""
    host = AptRoot(tmp_path / "root")
    monkeypatch.setattr(apt_lists, "DIRECTORY", host.inside("/var/lib/apt/lists"))
    monkeypatch.setattr(apt, "OPTIONS", [*apt.OPTIONS, "-o", "Acquire::Retries=0"])
    host.write("/etc/apt/sources.list", f"deb [trusted=yes] {archive}/good ./\n")  # third-party text
    return host


def manager(root: AptRoot, **options: Any) -> apt.Apt:
    return apt.Apt(root, locks=(), **options)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/none", ["404"]),
        ("/unsigned", ["signature", "not signed"]),
        ("http://127.0.0.2:9/x", ["does not answer", "Connection refused"]),
        ("http://dead.invalid/x", ["resolve"]),
    ],
)
def test_a_broken_source_of_others_is_named_and_stops_nothing(
    root: AptRoot, archive: str, path: str, words: list[str]
) -> None:
    url = path if path.startswith("http") else archive + path
    root.write(DEAD, f"deb {url} {'./' if path == '/unsigned' else 'stable main'}\n")
    found = manager(root)
    found.update()
    (message,) = found.failed_sources
    assert message.startswith(DEAD + ": ") and url in message and "gpu_ready_mirror" not in message
    for word in words:
        assert word in message
    assert found.offers(["gpu-tool"]) == {"gpu-tool": ["1.0-1"]}
    request = install.parse_transaction(
        {
            **dict.fromkeys(("names", "optional", "remove", "hold", "unhold", "allow_remove"), []),
            **{"names": ["gpu-tool"], "streams": {}, "purge": False, "update_cache": True, "purpose": "a tool"},
        }
    )
    values = install.converge(found, request, True)
    assert values["installed"] == {"gpu-tool": "1.0-1"} and DEAD in values["warnings"][0]


def test_what_is_needed_and_not_on_offer_names_the_source_that_failed(root: AptRoot) -> None:
    root.write(DEAD, "deb http://127.0.0.2:9/x stable main\n")
    found = manager(root)
    found.update()
    with pytest.raises(
        PackageError, match=rf"other is in no package source.*Not read were: {DEAD}: .*127\.0\.0\.2:9/x"
    ):
        found.plan_change("installing it", PackageChange([PackageSpec("other")], [], []))
    with pytest.raises(PackageError, match=rf"reading the package lists: {DEAD}: "):
        found.update(["127.0.0.2:9/x"])


def test_where_no_list_can_be_read_the_cause_of_that_is_the_message(root: AptRoot) -> None:
    """Otherwise the first package that is asked for would be missing, and its absence would hide the cause."""
    root.write("/etc/apt/sources.list", "deb http://127.0.0.2:9/x stable main\n")
    root.write(DEAD, "deb http://127.0.0.2:9/y stable main\n")
    words = r"reading the package lists: /etc/apt/sources\.list: http://127\.0\.0\.2:9/x.*does not answer.*\(1 more source failed"
    with pytest.raises(PackageError, match=words):
        manager(root).update()


def test_our_own_list_must_be_read(root: AptRoot) -> None:
    own = "/etc/apt/sources.list.d/gpu-ready-x.sources"
    root.write(own, "Types: deb\nURIs: http://127.0.0.2:9/x\nSuites: /\n")
    with pytest.raises(PackageError, match=r"127\.0\.0\.2:9/x.*does not answer"):
        manager(root).update_only(root.inside(own))


def test_sources_that_apt_cannot_read_stop_with_its_message(root: AptRoot) -> None:
    root.write(DEAD, "deb http://x.example/\n")
    with pytest.raises(PackageError, match=r"Malformed entry 1 in list file .*dead\.list"):
        manager(root).update()


@contextlib.contextmanager
def lists_locked(root: AptRoot) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the lock of the package lists until its input ends, as apt-daily.service does for a while."""
    path = root.inside("/var/lib/apt/lists/lock")
    script = f"import fcntl,sys; f=open({path!r},'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin and holder.stdout and holder.stdout.readline() == "held\n"
        yield holder
        holder.stdin.close()


def test_a_lock_that_another_apt_was_faster_to_get_is_tried_again(
    root: AptRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`locks=()`: nobody held it when the locks were read."""
    monkeypatch.setattr(apt, "RETRY", 0.2)
    with lists_locked(root) as holder:
        assert holder.stdin
        release = threading.Timer(2, holder.stdin.close)
        release.start()
        manager(root, wait=300.0).update()
        release.join()
    with lists_locked(root), pytest.raises(PackageError, match="lists/lock"):
        manager(root, wait=0.0).update()
    assert fcntl.LOCK_EX


INSTALLED = "Package: gpu-tool\nStatus: install ok installed\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: x <x@x.example>\nDescription: x\n"


def test_a_removal_works_where_two_sources_contradict_each_other(root: AptRoot) -> None:
    """The owner followed a vendor's page after gpu-ready: uninstall.yml must still work."""
    root.write("/var/lib/dpkg/status", INSTALLED)
    for name in ("a", "b"):
        root.write(f"/etc/apt/sources.list.d/{name}.list", f"deb [signed-by=/{name}.gpg] http://x.example/y /\n")
    found = manager(root)
    with pytest.raises(PackageError, match="Conflicting values"):
        found.simulate("removing it", ["purge", "gpu-tool"])
    assert root.run(["apt-mark", "showmanual", "gpu-tool"]).rc != 0
    assert root.run(["apt-mark", *apt.WITHOUT_SOURCES, "showmanual", "gpu-tool"]).rc == 0
    assert found.simulate("removing it", found.removal_command(["gpu-tool"])).remove == ["gpu-tool"]
