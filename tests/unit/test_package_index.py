"""What the sources of a host offer, as the real apt reads them in a private root; nothing of the host changes."""

import gzip
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpu_ready_lab import packages

from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.packaging import apt_lists, package_index
from plugins.module_utils.gpu_ready.packaging.index_record import FRESH, STALE, UNAVAILABLE, PackageIndex
from plugins.module_utils.gpu_ready.packaging.manager import PackageSpec
from plugins.module_utils.gpu_ready.packaging.package_index import IndexQuestion
from plugins.module_utils.gpu_ready.packaging.repositories import Request
from plugins.module_utils.gpu_ready.packaging.repository import Repository, parse_repository
from tests.unit import web_server
from tests.unit.apt_root import AptRoot, apt_is_here

pytestmark = [pytest.mark.host_io, pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")]
NOTHING = Request([], [], [])
THIRD = "/etc/apt/sources.list.d/third.list"
DEAD = "deb http://127.0.0.2:9/x stable main\n"
INSTALLED = "Package: {}\nStatus: {} ok installed\nVersion: 1.0-1\nArchitecture: amd64\nMaintainer: x\nDescription: x\n"
HOOK = 'APT::Update::Post-Invoke { "touch {root}/hook"; };\nAPT::Update::Pre-Invoke { "touch {root}/hook"; };\n'


def stanza(name: str, version: str, architecture: str = "amd64") -> str:
    fields = f"Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: x <x@x.example>\n"
    return fields + f"Filename: ./{name}.deb\nSize: 1\nSHA256: {'0' * 64}\nDescription: x\n\n"


def publish(directory: Path, *stanzas: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = "".join(stanzas).encode()
    for name, data in (("Packages", text), ("Packages.gz", gzip.compress(text))):
        before = (directory / name).stat().st_mtime if (directory / name).exists() else time.time() - 1000
        (directory / name).write_bytes(data)
        os.utime(directory / name, (before + 60, before + 60))  # HTTP compares seconds


@pytest.fixture
def www(tmp_path: Path) -> Path:
    publish(tmp_path / "www/good", stanza("tool", "1.0-1"), stanza("tool", "2:1.5-1"), stanza("tools-extra", "3"))
    return tmp_path / "www"


@pytest.fixture
def archive(www: Path) -> Iterator[str]:
    with web_server.serve_directory(www) as url:
        yield url


@pytest.fixture
def root(tmp_path: Path, archive: str, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    """A host whose own lists are empty; its source is not signed, which is another test's subject."""
    host = AptRoot(tmp_path / "root")
    monkeypatch.setattr(apt_lists, "DIRECTORY", host.inside("/var/lib/apt/lists"))
    host.write("/etc/apt/sources.list", f"deb [trusted=yes] {archive}/good ./\n")
    host.write("/var/lib/dpkg/status", INSTALLED.format("base", "install"))
    (tmp_path / "private").mkdir()
    with (host.root / "apt.conf").open("a") as stream:
        stream.write(HOOK.replace("{root}", str(tmp_path)))
    return host


def digest(directory: Path) -> dict[str, Any]:
    """Return the content, mode and time of each file below a directory."""
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mode, path.stat().st_mtime)
        for path in sorted(directory.rglob("*"))
    }


def ask(root: AptRoot, *names: str, request: Request = NOTHING, needed: str = "") -> PackageIndex:
    """Read the index as the module does, and check that nothing of the host has changed."""
    before, private = digest(root.root), root.root.parent / "private"
    found = package_index.read_index(root, IndexQuestion([*names], request, needed.split()), str(private))
    assert digest(root.root) == before and not list(private.iterdir())
    assert not (root.root.parent / "hook").exists()
    assert package_index.PREFIX not in repr(found)
    return found


def test_names_and_patterns_have_their_versions_newest_first(root: AptRoot) -> None:
    """The host's own lists were never read."""
    found = ask(root, "tool", "tools-*", "nothing")
    assert found == PackageIndex(FRESH, {"tool": ["2:1.5-1", "1.0-1"], "tools-extra": ["3"], "nothing": []})


def test_what_the_source_has_since_the_host_read_it_counts(root: AptRoot, www: Path) -> None:
    assert root.run(["apt-get", "update"]).rc == 0
    (root.root.parent / "hook").unlink()
    publish(www / "good", stanza("tool", "9"))
    assert ask(root, "tool", "tools-extra") == PackageIndex(FRESH, {"tool": ["9"], "tools-extra": []})


def test_a_broken_source_of_others_is_named_by_its_file_and_the_rest_is_fresh(root: AptRoot) -> None:
    root.write(THIRD, DEAD)
    found = ask(root, "tool")
    assert (found.state, found.versions["tool"][0]) == (FRESH, "2:1.5-1")
    (message,) = found.failed
    assert message.startswith(THIRD + ": ") and "127.0.0.2:9/x" in message


def repository(url: str, tmp_path: Path, **values: Any) -> Repository:
    own = {"id": "x", "url": url, "key_url": f"{url}/key", "keyring": str(tmp_path / "none/x.gpg")}
    return parse_repository({**own, "list": "/etc/apt/sources.list.d/gpu-ready-x.sources", **values})


@pytest.fixture
def signed(www: Path, archive: str, tmp_path: Path) -> tuple[Request, packages.Key]:
    """A repository that a plan will add, and the key that signs it."""
    key = packages.Key(tmp_path / "key")
    packages.write_repository(www / "signed", [], {"Origin": "X"}, key)
    publish(www / "signed", stanza("driver", "620.1"))
    release = "SHA256:\n" + "".join(
        f" {hashlib.sha256((www / 'signed' / name).read_bytes()).hexdigest()}"
        f" {(www / 'signed' / name).stat().st_size} {name}\n"
        for name in ("Packages", "Packages.gz")
    )
    (www / "signed/Release").write_text(release)
    key.sign(www / "signed")
    own = repository(f"{archive}/signed", tmp_path, fingerprint=key.fingerprint)
    return Request([], [], [own], {key.fingerprint: key.public.read_text()}), key


def test_a_repository_that_the_plan_adds_is_read_with_its_pinned_key(
    root: AptRoot, signed: tuple[Request, packages.Key], www: Path
) -> None:
    request, _ = signed
    assert ask(root, "driver", "tool", request=request).versions["driver"] == ["620.1"]
    publish(www / "signed", stanza("driver", "666"))
    found = ask(root, "driver", request=request)
    assert (found.state, found.versions) == (UNAVAILABLE, {"driver": []}) and "/signed" in found.cause


def test_another_key_than_the_pinned_one_is_not_trusted(
    root: AptRoot, signed: tuple[Request, packages.Key], tmp_path: Path
) -> None:
    request, _ = signed
    other = packages.Key(tmp_path / "other")
    own = request.repositories[0]._replace(fingerprint=other.fingerprint)
    found = ask(root, "driver", request=Request([], [], [own], {other.fingerprint: other.public.read_text()}))
    assert found.state == UNAVAILABLE and "signature" in found.cause


def test_lists_of_before_answer_where_the_source_does_not(root: AptRoot, www: Path, tmp_path: Path) -> None:
    """They cannot show that something is missing."""
    assert root.run(["apt-get", "update"]).rc == 0
    (root.root.parent / "hook").unlink()
    old = time.time() - 3 * 86400
    os.utime(root.inside("/var/lib/apt/lists"), (old, old))
    url = (root.read("/etc/apt/sources.list") or "").split()[2]
    for file in (www / "good").iterdir():
        file.unlink()
    found = ask(root, "tool", request=Request([], [], [repository(url, tmp_path, fingerprint="", adopted=THIRD)]))
    assert found.state == UNAVAILABLE and "key" in found.cause
    adopted = repository(url, tmp_path, fingerprint="A" * 40, adopted="/etc/apt/sources.list")
    found = ask(root, "tool", request=Request([], [], [adopted]))
    assert (found.state, found.versions) == (STALE, {"tool": ["2:1.5-1", "1.0-1"]})
    assert 3 * 86400 <= found.age < 3 * 86400 + 600 and "/good" in found.cause


def test_sources_that_apt_cannot_read_are_unavailable_with_their_cause(root: AptRoot) -> None:
    root.write(THIRD, "deb http://x.example/\n")
    found = ask(root, "tool")
    assert found.state == UNAVAILABLE and "Malformed entry 1" in found.cause and THIRD in found.cause


def test_a_pin_hides_a_package_and_is_named(root: AptRoot) -> None:
    root.write("/etc/apt/preferences.d/site", "Package: tool\nPin: version *\nPin-Priority: -1\n")
    found = ask(root, "tool", "tools-extra")
    assert list(found.hidden) == ["tool"] and "/etc/apt/preferences.d/site line 1" in found.hidden["tool"]


def test_a_package_of_another_architecture_is_not_offered(root: AptRoot, www: Path) -> None:
    with (root.root / "apt.conf").open("a") as stream:
        stream.write('APT::Architectures:: "i386";\n')
    publish(www / "good", stanza("old", "1", "i386"), stanza("tool", "1"), stanza("tool", "2", "i386"))
    assert ask(root, "old", "tool") == PackageIndex(FRESH, {"tool": ["1"], "old": []})
    assert ask(root, "old:i386", "tool:i386").versions == {"tool:i386": ["2"], "old:i386": ["1"]}


def test_a_held_package_is_offered_in_all_versions(root: AptRoot) -> None:
    root.write("/var/lib/dpkg/status", INSTALLED.format("tool", "hold"))
    assert ask(root, "tool").versions == {"tool": ["2:1.5-1", "1.0-1"]}


def test_the_size_of_a_transaction_has_what_the_packages_depend_on(root: AptRoot, www: Path, tmp_path: Path) -> None:
    big = stanza("big", "2").replace("Size: 1\n", "Size: 5000000\nDepends: tool\n")
    publish(www / "good", big, stanza("tool", "1").replace("Size: 1\n", "Size: 700\n"), stanza("old", "2"))
    sizes = {}
    for version in ("2", "3"):
        request = IndexQuestion(["big"], NOTHING, [], [PackageSpec("big", version)])
        sizes[version] = package_index.read_index(root, request, str(tmp_path / "private")).download
    assert sizes == {"2": 5000700, "3": 0}, "what is not offered has no size"


def test_too_little_space_is_unavailable(root: AptRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "free", lambda path: package_index.SPACE - 1)
    found = ask(root, "tool")
    assert found.state == UNAVAILABLE and "768 MB" not in found.cause and "are free" in found.cause


# ---- dnf: what dnf 4.14 printed on Debian 12, for a repository of one package and one that does not answer ----------


LISTED = """\
a                                                35 kB/s | 604  B     00:00
x                                               0.0  B/s |   0  B     00:00
Available Packages
tool.x86_64                                1.0-1.el9                           a
tool.x86_64                                2:1.5-1.el9                         a
"""
UNREAD = """\
Errors during downloading metadata for repository 'third':
  - Curl error (7): Couldn't connect to server for http://127.0.0.2:9/x/repodata/repomd.xml [Failed to connect to 127.0.0.2 port 9 after 0 ms: Couldn't connect to server]
Error: Failed to download metadata for repo 'third': Cannot download repomd.xml: Cannot download repodata/repomd.xml: All mirrors were tried
Ignoring repositories: third
"""
FROM_CACHE = "Error: Cache-only enabled but no cache for 'third'\nIgnoring repositories: third\n"


class DnfHost(Host):
    """A host with dnf 4 that has printed this, and two repositories; it notes the calls and the files that dnf read."""

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__()
        self.files, self.calls, self.seen = files, [], []  # type: ignore[var-annotated]

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in ("dnf", "rpm") else None

    def realpath(self, path: str) -> str:
        return "/usr/bin/dnf-3"

    def read_bytes(self, path: str) -> bytes | None:
        return self.files[path].encode() if path in self.files else None

    def listdir(self, path: str) -> list[str]:
        return sorted(name.rpartition("/")[2] for name in self.files if name.rpartition("/")[0] == path)

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.calls.append(argv)
        (repos,) = [word.partition("reposdir=")[2] for word in argv if "reposdir=" in word]
        self.seen.append({path.name: path.read_text() for path in Path(repos).iterdir()})
        return Result(0, LISTED, FROM_CACHE if "-C" in argv else UNREAD)


def dnf_host(**files: str) -> DnfHost:
    third = "[third]\nname=x\nbaseurl=http://127.0.0.2:9/x\n"
    return DnfHost({"/etc/yum.repos.d/a.repo": "[a]\n", "/etc/yum.repos.d/third.repo": third, **files})


def ask_dnf(host: DnfHost, tmp_path: Path, *needed: str, request: Request = NOTHING) -> PackageIndex:
    found = package_index.read_index(host, IndexQuestion(["tool", "other"], request, [*needed]), str(tmp_path))
    assert package_index.PREFIX not in repr(found)
    return found


def test_dnf_is_asked_with_directories_of_its_own_and_names_a_broken_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_index, "DNF_CACHES", {"dnf": str(tmp_path / "none")})
    host = dnf_host()
    found = ask_dnf(host, tmp_path)
    assert (found.state, found.versions) == (FRESH, {"tool": ["2:1.5-1.el9", "1.0-1.el9"], "other": []})
    (failed,) = found.failed
    assert failed.startswith("/etc/yum.repos.d/third.repo: ") and "127.0.0.2" in failed
    (argv,) = host.calls
    private = {word.partition("=")[2].partition("=")[0] for word in argv if f"={tmp_path}/" in word}
    assert private == {"cachedir", "system_cachedir", "persistdir", "logdir", "reposdir"} and "--refresh" in argv


def test_dnf_answers_by_the_metadata_of_before_where_a_needed_repository_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setattr(package_index, "DNF_CACHES", {"dnf": str(cache)})
    assert ask_dnf(dnf_host(), tmp_path, "third").state == UNAVAILABLE
    (cache / "a-1/repodata").mkdir(parents=True)
    (cache / "a-1/packages").mkdir()
    for name in ("repodata/repomd.xml", "packages/tool.rpm"):
        (cache / "a-1" / name).write_text("x")
    old = time.time() - 7200
    os.utime(cache / "a-1/repodata/repomd.xml", (old, old))
    host = dnf_host()
    found = ask_dnf(host, tmp_path, "third")
    assert (found.state, found.versions["tool"][0]) == (STALE, "2:1.5-1.el9") and 7200 <= found.age < 7800
    assert "third.repo" in found.cause and not found.failed and "-C" in host.calls[1]
    assert "--disablerepo=third" not in host.calls[1]


def test_dnf_reads_a_repository_that_the_plan_adds_with_the_pinned_key_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_index, "DNF_CACHES", {"dnf": str(tmp_path / "none")})
    key = packages.Key(tmp_path / "key")
    own = parse_repository(
        {"id": "x", "kind": "rpm", "url": "http://x.example", "key_url": "x", "fingerprint": key.fingerprint}
    )
    host = dnf_host()
    ask_dnf(host, tmp_path, request=Request([], [], [own], {key.fingerprint: key.public.read_text()}))
    assert sorted(host.seen[0]) == ["a.repo", "gpu-ready-x.repo", "third.repo"]
    assert f"gpgkey=file://{tmp_path}/gpu-ready-index-" in host.seen[0]["gpu-ready-x.repo"]


def test_an_exclude_of_the_owner_hides_a_package_and_a_version_lock_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_index, "DNF_CACHES", {"dnf": str(tmp_path / "none")})
    locks = {"/etc/dnf/plugins/versionlock.list": "other-0:1-1.*\n", "/etc/dnf/dnf.conf": "[main]\nexclude=other\n"}
    hidden = ask_dnf(dnf_host(**locks), tmp_path).hidden
    assert hidden == {
        "other": "the package other is hidden by /etc/dnf/dnf.conf line 2 (exclude=other). Change that, then run again"
    }


# ---- the directory ---------------------------------------------------------------------------------------------------


KILLED = """
import sys
from ansible_collections.gpu_ready.nodes.plugins.module_utils.gpu_ready.base.work_directories import vanishing_directory
with vanishing_directory(sys.argv[1], "gpu-ready-index-") as path:
    open(path + "/file", "w").close()
    print("there", flush=True)
    sys.stdin.read()
"""


def test_a_killed_reader_leaves_nothing(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED.replace("ansible_collections.gpu_ready.nodes.", ""), str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"there\n"
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 30
    while list(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not list(tmp_path.iterdir())
