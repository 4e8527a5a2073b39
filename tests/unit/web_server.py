"""A web server on this machine for tests of downloads."""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """A handler that logs no requests."""

    def log_message(self, *_: object) -> None:
        pass


class DirectoryHandler(QuietHandler, http.server.SimpleHTTPRequestHandler):
    """Serves the files of a directory."""


@contextmanager
def serve(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free port until the end of the block; yields the URL without a path."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def serve_directory(directory: Path) -> AbstractContextManager[str]:
    """Serve the files of a directory as :func:`serve` does."""
    return serve(functools.partial(DirectoryHandler, directory=str(directory)))
