"""The vendors' own names in the lab: a certificate that hosts trust, the files of the mirror, and faults of both."""

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpu_ready.catalog import data
from gpu_ready.catalog import model as catalog
from gpu_ready_lab import certificates, fleet, mirror, mirror_faults, mirror_server, paths, services, vendors

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
    connection = http.client.HTTPConnection(*address, timeout=10)
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
    assert f"GET 200 7 {HOST}/file" in (tmp_path / "mirror-access.log").read_text()


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
    with socket.create_connection(address, timeout=10):
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
    served = [name for name in data.REPOSITORIES if name in mirror.repositories()]
    assert {catalog.repository(name)["url"].split("/")[2] for name in served} <= named
    assert {"developer.download.nvidia.com", "us.download.nvidia.com", "download.nvidia.com"} <= named


def test_apt_reaches_the_names_without_the_archives_proxy() -> None:
    text = str(vendors.apt_files("http://10.199.0.1:3142")["etc/apt/apt.conf.d/99gpu-ready-lab-mirror"][0])
    for name in (*mirror.names(), paths.ADDRESS):
        assert f'Acquire::http::Proxy::{name} "DIRECT";' in text
        assert f'Acquire::https::Proxy::{name} "DIRECT";' in text


def test_a_fleet_chooses_how_its_hosts_reach_the_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    info = mirror.MirrorInfo("http://mirror", "http://proxy", {"cuda-debian12": "F"}, Path("image"))
    monkeypatch.setattr(mirror, "ensure_running", lambda *_: info)
    variables = {}
    for key in ("", "vendors: mirror, "):
        read = fleet.parse("{name: x, " + key + "hosts: {a: {distribution: debian12}}}")
        variables[read.vendors] = services.start({"debian12"}, read.vendors).variables
    assert "gpu_ready_mirror" not in variables["names"]
    assert variables["mirror"] == {**variables["names"], "gpu_ready_mirror": "http://mirror"}
    assert variables["names"]["gpu_ready_mirror_keys"] == {"cuda-debian12": "F"}
    with pytest.raises(fleet.LabError, match=r"vendors: 'proxy' is none of names, mirror"):
        fleet.parse("{name: x, vendors: proxy, hosts: {a: {distribution: debian12}}}")
