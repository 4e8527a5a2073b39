import http.client
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gpu_ready_lab import mirror_faults, proxy

CONTENT = b"package" * 50000
pytestmark = pytest.mark.host_io


class Archive(ThreadingHTTPServer):
    """An archive that counts, and that sends the second half of a slow file only on request."""

    daemon_threads = True

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str | None]] = []
        self.go_on = threading.Event()
        super().__init__(("127.0.0.1", 0), Answers)


class Answers(BaseHTTPRequestHandler):
    server: Archive
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.requests.append((self.command, self.path, self.headers.get("If-Modified-Since")))
        if "missing" in self.path:
            self.send_error(404)
            return
        if self.headers.get("If-Modified-Since"):
            self.send_response(304)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.command == "HEAD":
            return
        half = len(CONTENT) // 2
        self.wfile.write(CONTENT[:half])
        if "slow" in self.path:
            self.server.go_on.wait(60)
        if "broken" in self.path:
            self.close_connection = True
            return
        self.wfile.write(CONTENT[half:])


@pytest.fixture
def archive() -> Iterator[Archive]:
    server = Archive()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[proxy.Proxy]:
    monkeypatch.delenv("http_proxy", raising=False)
    server = proxy.Proxy(("127.0.0.1", 0), tmp_path / "cache", tmp_path)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url(archive: Archive, path: str) -> str:
    return f"http://127.0.0.1:{archive.server_address[1]}/debian/{path}"


def ask(
    cache: proxy.Proxy, address: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", cache.server_port, timeout=60)
    try:
        connection.request(method, address, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        try:
            return answer, answer.read()
        except http.client.IncompleteRead as short:
            return answer, short.partial
    finally:
        connection.close()
        end = time.monotonic() + 60  # the download's own thread renames or deletes its part after the last reader
        while list(cache.cache.glob("*.part")) and time.monotonic() < end:
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://a/pool/x_1_amd64.deb", True),
        ("http://a/dists/s/main/by-hash/SHA256/" + "a" * 64, True),
        ("http://a/dists/s/InRelease", False),
        ("http://a/dists/s/main/Packages.xz", False),
    ],
)
def test_urls_of_content_that_never_changes(address: str, expected: bool) -> None:
    assert proxy.unchanging(address) is expected


def test_a_package_is_fetched_once(archive: Archive, cache: proxy.Proxy) -> None:
    for _ in range(3):
        answer, body = ask(cache, url(archive, "a_1.deb"))
        assert (answer.status, body) == (200, CONTENT)
    assert len(archive.requests) == 1


def test_the_rest_of_a_cached_package(archive: Archive, cache: proxy.Proxy) -> None:
    ask(cache, url(archive, "a_1.deb"))
    answer, body = ask(cache, url(archive, "a_1.deb"), Range="bytes=1000-")
    assert (answer.status, body) == (206, CONTENT[1000:])


def test_a_package_is_sent_while_it_arrives(archive: Archive, cache: proxy.Proxy) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", cache.server_port, timeout=60)
    connection.request("GET", url(archive, "slow_1.deb"))
    answer = connection.getresponse()
    assert answer.read(1000) == CONTENT[:1000]  # the archive still holds the second half back
    archive.go_on.set()
    assert answer.read() == CONTENT[1000:]
    connection.close()


def test_an_index_is_not_kept(archive: Archive, cache: proxy.Proxy) -> None:
    for _ in range(2):
        assert ask(cache, url(archive, "InRelease"))[1] == CONTENT
    assert len(archive.requests) == 2


def test_conditions_are_passed_on(archive: Archive, cache: proxy.Proxy) -> None:
    assert ask(cache, url(archive, "InRelease"), If_Modified_Since="yesterday")[0].status == 304
    assert archive.requests == [("GET", "/debian/InRelease", "yesterday")]


def test_head(archive: Archive, cache: proxy.Proxy) -> None:
    answer, body = ask(cache, url(archive, "a_1.deb"), "HEAD")
    assert (answer.status, answer.getheader("Content-Length"), body) == (200, str(len(CONTENT)), b"")


@pytest.mark.parametrize("path", ["missing_1.deb", "missing"])
def test_errors_are_passed_on_and_not_kept(archive: Archive, cache: proxy.Proxy, path: str) -> None:
    assert ask(cache, url(archive, path))[0].status == 404
    assert ask(cache, url(archive, path))[0].status == 404
    assert len(archive.requests) == 2


def test_half_a_package_is_not_kept(archive: Archive, cache: proxy.Proxy) -> None:
    answer, body = ask(cache, url(archive, "broken_1.deb"))
    assert answer.getheader("Content-Length") == str(len(CONTENT))
    assert len(body) < len(CONTENT)
    assert list(cache.cache.iterdir()) == []


@pytest.mark.parametrize("address", ["https://a/x", "/x", "ftp://a/x"])
def test_only_absolute_http(cache: proxy.Proxy, address: str) -> None:
    assert ask(cache, address)[0].status == 400


def test_an_unreachable_archive(cache: proxy.Proxy) -> None:
    answer, body = ask(cache, "http://127.0.0.1:1/debian/a_1.deb")
    assert answer.status == 504
    assert b"could not fetch" in body


def test_old_files_are_removed_when_the_cache_is_too_big(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old", "half.part")):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    proxy.trim(tmp_path, 15)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("rule", "status", "length"),
    [({"status": 500}, 500, None), ({"truncate": 3}, 200, 3), ({"corrupt": True}, 200, None)],
)
def test_faults_of_one_host(
    archive: Archive, cache: proxy.Proxy, rule: dict[str, int | bool], status: int, length: int | None
) -> None:
    address = url(archive, "a_1.deb")
    whole = ask(cache, address)[1]
    mirror_faults.set_rules(cache.state, "127.0.0.1", "fault", {"127.0.0.1:*/debian/*": rule})
    answer, body = ask(cache, address)
    assert (answer.status, body != whole) == (status, True)
    assert length is None or len(body) == length
    mirror_faults.set_rules(cache.state, "127.0.0.1", "fault", None)
    assert ask(cache, address)[1] == whole
