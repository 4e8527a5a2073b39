"""What serves the vendor mirror: <mirror>/HOST/PATH, and the vendors' own names, https://HOST/PATH and http://HOST/PATH."""

import os
import signal
import socket
import socketserver
import ssl
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import Any, NamedTuple

from . import mirror_faults, proxy, web


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


class Mirror(web.Server):
    """Serves a tree."""

    def __init__(self, address: tuple[str, int], root: Path, state: Path) -> None:
        self.root = root
        super().__init__(address, _Handler, state, "mirror-access.log")

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


class _Handler(web.Handler):
    """Answers requests for plain files and directories."""

    server: Mirror

    def requested(self) -> str:
        asked = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(asked.path).lstrip("/")
        query = urllib.parse.parse_qs(asked.query)
        if "repo" in query and "arch" in query:  # of Fedora's list of mirrors
            path = "/".join((path, query["repo"][0], query["arch"][0]))
        return self.server.file_of(path, self.headers.get("Host", ""))

    def respond(self, path: str, fault: mirror_faults.Rule) -> tuple[int, str]:
        root = root_for(self.server.state, self.client_address[0], self.server.root).resolve()
        file = (root / path).resolve()
        if not file.is_relative_to(root) or not (file.is_file() or file.is_dir()):
            return self.send_text(404, f"the lab's mirror has no {path}"), ""
        if file.is_dir():
            names = sorted(f"{each.name}/" if each.is_dir() else each.name for each in file.iterdir())
            return self.send_text(200, "\n".join(names)), ""
        return self.send_file(Path(fault.get("serve", file))), ""


def serve(address: str, ports: Ports, cache: Path, state: Path, certificate: Path) -> None:
    """Serve mirror, proxy and the vendors' names until SIGTERM or SIGINT."""
    root = root_link(state)
    servers: list[socketserver.BaseServer] = [
        Mirror((address, ports.mirror), root, state),
        proxy.Proxy((address, ports.proxy), cache / "proxy", state),
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
