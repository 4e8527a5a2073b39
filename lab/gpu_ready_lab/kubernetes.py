"""Kubernetes for lab hosts: Debian 12's own source package, built once with Debian's Go and kept in the cache.

Debian has binary packages of kubectl only. A build takes about a quarter of an hour; Go's cache is kept, so that a
change of the lab's device plugin takes two minutes.
"""

import hashlib
import shutil
import tempfile
from pathlib import Path

from . import debian_archive, engine, paths
from .say import locked, run, say

SUITE = "bookworm"
SOURCES = paths.DATA / "kubernetes"
RECIPE = ("build", "device_plugin.go")
PACKAGES = ("dpkg-dev", "gcc", "libc6-dev", "golang-1.19-go", "golang-github-modern-go-reflect2-dev")
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "device-plugin", "pause")
COMMAND = "python -m gpu_ready_lab kubernetes"
LIMIT = 5400
NEEDS = {
    "/usr/bin/mmdebstrap": "mmdebstrap",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def directory() -> Path:
    """Where the programs of the current recipe are, if they were built."""
    recipe = hashlib.sha256(repr(PACKAGES).encode() + b"".join((SOURCES / name).read_bytes() for name in RECIPE))
    return _cache() / recipe.hexdigest()[:12]


def is_built() -> bool:
    """True if the cache has all programs of the current recipe."""
    return directory().is_dir()


def ensure() -> Path:
    """Return the directory with the programs, built unless the cache has them."""
    with locked(_cache() / "lock"):
        target = directory()
        if not is_built():
            say("building Kubernetes from Debian's source package (a quarter of an hour; two minutes with Go's cache)")
            _build(target)
            say(f"built {', '.join(PROGRAMS)}: {target}")
        return target


def _cache() -> Path:
    return paths.cache() / "kubernetes"


def _build(target: Path) -> None:
    engine.need_packages(NEEDS, "the build of Kubernetes")
    go_cache = _cache() / "go-build"
    go_cache.mkdir(exist_ok=True)
    archive = debian_archive.mirror()
    with tempfile.TemporaryDirectory(dir=_cache()) as name:
        out = Path(name, "out")
        out.mkdir()
        hook = f'{SOURCES / "build"} "$1" {SOURCES} {go_cache} {out}'
        run(
            [
                "/usr/bin/mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}",
                f"--customize-hook={hook}", SUITE, str(Path(name, "root")),
                f"deb {archive} {SUITE} main", f"deb-src {archive} {SUITE} main",
            ],
            limit=LIMIT, what="build Kubernetes", env={**ENV, "TMPDIR": name},
        )  # fmt: skip
        for program in PROGRAMS:
            (out / program).stat()
        for old in _cache().iterdir():
            if old.is_dir() and len(old.name) == len(target.name) and old != go_cache:
                shutil.rmtree(old)
        out.rename(target)
