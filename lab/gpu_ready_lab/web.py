"""What the vendor mirror and the archive's proxy have in common: a server with an access log, answers with faults."""

import email.utils
import mimetypes
import os
import re
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from . import mirror_faults


class Server(ThreadingHTTPServer):
    """Answers with a thread for each connection, and logs the requests."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], handler: type["Handler"], state: Path, log: str) -> None:
        self.state = state
        self._log = state / log
        self._log_lock = threading.Lock()
        super().__init__(address, handler)

    def log(self, line: str) -> None:
        """Add a line to the access log."""
        with self._log_lock, self._log.open("a") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD, as the rules of mirror_faults define for the host that asks."""

    protocol_version = "HTTP/1.1"
    server_version = "gpu-ready-lab"
    timeout = 120  # an idle connection ends
    server: Server
    _body: mirror_faults.Writer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Print nothing on standard error: the access log has it."""

    def do_GET(self) -> None:
        """Send a file."""
        path = self.requested()
        status, note = int(HTTPStatus.INTERNAL_SERVER_ERROR), ""
        fault = mirror_faults.find(self.server.state, self.client_address[0], path)
        try:
            mirror_faults.before_answer(fault, self.connection)
            self._body = mirror_faults.Writer(self.wfile, fault)
            if fault.get("status"):
                status, note = self.send_text(int(fault["status"]), f"fault injected for {path}"), " fault"
            else:
                status, note = self.respond(path, fault)
        except (BrokenPipeError, ConnectionResetError, TimeoutError, mirror_faults.Dropped):
            self.close_connection = True
        finally:
            sent = self._body.sent if hasattr(self, "_body") else 0
            self.server.log(f"{self.client_address[0]} {self.command} {status} {sent} {path}{note}")

    do_HEAD = do_GET  # noqa: N815 - names in the base class

    def requested(self) -> str:
        """Return HOST/PATH of the request."""
        raise NotImplementedError

    def respond(self, path: str, fault: mirror_faults.Rule) -> tuple[int, str]:
        """Answer a request that no rule refuses; return the status and a note for the log."""
        raise NotImplementedError

    def send_text(self, status: int, words: str) -> int:
        """Answer with a text."""
        data = f"{words}\n".encode()
        self._head(status, {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(data))})
        if self.command != "HEAD":
            self._body.write(data)
        return status

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_file(self, file: Path) -> int:
        """Answer with a file, or the requested part of it."""
        with file.open("rb") as content:
            size, changed = os.fstat(content.fileno()).st_size, int(os.fstat(content.fileno()).st_mtime)
            modified = email.utils.formatdate(changed, usegmt=True)
            since = email.utils.parsedate_tz(self.headers.get("If-Modified-Since", ""))
            if since is not None and changed <= email.utils.mktime_tz(since):
                self._head(HTTPStatus.NOT_MODIFIED, {})
                return HTTPStatus.NOT_MODIFIED
            start, end, status = 0, size, HTTPStatus.OK
            asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "").strip())
            # The rest of a file that has changed since is of no use: RFC 9110, section 13.1.5.
            same = self.headers.get("If-Range", modified) == modified
            headers = {"Last-Modified": modified, "Accept-Ranges": "bytes"}
            if asked and (asked[1] or asked[2]) and same:
                start = int(asked[1]) if asked[1] else max(0, size - int(asked[2]))
                end = min(size, int(asked[2]) + 1) if asked[1] and asked[2] else size
                if start >= end:
                    self._head(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
                    return HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
                status, headers["Content-Range"] = HTTPStatus.PARTIAL_CONTENT, f"bytes {start}-{end - 1}/{size}"
            headers["Content-Type"] = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            self._head(status, {**headers, "Content-Length": str(end - start)})
            content.seek(start)
            left = 0 if self.command == "HEAD" else end - start
            while left and (chunk := content.read(min(1 << 18, left))):
                self._body.write(chunk)
                left -= len(chunk)
            return status
