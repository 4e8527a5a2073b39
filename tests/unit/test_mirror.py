import hashlib
import http.client
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import declarations, mirror, mirror_faults, mirror_server, packages
from gpu_ready_lab.say import LabError, run

from plugins.plugin_utils.gpu_ready.catalog import data
from plugins.plugin_utils.gpu_ready.catalog import model as catalog

pytestmark = pytest.mark.usefixtures("catalog_of_the_lab")

CONTENT = bytes(range(256)) * 40
DISTRIBUTIONS = ("debian12", "debian13")
Declared = dict[str, dict[str, set[str]]]
"""The versions of packages by repository and name."""


@pytest.fixture(scope="module")
def declared() -> Declared:
    found: Declared = {}
    for package in mirror.declared()[0]:
        for repository in package.repositories:
            found.setdefault(repository, {}).setdefault(package.name, set()).add(package.version)
    return found


SERVED = mirror.repositories()


@pytest.mark.parametrize("name", [name for name in data.REPOSITORIES if name in SERVED])
def test_a_repository_is_where_the_catalog_says(name: str) -> None:
    repository = SERVED[name]
    url = catalog.repository(name)["url"].split("://")[1].rstrip("/")
    assert url in [path.removesuffix("/") for path in [repository["path"], *repository.get("also", [])]]
    assert catalog.repository(name)["key_url"].split("://")[1] in repository["keys"]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_mirror_has_what_the_catalog_installs(declared: Declared, distribution: str) -> None:
    source = catalog.distro(distribution)["driver_sources"]["cuda_repo"]
    offered = declared[source["repository"]]
    expected = {name for profile in source["packages"].values() for names in profile.values() for name in names}
    expected |= {source["pinning"].format(branch=branch) for branch in source["branches"]} | {source["fabricmanager"]}
    expected |= {"cuda-toolkit-" + version.replace(".", "-") for version in source["toolkits"]}
    assert not expected - set(offered)
    for branch in source["branches"]:
        assert any(version.startswith(f"{branch}.") for version in offered["nvidia-driver-cuda"])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_every_dependency_is_in_the_mirror_or_in_debian(declared: Declared, distribution: str) -> None:
    of_debian = {"libc6", "kmod", "dkms", "python3", "python3-minimal", "build-essential", "libibumad3"}
    offered = set(declared[f"cuda-{distribution}"]) | of_debian
    for package in mirror.declared()[0]:
        if f"cuda-{distribution}" in package.repositories:
            fields = dict(package.fields)
            names = [part.split("(")[0].strip() for part in fields.get("Depends", "").replace("|", ",").split(",")]
            assert {name for name in names if name} <= offered, package.name


def test_every_cudnn_of_the_catalog_is_served() -> None:
    served = yaml_load((mirror.DECLARATIONS / "downloads.yml").read_text())["cudnn"]["releases"]
    assert {release["version"] for release in served} == {release.version for release in catalog.cudnns()}


def test_only_the_named_meta_packages_depend_on_the_driver() -> None:
    for package in mirror.declared()[0]:
        if "cuda-drivers" in dict(package.fields).get("Depends", ""):
            assert package.name.startswith(("cuda-runtime-", "cuda-drivers"))


def test_values_are_filled_in_and_other_text_between_ats_stays() -> None:
    assert declarations.fill("a@version@b @/sbin/ldconfig @other@", {"version": "1"}) == "a1b @/sbin/ldconfig @other@"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("packages: {a: {version: 1, files: {usr/a: b}}}", "absolute"),
        ("packages: {a: {version: 1, files: {/usr/a: {content: b}}}}", "expected a text"),
        ("packages: {a: {version: 1, depend: b}}", "unknown depend"),
        ("packages: {a: {version: 1, depends: b}}", "expected a list"),
        ("packages: {a: {version: 1, repositories: [x]}}", "has no x"),
        ("packages: {a: {version: 1, scripts: {posting: b}}}", "unknown script"),
        ("packages: {a: {version: 1, files: {/a: {source: no/such}}}}", "no file no/such"),
        ("packages: [", "no valid YAML"),
        ("each: [{n: 1}, {n: 2}]\npackages: {a: {version: 1}}", "declared twice"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "wrong.yml").write_text(f"{text}\n" if text.endswith("[") else f"repositories: [r]\n{text}\n")
    with pytest.raises(LabError, match=words) as error:
        declarations.read(tmp_path / "wrong.yml", {"r": declarations.DEB})
    assert "wrong.yml" in str(error.value)


# ---- the server -----------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[mirror_server.Mirror]:
    root = tmp_path / "root"
    (root / "host" / "directory").mkdir(parents=True)
    (root / "host" / "directory" / "file.bin").write_bytes(CONTENT)
    (tmp_path / "secret").write_text("outside")
    running = mirror_server.Mirror(("127.0.0.1", 0), root, tmp_path)
    threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def ask(
    server: mirror_server.Mirror, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        try:
            body = answer.read()
        except http.client.IncompleteRead as short:
            body = short.partial
        return answer, body
    finally:
        connection.close()


def read_log(server: mirror_server.Mirror, lines: int) -> list[str]:
    """The line of a request is written after its answer."""
    end = time.monotonic() + 60
    while True:
        found = (server.state / "mirror-access.log").read_text().splitlines()
        if len(found) >= lines or time.monotonic() > end:
            return found
        time.sleep(0.01)


FILE = "/host/directory/file.bin"


@pytest.mark.host_io
class TestServer:
    def test_a_file(self, server: mirror_server.Mirror) -> None:
        answer, body = ask(server, FILE)
        assert (answer.status, body) == (200, CONTENT)

    def test_head_sends_the_size_only(self, server: mirror_server.Mirror) -> None:
        answer, body = ask(server, FILE, "HEAD")
        assert (answer.status, answer.getheader("Content-Length"), body) == (200, str(len(CONTENT)), b"")

    @pytest.mark.parametrize(
        ("asked", "start", "end"),
        [("bytes=100-", 100, None), ("bytes=100-199", 100, 200), ("bytes=-50", len(CONTENT) - 50, None)],
    )
    def test_a_range(self, server: mirror_server.Mirror, asked: str, start: int, end: int | None) -> None:
        answer, body = ask(server, FILE, Range=asked)
        assert (answer.status, body) == (206, CONTENT[start:end])

    def test_a_range_behind_the_end(self, server: mirror_server.Mirror) -> None:
        assert ask(server, FILE, Range=f"bytes={len(CONTENT)}-")[0].status == 416

    def test_the_rest_of_another_file_is_not_sent(self, server: mirror_server.Mirror) -> None:
        """apt resumes a partial list, and requests the rest only if the list has not changed."""
        when = ask(server, FILE, "HEAD")[0].headers["Last-Modified"]
        behind = f"bytes={len(CONTENT)}-"
        assert ask(server, FILE, Range=behind, If_Range=when)[0].status == 416
        answer, body = ask(server, FILE, Range=behind, If_Range="Thu, 01 Jan 1970 00:00:00 GMT")
        assert (answer.status, body) == (200, CONTENT)

    def test_unchanged_since(self, server: mirror_server.Mirror) -> None:
        when = ask(server, FILE, "HEAD")[0].headers["Last-Modified"]
        assert ask(server, FILE, If_Modified_Since=when)[0].status == 304

    @pytest.mark.parametrize("path", ["/host/none", "/../secret", "/%2e%2e/secret", "//etc/passwd"])
    def test_nothing_outside_the_tree(self, server: mirror_server.Mirror, path: str) -> None:
        assert ask(server, path)[0].status == 404

    def test_every_request_is_in_the_log(self, server: mirror_server.Mirror) -> None:
        ask(server, FILE)
        ask(server, "/host/none")
        log = read_log(server, lines=2)
        # Each request is logged by its own thread after the answer: the order is not guaranteed.
        assert sorted(line.split(" ", 1)[1] for line in log) == [
            f"127.0.0.1 GET 200 {len(CONTENT)} host/directory/file.bin",
            "127.0.0.1 GET 404 34 host/none",
        ]

    @pytest.mark.parametrize("status", [404, 500])
    def test_fault_status(self, server: mirror_server.Mirror, status: int) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "test", {"host/*.bin": {"status": status}})
        assert ask(server, FILE)[0].status == status
        mirror_faults.set_rules(server.state, "127.0.0.1", "test", None)
        assert ask(server, FILE)[0].status == 200

    def test_fault_truncate(self, server: mirror_server.Mirror) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "test", {"*": {"truncate": 10}})
        answer, body = ask(server, FILE)
        assert (answer.getheader("Content-Length"), body) == (str(len(CONTENT)), CONTENT[:10])

    def test_fault_corrupt(self, server: mirror_server.Mirror) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "test", {"*": {"corrupt": True}})
        body = ask(server, FILE)[1]
        assert len(body) == len(CONTENT)
        assert body != CONTENT

    def test_fault_delay(self, server: mirror_server.Mirror) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "test", {"*": {"delay": 0.3}})
        started = time.monotonic()
        ask(server, FILE)
        assert time.monotonic() - started >= 0.3

    def test_a_fault_of_one_host_does_not_affect_others(self, server: mirror_server.Mirror) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "missing", {"*.bin": {"status": 404}})
        mirror_faults.set_rules(server.state, "10.0.0.7", "down", {"*": {"drop": True}})
        assert ask(server, FILE)[0].status == 404
        mirror_faults.set_rules(server.state, "127.0.0.1", "missing", None)
        assert ask(server, FILE)[0].status == 200

    def test_a_dropped_connection_has_no_answer(self, server: mirror_server.Mirror) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "down", {"*": {"drop": True}})
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, FILE)

    def test_another_file_in_its_place(self, server: mirror_server.Mirror, tmp_path: Path) -> None:
        (tmp_path / "other").write_bytes(b"other")
        mirror_faults.set_rules(server.state, "127.0.0.1", "other", {"*.bin": {"serve": str(tmp_path / "other")}})
        assert ask(server, FILE)[1] == b"other"

    def test_a_hanging_connection_ends_after_its_time(self, server: mirror_server.Mirror) -> None:
        mirror_faults.set_rules(server.state, "127.0.0.1", "hang", {"*": {"hang": 0.3}})
        started = time.monotonic()
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, FILE)
        assert time.monotonic() - started >= 0.3


def test_old_packages_are_forgotten_also_in_a_cache_that_has_none_of_one_kind(tmp_path: Path) -> None:
    old, used = tmp_path / "debs/old.deb", tmp_path / "debs/used.deb"
    old.parent.mkdir()
    for path in (old, used):
        path.touch()
        os.utime(path, (0, 0))
    (tmp_path / "tree.deb").hardlink_to(used)
    mirror._forget(tmp_path)
    assert (old.exists(), used.exists()) == (False, True)


# ---- a repository, with the real programs ---------------------------------------------------------


@pytest.mark.host_io
def test_a_signed_repository(tmp_path: Path) -> None:
    for program in ("/usr/bin/dpkg-deb", "/usr/bin/gpg", "/usr/bin/gpgv"):
        if not Path(program).exists():
            pytest.skip(f"{program} is not here")
    (tmp_path / "some.yml").write_text(
        """
repositories: [here]
each: [{v: "1.0"}, {v: "2.0"}]
packages:
  some:
    version: "@v@-1"
    depends: [libc6]
    files:
      /etc/some.conf: "v = @v@\\n"
      /usr/bin/some: "#!/bin/sh\\n"
      /usr/lib/some: {link: ../bin/some}
    scripts: {postinst: "#!/bin/sh\\n"}
"""
    )
    read = declarations.read(tmp_path / "some.yml", {"here": declarations.DEB})
    declared_packages = [packages.from_declared(one) for one in read]
    debs = packages.build_all(declared_packages, tmp_path / "debs", lambda *_: b"")
    rebuilt = packages.build_all(declared_packages, tmp_path / "debs-again", lambda *_: b"")
    assert [path.read_bytes() for path in debs.values()] == [path.read_bytes() for path in rebuilt.values()]
    key = packages.Key(tmp_path / "key")
    assert (tmp_path / "key" / "secret.asc").stat().st_mode & 0o777 == 0o600
    packages.write_repository(tmp_path / "repo", debs.items(), {"Origin": "Here"}, key)
    repo = tmp_path / "repo"
    stanzas = (repo / "Packages").read_text().strip().split("\n\n")
    assert len(stanzas) == 2
    for stanza in stanzas:
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
        assert hashlib.sha256((repo / fields["Filename"]).read_bytes()).hexdigest() == fields["SHA256"]
        assert fields["Depends"] == "libc6"
    assert hashlib.sha256((repo / "Packages.xz").read_bytes()).hexdigest() in (repo / "Release").read_text()
    run(
        ["/usr/bin/gpg", "--homedir", str(tmp_path), "--dearmor", "-o", str(tmp_path / "ring.gpg"), str(key.public)],
        limit=30,
        what="dearmor",
    )
    run(["/usr/bin/gpgv", "--keyring", str(tmp_path / "ring.gpg"), str(repo / "InRelease")], limit=30, what="verify")
    deb = repo / "some_2.0-1_amd64.deb"
    assert run(["/usr/bin/dpkg-deb", "-f", str(deb), "Version"], limit=30, what="read").strip() == "2.0-1"
    assert "./usr/lib/some -> ../bin/some" in run(["/usr/bin/dpkg-deb", "-c", str(deb)], limit=30, what="list")


def test_every_bound_of_a_combination_holds() -> None:
    axes = [
        [{"branch": 470}, {"branch": 615}],
        [{"flavour": "-open", "only": {"branch": [615]}}, {"flavour": ""}],
        [{"release": "20.04", "only": {"branch": [470]}}, {"release": "24.04"}],
    ]
    found = [(one["branch"], one["flavour"], one["release"]) for one in declarations.combinations(axes)]
    assert found == [(470, "", "20.04"), (470, "", "24.04"), (615, "-open", "24.04"), (615, "", "24.04")]
