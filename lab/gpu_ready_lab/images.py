"""Images of lab hosts: a Debian root file system, dressed, and over it the simulated kernel and the mock NVML."""

import hashlib
import io
import tarfile
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import dress, engine, mirror, paths, vendors
from .dress import Dress
from .say import LabError, locked, run, say, succeeds

# What a bare cloud host has, and ccache for the lab's compiler cache.
PACKAGES = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "sudo", "ca-certificates", "pciutils", "kmod",
    "iproute2", "procps", "ccache",
)  # fmt: skip
# Added for a host with RPM packages: the manager, and the programs of which the mirror has empty packages.
RPM_PACKAGES = (
    "dnf", "python3-dnf", "dnf-plugins-core", "python3-rpm", "rpm", "gnupg", "gcc", "libc6-dev", "make", "patch",
    "xz-utils", "curl", "iptables", "libseccomp2",
)  # fmt: skip

# The archive replaces kernels with their headers: an older image is made again.
FRESH_FOR = 7 * 24 * 3600
PARALLEL = 2
"""How many root file systems are made at a time: each uses one core."""

# The newest kernel flavour with small headers, and the compiler that the distribution builds it with.
ASK_APT = r"""
set -eu
mkdir -p "$1/etc/gpu-ready-lab"
# The sources for packages that are missing in a dressed host's own archive in the lab.
grep -v "^ *#" "$1/etc/apt/sources.list" >"$1/etc/gpu-ready-lab/base.list"
in_root() { chroot "$1" "$2" "$3" "$4"; }
in_root "$1" apt-cache depends linux-headers-cloud-amd64 \
  | sed -n 's/^ *Depends: linux-headers-\(.*-cloud-amd64\)$/\1/p' | head -n 1 >"$1/etc/gpu-ready-lab/kernel-release"
test -s "$1/etc/gpu-ready-lab/kernel-release"
# A real host has the package of the kernel that runs; the headers of newer distributions depend on it.
image=linux-image-$(cat "$1/etc/gpu-ready-lab/kernel-release")
version=$(in_root "$1" apt-cache show "$image" | sed -n 's/^Version: //p' | head -n 1)
mkdir -p "$1/tmp/$image/DEBIAN"
printf '%s\n' "Package: $image" "Version: $version" "Architecture: amd64" \
  "Maintainer: gpu-ready lab <lab@gpu-ready.example>" "Description: package of the simulated kernel" \
  >"$1/tmp/$image/DEBIAN/control"
in_root "$1" dpkg-deb --build "/tmp/$image"
in_root "$1" dpkg --install "/tmp/$image.deb"
rm -r "$1/tmp/$image" "$1/tmp/$image.deb"
gcc=$(in_root "$1" apt-cache depends gcc | sed -n 's/^ *Depends: \(gcc-[0-9]*\)$/\1/p' | head -n 1)
version=$(in_root "$1" apt-cache show "$gcc" | sed -n 's/^Version: //p' | head -n 1)
echo "gcc version ${version%%-*} (Debian $version)" >"$1/etc/gpu-ready-lab/gcc-version"
"""


LIBCUDA = paths.DATA / "vendor/libcuda.c"


def _sources() -> list[Path]:
    """Return the files that host images are made of."""
    return [*paths.sources(paths.DATA / "host"), *paths.sources(paths.DATA / "nvml"), LIBCUDA]


def _authority() -> bytes:
    return vendors.authority().read_bytes()


def _digest(*texts: bytes) -> str:
    total = hashlib.sha256()
    for text in texts:
        total.update(hashlib.sha256(text).digest())
    return total.hexdigest()[:12]


def tag(distribution: str) -> str:
    """The name of the host image of a distribution, with a digest of its recipe."""
    own = Path(__file__).read_bytes()
    files = b"".join(path.relative_to(paths.DATA).as_posix().encode() + path.read_bytes() for path in _sources())
    return f"gpu-ready-lab/{distribution}:{_digest(own, files, repr(dress.read(distribution)).encode())}"


def ensure_all(distributions: Collection[str], proxy: str | None = None) -> dict[str, str]:
    """Return the images of several distributions; the root file systems below them are made side by side."""
    read = {name: dress.read(name) for name in sorted(distributions)}
    with locked(paths.STATE / "images.lock"):  # names are shared
        bases = {_base_name(one): one for one in read.values()}
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(lambda one: _ensure_base(one, proxy), bases.values()))
        return {name: _ensure(one, proxy) for name, one in read.items()}


def _ensure(spec: Dress, proxy: str | None) -> str:
    base = _ensure_base(spec, proxy)
    fetched = {path: _fetch(path) for path in (*spec.fetch.values(), *spec.rpms)}
    name = tag(spec.name)
    made_from = f"{base} {engine.docker('image', 'inspect', '-f', '{{.Id}}', base).strip()} {_digest(_authority())}"
    if fetched:
        made_from += f" {_digest(*fetched.values())}"
    if _label(name, "gpu-ready-lab.base") == made_from:
        return name
    say(f"making the host image {name}")
    release = spec.kernel or _release_of(base)
    _make(name, base, made_from, release, _overlay(release, spec, fetched))
    _forget_older(name)
    _forget_older(base)
    return name


def _make(name: str, base: str, made_from: str, release: str, overlay: bytes) -> None:
    """Make a host image: lay files over a base, and let them prepare it."""
    work = f"gpu-ready-lab-image-{name.split(':')[0].rsplit('/', 1)[1]}"
    if work in engine.docker("ps", "-a", "--format", "{{.Names}}").split():
        engine.docker("rm", "-f", work)
    engine.docker(
        "create", "--name", work, "--network", "none", "--user", "0:0", "--entrypoint", "", base,
        "/usr/lib/gpu-ready-lab/prepare",
    )  # fmt: skip
    try:
        engine.docker("cp", "-", f"{work}:/", stdin=overlay, what="copy the simulated kernel into the image")
        engine.docker("start", "-a", work, limit=900, what=f"prepare the host image {name}")
        engine.docker(
            "commit", "-c", 'CMD ["/usr/lib/gpu-ready-lab/kernel", "boot"]',
            "-c", f'LABEL gpu-ready-lab.base="{made_from}"', "-c", f"LABEL gpu-ready-lab.kernel={release}", work, name,
            limit=600,
        )  # fmt: skip
    finally:
        engine.docker("rm", "-f", work)


def _release_of(base: str) -> str:
    return engine.docker(
        "run", "--rm", "--network", "none", base, "cat", "/etc/gpu-ready-lab/kernel-release",
        what="read the kernel release",
    ).strip()  # fmt: skip


def _forget_older(image: str) -> None:
    """Remove the older images of the same kind, except those that a host uses."""
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


def _fetch(path: str) -> bytes:
    """Return a file of the lab's mirror."""
    file = mirror.tree_of_checkout(paths.cache()) / path
    try:
        return file.read_bytes()
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}; data/dress names it, so lab/mirror/ must declare it") from None


def _packages(spec: Dress) -> tuple[str, ...]:
    return (*PACKAGES, *(RPM_PACKAGES if spec.manager == "dnf" else ()), *spec.packages)


def _base_name(spec: Dress) -> str:
    recipe = _digest(" ".join(_packages(spec)).encode(), ASK_APT.encode())
    kind = spec.name if spec.packages else f"{spec.root}-{spec.manager}"
    return f"gpu-ready-lab/base-{kind}:{recipe}"


def _ensure_base(spec: Dress, proxy: str | None) -> str:
    include, name = _packages(spec), _base_name(spec)
    made = _label(name, "gpu-ready-lab.made")
    if made is not None and time.time() - float(made) < FRESH_FOR:
        return name
    suite = spec.root
    say(f"making a {suite} root file system with mmdebstrap (about half a minute)")
    (paths.cache() / "tmp").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.cache() / "tmp") as directory:
        tarball, hook = Path(directory, "root.tar"), Path(directory, "ask-apt")
        hook.write_text("#!/bin/sh\n" + ASK_APT)
        hook.chmod(0o755)
        options = [f'--aptopt=Acquire::http::Proxy "{proxy}"'] if proxy else []
        run(
            [
                "/usr/bin/mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(include)}", *options,
                f"--customize-hook={hook}", '--customize-hook=rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap', suite,
                str(tarball),
            ],
            limit=2700,
            what=f"make a {suite} root file system (is the Debian archive reachable?)",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": directory, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        engine.docker(
            "import", "-c", f"LABEL gpu-ready-lab.made={time.time():.0f}", str(tarball), name, limit=900,
            what=f"import the {suite} root file system",
        )  # fmt: skip
    return name


def compile_library(sources: list[Path], output: Path, *flags: str) -> None:
    """Compile a shared library for lab hosts."""
    options = ("-std=gnu11", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", *flags)
    argv = ["/usr/bin/gcc", *options, "-o", str(output), *map(str, sources), "-ldl"]
    run(argv, limit=360, what=f"compile {output.name}")


def build_libraries(directory: Path) -> None:
    """Compile the interface to the simulated kernel, the mock NVML and the stub of libcuda into a directory."""
    compile_library([paths.DATA / "host/preload.c"], directory / "preload.so", "-fvisibility=hidden")
    compile_library(
        [paths.DATA / "nvml/nvml_mock.c"], directory / "libnvidia-ml.so",
        "-fvisibility=hidden", "-Wno-override-init", "-Wl,-soname,libnvidia-ml.so.1",
    )  # fmt: skip
    compile_library(  # the host writes a version of this length into it
        [LIBCUDA],
        directory / "libcuda.so",
        "-fvisibility=hidden",
        '-DVERSION="@LIBCUDA_VERSION@"',
        "-Wl,-soname,libcuda.so.1",
    )


def _overlay(release: str, spec: Dress, fetched: dict[str, bytes]) -> bytes:
    """Return a tar of what is laid over a plain Debian root: the dress, the simulated kernel and the mock NVML."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        build_libraries(directory)
        for module in ("nouveau", "dummy"):
            run(
                [
                    "/usr/bin/gcc", "-c", "-O2", f'-DRELEASE="{release}"', "-o", str(directory / f"{module}.ko"),
                    str(paths.DATA / f"host/{module}.c"),
                ],
                limit=180,
                what=f"compile the stand-in for {module}",
            )  # fmt: skip
        lab = "usr/lib/gpu-ready-lab"
        host = paths.DATA / "host"
        files = {
            f"{lab}/preload.so": (directory / "preload.so", 0o755),
            f"{lab}/libnvidia-ml.so": (directory / "libnvidia-ml.so", 0o644),
            f"{lab}/libcuda.so": (directory / "libcuda.so", 0o644),
            f"{lab}/nouveau.ko": (directory / "nouveau.ko", 0o644),
            f"usr/lib/modules/{release}/kernel/drivers/net/dummy.ko": (directory / "dummy.ko", 0o644),
            vendors.CERTIFICATE: (vendors.authority(), 0o644),
            f"{lab}/trust": (host / "trust", 0o755),
            f"{lab}/kernel": (host / "kernel.py", 0o755),
            f"{lab}/prepare": (host / "prepare", 0o755),
            f"{lab}/prepare-dnf": (host / "prepare-dnf", 0o755),
            f"{lab}/dracut": (host / "dracut", 0o755),
            f"{lab}/after-dpkg": (host / "after-dpkg", 0o755),
            f"{lab}/compiler": (host / "compiler", 0o755),
            f"{lab}/hold": (host / "hold", 0o755),
            "etc/systemd/system/gpu-ready-lab-coldplug.service": (host / "coldplug.service", 0o644),
        }
        content: dict[str, tuple[bytes | str, int]] = _dress_files(spec, fetched)
        content |= {path: (source.read_bytes(), mode) for path, (source, mode) in files.items()}
        return pack(content, {path.lstrip("/"): target for path, target in spec.links.items()})


def _dress_files(spec: Dress, fetched: dict[str, bytes]) -> dict[str, tuple[bytes | str, int]]:
    """The files that a dress lays over the root, and the input of `prepare`."""
    lab = "usr/lib/gpu-ready-lab/dress"
    content: dict[str, tuple[bytes | str, int]] = {f"{lab}/manager": (f"{spec.manager}\n", 0o644)}
    content |= {path.lstrip("/"): (text, 0o644) for path, text in spec.files.items()}
    content |= {path.lstrip("/"): (fetched[source], 0o644) for path, source in spec.fetch.items()}
    content |= {f"{lab}/rpms/{path.rsplit('/', 1)[1]}": (fetched[path], 0o644) for path in spec.rpms}
    if spec.os_release is not None:
        content[f"{lab}/os-release"] = (spec.os_release, 0o644)
        content[f"{lab}/remove"] = ("".join(f"{path}\n" for path in spec.remove), 0o644)
    if spec.kernel is not None:
        content["etc/gpu-ready-lab/kernel-release"] = (f"{spec.kernel}\n", 0o644)
        content["etc/gpu-ready-lab/gcc-version"] = (f"{spec.gcc}\n", 0o644)
    return content


def compiled(source: Path, place: str, *flags: str) -> bytes:
    """Return a tar with what one source file is compiled to, at a place."""
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "made")
        run(["/usr/bin/gcc", *flags, "-O2", "-o", str(made), str(source)], limit=60, what=f"compile {source.name}")
        return pack({place: (made.read_bytes(), 0o755)})


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
