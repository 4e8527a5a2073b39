"""Disks of virtual machines: a Debian root file system with a real kernel, and kernel modules built for it.

Everything is cached by content. Modules are built on this machine, by the real DKMS and the real compiler in a root
file system of their own, since a compilation under emulation takes half an hour.
"""

import hashlib
import lzma
import shutil
import tempfile
import time
from pathlib import Path

from . import debian_archive, images, paths, vendors
from .say import LabError, run, say

PACKAGES = (
    "systemd", "systemd-sysv", "udev", "dbus", "openssh-server", "python3", "sudo", "ca-certificates", "pciutils",
    "kmod", "iproute2", "procps", "initramfs-tools", "e2fsprogs", "zstd",
    "apparmor",  # recommended by the kernel's package: docker needs it
)  # fmt: skip
SIZE = "12G"
"""Size of the disk, which is a sparse file."""
BUILD_LIMIT = 1800
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
NON_FREE = "main,contrib,non-free,non-free-firmware"
PROPRIETARY = "nvidia-current"
DRIVERS = {"nvidia-kernel-dkms": PROPRIETARY, "nvidia-open-kernel-dkms": "nvidia-current-open",
           "nvidia-tesla-470-kernel-dkms": "nvidia-tesla-470"}  # fmt: skip
"""Debian's packages of module sources, and what DKMS calls them."""
AS_RELEASED = "release"
"""After the name of a package and an @: the version of the release, without its security updates. Any other word after
the @ is the suite that has the version."""
NO_UPDATES = "Package: *nvidia*\nPin: release l=Debian-Security\nPin-Priority: -1\n"


def directory() -> Path:
    """The directory of disks and modules, kept between labs."""
    return paths.cache() / "vm"


def ensure(suite: str, kernel: str, more: tuple[str, ...], proxy: str | None) -> Path:
    """Return the disk that guests of a suite start from, with a package of a kernel and more packages."""
    packages = (*PACKAGES, *more, kernel)
    target = directory() / f"{suite}-{_recipe(suite, packages)}.img"
    if target.exists() and time.time() - target.stat().st_mtime < images.FRESH_FOR:
        return target
    say(f"making the disk of {suite} guests with {' and '.join((kernel, *more))} (a minute)")
    directory().mkdir(parents=True, exist_ok=True)
    for old in directory().glob("*.img"):
        if time.time() - old.stat().st_mtime > images.FRESH_FOR:
            old.unlink()
    with tempfile.TemporaryDirectory(dir=directory()) as name:
        root, overlay, new = Path(name, "root"), Path(name, "overlay.tar"), Path(name, "disk.img")
        overlay.write_bytes(_overlay(Path(name)))
        _bootstrap(
            suite, root, packages, proxy, "main",
            [f"--customize-hook=tar-in {overlay} /", f"--customize-hook={paths.DATA / 'vm/prepare'} \"$1\""],
            f"make the root file system of {suite} guests",
        )  # fmt: skip
        run(["/usr/bin/truncate", "-s", SIZE, str(new)], limit=20, what="make an empty disk")
        run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-d", str(root), str(new)], limit=300, what="fill the disk")
        new.replace(target)
    return target


def _recipe(suite: str, packages: tuple[str, ...]) -> str:
    total = hashlib.sha256(f"{suite} {packages} {SIZE}".encode())
    for path in sorted(
        [
            *(paths.DATA / "vm").glob("*"),
            *paths.sources(paths.DATA / "nvml"),
            images.LIBCUDA,
            paths.DATA / "host/after-dpkg",
            paths.DATA / "host/trust",
            vendors.authority(),
        ]
    ):
        if path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()[:12]


def _overlay(work: Path) -> bytes:
    """Return a tar of the lab's own files in a guest."""
    images.build_libraries(work)
    lab, vm = "usr/lib/gpu-ready-lab", paths.DATA / "vm"
    files = {
        f"{lab}/libnvidia-ml.so": (work / "libnvidia-ml.so", 0o644),
        f"{lab}/libcuda.so": (work / "libcuda.so", 0o644),
        vendors.CERTIFICATE: (vendors.authority(), 0o644),
        f"{lab}/trust": (paths.DATA / "host/trust", 0o755),
        f"{lab}/after-dpkg": (paths.DATA / "host/after-dpkg", 0o755),
        f"{lab}/after-dpkg-vm": (vm / "after-dpkg", 0o755),
        f"{lab}/identity": (vm / "identity", 0o755),
        f"{lab}/pci": (vm / "load-pci", 0o755),
        f"{lab}/make": (vm / "make", 0o755),
        "etc/systemd/system/gpu-ready-lab-identity.service": (vm / "identity.service", 0o644),
        "etc/systemd/system/gpu-ready-lab-pci.service": (vm / "pci.service", 0o644),
    }
    return images.pack({path: (source.read_bytes(), mode) for path, (source, mode) in files.items()})


def _bootstrap(
    suite: str, root: Path, packages: tuple[str, ...], proxy: str | None, components: str, hooks: list[str], what: str
) -> None:
    """Make a root file system with packages in it; hooks are options of mmdebstrap."""
    options = [f'--aptopt=Acquire::http::Proxy "{proxy}"'] if proxy else []
    run(
        [
            "/usr/bin/mmdebstrap", "--quiet", "--variant=minbase", f"--components={components}",
            f"--include={','.join(packages)}", *options, *hooks, suite, str(root),
        ],
        limit=BUILD_LIMIT,
        what=what,
        env={**ENV, "TMPDIR": str(root.parent)},
    )  # fmt: skip


def modules() -> Path:
    """Return the directory that guests see as their cache of built modules."""
    return directory() / "modules"


def ensure_bus(suite: str, release: str, proxy: str | None) -> None:
    """Compile the simulated PCI bus for a kernel, unless the cache has it."""
    source = paths.DATA / "vm/pci"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in paths.sources(source))).hexdigest()
    target = modules() / "pci" / release
    mark = target / "made-of"
    packed = target / "nouveau.ko.xz"  # as in kernels from Debian 13 on, with the only checksum that they support
    if mark.exists() and mark.read_text() == digest and packed.exists():
        return
    say(f"compiling the lab's PCI bus for the kernel {release}")
    with tempfile.TemporaryDirectory(dir=_ready()) as name:
        root, out = Path(name, "root"), Path(name, "out")
        out.mkdir()
        hooks = [
            f"--customize-hook=copy-in {source} /root",
            f"--customize-hook=chroot \"$1\" make -C /lib/modules/{release}/build M=/root/pci modules",
            f"--customize-hook=copy-out /root/pci/gpu_ready_pci.ko /root/pci/nouveau.ko {out}",
        ]  # fmt: skip
        packages = (f"linux-headers-{release}", "gcc", "make")
        _bootstrap(suite, root, packages, proxy, "main", hooks, f"compile the lab's PCI bus for the kernel {release}")
        target.mkdir(parents=True, exist_ok=True)
        for path in out.iterdir():
            shutil.move(str(path), target / path.name)
    packed.write_bytes(lzma.compress((target / "nouveau.ko").read_bytes(), check=lzma.CHECK_CRC32))
    mark.write_text(digest)


def ensure_driver(suite: str, release: str, requested: str, proxy: str | None) -> Path:
    """Build the modules of one of Debian's driver packages by DKMS for a kernel, and return their directory."""
    package, _, origin = requested.partition("@")
    name = DRIVERS.get(package)
    if name is None:
        raise LabError(f"{package} is not a package of NVIDIA's module sources: known are {', '.join(sorted(DRIVERS))}")
    done = modules() / "dkms" / name / f"{suite}-{release}{origin and '@' + origin}"
    if not done.exists():
        say(f"building {requested} of {suite} for the kernel {release} with DKMS (minutes)")
        with tempfile.TemporaryDirectory(dir=_ready()) as work:
            root = Path(work, "root")
            packages, hooks = _driver_source(package, origin, release, Path(work), proxy)
            what = f"build {requested} for the kernel {release}"
            _bootstrap(suite, root, (f"linux-headers-{release}", *packages), proxy, NON_FREE, hooks, what)
            version = _take_modules(root / "var/lib/dkms" / name, name, release, what)
        done.write_text(version + "\n")
    version = done.read_text().strip()
    if name == PROPRIETARY and not (modules() / "dkms/nvidia" / version).is_symlink():
        # NVIDIA's own installer has the same sources under another name.
        (modules() / "dkms/nvidia").mkdir(exist_ok=True)
        (modules() / "dkms/nvidia" / version).symlink_to(f"../{name}/{version}")
    return done.parent / version / release


def _driver_source(
    package: str, origin: str, release: str, work: Path, proxy: str | None
) -> tuple[tuple[str, ...], list[str]]:
    """The packages and mmdebstrap's hooks that install a driver's sources and build them with DKMS."""
    if origin == AS_RELEASED:
        (work / "pin").write_text(NO_UPDATES)
        return (package,), [f"--setup-hook=copy-in {work}/pin /etc/apt/preferences.d"]
    if not origin:
        return (package,), []
    # The sources alone: the other packages of that suite need its C library.
    deb = debian_archive.Archive(origin, paths.cache() / "debian", proxy).download(package)
    run(["/usr/bin/dpkg-deb", "--extract", str(deb), str(work / "deb")], limit=120, what=f"unpack {deb.name}")
    source = next((work / "deb/usr/src").iterdir())
    driver = source.name.removeprefix(f"{DRIVERS[package]}-")
    return ("dkms", "gcc", "make"), [
        f"--customize-hook=copy-in {source} /usr/src",
        f'--customize-hook=chroot "$1" dkms build {DRIVERS[package]}/{driver} -k {release}',
    ]


def _take_modules(tree: Path, name: str, release: str, what: str) -> str:
    """Copy the modules of the only version in a directory of DKMS, as compiled, and return that version."""
    versions = [path.name for path in tree.glob("*") if path.is_dir() and path.name[0].isdigit()]
    built = [path for version in versions for path in sorted((tree / version / release).glob("x86_64/module/*.ko*"))]
    if not built or len(versions) != 1:
        raise LabError(f"cannot {what}: DKMS built nothing; `dkms build` on a Debian machine shows why")
    target = modules() / "dkms" / name / versions[0] / release
    target.mkdir(parents=True, exist_ok=True)
    for path in built:
        # DKMS renames and compresses them when it installs.
        plain = target / path.name.replace(name, "nvidia", 1).removesuffix(".xz")
        plain.write_bytes(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes())
    return versions[0]


def _ready() -> Path:
    modules().mkdir(parents=True, exist_ok=True)
    return directory()
