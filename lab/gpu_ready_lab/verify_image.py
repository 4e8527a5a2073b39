"""The verification image: glibc, the linker's cache and busybox from Debian's packages, for `docker load`.

It contains nothing of NVIDIA: nvidia-smi and its libraries come from the host, as with any GPU image.
"""

import hashlib
import os
import tempfile
from pathlib import Path

from . import debian_archive, engine
from .say import run, say

NAME = "gpu-ready-lab/verify:1"
SUITE = "trixie"  # the newest glibc of the lab's hosts runs programs built for the older ones too
PACKAGES = ("base-files", "libc6", "libc-bin", "libgcc-s1", "busybox-static")
LEFT_OUT = (
    "usr/share", "usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/audit", "usr/lib/locale", "var", "DEBIAN",
)  # fmt: skip
EMPTY = ("tmp", "proc", "sys", "dev", "run", "var/tmp", "root")
APPLETS = (
    "sh", "ls", "cat", "env", "id", "uname", "mount", "grep", "sleep", "true", "test", "stat", "find", "ps", "head",
    "sort",
)  # fmt: skip
CONFIG = ("ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 'CMD ["/bin/sh"]')


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
            root, layer = Path(directory, "root"), Path(directory, "layer.tar")
            root.mkdir()
            _root(root, debs)
            pack = ["/usr/bin/tar", "-C", str(root), "--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-cf"]
            run([*pack, str(layer), "."], limit=180, what="pack the verification image")
            options = [word for line in CONFIG for word in ("-c", line)]
            engine.docker("import", *options, str(layer), NAME, what="import the verification image")
            new = target.with_name(f"{target.name}.{os.getpid()}.new")
            engine.docker("save", "-o", str(new), NAME, what="save the verification image")
            engine.docker("rmi", NAME)
            new.replace(target)
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
    for applet in APPLETS:
        path = root / "usr/bin" / applet
        path.unlink(missing_ok=True)
        path.symlink_to(busybox.name)
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/ld.so.conf").write_text("/usr/local/lib\n/usr/lib/x86_64-linux-gnu\n/lib/x86_64-linux-gnu\n")
    run(["/sbin/ldconfig", "-r", str(root)], limit=180, what="make the verification image's linker cache")
