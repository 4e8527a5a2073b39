"""A caching proxy for apt: what never changes (packages, indexes named by their hash) is kept for all hosts.

Everything else is passed through. A file is sent while it arrives.
"""

import contextlib
import hashlib
import http.client
import os
import re
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO

from . import mirror_faults, web

TIMEOUT = 60  # seconds without a byte from the archive
KEEP_BYTES = 8 << 30
PASSED = ("If-Modified-Since", "If-None-Match", "If-Range", "Range", "Cache-Control", "Accept", "User-Agent")
OF_THIS_HOP = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade", "server", "date",
}  # fmt: skip


def unchanging(url: str) -> bool:
    """True if a URL names content that never changes: a package with its version, or an index by its hash."""
    parts = urllib.parse.urlsplit(url)
    by_hash = re.search(r"/by-hash/[^/]+/[0-9a-f]{32,}$", parts.path) is not None
    return not parts.query and (parts.path.endswith(".deb") or by_hash)


def cache_name(url: str) -> str:
    """Return the name of a URL's file in the cache: readable, and unique by a hash."""
    readable = re.sub(r"[^A-Za-z0-9.+_~-]", "_", url.rsplit("/", 1)[-1])[-120:]
    return f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{readable}"


def connect(url: str) -> tuple[http.client.HTTPConnection, str]:
    """Return a connection to the archive, or to the machine's own proxy if it has one, and what to ask there."""
    parts = urllib.parse.urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    further = urllib.request.getproxies().get("http")
    if further and not urllib.request.proxy_bypass(host):
        way = urllib.parse.urlsplit(further)
        host, port, target = way.hostname or "", way.port or 80, url
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT), target


def trim(cache: Path, keep: int) -> None:
    """Delete what a killed proxy left incomplete, and the least recently used files above a size."""
    for part in cache.glob("*.part"):
        part.unlink(missing_ok=True)
    total = 0
    for path in sorted(cache.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True):
        total += path.stat().st_size
        if total > keep:
            path.unlink(missing_ok=True)


class Proxy(web.Server):
    """Listens for apt."""

    def __init__(self, address: tuple[str, int], cache: Path, state: Path) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        self.cache = cache
        trim(cache, KEEP_BYTES)
        super().__init__(address, _Handler, state, "proxy-access.log")


class _Handler(web.Handler):
    """Answers requests for absolute http URLs."""

    server: Proxy

    def requested(self) -> str:
        return self.path.removeprefix("http://")

    def respond(self, path: str, fault: mirror_faults.Rule) -> tuple[int, str]:
        parts = urllib.parse.urlsplit(self.path)
        if parts.scheme != "http" or not parts.hostname:
            return self.send_text(400, "this is a proxy for http://HOST/PATH only"), ""
        if self.command != "GET" or not unchanging(self.path):
            return self._pass(None), " passed"
        kept = self.server.cache / cache_name(self.path)
        if kept.exists():
            os.utime(kept)
            return self.send_file(kept), " kept"
        with tempfile.NamedTemporaryFile(dir=self.server.cache, suffix=".part") as part:
            status = self._pass(part)
            part.flush()
            if status == http.client.OK:
                with contextlib.suppress(FileExistsError):  # another host has fetched it meanwhile
                    os.link(part.name, kept)
        return status, " fetched"

    def _pass(self, copy: IO[bytes] | None) -> int:
        """Pass a request to the archive and its answer to the host, with a copy of a complete file."""
        headers = {name: value for name in PASSED if copy is None and (value := self.headers.get(name)) is not None}
        connection, target = connect(self.path)
        try:
            host = urllib.parse.urlsplit(self.path).netloc
            connection.request(self.command, target, headers={"Host": host, "Connection": "close", **headers})
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return self.send_text(504, f"could not fetch {self.path}: {error}")
        with contextlib.closing(connection):
            return self._forward(response, copy)

    def _forward(self, response: http.client.HTTPResponse, copy: IO[bytes] | None) -> int:
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in OF_THIS_HOP:
                self.send_header(name, value)
        without_body = self.command == "HEAD" or response.status in (204, 304)
        length = response.getheader("Content-Length")
        if length is None and not without_body:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        arrived = 0
        while not without_body and (chunk := response.read(1 << 16)):
            self._body.write(chunk)
            arrived += len(chunk)
            if copy is not None:
                copy.write(chunk)
        if length is not None and not without_body and arrived != int(length):
            raise mirror_faults.Dropped(f"{self.path} ended after {arrived} of {length} bytes")
        return response.status
