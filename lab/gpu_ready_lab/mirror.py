"""The vendor mirror: stand-ins for NVIDIA's repositories and downloads under NVIDIA's own paths, and what serves them.

`python -m gpu_ready_lab.mirror build` makes the tree, `serve` also serves it until interrupted.
"""

import argparse
import contextlib
import email.utils
import fcntl
import hashlib
import json
import mimetypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Collection, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import yaml

from . import apt_archive, debian_archive, downloads, mirror_faults, packages, paths, proxy, rpms, verify_image
from .engine import need_packages
from .say import LabError, say, wait_for

DECLARATIONS = paths.REPO / "lab" / "mirror"
NEEDS = {
    "/usr/bin/dpkg-deb": "dpkg",
    "/usr/bin/gpg": "gpg",
    "/usr/bin/gpgconf": "gpgconf",
    "/usr/bin/gpg-agent": "gpg-agent",
    "/usr/bin/gcc": "gcc",
    str(debian_archive.KEYRING): "debian-archive-keyring",
    **rpms.NEEDS,
}
KEPT_TREES = 3
COMPLETE = ".complete"
"""Directory of a tree with an empty file for each complete repository."""
DOWNLOADS = "downloads"
"""Listed among the repositories: the plain files of downloads.yml."""


class MirrorInfo(NamedTuple):
    """What the lab's hosts need to know of the mirror."""

    url: str
    proxy: str
    keys: dict[str, str]  # repository id -> fingerprint
    verify_image: Path


# ---- the tree -------------------------------------------------------------------------------------


def _inputs() -> str:
    """A digest of the inputs of the tree: declarations, sources and the code that builds."""
    total = hashlib.sha256()
    code = [
        Path(__file__).with_name(f"{name}.py") for name in ("mirror", "packages", "apt_archive", "rpms", "downloads")
    ]
    for path in [
        *sorted(DECLARATIONS.glob("*.yml")),
        *sorted(p for p in packages.SOURCES.rglob("*") if p.is_file()),
        *code,
    ]:
        if path.exists():
            total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:16]


def repositories() -> dict[str, dict[str, Any]]:
    """Return the declared repositories by id."""
    entries: dict[str, dict[str, Any]] = yaml.safe_load((DECLARATIONS / "repositories.yml").read_text())
    return entries


def declared() -> list[packages.Package]:
    """Return all declared packages for apt."""
    others = ("repositories.yml", "downloads.yml", "streams.yml")
    files = [path for path in DECLARATIONS.glob("*.yml") if path.name not in others]
    return [package for path in sorted(files) if not path.name.startswith("rpm-") for package in packages.read(path)]


def declared_rpms() -> list[rpms.Rpm]:
    """Return all declared RPMs."""
    return [rpm for path in sorted(DECLARATIONS.glob("rpm-*.yml")) for rpm in rpms.read(path)]


def streams() -> dict[str, dict[str, Any]]:
    """Return the declared modules and their streams."""
    entries: dict[str, dict[str, Any]] = yaml.safe_load((DECLARATIONS / "streams.yml").read_text())
    return entries


def build(cache: Path, proxy_url: str | None = None, distributions: Collection[str] | None = None) -> Path:
    """Return the root of the mirror, with what hosts of these distributions need (None: everything).

    A tree is completed in place, also while it is served: a repository is complete before its first client starts.
    """
    with _locked(cache / "mirror" / "lock"):
        return _build(cache, proxy_url, distributions)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock out other lab commands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(cache: Path, proxy_url: str | None, distributions: Collection[str] | None) -> Path:
    need_packages(NEEDS, "the vendor mirror")
    key = packages.Key(cache / "mirror" / "key")
    tree = cache / "mirror" / "trees" / f"{_inputs()}-{key.fingerprint[-8:]}"
    complete = tree / COMPLETE
    needed = [name for name in (*repositories_for(distributions), DOWNLOADS) if not (complete / name).exists()]
    if not needed:
        os.utime(tree)
        return tree
    started = time.monotonic()
    say(f"making the vendor mirror: {len(needed)} repositories and directories that are missing")
    complete.mkdir(parents=True, exist_ok=True)
    with debian_archive.Members(cache / "debian", proxy_url) as fetch, key.home():
        _write(tree, cache, key, fetch, needed)
    os.utime(tree)
    for old in sorted(tree.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[KEPT_TREES:]:
        shutil.rmtree(old)
    _forget(cache / "mirror")
    say(f"made the vendor mirror in {time.monotonic() - started:.0f} s")
    return tree


def _forget(cache: Path) -> None:
    """Remove packages and metadata that no tree links to any more, once they are a day old."""
    for directory in ("debs", "rpms", "metadata"):
        for path in (cache / directory).iterdir():
            file = path / "repomd.xml" if path.is_dir() else path
            if file.stat().st_nlink == 1 and time.time() - file.stat().st_mtime > 24 * 3600:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def repositories_for(distributions: Collection[str] | None) -> list[str]:
    """Return the ids of the repositories that hosts of these distributions use; of all for None."""
    return [
        name for name, entry in repositories().items() if distributions is None or {*entry["for"]} & {*distributions}
    ]


def _write(root: Path, cache: Path, key: packages.Key, fetch: packages.Fetch, needed: Collection[str]) -> None:
    """Write repositories into the tree and mark each as complete; an interrupted one is written again."""
    all_debs, all_rpms = declared(), declared_rpms()
    used = [package.repositories for package in all_debs] + [rpm.repositories for rpm in all_rpms]
    unknown = {name for names in used for name in names} - set(repositories())
    if unknown:
        raise LabError(f"lab/mirror/repositories.yml has no {', '.join(sorted(unknown))}")
    needed_debs = [package for package in all_debs if {*package.repositories} & {*needed}]
    needed_rpms = [rpm for rpm in all_rpms if {*rpm.repositories} & {*needed}]
    debs = packages.build_all(needed_debs, cache / "mirror" / "debs", fetch)
    built = rpms.build_all(needed_rpms, cache / "mirror" / "rpms", fetch, key)
    for name, entry in repositories().items():
        if name not in needed:
            continue
        directory = root / entry["path"]
        if entry.get("kind") == "rpm":
            shutil.rmtree(directory, ignore_errors=True)
            chosen = {rpm: path for rpm, path in built.items() if name in rpm.repositories}
            documents = [
                document
                for module, rule in streams().items()
                if name in rule["repositories"]
                for document in rpms.module_documents(module, rule, list(chosen))
            ]
            rpms.write_repository(directory, chosen.items(), key, cache / "mirror" / "metadata", documents)
        else:
            content = [(package, deb) for package, deb in debs.items() if name in package.repositories]
            if "suites" in entry:  # several releases share the archive's directory
                apt_archive.write(directory, entry["suites"], entry["components"], content, entry["release"], key)
            else:
                shutil.rmtree(directory, ignore_errors=True)
                packages.write_repository(directory, content, entry["release"], key)
        for other in entry.get("also", []):
            (root / other).parent.mkdir(parents=True, exist_ok=True)
            (root / other).unlink(missing_ok=True)
            (root / other).symlink_to(os.path.relpath(directory, (root / other).parent))
        for path in entry["keys"]:
            _write_key(root / path, apt_archive.keyring(key) if path.endswith(".gpg") else key.public.read_bytes())
        (root / COMPLETE / name).touch()
    if DOWNLOADS in needed:
        downloads.write(root, DECLARATIONS / "downloads.yml", fetch)
        (root / COMPLETE / DOWNLOADS).touch()


def _write_key(path: Path, data: bytes) -> None:
    """Write a key file unless it exists: repositories share some, and another host may be reading it."""
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# ---- serving --------------------------------------------------------------------------------------


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
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
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
        root = self.server.root.resolve()
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


# ---- starting and stopping ------------------------------------------------------------------------


def _code() -> str:
    """A digest of the code that serves."""
    files = [Path(__file__), Path(proxy.__file__), Path(mirror_faults.__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _running(state: Path) -> dict[str, Any] | None:
    """The record of the running server, None if none runs."""
    try:
        record: dict[str, Any] = json.loads((state / "mirror.json").read_text())
        command = Path(f"/proc/{record['pid']}/cmdline").read_bytes()
        dead = Path(f"/proc/{record['pid']}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (OSError, ValueError, KeyError):
        return None
    return record if b"gpu_ready_lab.mirror" in command and not dead else None


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def ensure_running(
    cache: Path,
    state: Path,
    distributions: Collection[str] | None = None,
    address: str = paths.ADDRESS,
    mirror_port: int = 8080,
    proxy_port: int = 3142,
) -> MirrorInfo:
    """Build and start the mirror and the archive proxy, unless the current ones run; return what hosts need to know."""
    with _locked(state / "mirror.lock"):
        return _ensure_running(cache, state, distributions, address, mirror_port, proxy_port)


def _ensure_running(
    cache: Path, state: Path, distributions: Collection[str] | None, address: str, mirror_port: int, proxy_port: int
) -> MirrorInfo:
    settings = {
        "code": _code(),
        "address": address,
        "mirror_port": mirror_port,
        "proxy_port": proxy_port,
        "cache": str(cache),
    }
    record = _running(state)
    if record is None or {key: record.get(key) for key in settings} != settings:
        stop(state)
        say("starting the archive proxy and the vendor mirror")
        _spawn(cache, state, settings)
    proxy_url = f"http://{address}:{proxy_port}/"
    tree = build(cache, proxy_url, distributions)
    point_at(state, tree)
    image = verify_image.ensure(cache, proxy_url)
    fingerprint = packages.Key(cache / "mirror" / "key").fingerprint
    return MirrorInfo(
        f"http://{address}:{mirror_port}", proxy_url.rstrip("/"), dict.fromkeys(repositories(), fingerprint), image
    )


def point_at(state: Path, tree: Path) -> None:
    """Make a running server serve another tree from the next request on."""
    link = state / "mirror-root"
    if link.is_symlink() and link.readlink() == tree:
        return
    new = link.with_name(f"mirror-root.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(tree)
    new.replace(link)


def _spawn(cache: Path, state: Path, settings: dict[str, Any]) -> None:
    argv = [
        sys.executable, "-m", "gpu_ready_lab.mirror", "--cache", str(cache), "--state", str(state),
        "--address", settings["address"],
        "--mirror-port", str(settings["mirror_port"]), "--proxy-port", str(settings["proxy_port"]), "daemon",
    ]  # fmt: skip
    log_path = state / "mirror.log"
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        )  # fmt: skip
    ports = (settings["mirror_port"], settings["proxy_port"])
    try:
        wait_for(
            lambda: process.poll() is not None or all(_listens(settings["address"], port) for port in ports),
            limit=20, what=f"the vendor mirror on {settings['address']} (its log: {log_path})",
        )  # fmt: skip
    finally:
        if process.poll() is None and not all(_listens(settings["address"], port) for port in ports):
            process.kill()
    if process.poll() is not None:
        words = log_path.read_text().strip().splitlines()[-1:]
        where = f"{settings['address']} ports {ports[0]} and {ports[1]}"
        raise LabError(f"could not serve the vendor mirror on {where}: {' '.join(words)}")
    (state / "mirror.json").write_text(json.dumps({**settings, "pid": process.pid}))


def stop(state: Path) -> None:
    """Stop the mirror and the proxy, if they run."""
    record = _running(state)
    if record is not None:
        pid = int(record["pid"])
        os.kill(pid, signal.SIGTERM)
        try:
            wait_for(lambda: _running(state) is None, limit=10, what="the end of the vendor mirror")
        except LabError:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: _running(state) is None, limit=10, what="the end of the vendor mirror")
    (state / "mirror.json").unlink(missing_ok=True)


def serve(address: str, mirror_port: int, proxy_port: int, cache: Path, state: Path) -> None:
    """Serve mirror and proxy until SIGTERM or SIGINT."""
    servers = [
        Mirror((address, mirror_port), state / "mirror-root", state),
        proxy.Proxy((address, proxy_port), cache / "proxy", state),
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


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m gpu_ready_lab.mirror", description="The lab's vendor mirror.")
    parser.add_argument(
        "--cache", type=Path, default=paths.cache(), help="what outlives the lab (default: %(default)s)"
    )
    parser.add_argument("--state", type=Path, default=paths.STATE, help="logs, faults (default: %(default)s)")
    parser.add_argument("--address", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--mirror-port", type=int, default=8080)
    parser.add_argument("--proxy-port", type=int, default=3142)
    parser.add_argument("command", choices=["build", "serve", "daemon", "stop"])
    options = parser.parse_args(arguments)
    try:
        if options.command == "stop":
            stop(options.state)
            return 0
        options.state.mkdir(parents=True, exist_ok=True)
        if options.command in ("build", "serve"):
            tree = build(options.cache)
            print(tree)
            if options.command == "serve":
                point_at(options.state, tree)
                say(f"serving http://{options.address}:{options.mirror_port}/ until interrupted")
        if options.command in ("serve", "daemon"):
            serve(options.address, options.mirror_port, options.proxy_port, options.cache, options.state)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(
            f"error: cannot listen on {options.address}: {error.strerror or error}; does another program use the port?",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
