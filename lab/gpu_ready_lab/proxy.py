"""A caching proxy for apt: what never changes (packages, indexes named by their hash) is fetched once for all hosts.

Everything else is passed through and not kept. Hosts that request the same file at the same time share one
download; each reads it while it arrives.
"""

import hashlib
import http.client
import os
import re
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from . import mirror_faults

TIMEOUT = 60  # seconds without a byte from the archive
KEEP_BYTES = 8 << 30
PASSED = ("If-Modified-Since", "If-None-Match", "If-Range", "Range", "Cache-Control", "Accept", "User-Agent")
HOP_BY_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade",
}  # fmt: skip


def unchanging(url: str) -> bool:
    """True if a URL names content that never changes: a package with its version, or an index by its hash."""
    path = urllib.parse.urlsplit(url).path
    return path.endswith(".deb") or re.search(r"/by-hash/[^/]+/[0-9a-f]{32,}$", path) is not None


def cache_name(url: str) -> str:
    """Return the name of a URL's file in the cache: readable, and unique by a hash."""
    readable = re.sub(r"[^A-Za-z0-9.+_~-]", "_", url.rsplit("/", 1)[-1])[-120:]
    return f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{readable}"


class UpstreamError(Exception):
    """The archive could not be reached."""


def _ask(url: str, method: str, headers: dict[str, str]) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """Ask the archive, through the machine's own proxy when it has one; close the connection afterwards."""
    parts = urllib.parse.urlsplit(url)
    host, port, target = (
        parts.hostname or "",
        parts.port or 80,
        urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, "")),
    )
    further = urllib.request.getproxies().get("http")
    if further and not urllib.request.proxy_bypass(host):
        way = urllib.parse.urlsplit(further)
        host, port, target = way.hostname or "", way.port or 80, url
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        connection.request(method, target, headers={"Host": parts.netloc, "Connection": "close", **headers})
        return connection, connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise UpstreamError(f"could not fetch {url}: {error}") from None


class Download:
    """A download into the cache; clients read the file as it grows."""

    def __init__(self, url: str, target: Path) -> None:
        self.url = url
        self.target = target
        self.temporary = target.with_name(f"{target.name}.{os.getpid()}.part")
        self.news = threading.Condition()
        self.status = 0  # 0 until the archive has answered
        self.headers: list[tuple[str, str]] = []
        self.length: int | None = None
        self.arrived = 0
        self.ended = False
        self.error: str | None = None
        self.refusal = b""

    def run(self) -> None:
        """Fetch the file; a complete one is renamed into the cache."""
        try:
            self._fetch()
        except (UpstreamError, OSError, http.client.HTTPException) as error:
            with self.news:
                self.error = str(error)
        finally:
            with self.news:
                self.ended = True
                self.news.notify_all()
            self.temporary.unlink(missing_ok=True)

    def _fetch(self) -> None:
        connection, response = _ask(self.url, "GET", {"User-Agent": "gpu-ready-lab"})
        try:
            length = response.getheader("Content-Length")
            with self.temporary.open("wb") as file:
                with self.news:
                    self.status = response.status
                    self.headers = [
                        pair
                        for pair in response.getheaders()
                        if pair[0].lower() in ("content-type", "last-modified", "location")
                    ]
                    self.length = int(length) if length is not None else None
                    self.news.notify_all()
                if response.status != http.client.OK:
                    self.refusal = response.read(65536)
                    return
                while chunk := response.read(1 << 16):
                    file.write(chunk)
                    file.flush()
                    with self.news:
                        self.arrived += len(chunk)
                        self.news.notify_all()
            if self.length is not None and self.arrived != self.length:
                raise UpstreamError(f"{self.url} ended after {self.arrived} of {self.length} bytes")
            self.temporary.replace(self.target)
        finally:
            connection.close()

    def answered(self) -> bool:
        """Wait for the archive's status line; False if none came."""
        with self.news:
            self.news.wait_for(lambda: self.status or self.ended, timeout=TIMEOUT + 10)
            return bool(self.status)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content as it arrives; raise when it ends too early."""
        with self._open() as file:
            done, ended = 0, False
            while not ended:
                arrived, ended = self._news_since(done)
                while done < arrived:
                    chunk = file.read(min(1 << 18, arrived - done))
                    done += len(chunk)
                    yield chunk
        if self.error:
            raise UpstreamError(self.error)

    def _news_since(self, done: int) -> tuple[int, bool]:
        """Wait until more than `done` bytes have arrived or the download has ended."""
        with self.news:
            if not self.news.wait_for(lambda: self.arrived > done or self.ended, timeout=TIMEOUT + 10):
                raise UpstreamError(f"{self.url}: nothing came for {TIMEOUT} s")
            return self.arrived, self.ended

    def _open(self) -> Any:
        try:
            return self.temporary.open("rb")
        except FileNotFoundError:
            return self.target.open("rb")  # it has arrived meanwhile


class Proxy(ThreadingHTTPServer):
    """Listens for apt."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], cache: Path, state: Path) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self.cache = cache
        self.state = state
        self._log = state / "proxy-access.log"
        self._lock = threading.Lock()
        self._downloads: dict[str, Download] = {}
        trim(cache, KEEP_BYTES)
        super().__init__(address, _Handler)

    def log(self, line: str) -> None:
        """Add a line to the access log."""
        with self._lock, self._log.open("a") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")

    def download(self, url: str, target: Path) -> Download | None:
        """The download of a URL, started if it is not in progress; None if the cache has the complete file."""
        with self._lock:
            running = self._downloads.get(url)
            if running is not None and not running.ended:
                return running
            if target.exists():
                self._downloads.pop(url, None)
                return None
            started = self._downloads[url] = Download(url, target)
            started.temporary.touch()
            threading.Thread(target=self._run, args=(url, started), daemon=True).start()
            return started

    def _run(self, url: str, download: Download) -> None:
        download.run()
        with self._lock:
            if self._downloads.get(url) is download:
                del self._downloads[url]


def trim(cache: Path, keep: int) -> None:
    """Delete what a killed proxy left incomplete, and the least recently used files above a size."""
    for part in cache.glob("*.part"):
        part.unlink(missing_ok=True)
    total = 0
    for path in sorted(cache.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True):
        total += path.stat().st_size
        if total > keep:
            path.unlink(missing_ok=True)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of absolute http URLs."""

    protocol_version = "HTTP/1.1"
    server_version = "gpu-ready-lab"
    timeout = 120
    server: Proxy
    _body: mirror_faults.Writer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Print nothing on standard error: the access log has it."""

    def do_GET(self) -> None:
        """Send a file."""
        self._answer()

    def do_HEAD(self) -> None:
        """Send the archive's headers of a file."""
        self._answer()

    def _answer(self) -> None:
        url, way = self.path, "refused"
        try:
            parts = urllib.parse.urlsplit(url)
            fault = mirror_faults.find(self.server.state, self.client_address[0], url.removeprefix("http://"))
            mirror_faults.before_answer(fault, self.connection)
            self._body = mirror_faults.Writer(self.wfile, fault)
            if "status" in fault:
                way = f"fault-{fault['status']}"
                self._text(fault["status"], f"fault injected for {url}")
            elif parts.scheme != "http" or not parts.hostname:
                self._text(400, "this is a proxy for http://HOST/PATH only")
            elif self.command == "GET" and unchanging(url) and not parts.query:
                way = self._cached(url)
            else:
                way = "passed"
                self._passed(url)
        except UpstreamError as error:
            way = "failed"
            self.close_connection = True
            self.server.log(f"{self.client_address[0]} error {error}")
        except (BrokenPipeError, ConnectionResetError, TimeoutError, mirror_faults.Dropped):
            way = "left"
            self.close_connection = True
        finally:
            self.server.log(f"{self.client_address[0]} {self.command} {way} {url}")

    def _text(self, status: int, words: str) -> None:
        self._bytes(status, [("Content-Type", "text/plain; charset=utf-8")], f"{words}\n".encode())

    def _bytes(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self._body.write(data)

    def _cached(self, url: str) -> str:
        """Answer from the cache, or from the download that fills it."""
        target = self.server.cache / cache_name(url)
        download = self.server.download(url, target)
        if download is None:
            self._file(target)
            return "hit"
        if not download.answered():
            self._text(504, download.error or f"no answer for {url}")
            return "failed"
        if download.status != http.client.OK:
            with download.news:
                download.news.wait_for(lambda: download.ended, timeout=TIMEOUT + 10)
            self._bytes(download.status, download.headers, download.refusal)
            return f"status-{download.status}"
        self.send_response(200)
        for name, value in download.headers:
            self.send_header(name, value)
        if download.length is not None:
            self.send_header("Content-Length", str(download.length))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        for chunk in download.chunks():
            self._body.write(chunk)
        return "fetched"

    def _file(self, path: Path) -> None:
        """Send a complete file; apt asks for the rest of one with Range."""
        with path.open("rb") as file:
            os.utime(path)
            size = os.fstat(file.fileno()).st_size
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "").strip())
            start = int(asked[1]) if asked else 0
            if start >= size > 0:
                start = 0
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.send_header("Content-Length", str(size - start))
            self.end_headers()
            file.seek(start)
            while chunk := file.read(1 << 18):
                self._body.write(chunk)

    def _passed(self, url: str) -> None:
        """Pass a request to the archive and its answer to the client, without caching."""
        headers = {name: value for name in PASSED if (value := self.headers.get(name)) is not None}
        try:
            connection, response = _ask(url, self.command, headers)
        except UpstreamError as error:
            self._text(504, str(error))
            return
        try:
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in HOP_BY_HOP and name.lower() not in ("server", "date"):
                    self.send_header(name, value)
            bodyless = self.command == "HEAD" or response.status in (204, 304)
            if response.getheader("Content-Length") is None and not bodyless:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            while not bodyless and (chunk := response.read(1 << 16)):
                self._body.write(chunk)
        except (http.client.HTTPException, OSError) as error:
            raise UpstreamError(f"{url}: {error}") from None
        finally:
            connection.close()
