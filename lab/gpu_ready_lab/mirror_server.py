"""What serves the vendor mirror: <mirror>/HOST/PATH, and the vendors' own names, https://HOST/PATH and http://HOST/PATH."""

import email.utils
import mimetypes
import os
import re
import signal
import socket
import socketserver
import ssl
import sys
import threading
import time
import urllib.parse
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from . import mirror_faults, proxy


class Ports(NamedTuple):
    """Where the services listen: the mirror, the archive proxy, and the vendors' names."""

    mirror: int = 8080
    proxy: int = 3142
    http: int = 80
    https: int = 443


PORTS = Ports()


def point_at(state: Path, tree: Path, address: str | None = None) -> None:
    """Serve a tree from the next request on: to the host with an address, or (None) to hosts without a tree."""
    link = root_link(state, address)
    if link.is_symlink() and link.readlink() == tree:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    new = link.with_name(f"{link.name}.{os.getpid()}.{threading.get_ident()}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(tree)
    new.replace(link)


def root_link(state: Path, address: str | None = None) -> Path:
    """Return the link to the tree that a host gets, or those without a tree of their own."""
    return state / "mirror-root" if address is None else state / "mirror-roots" / address


def root_for(state: Path, address: str, common: Path | None = None) -> Path:
    """Return the tree of the checkout that a host was started from, if it still exists, else the common one."""
    own = root_link(state, address)
    return own if own.exists() else common or root_link(state)


class Mirror(ThreadingHTTPServer):
    """Serves a tree, logs the requests, and fails as the rules of mirror_faults define."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], root: Path, state: Path) -> None:
        self.root = root
        self.state = state
        self._log_lock = threading.Lock()
        super().__init__(address, _Handler)

    def log(self, line: str) -> None:
        """Add a line to the access log."""
        with self._log_lock, (self.state / "mirror-access.log").open("a") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")

    def file_of(self, path: str, host: str) -> str:
        """Return HOST/PATH of a request, from the path and the host's name in it."""
        return path


class Front(Mirror):
    """The mirror under the vendors' own names: by http, and by https if there is a certificate for them."""

    def __init__(self, address: tuple[str, int], root: Path, state: Path, certificate: Path | None = None) -> None:
        self._context = None if certificate is None else _server_context(certificate)
        if self._context is not None:
            self._context.sni_callback = self._choose_certificate
        super().__init__(address, root, state)

    def file_of(self, path: str, host: str) -> str:
        """Return HOST/PATH of a request, from the path and the host's name in it."""
        return f"{host.rsplit(':', 1)[0].lower()}/{path}"

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the thread of the request shakes hands, so that no client delays the others."""
        connection, client = super().get_request()
        if self._context is None:
            return connection, client
        return self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), client

    def _choose_certificate(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Present another certificate where a rule of mirror_faults names one for this host and name."""
        assert isinstance(connection, ssl.SSLSocket)
        rule = mirror_faults.find(self.state, connection.getpeername()[0], f"{name}/")
        if "certificate" in rule:
            connection.context = _server_context(Path(rule["certificate"]))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a client that rejects the certificate, or leaves; everything else is an error of the lab's own."""
        error = sys.exc_info()[1]
        if isinstance(error, (ssl.SSLError, ConnectionError)):
            self.log(f"{client_address[0]} TLS failed: {error}")
        else:
            super().handle_error(request, client_address)


def _server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for plain files."""

    protocol_version = "HTTP/1.1"
    server_version = "gpu-ready-lab"
    timeout = 60  # an idle connection ends
    server: Mirror

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Print nothing on standard error: the access log has it."""

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Send the headers of GET, without the file."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        asked = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(asked.path).lstrip("/")
        query = urllib.parse.parse_qs(asked.query)
        if "repo" in query and "arch" in query:  # of Fedora's list of mirrors
            path = "/".join((path, query["repo"][0], query["arch"][0]))
        path = self.server.file_of(path, self.headers.get("Host", ""))
        status, sent = HTTPStatus.INTERNAL_SERVER_ERROR, 0
        try:
            status, sent = self._respond(path, body)
        except (BrokenPipeError, ConnectionResetError, TimeoutError, mirror_faults.Dropped):
            self.close_connection = True
        finally:
            self.server.log(f"{self.client_address[0]} {self.command} {int(status)} {sent} {path}")

    def _refuse(self, status: HTTPStatus, words: str) -> tuple[HTTPStatus, int]:
        data = f"{words}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        return status, len(data)

    def _respond(self, path: str, body: bool) -> tuple[HTTPStatus, int]:
        fault = mirror_faults.find(self.server.state, self.client_address[0], path)
        mirror_faults.before_answer(fault, self.connection)
        if fault.get("status"):
            return self._refuse(HTTPStatus(fault["status"]), f"fault injected for {path}")
        root = root_for(self.server.state, self.client_address[0], self.server.root).resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root) or not (file.is_file() or file.is_dir()):
            return self._refuse(HTTPStatus.NOT_FOUND, f"the lab's mirror has no {path}")
        if file.is_dir():
            return self._refuse(
                HTTPStatus.OK, "\n".join(sorted(f"{p.name}/" if p.is_dir() else p.name for p in file.iterdir()))
            )
        if "serve" in fault:
            file = Path(fault["serve"])
        changed = int(file.stat().st_mtime)
        since = email.utils.parsedate_tz(self.headers.get("If-Modified-Since", ""))
        if since is not None and changed <= email.utils.mktime_tz(since):
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self.end_headers()
            return HTTPStatus.NOT_MODIFIED, 0
        with file.open("rb") as content:
            return self._send(content, file, changed, fault, body)

    def _send(
        self, content: BinaryIO, file: Path, changed: int, fault: dict[str, Any], body: bool
    ) -> tuple[HTTPStatus, int]:
        size = os.fstat(content.fileno()).st_size
        start, end = 0, size
        modified = email.utils.formatdate(changed, usegmt=True)
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "").strip())
        # The rest of a file that has changed since is of no use: RFC 9110, section 13.1.5.
        same = self.headers.get("If-Range", modified) == modified
        status = HTTPStatus.OK
        if asked and (asked[1] or asked[2]) and same:
            start = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
            end = min(size, int(asked[2]) + 1) if asked[1] and asked[2] else size
            if start >= end:
                self.send_response(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0
            status = HTTPStatus.PARTIAL_CONTENT
        self.send_response(status)
        self.send_header("Content-Type", mimetypes.guess_type(file.name)[0] or "application/octet-stream")
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", modified)
        if status == HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        if not body:
            return status, 0
        content.seek(start)
        writer, left = mirror_faults.Writer(self.wfile, fault), end - start
        while left and (chunk := content.read(min(1 << 18, left))):
            writer.write(chunk)
            left -= len(chunk)
        return status, writer.sent


def serve(address: str, ports: Ports, cache: Path, state: Path, certificate: Path | None = None) -> None:
    """Serve mirror and proxy until SIGTERM or SIGINT; the vendors' names too if there is a certificate for them."""
    root = root_link(state)
    servers: list[socketserver.BaseServer] = [
        Mirror((address, ports.mirror), root, state),
        proxy.Proxy((address, ports.proxy), cache / "proxy", state),
    ]
    if certificate is not None:
        servers += [
            Front((address, ports.http), root, state),
            Front((address, ports.https), root, state, certificate),
        ]
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    done.wait()
    for server in servers:
        server.shutdown()
        server.server_close()
