"""gpu_repository: which keys are trusted, where they come from, and what a failure leaves behind."""

import hashlib
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.action import gpu_host_module
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.shipped_keys import read_keys

from plugins.module_utils.gpu_ready.base import download, manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.packaging import apt, dnf, openpgp, repositories, yum_repos, yum_sections
from plugins.module_utils.gpu_ready.packaging.manager import PackageError
from plugins.module_utils.gpu_ready.packaging.repository import Repository, parse_repository
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from tests.unit import web_server

ROOT = Path(__file__).resolve().parents[2]
DOCKER = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"
BODY = bytes([4, 0, 0, 0, 1, 1]) + b"the material of a key"
OWN = bytes([0x98, len(BODY)]) + BODY
"""A key that is not shipped."""
FINGERPRINT = openpgp.fingerprint(BODY)
NOWHERE = "http://127.0.0.1:9/key"


class Node(Host):
    """This machine, without its programs."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Any:
        raise AssertionError(argv)


class Lists(apt.Apt):
    """apt that reads lists, or fails ``failures`` times."""

    def __init__(self, failures: int = 0, message: str = "the signature is not valid") -> None:
        self.failures, self.message, self.read = failures, message, []  # type: ignore[var-annotated]

    def check_sources(self) -> None:
        pass

    def update_only(self, path: str) -> None:
        self.read.append(Path(path).read_text())
        if len(self.read) <= self.failures:
            raise PackageError(self.message)


@pytest.fixture
def key_url() -> Iterator[str]:
    """A server whose files hold the shipped key of docker, extended, and one that is not shipped; /own: that alone."""
    (docker,) = openpgp.parse_keys((ROOT / f"catalog/keys/{DOCKER}.asc").read_bytes())
    user = bytes([0xB4, 3]) + b"new"

    class Handler(web_server.QuietHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(OWN if self.path.endswith("/own") else OWN + docker.data + user)

    with web_server.serve(Handler) as url:
        yield f"{url}/key"


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Configure one repository whose files are below tmp_path; returns the module's values."""
    path = str(tmp_path / "state/manifest.json")
    for function in (
        manifest.read,
        manifest_notes.note,
        manifest_notes.drop,
        manifest_notes.note_files,
        manifest_notes.make_parents,
    ):
        monkeypatch.setattr(function, "__defaults__", (path,))
    monkeypatch.setattr(Node, "run", lambda *_: type("Answer", (), {"out": "amd64\n", "rc": 0}))

    def configure(manager: apt.Apt, check: bool = False, **values: Any) -> dict[str, Any]:
        repository = repository_in(tmp_path, **values)
        return repositories.configure(Node(), manager, repositories.Request([], [], [repository], read_keys()), check)

    return configure


def repository_in(directory: Path, **values: Any) -> Repository:
    return parse_repository(
        {
            "id": "x",
            "url": "http://packages.example/x",
            "key_url": NOWHERE,
            "keyring": str(directory / "keyrings/x.gpg"),
            "list": str(directory / "sources/x.sources"),
            **values,
        }
    )


def fingerprints(directory: Path) -> list[str]:
    return [key.fingerprint for key in openpgp.parse_keys((directory / "keyrings/x.gpg").read_bytes())]


def test_shipped_keys_are_those_that_the_catalog_pins() -> None:
    pinned = catalog.repositories().values()
    names = {path.stem for path in (ROOT / "catalog/keys").glob("*.asc")}
    assert names == set(read_keys()) and names <= {one["fingerprint"] for one in pinned}
    for name in names:
        assert name in [key.fingerprint for key in openpgp.parse_keys((ROOT / f"catalog/keys/{name}.asc").read_bytes())]


def test_the_control_node_gives_the_shipped_keys_of_the_repositories_that_a_task_names() -> None:
    plugin = gpu_host_module.ActionModule.__new__(gpu_host_module.ActionModule)
    named = [{"id": "docker", "fingerprint": DOCKER}, {"id": "other", "fingerprint": FINGERPRINT}, {"id": "none"}]
    plugin._task = SimpleNamespace(action="gpu_ready.nodes.gpu_repository", args={"repositories": named})
    given = plugin.module_arguments()
    assert given == {"repositories": named, "keys": {DOCKER: read_keys()[DOCKER]}}
    plugin._task = SimpleNamespace(action="gpu_ready.nodes.gpu_packages", args={})
    assert plugin.module_arguments() is None


def test_a_shipped_key_needs_no_network(configure: Any, tmp_path: Path) -> None:
    manager = Lists()
    assert configure(manager, fingerprint=DOCKER)["changed"]
    assert fingerprints(tmp_path) == [DOCKER] and len(manager.read) == 1
    assert "Signed-By: " + str(tmp_path / "keyrings/x.gpg") in manager.read[0]
    assert not configure(manager, fingerprint=DOCKER)["changed"]


def test_the_keyring_is_written_before_the_source_that_names_it(
    configure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt refuses a source whose Signed-By does not exist, also another apt that runs in between."""
    keyring, source = tmp_path / "z/x.gpg", tmp_path / "a/x.sources"
    seen: list[bool] = []
    made = Path(source).parent
    replace = os.replace

    def look(old: Any, new: Any, **more: Any) -> None:
        if Path(new) == source:
            seen.append(keyring.exists())
        replace(old, new, **more)

    monkeypatch.setattr(os, "replace", look)
    monkeypatch.setattr(os, "rename", look)
    configure(Lists(), fingerprint=DOCKER, keyring=str(keyring), list=str(source))
    assert seen == [True] and made.is_dir()


def test_the_key_of_a_mirror_is_downloaded_and_no_other_key_of_its_file_is_trusted(
    configure: Any, tmp_path: Path, key_url: str
) -> None:
    configure(Lists(), fingerprint=FINGERPRINT, key_url=key_url)
    assert fingerprints(tmp_path) == [FINGERPRINT]


def test_another_key_than_the_pinned_one_is_refused_and_nothing_is_written(
    configure: Any, tmp_path: Path, key_url: str
) -> None:
    with pytest.raises(PackageError, match=r"is not the pinned one: .*expected is ABAB.*gpu_ready_mirror_keys"):
        configure(Lists(), fingerprint="AB" * 20, key_url=key_url)
    with pytest.raises(download.DownloadError, match="could not be fetched"):
        configure(Lists(), fingerprint="AB" * 20)
    with pytest.raises(PackageError, match="no known key fingerprint"):
        configure(Lists())
    assert list(tmp_path.iterdir()) == []


def test_a_younger_copy_of_a_shipped_key_is_downloaded_when_the_lists_are_signed_with_it(
    configure: Any, tmp_path: Path, key_url: str
) -> None:
    manager = Lists(failures=1)
    assert configure(manager, fingerprint=DOCKER, key_url=key_url)["changed"]
    assert fingerprints(tmp_path) == [DOCKER] and len(manager.read) == 2
    assert (tmp_path / "keyrings/x.gpg").read_bytes().endswith(b"new")


@pytest.mark.parametrize(("message", "url"), [("the disk is full", ""), ("the signature is not valid", NOWHERE)])
def test_a_failure_that_no_younger_copy_repairs_is_reported_as_it_is(
    configure: Any, key_url: str, message: str, url: str
) -> None:
    manager = Lists(failures=9, message=message)
    with pytest.raises(PackageError, match=message):
        configure(manager, fingerprint=DOCKER, key_url=url or key_url)
    assert len(manager.read) == 1


@pytest.mark.parametrize("fingerprint", [DOCKER, FINGERPRINT])
def test_lists_that_cannot_be_read_leave_no_file_and_no_record(
    configure: Any, tmp_path: Path, key_url: str, fingerprint: str
) -> None:
    with pytest.raises(PackageError, match="signature"):
        configure(Lists(failures=9), fingerprint=fingerprint, key_url=key_url)
    assert not (tmp_path / "keyrings/x.gpg").exists() and not (tmp_path / "sources/x.sources").exists()
    assert set(manifest.read()) == {"parents"}  # the directories stay, as on a host that has them anyway


def test_a_check_writes_nothing(configure: Any, tmp_path: Path) -> None:
    values = configure(Lists(), check=True, fingerprint=DOCKER)
    assert values["changed"] and [one["after"] for one in values["diff"]][0] == "(key)\n"
    assert list(tmp_path.iterdir()) == []


# ---- repositories of dnf, and parts of the distribution's own sources ------------------------------------------------


class RpmNode(Host):
    """This machine with other programs: rpm has imported a key, and subscription-manager may be there."""

    def __init__(self, subscriptions: bool = False, imported: str = "") -> None:
        super().__init__()
        self.subscriptions, self.imported = subscriptions, imported
        self.called: list[str] = []

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if self.subscriptions and program == "subscription-manager" else None

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.called += [" ".join(argv)] if argv[0] == "subscription-manager" else []
        return Result(0, self.imported if argv[0] == "rpm" else "", "")


class Metadata(dnf.Dnf):
    """dnf that reads the metadata of repositories, or fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.read = fails, []  # type: ignore[var-annotated]

    def read_repository(self, section: str) -> None:
        self.read.append(section)

    def check_sources(self) -> None:
        if self.fails:
            raise PackageError("it is broken")


REPO = "[base]\nenabled=1\n[crb]\nenabled=0\n"


@pytest.fixture
def repos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of .repo files, with one of the distribution and one of subscription-manager."""
    state = str(tmp_path / "state/manifest.json")
    names = ("note", "drop", "note_files", "make_parents", "note_sections", "note_components")
    for function in (manifest.read, *(getattr(manifest_notes, name) for name in names)):
        monkeypatch.setattr(function, "__defaults__", (state,))
    directory = tmp_path / "yum.repos.d"
    directory.mkdir()
    (directory / "base.repo").write_text(REPO)
    (directory / "redhat.repo").write_text(REPO.replace("crb", "crb-rhel"))
    monkeypatch.setattr(yum_repos, "DIRECTORY", str(directory))
    monkeypatch.setattr(yum_sections, "SUBSCRIPTIONS", str(directory / "redhat.repo"))
    return directory


def rpm_repository(directory: Path, **values: Any) -> Repository:
    given = {"kind": "rpm", "fingerprint": DOCKER, "list": str(directory / "gpu-ready-x.repo")}
    return repository_in(directory.parent, **given, **values)


@pytest.mark.parametrize("fails", [False, True])
def test_a_repository_of_dnf_is_read_and_its_key_recorded(repos: Path, tmp_path: Path, fails: bool) -> None:
    recorded: dict[str, Any]
    for imported, recorded in (("", {DOCKER.lower(): {}}), (DOCKER[-8:].lower(), {})):
        for path in (repos / "gpu-ready-x.repo", tmp_path / "keyrings/x.gpg", tmp_path / "state/manifest.json"):
            path.unlink(missing_ok=True)
        asked = repositories.Request([], [], [rpm_repository(repos)], read_keys())
        manager = Metadata(fails)
        if fails:
            with pytest.raises(PackageError, match="it is broken"):
                repositories.configure(RpmNode(imported=imported), manager, asked, False)
            assert not (repos / "gpu-ready-x.repo").exists() and set(manifest.read()) <= {"parents"}
        else:
            assert repositories.configure(RpmNode(imported=imported), manager, asked, False)["changed"]
            assert manifest.read().get("rpm_keys", {}) == recorded
        assert manager.read == ["gpu-ready-x"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_section_of_others_is_used_with_the_pinned_key(repos: Path, tmp_path: Path, fails: bool) -> None:
    """No file of ours names it: the record in the manifest is what calls of dnf take the key from."""
    asked = repositories.Request([], [], [rpm_repository(repos, adopted="cuda", gpgcheck=True)], read_keys())
    manager, before = Metadata(fails), sorted(path.name for path in repos.iterdir())
    if fails:
        with pytest.raises(PackageError, match="it is broken"):
            repositories.configure(RpmNode(), manager, asked, False)
        assert set(manifest.read()) == {"parents"}
    else:
        repositories.configure(RpmNode(), manager, asked, False)
        keyring = str(tmp_path / "keyrings/x.gpg")
        assert manifest.read()["adopted"] == {"cuda": {"keyring": keyring, "gpgcheck": True, "repo_gpgcheck": False}}
    assert manager.read == ["cuda"] and sorted(path.name for path in repos.iterdir()) == before


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("subscriptions", [False, True])
def test_sections_are_enabled_and_recorded_or_left_as_they_were(
    repos: Path, tmp_path: Path, subscriptions: bool, fails: bool
) -> None:
    """What subscription-manager writes, it switches itself: it would overwrite a change of the file."""
    host, manager = RpmNode(subscriptions), Metadata(fails)
    asked = repositories.Request([], ["crb", "crb-rhel"], [])
    texts = {path: path.read_text() for path in repos.iterdir()}
    assert repositories.configure(host, manager, asked, True)["changed"] and host.called == manager.read == []
    if fails:
        with pytest.raises(PackageError, match="it is broken"):
            repositories.configure(host, manager, asked, False)
        assert {path: path.read_text() for path in repos.iterdir()} == texts and not manifest.read().get("files")
    else:
        repositories.configure(host, manager, asked, False)
        assert (repos / "base.repo").read_text() == REPO.replace("=0", "=1")
        assert ("=0" in (repos / "redhat.repo").read_text()) is subscriptions
        recorded = {Path(path).name: entry["sections"] for path, entry in manifest.read()["files"].items()}
        assert recorded == {"base.repo": ["crb"], "redhat.repo": ["crb-rhel"]}
    calls = [f"subscription-manager repos --{verb}=crb-rhel" for verb in ("enable", "disable")[: 1 + fails]]
    assert sorted(manager.read) == ["crb", "crb-rhel"] and host.called == (calls if subscriptions else [])


def test_components_are_recorded_with_the_release_that_they_are_of(
    repos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "sources.list"
    source.write_text("deb http://deb.example/debian bookworm main\n")
    monkeypatch.setattr(repositories, "sources_files", lambda host: [str(source)])
    monkeypatch.setattr(
        RpmNode,
        "read",
        lambda self, path: "VERSION_CODENAME=bookworm\n" if "os-release" in path else Host.read(self, path),
    )
    needed = []

    class Reads(Lists):
        def update(self, needed_: Any = ()) -> None:
            needed.extend(needed_)

    repositories.configure(RpmNode(), Reads(), repositories.Request(["contrib"], [], []), False)
    assert source.read_text() == "deb http://deb.example/debian bookworm main contrib\n"
    [entry] = manifest.read()["files"].values()
    assert (entry["components"], entry["codename"]) == (["contrib"], "bookworm")
    assert needed and all("deb.example/debian" in one for one in needed)


def test_a_key_may_be_pinned_by_the_checksum_of_its_file(configure: Any, tmp_path: Path, key_url: str) -> None:
    """Of repositories that publish no complete fingerprint; here the file has two keys."""
    right = hashlib.sha256(download_file(key_url)).hexdigest()
    with pytest.raises(PackageError, match=r"is not the pinned one: it holds 2 keys, expected is one"):
        configure(Lists(), key_sha256=right, key_url=key_url)
    with pytest.raises(PackageError, match=rf"is not the pinned one: its sha256 is {right}"):
        configure(Lists(), key_sha256="0" * 64, key_url=key_url)
    one = key_url + "/own"
    configure(Lists(), key_sha256=hashlib.sha256(OWN).hexdigest(), key_url=one)
    assert fingerprints(tmp_path) == [FINGERPRINT]


def download_file(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: bytes = answer.read()
    return found


def test_options_that_are_left_out_are_no_requests() -> None:
    nothing = dict.fromkeys(("components", "enable", "repositories"))
    assert repositories.parse_request({**nothing, "keys": {}}) == repositories.Request([], [], [])
    given = {"components": ["contrib"], "enable": ["crb"], "repositories": [{"id": "x", "url": "u", "key_url": "k"}]}
    found = repositories.parse_request({**given, "keys": {"A": "key"}})
    assert (found.components, found.sections, found.keys) == (["contrib"], ["crb"], {"A": "key"})
    assert [(one.section, one.kind) for one in found.repositories] == [("gpu-ready-x", "deb")]
