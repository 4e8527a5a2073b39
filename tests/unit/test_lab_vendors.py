"""The vendors' own names in the lab: a certificate that hosts trust, the files of the mirror, and faults of both."""

import contextlib
import hashlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from gpu_ready_lab import (
    certificates,
    declarations,
    fleet,
    mirror,
    mirror_faults,
    mirror_server,
    packages,
    paths,
    published,
    vendors,
)
from gpu_ready_lab.say import LabError, run

from plugins.plugin_utils.gpu_ready.catalog import data
from plugins.plugin_utils.gpu_ready.catalog import model as catalog

NAMES = ["developer.download.example", "toolkit.example"]
HOST = NAMES[0]
pytestmark = pytest.mark.host_io


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an authority and a certificate for NAMES."""
    made = tmp_path_factory.mktemp("certificates")
    certificates.ensure_server(made, NAMES)
    return made


@pytest.fixture
def fronts(directory: Path, tmp_path: Path) -> Iterator[dict[str, mirror_server.Front]]:
    """The names by http and https, with one file."""
    root = tmp_path / "root"
    (root / HOST).mkdir(parents=True)
    (root / HOST / "file").write_text("content")
    made = {
        "http": mirror_server.Front(("127.0.0.1", 0), root, tmp_path),
        "https": mirror_server.Front(("127.0.0.1", 0), root, tmp_path, directory / certificates.SERVER),
    }
    for server in made.values():
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield made
    for server in made.values():
        server.shutdown()
        server.server_close()


def ask(front: mirror_server.Front, path: str = "/file", name: str = HOST, authority: Path | None = None) -> str:
    """Return the status and the body of an answer, by https if the authority is given."""
    address: tuple[str, int] = front.server_address[:2]  # type: ignore[assignment]
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.connect()
    if authority is not None:
        context = ssl.create_default_context(cafile=str(authority))
        connection.sock = context.wrap_socket(connection.sock, server_hostname=name)
    try:
        connection.request("GET", path, headers={"Host": name})
        answer = connection.getresponse()
        return f"{answer.status} {answer.read().decode()}"
    finally:
        connection.close()


def test_a_name_serves_its_directory_of_the_mirror(
    fronts: dict[str, mirror_server.Front], directory: Path, tmp_path: Path
) -> None:
    authority = certificates.ensure_authority(directory)
    assert ask(fronts["http"]) == ask(fronts["https"], authority=authority) == "200 content"
    assert ask(fronts["https"], name=NAMES[1], authority=authority).startswith("404")
    assert ask(fronts["http"], path="/../../secret").startswith("404")
    log, end = tmp_path / "mirror-access.log", time.monotonic() + 60
    while f"GET 200 7 {HOST}/file" not in log.read_text():  # a request is logged after its answer
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_name_without_a_certificate_is_rejected_by_the_client(
    fronts: dict[str, mirror_server.Front], directory: Path
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        ask(fronts["https"], name="other.example", authority=certificates.ensure_authority(directory))


def test_rules_of_the_mirror_hold_for_the_names(fronts: dict[str, mirror_server.Front], directory: Path) -> None:
    state = fronts["https"].state
    mirror_faults.set_rules(state, "127.0.0.1", "test", {f"{HOST}/*": {"status": 500}})
    authority = certificates.ensure_authority(directory)
    assert ask(fronts["https"], authority=authority).startswith("500")
    assert ask(fronts["https"], name=NAMES[1], authority=authority).startswith("404")


def test_the_certificate_of_an_unknown_authority_is_presented_for_one_name(
    fronts: dict[str, mirror_server.Front], directory: Path, tmp_path: Path
) -> None:
    unknown = certificates.ensure_server(tmp_path / "unknown", NAMES)
    rules = {f"{HOST}/*": {"certificate": str(unknown)}}
    mirror_faults.set_rules(fronts["https"].state, "127.0.0.1", "test", rules)
    authority = certificates.ensure_authority(directory)
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(fronts["https"], authority=authority)
    assert ask(fronts["https"], name=NAMES[1], authority=authority).startswith("404")
    assert ask(fronts["http"]) == "200 content"


def test_a_client_that_says_nothing_delays_no_other(fronts: dict[str, mirror_server.Front], directory: Path) -> None:
    address: tuple[str, int] = fronts["https"].server_address[:2]  # type: ignore[assignment]
    with socket.create_connection(address, timeout=60):
        assert ask(fronts["https"], authority=certificates.ensure_authority(directory)) == "200 content"


def test_certificates_are_kept_until_they_end_or_the_names_change(tmp_path: Path) -> None:
    server = certificates.ensure_server(tmp_path, NAMES)
    authority = certificates.ensure_authority(tmp_path).read_bytes()
    first = server.read_bytes()
    assert certificates.ensure_server(tmp_path, NAMES).read_bytes() == first
    assert {path.stat().st_mode & 0o077 for path in tmp_path.iterdir() if path.name != "lock"} == {0}
    second = certificates.ensure_server(tmp_path, [*NAMES, "another.example"]).read_bytes()
    assert second != first
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificates, "RENEWED_BEFORE_END", (certificates.DAYS + 1) * 24 * 3600)
        assert certificates.ensure_server(tmp_path, [*NAMES, "another.example"]).read_bytes() != second
    assert certificates.ensure_authority(tmp_path).read_bytes() == authority


def test_every_server_of_the_catalog_that_the_mirror_has_is_a_name() -> None:
    named = {*mirror.names()}
    repositories = mirror.repositories()
    served = [name for name in data.REPOSITORIES if name in repositories]
    assert {catalog.repository(name)["url"].split("/")[2] for name in served} <= named
    assert {"developer.download.nvidia.com", "us.download.nvidia.com", "download.nvidia.com"} <= named


def test_apt_reaches_the_names_without_the_archives_proxy() -> None:
    text = str(vendors.apt_files("http://10.199.0.1:3142")["etc/apt/apt.conf.d/99gpu-ready-lab-mirror"][0])
    for name in (*mirror.names(), paths.ADDRESS):
        assert f'Acquire::http::Proxy::{name} "DIRECT";' in text
        assert f'Acquire::https::Proxy::{name} "DIRECT";' in text


def test_a_fleet_chooses_how_its_hosts_reach_the_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "_ensure_running", lambda *_: Path("image"))
    monkeypatch.setattr(mirror, "locked", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(mirror, "repositories", lambda: ["cuda-debian12"])
    monkeypatch.setattr(packages, "Key", lambda _: SimpleNamespace(fingerprint="F"))
    variables = {}
    for key in ("", "vendors: mirror, "):
        read = fleet.parse("{name: x, " + key + "hosts: {a: {distribution: debian12}}}")
        variables[read.vendors] = mirror.start({"debian12"}, read.vendors == fleet.MIRROR).variables
    assert "gpu_ready_mirror" not in variables["names"]
    assert variables["mirror"] == {**variables["names"], "gpu_ready_mirror": paths.MIRROR_URL}
    assert variables["names"]["gpu_ready_mirror_keys"] == {"cuda-debian12": "F"}
    with pytest.raises(LabError, match=r"vendors: 'proxy' is none of names, mirror"):
        fleet.parse("{name: x, vendors: proxy, hosts: {a: {distribution: debian12}}}")


# ---- trees, and what pages name -------------------------------------------------------------------


def test_each_host_gets_the_tree_of_the_checkout_that_started_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    mirror_server.point_at(tmp_path, tmp_path / "one", "10.199.0.10")
    mirror_server.point_at(tmp_path, tmp_path / "two")
    own, common = (mirror_server.root_for(tmp_path, f"10.199.0.{number}").resolve() for number in (10, 11))
    assert (own.name, common.name) == ("one", "two")
    (tmp_path / "one").rmdir()  # the cache keeps the newest trees only
    assert mirror_server.root_for(tmp_path, "10.199.0.10").resolve().name == "two"


def test_the_answer_of_fedoras_list_of_mirrors(fronts: dict[str, mirror_server.Front], tmp_path: Path) -> None:
    repository = tmp_path / "root" / HOST
    (repository / "repodata").mkdir()
    (repository / "repodata/repomd.xml").write_text("<repomd/>")
    published.write_metalink(tmp_path / "root" / mirror.METALINKS / "epel-9/x86_64", repository, HOST)
    name, path = mirror.METALINKS.split("/")
    answer = ask(fronts["http"], path=f"/{path}?repo=epel-9&arch=x86_64&countme=1", name=name)
    assert hashlib.sha256(b"<repomd/>").hexdigest() in answer
    assert f">https://{HOST}/repodata/repomd.xml<" in answer
    assert ask(fronts["http"], path=f"/{path}?repo=epel-7&arch=x86_64", name=name).startswith("404")


def test_every_published_file_names_a_source_that_the_mirror_has() -> None:
    repositories = mirror.repositories()
    for entry in published.read(mirror.DECLARATIONS / "published.yml"):
        assert entry.repository in repositories, entry.path
        places = re.findall(r"^(?:baseurl|gpgkey)=https://([^\s$]+)", (entry.text or "").split("\n\n")[0], re.MULTILINE)
        own = repositories[entry.repository]
        known = [own["path"], *own.get("also", []), *own["keys"]]
        assert all(any(path.startswith(place) for path in known) for place in places), entry.path


@pytest.mark.parametrize(
    "wrong", ["{repository: a, path: b}", "{repository: a, path: b, text: c, package: d}", "{x: y}"]
)
def test_a_wrong_entry_of_published_files_is_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "published.yml").write_text(f"[{wrong}]")
    with pytest.raises(LabError, match="published.yml: expected each, package, path"):
        published.read(tmp_path / "published.yml")


def test_nvidias_package_has_the_key_the_source_and_the_pin(tmp_path: Path) -> None:
    (package,) = [
        each for each in mirror.declared()[0] if each.name == "cuda-keyring" and each.repositories == ("cuda-debian12",)
    ]
    assert package.file_name == "cuda-keyring_1.1-1_all.deb"
    asked: list[tuple[str, str, str]] = []

    def fetch(suite: str, name: str, path: str) -> bytes:
        asked.append((suite, name, path))
        return b"key"

    packages.build(package, tmp_path / "a.deb", fetch)
    unpacked = tmp_path / "unpacked"
    run(["/usr/bin/dpkg-deb", "--raw-extract", str(tmp_path / "a.deb"), str(unpacked)], limit=30, what="unpack")
    assert asked == [(declarations.LAB_KEY, "", "binary")]
    assert (unpacked / "usr/share/keyrings/cuda-archive-keyring.gpg").read_bytes() == b"key"
    assert (unpacked / "etc/apt/sources.list.d/cuda-debian12-x86_64.list").read_text() == (
        "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] "
        "https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/ /\n"
    )
    assert "l=NVIDIA CUDA" in (unpacked / "etc/apt/preferences.d/cuda-repository-pin-600").read_text()
