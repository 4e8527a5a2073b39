"""The proxy of a download: the environment's, the package manager's or none; retries and messages."""

import base64
import contextlib
import errno
import http.client
import http.server
import os
import re
import shutil
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import download
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.cuda.cudnn import fetch as cudnn_fetch
from plugins.module_utils.gpu_ready.cuda.cudnn.model import CudnnError
from plugins.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from tests.unit.recorded import RecordedHost

APT = ("apt-config", "dump", "Acquire")
DUMP = """Acquire "";
Acquire::AllowInsecureRepositories "0";
Acquire::HTTP "";
Acquire::HTTP::Proxy "http://us%40er:p@ss@proxy.site:3128/";
Acquire::HTTP::Proxy::10.199.0.1 "DIRECT";
Acquire::HTTP::Proxy::near.site "http://other.site";
Acquire::HTTP::Proxy-Auto-Detect "/usr/bin/find-proxy";
"""
DNF = """[main]
gpgcheck=1
proxy = http://proxy.site:3128
proxy_username=me
proxy_password=a/b@c%41

[other]
proxy=http://another.site:1
"""
NOWHERE = "http://127.0.0.1:9"
"""A port (discard) that nobody listens on."""


def apt(proxy: str, *more: str) -> RecordedHost:
    lines = [f'Acquire::http::Proxy "{proxy}";', *more]
    return RecordedHost(programs={APT: Result(0, "\n".join(lines) + "\n", "")})


def dnf(path: str, text: str) -> RecordedHost:
    return RecordedHost(files={path: text}, programs={APT: Result(127, "", "apt-config: No such file")})


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Server(http.server.ThreadingHTTPServer):
    """Answers every request with one status, as a proxy and as a server; records requests and clients."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: list[str] = []
        self.logins: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def far(self) -> str:
        """An address of this server that is not excluded from proxies."""
        return f"http://0.0.0.0:{self.port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.logins.append(self.headers.get("Proxy-Authorization", ""))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"file")

    do_CONNECT = do_GET

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[Any]:
    """A function that starts a server."""
    started: list[Server] = []

    def start(status: int = 200) -> Server:
        started.append(Server(status))
        threading.Thread(target=started[-1].serve_forever, args=(0.01,), daemon=True).start()
        return started[-1]

    yield start
    for one in started:
        one.shutdown()
        one.server_close()


def body(url: str, host: Host) -> bytes:
    with download.open_url(url, 10.0, host) as answer:
        return bytes(answer.read())


# ---- what is configured ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "name", "http", "https"),
    [
        ("", "vendor.test", "http://proxy.site:3128", "http://proxy.site:3128"),
        ("", "10.199.0.1", None, None),
        ("", "near.site", "http://other.site:80", "http://other.site:80"),
        ('Acquire::https::Proxy "DIRECT";', "vendor.test", "http://proxy.site:3128", None),
        ('Acquire::https::Proxy "";', "vendor.test", "http://proxy.site:3128", "http://proxy.site:3128"),
        ('Acquire::https::Proxy "https://tls.site";', "vendor.test", "http://proxy.site:3128", "https://tls.site:443"),
        ('Acquire::https::Proxy::vendor.test "direct";', "vendor.test", "http://proxy.site:3128", None),
        ('Acquire::https::Proxy "http://tls.site:1";', "10.199.0.1", None, None),
        ('Acquire::https::Proxy::Vendor.Test "http://one.site:2";', "vendor.test", "http://proxy.site:3128", "http://one.site:2"),
    ],
)  # fmt: skip
def test_apt_names_a_proxy_by_scheme_and_host(more: str, name: str, http: str | None, https: str | None) -> None:
    found = download.parse_apt_proxies(DUMP + more + "\n", name)
    assert {scheme: proxy.shown for scheme, proxy in found.items()} == {
        scheme: output for scheme, output in (("http", http), ("https", https)) if output
    }


def test_user_and_password_of_apt_are_used_and_not_shown() -> None:
    assert download.parse_apt_proxies(DUMP, "vendor.test")["http"] == (
        "http://us%40er:p%40ss@proxy.site:3128",
        "http://proxy.site:3128",
    )


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (DNF, "http://me:a%2Fb%40c%2541@proxy.site:3128"),
        ("[main]\nproxy=http://proxy.site\n", "http://proxy.site:1080"),
        ("[main]\nproxy: proxy.site:8\nproxy_password=x\n", "http://proxy.site:8"),
        ("# all\n[main]\nproxy=http://old.site:1\nproxy=http://a:b@new.site:2\n", "http://a:b@new.site:2"),
        ("[main]\nproxy=http://[fd00::1]:3128/\n", "http://[fd00::1]:3128"),
        ("[main]\nproxy=//proxy.site:9\n", "http://proxy.site:9"),
        ("[main]\nproxy=http://[fd00::1]\n", "http://[fd00::1]:1080"),
    ],
)
def test_dnf_names_a_proxy_for_all(text: str, url: str) -> None:
    found = download.parse_dnf_proxies(text)
    assert (found["http"].url, found["https"].url) == (url, url)


@pytest.mark.parametrize(
    "text",
    ["", "\0\xff", "[main]\n", "[main]\nproxy=_none_\n", "[main]\nproxy=\n", "[x]\nproxy=http://a:1\n", "[main]\n#proxy=http://a:1\n"],
)  # fmt: skip
def test_no_proxy_is_none(text: str) -> None:
    assert download.parse_dnf_proxies(text) == {}
    assert download.parse_apt_proxies(text, "vendor.test") == {}


@pytest.mark.parametrize(
    ("host", "output"),
    [
        (apt("http://a:1"), ["http://a:1"]),
        (apt("DIRECT"), []),
        (dnf("/etc/dnf/dnf.conf", DNF), ["http://proxy.site:3128"]),
        (dnf("/etc/yum.conf", DNF), ["http://proxy.site:3128"]),
        (RecordedHost(programs={APT: Result(124, "", "no answer in 30 s")}), []),
    ],
)
def test_the_installed_package_manager_is_asked(host: Host, output: list[str]) -> None:
    found = download.package_manager_proxies(host, "vendor.test")
    assert [found[scheme].shown for scheme in sorted(found)] == output * 2


# ---- what is opened -------------------------------------------------------------------------------------------------


def test_a_download_uses_the_proxy_of_the_package_manager(servers: Any) -> None:
    proxy = servers()
    host = apt(f"http://me:geheim@127.0.0.1:{proxy.port}")
    assert body("http://vendor.test/key", host) == b"file"
    assert proxy.asked == ["http://vendor.test/key"]
    assert proxy.logins == ["Basic " + base64.b64encode(b"me:geheim").decode()]


def test_https_uses_a_tunnel_through_the_proxy(servers: Any) -> None:
    proxy = servers(403)
    with pytest.raises(urllib.error.URLError, match="403 Forbidden through the package manager's"):
        body("https://vendor.invalid/key", apt(proxy.address))
    assert proxy.asked == ["vendor.invalid:443"]


def test_hosts_that_the_package_manager_reaches_directly(servers: Any) -> None:
    proxy, server = servers(), servers()
    assert body(server.far + "/key", apt(proxy.address, 'Acquire::http::Proxy::0.0.0.0 "DIRECT";')) == b"file"
    assert (server.asked, proxy.asked) == (["/key"], [])


def test_the_environment_takes_precedence(monkeypatch: pytest.MonkeyPatch, servers: Any) -> None:
    proxy, host = servers(), RecordedHost()
    monkeypatch.setenv("http_proxy", f"http://me:a/b@127.0.0.1:{proxy.port}")
    assert body("http://vendor.test/key", host) == b"file"
    assert proxy.logins == ["Basic " + base64.b64encode(b"me:a/b").decode()]
    assert host.asked == [] and host.opened == []


def test_the_environment_of_the_other_scheme_does_not(monkeypatch: pytest.MonkeyPatch, servers: Any) -> None:
    proxy = servers()
    monkeypatch.setenv("https_proxy", NOWHERE)
    assert body("http://vendor.test/key", apt(proxy.address)) == b"file"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_no_proxy_for_this_host(servers: Any, name: str) -> None:
    server, host = servers(), RecordedHost()
    assert body(f"http://{name}:{server.port}/key", host) == b"file"
    assert host.asked == []


def test_no_proxy_applies_to_the_package_managers_proxy(monkeypatch: pytest.MonkeyPatch, servers: Any) -> None:
    server, host = servers(), RecordedHost()
    monkeypatch.setenv("no_proxy", "vendor.test,0.0.0.0")
    assert body(server.far + "/key", host) == b"file"
    assert host.asked == []


def test_a_host_without_a_proxy(servers: Any) -> None:
    assert body(servers().far + "/key", dnf("/etc/dnf/dnf.conf", "[main]\n")) == b"file"


# ---- what fails -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 403, 405, 407, 500, 502, 503])
def test_a_proxy_that_refuses_is_bypassed(servers: Any, status: int) -> None:
    proxy, server = servers(status), servers()
    assert body(server.far + "/key", apt(proxy.address)) == b"file"
    assert proxy.asked == [server.far + "/key"] and server.asked == ["/key"] and server.logins == [""]


@pytest.mark.parametrize("proxy", [NOWHERE, "socks5h://127.0.0.1:9", "http://proxy.invalid:3128", "http://127.0.0.1:x"])
def test_an_unreachable_proxy_is_bypassed(servers: Any, proxy: str) -> None:
    assert body(servers().far + "/key", apt(proxy)) == b"file"


@pytest.mark.parametrize("status", [401, 404, 410])
def test_status_of_the_server_itself(servers: Any, status: int) -> None:
    proxy, server = servers(status), servers()
    with pytest.raises(
        urllib.error.HTTPError, match=rf"{status}.* through the package manager's proxy {proxy.address}"
    ):
        body(server.far + "/key", apt(proxy.address))
    assert server.asked == []


def test_both_causes_are_reported_without_a_password(servers: Any) -> None:
    proxy = servers(403)
    with pytest.raises(urllib.error.URLError) as caught:
        body("http://0.0.0.0:9/key", apt(f"http://me:geheim@127.0.0.1:{proxy.port}"))
    assert caught.value.reason == (
        "[Errno 111] Connection refused without a proxy, and 403 Forbidden through the package manager's, "
        + proxy.address
    )


def test_an_answer_of_the_server_behind_a_proxy_that_refuses_stays_one(servers: Any) -> None:
    proxy, server = servers(403), servers(404)
    with pytest.raises(urllib.error.HTTPError) as caught:
        body(server.far + "/key", apt(proxy.address))
    assert caught.value.code == 404
    assert caught.value.reason == (
        f"Not Found without a proxy, and 403 Forbidden through the package manager's, {proxy.address}"
    )


@pytest.mark.parametrize(
    "proxy", ["http://me:geh/eim@127.0.0.1:9", "http:/me:geheim@127.0.0.1:9", "me:geheim@127.0.0.1:9", "http://me:ge@heim@127.0.0.1:x"]
)  # fmt: skip
@pytest.mark.parametrize("where", ["environment", "apt"])
def test_a_password_is_in_no_message(monkeypatch: pytest.MonkeyPatch, proxy: str, where: str) -> None:
    host = apt(proxy)
    if where == "environment":
        monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises((OSError, ValueError, http.client.HTTPException)) as caught:
        body("http://0.0.0.0:9/key", host)
    output: BaseException | None = caught.value
    while output is not None:
        assert not any(part in str(output) for part in ("geh", "eim", "ge@", "me:")), output
        output = output.__context__


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        # A Debian of debootstrap's variant minbase has no certificates at all.
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate", "ca-certificates"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid (_ssl.c:992)", "is behind"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:992)", "is ahead"),
        ("[Errno -3] Temporary failure in name resolution", "DNS"),
        ("[Errno -5] No address associated with hostname", "DNS"),
        ("no answer in 60 s", "network and proxy"),
    ],
)  # fmt: skip
def test_a_failed_download_is_reported_with_a_remedy(cause: str, words: str) -> None:
    text = download.describe_failed_download("https://files.example/a.run", cause)
    assert text.startswith("https://files.example/a.run could not be fetched: " + cause)
    assert words in text.partition("Nothing was changed. ")[2]


@pytest.fixture
def trickle() -> Iterator[Any]:
    """A function that starts a server which sends a text, then one more text every 50 ms without end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(first: bytes, more: bytes) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(first)
            while True:
                connection.sendall(more)
                time.sleep(0.05)

    def start(first: bytes, more: bytes) -> str:
        threading.Thread(target=serve, args=(first, more), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/file"

    yield start
    listener.close()


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nServer: ", b"x"),
        (b"", b"H"),
    ],
)
def test_a_server_that_trickles_is_left_at_the_limit(tmp_path: Path, trickle: Any, first: bytes, more: bytes) -> None:
    url, began = trickle(first, more), time.monotonic()
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(
        download.DownloadError, match=rf"^{url} could not be fetched: only 0 bytes came in 0.5 s\. .*mirror"
    ):
        download.download(url, str(tmp_path / "file"), download.DownloadLimits(30.0, 0.5))
    assert time.monotonic() - began < 25
    assert list(tmp_path.iterdir()) == []
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (before, (0.0, 0.0))


class Answer:
    """An open answer whose second read fails."""

    headers: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, error: OSError | None) -> None:
        self.reads: list[Any] = [b"some", error, b""]

    def read(self, _size: int) -> bytes:
        value = self.reads.pop(0)
        if isinstance(value, OSError):
            raise value
        return value or b""

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EHOSTUNREACH, "No route to host"),
        ssl.SSLError(1, "[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC] decryption failed"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    ],
)
def test_a_connection_that_breaks_is_named_with_its_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError
) -> None:
    monkeypatch.setattr(download, "open_url", lambda *_: Answer(error))
    words = (
        rf"^http://x/y could not be fetched: .*{re.escape(str(error.strerror))} after 4 bytes\. Nothing was changed\."
    )
    with pytest.raises(download.DownloadError, match=words):
        download.download("http://x/y", str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_with_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(download, "open_url", lambda *_: Answer(None))
    (tmp_path / "file.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/file.part'"):
        download.download("http://x/y", str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


# ---- files of unknown size ------------------------------------------------------------------------------------------

MIB = 1 << 20
FLOODS = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 900000000000\r\n\r\n", b"x" * MIB),
    (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * MIB),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + b"x" * MIB + b"\r\n"),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every disk 8 MiB more than the reserve."""
    usage = shutil._ntuple_diskusage(100 * MIB, 28 * MIB, download.RESERVE + 8 * MIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


@pytest.mark.parametrize(("first", "more"), FLOODS)
@pytest.mark.parametrize(("unpacked", "most"), [(0, 8), (3, 2)])
@pytest.mark.usefixtures("small_disk")
def test_a_file_of_unknown_size_leaves_a_part_of_the_disk(
    monkeypatch: pytest.MonkeyPatch, work: Path, trickle: Any, first: bytes, more: bytes, unpacked: int, most: int
) -> None:
    written: list[int] = []
    unlink = os.unlink

    def note(path: str) -> None:
        written.append(Path(path).stat().st_size)
        unlink(path)

    monkeypatch.setattr(os, "unlink", note)
    url = trickle(first, more)
    with pytest.raises(download.DownloadError) as raised:
        download.download(url, str(work / "file"), download.DownloadLimits(30.0, 60.0), unpacked=unpacked)
    text = str(raised.value)
    assert (
        text.startswith(f"{url} has more than {most} MiB, which do not fit in {work.parent}")
        and "72 MiB are free" in text
    )
    assert written[0] <= (0 if b"Content-Length" in first else most * MIB)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(("first", "more"), FLOODS)
@pytest.mark.parametrize(("size", "most"), [(MIB, 0), (0, MIB)])
def test_a_file_of_known_size_is_not_longer(
    work: Path, trickle: Any, first: bytes, more: bytes, size: int, most: int
) -> None:
    with pytest.raises(download.DownloadError, match="is longer than 1048576 bytes, so it is not the intended file"):
        download.download(trickle(first, more), str(work / "file"), size=size, max_bytes=most)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(("first", "more"), FLOODS)
@pytest.mark.usefixtures("small_disk")
def test_installers_and_archives_from_any_server_leave_space(
    work: Path, trickle: Any, first: bytes, more: bytes
) -> None:
    url = trickle(first, more)
    with pytest.raises(download.DownloadError, match="has more than 1 MiB, which do not fit"):
        source = runfile_fetch.InstallerSource(url, "0" * 64)
        runfile_fetch.fetch_file(source, str(work), runfile_fetch.RunfileLimits(30.0, 60.0))
    with pytest.raises(download.DownloadError, match="has more than 2 MiB, which do not fit"):
        install = cudnn_fetch.CudnnInstall(
            "12.9", cuda_path=str(work), archive_url=trickle(first, more), sha256="0" * 64
        )
        cudnn_fetch.fetch_archive(install, str(work), download.DownloadLimits(30.0, 60.0))
    assert list(work.iterdir()) == []


def test_an_archive_from_a_server_needs_space_in_its_toolkit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, servers: Any
) -> None:
    (tmp_path / "toolkit").mkdir()
    install = cudnn_fetch.CudnnInstall(
        "12.9",
        "9.1.0",
        str(tmp_path / "toolkit"),
        archive_url=servers(200).address + "/file",
        sha256="3b9c358f36f0a31b6ad3e14f309c7cf198ac9246e8316f9ce543d5b19ac02b80",
    )
    free = iter([1 << 30, 11])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, next(free)))
    with pytest.raises(CudnnError, match=r"cuDNN 9\.1\.0 needs 0 MiB in .*toolkit"):
        cudnn_fetch.fetch_archive(install, str(tmp_path), download.DownloadLimits(30.0, 60.0))


# ---- who opens ------------------------------------------------------------------------------------------------------


def program(directory: Path, proxy: str) -> None:
    """Install an apt-config that names a proxy."""
    (directory / "apt-config").write_text(f"#!{sys.executable}\nprint('Acquire::http::Proxy \"{proxy}\";')\n")
    (directory / "apt-config").chmod(0o755)


@pytest.mark.host_io
def test_installers_archives_and_their_lists_use_the_proxy(
    monkeypatch: pytest.MonkeyPatch, servers: Any, tmp_path: Path
) -> None:
    proxy = servers(403)
    program(tmp_path, f"http://me:geheim@127.0.0.1:{proxy.port}")
    monkeypatch.setattr(
        "plugins.module_utils.gpu_ready.base.host.PATH_DIRECTORIES", (str(tmp_path), "/usr/bin", "/bin")
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    url = "http://0.0.0.0:9/file.run"
    words = (
        rf"^{url} could not be fetched: .*Connection refused without a proxy, and 403 Forbidden through the package "
        rf"manager's, {proxy.address}. Nothing was changed. The server or a proxy refuses it"
    )
    with pytest.raises(download.DownloadError, match=words):
        runfile_fetch.fetch_file(
            runfile_fetch.InstallerSource(url, "0" * 64), str(tmp_path), runfile_fetch.RunfileLimits(5.0, 5.0)
        )
    with pytest.raises(download.DownloadError, match=words):
        cudnn_fetch.fetch_archive(
            cudnn_fetch.CudnnInstall("12.9", archive_url=url, sha256="0" * 64),
            str(tmp_path),
            download.DownloadLimits(5.0, 5.0),
        )
