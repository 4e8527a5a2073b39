"""A private root directory for the real apt of this machine: its sources, lists and packages are below a directory."""

import re
import subprocess
from pathlib import Path

from plugins.module_utils.gpu_ready.base.host import Host, Result

AREAS = ("/etc/apt/", "/var/lib/apt", "/var/lib/dpkg", "/var/cache/apt", "/usr/share/keyrings")
CONFIGURATION = """Dir "{root}/";
Dir::State::status "{root}/var/lib/dpkg/status";
APT::Sandbox::User "root";
APT::Architecture "amd64";
APT::Architectures "amd64";
"""
"""The options of this machine's own apt.conf.d are not read: Dir moves them too."""


class AptRoot(Host):
    """A host whose apt directories are below ``root``; programs are the real ones and get APT_CONFIG."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        for name in ("apt.conf.d", "preferences.d", "sources.list.d", "trusted.gpg.d", "keyrings"):
            (root / "etc/apt" / name).mkdir(parents=True)
        for name in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/lib/dpkg"):
            (root / name).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "apt.conf").write_text(CONFIGURATION.format(root=root))

    def inside(self, path: str) -> str:
        return str(self.root) + path if path.startswith(AREAS) else path

    def write(self, path: str, text: str) -> None:
        """Write a file of the host; paths of apt inside of the text are moved too."""
        target = Path(self.inside(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(re.sub(r"(?<![\w/])(/(?:usr/share/keyrings|etc/apt/keyrings)/)", rf"{self.root}\1", text))

    def read_bytes(self, path: str) -> bytes | None:
        return super().read_bytes(self.inside(path))

    def listdir(self, path: str) -> list[str]:
        return super().listdir(self.inside(path + "/").rstrip("/"))

    def exists(self, path: str) -> bool:
        return super().exists(self.inside(path))

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        return super().run(argv, timeout, {**(env or {}), "APT_CONFIG": str(self.root / "apt.conf")})

    def is_healthy(self) -> bool:
        """True if apt reads all sources and can simulate an installation, as the owner's own calls need."""
        calls = (["apt-get", "update", "--print-uris"], ["apt-get", "check"], ["apt-get", "--simulate", "upgrade"])
        return all(self.run(list(argv)).rc == 0 for argv in calls)


def apt_is_here() -> bool:
    return subprocess.run(["sh", "-c", "command -v apt-get"], capture_output=True, check=False).returncode == 0
