"""Single packages out of Debian's archive, through apt with a root of its own.

Nothing is installed, and none of this machine's package lists changes. The archive's address comes from the sources
of this machine if it runs Debian, otherwise from mmdebstrap's default.
"""

import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from .say import LabError, locked, run, say

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
COMPONENTS = "main contrib non-free non-free-firmware"
FRESH_FOR = 24 * 3600


def mirror() -> str:
    """The address of a Debian archive that this machine is configured for."""
    texts = [path.read_text() for path in sorted(Path("/etc/apt").glob("sources.list.d/*.sources"))]
    texts += [
        path.read_text()
        for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt").glob("sources.list.d/*.list"))]
        if path.exists()
    ]
    if Path("/usr/bin/mmdebstrap").exists():
        texts.append(Path("/usr/bin/mmdebstrap").read_text(errors="replace"))
    for text in texts:
        bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        found = re.search(r"\b(https?://[\w.-]+(?::\d+)?(?:/[\w.-]+)*/debian)/?(?=[\s'\"]|$)", bare, re.MULTILINE)
        if found:
            return found[1]
    raise LabError(
        "found no Debian archive in /etc/apt/sources.list* and no mmdebstrap: install mmdebstrap, whose default serves"
    )


class Archive:
    """A suite of Debian's archive, seen through apt with a private root in the cache."""

    def __init__(self, suite: str, cache: Path, proxy: str | None = None) -> None:
        self.suite = suite
        self.root = cache / f"apt-{suite}"
        self.proxy = proxy

    def _run(self, argv: list[str], *, limit: float, what: str) -> str:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "APT_CONFIG": str(self.root / "apt.conf")}
        return run(argv, limit=limit, what=f"{what} (is Debian's archive reachable?)", env=env)

    def _configure(self) -> None:
        for directory in ("state/lists/partial", "cache/archives/partial", "etc", "debs"):
            (self.root / directory).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        signed = f"[arch=amd64 signed-by={KEYRING}]"
        (self.root / "etc/sources.list").write_text(f"deb {signed} {mirror()} {self.suite} {COMPONENTS}\n")
        settings = {
            "Dir::State": self.root / "state",
            "Dir::State::status": self.root / "status",
            "Dir::Cache": self.root / "cache",
            "Dir::Etc::sourcelist": self.root / "etc/sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        if self.proxy:
            settings["Acquire::http::Proxy"] = self.proxy
        lines = [f'{name} "{value}";\n' for name, value in settings.items()]
        lines.append('APT::Architectures { "amd64"; };\n')
        hooks = ("DPkg::Post-Invoke", "APT::Update::Post-Invoke-Success", "APT::Update::Post-Invoke")
        lines += [f"#clear {name};\n" for name in hooks]
        (self.root / "apt.conf").write_text("".join(lines))

    def download(self, package: str) -> Path:
        """The .deb of a package, downloaded (and verified by apt) unless the cache has the current version."""
        with locked(self.root / "lock"):
            self._configure()
            new = self._read_lists(FRESH_FOR)
            try:
                return self._download(package)
            except LabError:  # Debian may have replaced the version of the lists since they were read
                if new:
                    raise
            self._read_lists(0)
            return self._download(package)

    def _read_lists(self, at_most: float) -> bool:
        """Read the package lists if they are older than so many seconds; return whether they were read."""
        stamp = self.root / "updated"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < at_most:
            return False
        say(f"reading the package lists of Debian's suite {self.suite}")
        self._run(
            ["/usr/bin/apt-get", "-q", "update", "--error-on=any"], limit=900, what=f"read the lists of {self.suite}"
        )
        stamp.touch()
        return True

    def _download(self, package: str) -> Path:
        """Return the .deb of the version that the lists name."""
        shown = self._run(
            ["/usr/bin/apt-cache", "show", "--no-all-versions", package],
            limit=180,
            what=f"find {package} in {self.suite}",
        )
        found = re.search(r"^Filename: .*/([^/\n]+)$", shown, re.MULTILINE)
        if not found:
            raise LabError(f"Debian's suite {self.suite} has no package {package}")
        # apt writes the epoch of a version as %3a into the file name
        before = set((self.root / "debs").iterdir())
        version = re.search(r"^Version: (.*)$", shown, re.MULTILINE)
        prefix = f"{package}_{version[1].replace(':', '%3a') if version else ''}_"
        for path in before:
            if path.name.startswith(prefix) and path.suffix == ".deb":
                return path
        with tempfile.TemporaryDirectory(dir=self.root) as directory:
            self._run(
                ["/usr/bin/env", f"--chdir={directory}", "/usr/bin/apt-get", "-q", "download", package],
                limit=1800,
                what=f"download {package} of {self.suite}",
            )
            deb = next(Path(directory).glob("*.deb"))
            return deb.rename(self.root / "debs" / deb.name)


@contextlib.contextmanager
def unpacked(deb: Path) -> Iterator[Path]:
    """A temporary directory with the files of a package."""
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        run(["/usr/bin/dpkg-deb", "--extract", str(deb), directory], limit=360, what=f"unpack {deb.name}")
        yield Path(directory)


class Members:
    """Files from packages: each package is downloaded and unpacked once, until the end of the with statement."""

    def __init__(self, cache: Path, proxy: str | None = None) -> None:
        self._cache = cache
        self._proxy = proxy
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._directories: dict[tuple[str, str], Path] = {}

    def __enter__(self) -> "Members":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, suite: str, package: str, path: str) -> bytes:
        """Return the content of one file of a suite's package."""
        with self._lock:
            if (suite, package) not in self._directories:
                deb = Archive(suite, self._cache, self._proxy).download(package)
                self._directories[suite, package] = self._stack.enter_context(unpacked(deb))
        file = self._directories[suite, package] / path
        if not file.is_file():
            raise LabError(f"{package} of Debian's suite {suite} has no file {path}: Debian's package has changed")
        return file.read_bytes()
