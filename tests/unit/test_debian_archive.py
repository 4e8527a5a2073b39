"""Single packages of Debian's archive: by apt, from an archive of this test."""

import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gpu_ready_lab import debian_archive, declarations, packages

SUITE = "bookworm"
DECLARED = """
repositories: [here]
packages:
  some:
    version: "@v@-1"
    depends: [libc6]
    files: {{/etc/some.conf: "{0}\\n"}}
each: [{{v: "{0}"}}]
"""
pytestmark = [
    pytest.mark.host_io,
    pytest.mark.skipif(not Path("/usr/bin/apt-get").exists(), reason="apt is not installed"),
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The root of an archive that takes the place of Debian's."""
    root = tmp_path / "served"
    (root / "debian").mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setattr(debian_archive, "mirror", lambda: f"http://127.0.0.1:{server.server_port}/debian")
    monkeypatch.setattr(debian_archive, "KEYRING", tmp_path / "keyring.gpg")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield root / "debian"
    server.shutdown()
    server.server_close()


def publish(root: Path, directory: Path, version: str) -> None:
    """Publish a version in place of any other, as an update of Debian does."""
    directory.mkdir(exist_ok=True)
    (directory / "some.yml").write_text(DECLARED.format(version))
    key = packages.Key(directory / "key")
    debian_archive.KEYRING.write_bytes(key.binary)
    declared = declarations.read(directory / "some.yml", {"here": declarations.DEB})
    read = [packages.from_declared(one) for one in declared]
    built = packages.build_all(read, directory / "debs", lambda *_: b"")
    shutil.rmtree(root)
    components = debian_archive.COMPONENTS.split()
    release = {"Origin": "Here", "Codename": SUITE}
    packages.write_repository(root, built.items(), release, key, [SUITE], components)
    # apt asks for what was modified since, in whole seconds; both versions may be published in one.
    published = 1_700_000_000 + 60 * float(version)
    for path in root.rglob("*"):
        os.utime(path, (published, published))


def test_a_package_that_was_updated_since_the_lists_were_read_is_found(served: Path, tmp_path: Path) -> None:
    archive = debian_archive.Archive(SUITE, tmp_path / "cache")
    publish(served, tmp_path / "made", "1.0")
    first = archive.download("some")
    assert first.name == "some_1.0-1_amd64.deb"
    first.unlink()
    publish(served, tmp_path / "made", "2.0")
    assert archive.download("some").name == "some_2.0-1_amd64.deb"
