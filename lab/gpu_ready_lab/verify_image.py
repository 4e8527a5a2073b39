"""The verification image: glibc, the linker's cache and busybox from Debian's packages, for `docker load`.

It contains nothing of NVIDIA: nvidia-smi and its libraries come from the host, as with any GPU image.
"""

import hashlib
import io
import json
import os
import tarfile
import tempfile
from pathlib import Path

from . import debian_archive
from .say import run, say

NAME = "gpu-ready-lab/verify:1"
SUITE = "trixie"  # the newest glibc of the lab's hosts runs programs built for the older ones too
PACKAGES = ("base-files", "libc6", "libc-bin", "libgcc-s1", "busybox-static")
LEFT_OUT = (
    "usr/share",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/audit",
    "usr/lib/locale",
    "var",
    "DEBIAN",
)
EMPTY = ("tmp", "proc", "sys", "dev", "run", "var/tmp", "root")


def ensure(cache: Path, proxy: str | None = None) -> Path:
    """The image's tarball, made unless the cache has that of this recipe."""
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    target = cache / "verify" / f"gpu-ready-verify-{recipe}.tar"
    if not target.exists():
        say("making the verification image")
        target.parent.mkdir(parents=True, exist_ok=True)
        archive = debian_archive.Archive(SUITE, cache / "debian", proxy)
        debs = [archive.download(package) for package in PACKAGES]
        with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
            _root(Path(directory), debs)
            temporary = target.with_name(f"{target.name}.{os.getpid()}.new")
            temporary.write_bytes(_image(_layer(Path(directory))))
            temporary.replace(target)
    return target


def _root(root: Path, debs: list[Path]) -> None:
    """Lay out the root file system, with /usr merged as Debian has it."""
    for deb in debs:  # base-files first: it has the links of a merged /usr
        run(["/usr/bin/dpkg-deb", "--extract", str(deb), str(root)], limit=360, what=f"unpack {deb.name}")
    for name in LEFT_OUT:
        run(["/usr/bin/rm", "-rf", str(root / name)], limit=180, what=f"leave out {name}")
    for name in EMPTY:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    busybox = root / "usr/bin/busybox"
    for applet in (
        "sh",
        "ls",
        "cat",
        "env",
        "id",
        "uname",
        "mount",
        "grep",
        "sleep",
        "true",
        "test",
        "stat",
        "find",
        "ps",
        "head",
        "sort",
    ):
        path = root / "usr/bin" / applet
        path.unlink(missing_ok=True)
        path.symlink_to(busybox.name)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/ld.so.conf").write_text("/usr/local/lib\n/usr/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu\n")
    run(["/sbin/ldconfig", "-r", str(root)], limit=180, what="make the verification image's linker cache")


def _layer(root: Path) -> bytes:
    """The root file system as a tar, owned by root and with one date."""

    def plain(item: tarfile.TarInfo) -> tarfile.TarInfo:
        item.uid = item.gid = item.mtime = 0
        item.uname = item.gname = "root"
        return item

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path in sorted(root.iterdir()):
            tar.add(path, arcname=path.name, filter=plain)
    return out.getvalue()


def _image(layer: bytes) -> bytes:
    """Return a layer as `docker save` would write it."""
    digest = hashlib.sha256(layer).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": "2026-01-01T00:00:00Z",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Cmd": ["/bin/sh"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": "2026-01-01T00:00:00Z", "created_by": "gpu-ready lab"}],
    }
    config_bytes = json.dumps(config, sort_keys=True).encode()
    config_name = f"{hashlib.sha256(config_bytes).hexdigest()}.json"
    manifest = [{"Config": config_name, "RepoTags": [NAME], "Layers": [f"{digest}/layer.tar"]}]
    files = {
        config_name: config_bytes,
        f"{digest}/layer.tar": layer,
        f"{digest}/VERSION": b"1.0",
        "manifest.json": json.dumps(manifest).encode(),
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            item = tarfile.TarInfo(name)
            item.size, item.mode = len(data), 0o644
            tar.addfile(item, io.BytesIO(data))
    return out.getvalue()
