"""A root directory with packages of its own for the real apt and dpkg of this machine, and a repository on the disk."""

import hashlib
import subprocess
from pathlib import Path
from typing import NamedTuple

from plugins.module_utils.gpu_ready.base.host import Host, Result

CONFIGURATION = """
Dir "{root}/";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Bin::dpkg "/usr/bin/dpkg";
APT::Sandbox::User "root";
DPkg::Options {{ "--root={root}"; "--force-not-root"; "--force-bad-path";
    "--log={root}/dpkg.log";
    "--force-script-chrootless"; "--force-unsafe-io"; }};
"""


class Deb(NamedTuple):
    """A package that is built; ``more``: further lines of its control file, ``scripts``: shell commands by script.

    ``files``: texts by path.
    """

    name: str
    version: str = "1"
    depends: str = ""
    more: str = ""
    scripts: dict[str, str] = {}
    files: dict[str, str] = {}


class PrivateRoot(Host):
    """A host with packages of its own: its apt and dpkg know nothing of this machine."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        for name in ("etc/apt/sources.list.d", "var/lib/dpkg/info", "var/lib/apt/lists/partial", "var/log/apt"):
            (root / name).mkdir(parents=True)
        (root / "var/cache/apt/archives/partial").mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "apt.conf").write_text(CONFIGURATION.format(root=root))

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        own = {"APT_CONFIG": str(self.root / "apt.conf"), "DPKG_ADMINDIR": str(self.root / "var/lib/dpkg")}
        return super().run(argv, timeout, {**(env or {}), **own})

    def inside(self, path: str) -> str:
        return str(self.root) + path if path.startswith(("/var/lib/apt/", "/var/lib/dpkg/", "/var/lib/dkms/")) else path

    def listdir(self, path: str) -> list[str]:
        return super().listdir(self.inside(path))

    def read(self, path: str) -> str | None:
        return super().read(self.inside(path))


class Repository:
    """A repository on the disk, which a host reads by ``file:`` (in place) or ``copy:`` (through its cache)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def publish(self, *packages: Deb) -> None:
        """Offer exactly these packages."""
        for path in self.directory.iterdir():
            path.unlink()
        index = ""
        for name, version, depends, more, scripts, files in packages:
            tree = self.directory.parent / f"tree-{name}-{version}"
            (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
            fields = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Lab <lab@example>\n"
            fields += (f"Depends: {depends}\n" if depends else "") + more + f"Description: {name}\n"
            (tree / "DEBIAN/control").write_text(fields)
            for script, text in scripts.items():
                (tree / "DEBIAN" / script).write_text(f"#!/bin/sh\n{text}\n")
                (tree / "DEBIAN" / script).chmod(0o755)
            for inside, text in files.items():
                (tree / inside.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
                (tree / inside.lstrip("/")).write_text(text)
            file = self.directory / f"{name}_{version.rpartition(':')[2]}_all.deb"
            subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, file], check=True, capture_output=True)
            content = file.read_bytes()
            index += f"{fields}Filename: ./{file.name}\nSize: {len(content)}\n"
            index += f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
        (self.directory / "Packages").write_text(index)
