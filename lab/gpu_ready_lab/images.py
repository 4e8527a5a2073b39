"""Images of lab hosts: a Debian root file system, and over it the simulated kernel and the mock NVML."""

import hashlib
import io
import tarfile
import tempfile
import time
from pathlib import Path

from . import engine, paths
from .say import LabError, run, say, succeeds

SUITES = {"debian12": "bookworm", "debian13": "trixie"}

# What a bare cloud host has, and ccache for the lab's compiler cache.
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "sudo", "ca-certificates", "pciutils", "kmod",
    "iproute2", "procps", "ccache",
)  # fmt: skip

# A kernel moves on in the archive, and its headers leave it: an older image is made anew.
FRESH_FOR = 7 * 24 * 3600

# The newest kernel flavour with small headers, and the compiler that the distribution builds it with.
ASK_APT = r"""
set -eu
mkdir -p "$1/etc/gpu-ready-lab"
in_root() { chroot "$1" "$2" "$3" "$4"; }
in_root "$1" apt-cache depends linux-headers-cloud-amd64 \
  | sed -n 's/^ *Depends: linux-headers-\(.*-cloud-amd64\)$/\1/p' | head -n 1 >"$1/etc/gpu-ready-lab/kernel-release"
test -s "$1/etc/gpu-ready-lab/kernel-release"
# A real host has the package of the kernel that runs; the headers of newer distributions depend on it.
image=linux-image-$(cat "$1/etc/gpu-ready-lab/kernel-release")
version=$(in_root "$1" apt-cache show "$image" | sed -n 's/^Version: //p' | head -n 1)
mkdir -p "$1/tmp/$image/DEBIAN"
printf '%s\n' "Package: $image" "Version: $version" "Architecture: amd64" \
  "Maintainer: gpu-ready lab <lab@gpu-ready.example>" "Description: stands in for the pretended kernel" \
  >"$1/tmp/$image/DEBIAN/control"
in_root "$1" dpkg-deb --build "/tmp/$image"
in_root "$1" dpkg --install "/tmp/$image.deb"
rm -r "$1/tmp/$image" "$1/tmp/$image.deb"
gcc=$(in_root "$1" apt-cache depends gcc | sed -n 's/^ *Depends: \(gcc-[0-9]*\)$/\1/p' | head -n 1)
version=$(in_root "$1" apt-cache show "$gcc" | sed -n 's/^Version: //p' | head -n 1)
echo "gcc version ${version%%-*} (Debian $version)" >"$1/etc/gpu-ready-lab/gcc-version"
"""


def _sources() -> list[Path]:
    """Return the files that host images are made of."""
    return sorted(path for name in ("host", "nvml") for path in (paths.DATA / name).iterdir())


def _digest(*texts: bytes) -> str:
    total = hashlib.sha256()
    for text in texts:
        total.update(hashlib.sha256(text).digest())
    return total.hexdigest()[:12]


def tag(distribution: str) -> str:
    """Return the name of the host image of a distribution, which tells its recipe by content."""
    own = Path(__file__).read_bytes()
    files = b"".join(path.relative_to(paths.DATA).as_posix().encode() + path.read_bytes() for path in _sources())
    return f"gpu-ready-lab/{distribution}:{_digest(own, files)}"


def ensure(distribution: str, proxy: str | None = None) -> str:
    """Return the image of a distribution's lab hosts, made when it is not there or too old."""
    if distribution not in SUITES:
        raise LabError(f"no lab image for {distribution!r}; there are {', '.join(sorted(SUITES))}")
    base = _ensure_base(distribution, proxy)
    name = tag(distribution)
    made_from = f"{base} {engine.docker('image', 'inspect', '-f', '{{.Id}}', base).strip()}"
    if _label(name, "gpu-ready-lab.base") == made_from:
        return name
    say(f"making the host image {name}")
    release = engine.docker(
        "run", "--rm", "--network", "none", base, "cat", "/etc/gpu-ready-lab/kernel-release",
        what="read the kernel release",
    ).strip()  # fmt: skip
    work = f"gpu-ready-lab-image-{distribution}"
    if work in engine.docker("ps", "-a", "--format", "{{.Names}}").split():
        engine.docker("rm", "-f", work)
    engine.docker("create", "--name", work, "--network", "none", base, "/usr/lib/gpu-ready-lab/prepare")
    try:
        engine.docker("cp", "-", f"{work}:/", stdin=_overlay(release), what="copy the simulated kernel into the image")
        engine.docker("start", "-a", work, limit=120, what=f"prepare the host image of {distribution}")
        engine.docker(
            "commit", "-c", 'CMD ["/usr/lib/gpu-ready-lab/kernel", "boot"]',
            "-c", f'LABEL gpu-ready-lab.base="{made_from}"', "-c", f"LABEL gpu-ready-lab.kernel={release}", work, name,
            limit=120,
        )  # fmt: skip
    finally:
        engine.docker("rm", "-f", work)
    _forget_older(name)
    _forget_older(base)
    return name


def _forget_older(image: str) -> None:
    """Remove the older images of the same kind that no host uses; those in use stay until their hosts are gone."""
    kind = image.split(":")[0]
    for other in engine.docker("images", "--format", "{{.Repository}}:{{.Tag}}", kind).split():
        if other != image:
            succeeds([engine.DOCKER, "-H", f"unix://{engine.SOCKET}", "rmi", other])
    engine.docker("image", "prune", "-f", what="remove images without a name")


def _label(image: str, label: str) -> str | None:
    """Return a label of an image, None when there is no such image."""
    if not engine.docker("images", "-q", image).strip():
        return None
    return engine.docker("image", "inspect", "-f", f'{{{{index .Config.Labels "{label}"}}}}', image).strip()


def _ensure_base(distribution: str, proxy: str | None) -> str:
    recipe = _digest(" ".join(PACKAGES).encode(), ASK_APT.encode())
    name = f"gpu-ready-lab/base-{distribution}:{recipe}"
    made = _label(name, "gpu-ready-lab.made")
    if made is not None and time.time() - float(made) < FRESH_FOR:
        return name
    suite = SUITES[distribution]
    say(f"making a {suite} root file system with mmdebstrap (about half a minute)")
    (paths.cache() / "tmp").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.cache() / "tmp") as folder:
        tarball, hook = Path(folder, "root.tar"), Path(folder, "ask-apt")
        hook.write_text("#!/bin/sh\n" + ASK_APT)
        hook.chmod(0o755)
        options = [f'--aptopt=Acquire::http::Proxy "{proxy}"'] if proxy else []
        run(
            [
                "/usr/bin/mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", *options,
                f"--customize-hook={hook}", '--customize-hook=rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap', suite,
                str(tarball),
            ],
            limit=900,
            what=f"make a {suite} root file system (is the Debian archive reachable?)",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": folder, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        engine.docker(
            "import", "-c", f"LABEL gpu-ready-lab.made={time.time():.0f}", str(tarball), name, limit=300,
            what=f"import the {suite} root file system",
        )  # fmt: skip
    return name


def compile_library(sources: list[Path], output: Path, *flags: str) -> None:
    """Compile a shared library for lab hosts."""
    run(
        [
            "/usr/bin/gcc",
            "-std=gnu11",
            "-shared",
            "-fPIC",
            "-O2",
            "-Wall",
            "-Wextra",
            *flags,
            "-o",
            str(output),
            *map(str, sources),
            "-ldl",
        ],
        limit=120,
        what=f"compile {output.name}",
    )


def build_libraries(folder: Path) -> None:
    """Compile the simulated kernel's door and the mock NVML into a folder."""
    compile_library([paths.DATA / "host/preload.c"], folder / "preload.so", "-fvisibility=hidden")
    compile_library(
        [paths.DATA / "nvml/nvml_mock.c", paths.DATA / "nvml/stubs.c"], folder / "libnvidia-ml.so",
        "-fvisibility=hidden", "-Wno-override-init", "-Wl,-soname,libnvidia-ml.so.1",
    )  # fmt: skip


def _overlay(release: str) -> bytes:
    """Return a tar of what is laid over a plain Debian root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_libraries(folder)
        for module in ("nouveau", "dummy"):
            run(
                [
                    "/usr/bin/gcc", "-c", "-O2", f'-DRELEASE="{release}"', "-o", str(folder / f"{module}.ko"),
                    str(paths.DATA / f"host/{module}.c"),
                ],
                limit=60,
                what=f"compile the stand-in for {module}",
            )  # fmt: skip
        lab = "usr/lib/gpu-ready-lab"
        host = paths.DATA / "host"
        files = {
            f"{lab}/preload.so": (folder / "preload.so", 0o755),
            f"{lab}/libnvidia-ml.so": (folder / "libnvidia-ml.so", 0o644),
            f"{lab}/nouveau.ko": (folder / "nouveau.ko", 0o644),
            f"usr/lib/modules/{release}/kernel/drivers/net/dummy.ko": (folder / "dummy.ko", 0o644),
            f"{lab}/kernel": (host / "kernel.py", 0o755),
            f"{lab}/prepare": (host / "prepare", 0o755),
            f"{lab}/after-dpkg": (host / "after-dpkg", 0o755),
            f"{lab}/compiler": (host / "compiler", 0o755),
            f"{lab}/hold": (host / "hold", 0o755),
            "etc/systemd/system/gpu-ready-lab-coldplug.service": (host / "coldplug.service", 0o644),
            "etc/systemd/system/gpu-ready-lab-hold.service": (host / "hold.service", 0o644),
        }
        return pack({path: (source.read_bytes(), mode) for path, (source, mode) in files.items()})


def pack(files: dict[str, tuple[bytes | str, int]], links: dict[str, str] | None = None) -> bytes:
    """Return a tar of files (content, mode), owned by root; text content is written as UTF-8."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, (content, mode) in files.items():
            data = content.encode() if isinstance(content, str) else content
            item = tarfile.TarInfo(path)
            item.size, item.mode, item.mtime = len(data), mode, int(time.time())
            tar.addfile(item, io.BytesIO(data))
        for path, target in (links or {}).items():
            item = tarfile.TarInfo(path)
            item.type, item.linkname, item.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(item)
    return out.getvalue()
