"""Debian packages from declarations (declarations.py), and signed flat apt repositories of them (RPMs: rpms.py)."""

import base64
import concurrent.futures
import contextlib
import functools
import gzip
import hashlib
import inspect
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import paths
from .declarations import SOURCES, Declared, File, fill
from .say import run

MAINTAINER = "gpu-ready lab <lab@gpu-ready.invalid>"
MADE = 1775640862  # the time of everything made here, so that equal input gives equal bytes
MODULE_SIGNED = b"~Module signature appended~\n"

Fetch = Callable[[str, str, str], bytes]  # (suite, package, path inside) -> content


class Package(NamedTuple):
    """A package to make."""

    name: str
    version: str
    architecture: str
    fields: tuple[tuple[str, str], ...]  # further control fields, in order
    files: tuple[File, ...]
    scripts: tuple[tuple[str, str], ...]
    repositories: tuple[str, ...]

    @property
    def file_name(self) -> str:
        """Return the name of its .deb (an epoch is not part of it)."""
        return f"{self.name}_{self.version.split(':', 1)[-1]}_{self.architecture}.deb"


def relation(text: str) -> str:
    """Return NAME OPERATOR VERSION, or alternatives of that, as a control file has it."""
    return re.sub(r"([^ |]+) (<<|<=|=|>=|>>) ([^ |]+)", r"\1 (\2 \3)", text)


def from_declared(declared: Declared) -> Package:
    """Return a declared package."""
    given = declared.given
    fields = [("Source", given["source"])] if "source" in given else []
    fields += [("Maintainer", MAINTAINER), ("Section", given.get("section", "devel")), ("Priority", "optional")]
    for name, words in declared.relations.items():
        fields.append((name.capitalize(), ", ".join(map(relation, words))))
    description = given.get("description", "stand-in for the vendor's package of this name")
    behaviour = "Made by the gpu-ready lab: it behaves like the vendor's package but drives nothing."
    fields.append(("Description", f"{description}\n {behaviour}"))
    return Package(
        declared.name, declared.version, given.get("architecture", "amd64"), tuple(fields), declared.files,
        declared.scripts, declared.repositories,
    )  # fmt: skip


# ---- building -------------------------------------------------------------------------------------


def compile_library(soname: str, source: str, values: dict[str, str], output: Path) -> None:
    """Compile a small shared library that needs no other."""
    defines = [f'-D{key.upper()}="{value}"' for key, value in values.items()]
    run(
        ["/usr/bin/gcc", "-shared", "-fPIC", "-nostdlib", "-Os", "-s", "-Wl,--build-id=none",
         f"-Wl,-soname,{soname}", *defines, "-o", str(output), str(SOURCES / source)],
        limit=180, what=f"compile {output.name}",
    )  # fmt: skip


@functools.cache
def library(soname: str, source: str, values: tuple[tuple[str, str], ...]) -> bytes:
    """A small shared library; many packages have the same."""
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        compile_library(soname, source, dict(values), Path(directory, "library"))
        return Path(directory, "library").read_bytes()


@functools.cache
def kernel_modules(values: tuple[tuple[str, str], ...]) -> dict[str, bytes]:
    """Return the kernel modules of data/vendor/kernel by name, built as kernel-devel's stand-in builds them."""
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        build = Path(directory, "build")
        shutil.copytree(SOURCES / "kbuild", build)
        for path in (SOURCES / "kernel").iterdir():
            if path.name == "Kbuild" or path.suffix in (".c", ".h"):
                Path(directory, path.name).write_text(fill(path.read_text(), dict(values)))
        (build / "Makefile").write_text(fill((build / "Makefile").read_text(), dict(values)))
        run(
            ["/usr/bin/make", "-s", "-C", str(build), f"M={directory}", "modules"], limit=360,
            what=f"build kernel modules for {dict(values).get('kernel')}",
        )  # fmt: skip
        return {path.stem: path.read_bytes() for path in Path(directory).glob("*.ko")}


def signature(signer: str | None) -> bytes:
    """What is appended to a signed module: modinfo reads the signer's name from it; no key has signed it."""
    if signer is None:
        return b""
    name, key, signed = signer.encode(), bytes(range(20)), bytes(256)
    return name + key + signed + struct.pack(">BBBBB3xI", 1, 4, 1, len(name), len(key), len(signed)) + MODULE_SIGNED


def lay(root: Path, file: File, fetch: Fetch) -> None:
    """Make a file of a package below a root."""
    path = root / file.path.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.link is not None:
        path.symlink_to(file.link)
        return
    if file.library is not None:
        path.write_bytes(library(file.library, str(file.source), file.values))
    elif file.module is not None:
        path.write_bytes(kernel_modules(file.values)[file.module] + signature(file.signed_by))
    elif file.debian is not None:
        path.write_bytes(fetch(*file.debian))
    else:
        path.write_text(file.text or "")
    path.chmod(file.mode)


LAYING: tuple[Callable[..., Any], ...] = (compile_library, library, kernel_modules, signature, lay)


def _control(package: Package, size: int) -> str:
    rows = [("Package", package.name), ("Version", package.version), ("Architecture", package.architecture)]
    rows += [("Installed-Size", str(max(1, size // 1024))), *package.fields]
    return "".join(f"{name}: {value}\n" for name, value in rows)


def build(package: Package, output: Path, fetch: Fetch) -> None:
    """Make a .deb."""
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        root = Path(directory, "root")
        root.mkdir(mode=0o755)
        for file in package.files:
            lay(root, file, fetch)
        laid = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        control = root / "DEBIAN"
        control.mkdir(mode=0o755)
        (control / "control").write_text(_control(package, sum(path.stat().st_size for path in laid)))
        sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in laid]
        (control / "md5sums").write_text("".join(sums))
        conffiles = [f"/{path.relative_to(root)}\n" for path in laid if path.relative_to(root).parts[0] == "etc"]
        if conffiles:
            (control / "conffiles").write_text("".join(conffiles))
        if any(file.library for file in package.files):
            (control / "triggers").write_text("activate-noawait ldconfig\n")
        for script, text in package.scripts:
            (control / script).write_text(text)
            (control / script).chmod(0o755)
        for path in root.rglob("*"):
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (MADE, MADE), follow_symlinks=False)
        temporary = output.with_name(f"{output.name}.{os.getpid()}.new")
        run(
            ["/usr/bin/dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "--build", str(root), str(temporary)],
            limit=360, what=f"make the package {package.file_name}",
            env={"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(MADE), "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        temporary.replace(output)


def digest(package: Package) -> str:
    """A digest of the content of a package: sources of libraries by content, Debian's files by name."""
    total = hashlib.sha256(json.dumps([package._replace(repositories=())]).encode())
    total.update(recipe(*LAYING, _control, build))
    total.update(sources_of(package.files))
    return total.hexdigest()[:16]


@functools.cache
def recipe(*functions: Callable[..., Any]) -> bytes:
    """The text of the functions that make packages, for digests."""
    return "".join(inspect.getsource(function) for function in functions).encode()


def sources_of(files: Iterable[File]) -> bytes:
    """Digests of the sources that are compiled for these files."""
    used = {SOURCES / file.source for file in files if file.source}
    if any(file.module for file in files):
        used |= {path for name in ("kernel", "kbuild") for path in paths.sources(SOURCES / name)}
    return b"".join(hashlib.sha256(path.read_bytes()).digest() for path in sorted(used))


def build_all(requested: Sequence[Package], cache: Path, fetch: Fetch) -> dict[Package, Path]:
    """Make the packages that are missing in the cache; return the .deb of each."""
    made = {package: cache / f"{digest(package)}-{package.file_name}" for package in requested}
    cache.mkdir(parents=True, exist_ok=True)
    missing = {path: package for package, path in made.items() if not path.exists()}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for done in [pool.submit(build, package, path, fetch) for path, package in missing.items()]:
            done.result()
    return made


# ---- repositories ---------------------------------------------------------------------------------


def stanza(package: Package, deb: Path, place: str) -> str:
    """Return a package's part of an index; `place` is where the repository has its file."""
    data = deb.read_bytes()
    rows = [
        ("Filename", place),
        ("Size", str(len(data))),
        ("MD5sum", hashlib.md5(data).hexdigest()),
        ("SHA1", hashlib.sha1(data).hexdigest()),
        ("SHA256", hashlib.sha256(data).hexdigest()),
    ]
    size = sum(len(file.text or "") for file in package.files)
    return _control(package, size) + "".join(f"{name}: {value}\n" for name, value in rows) + "\n"


def component(package: Package, known: Sequence[str]) -> str:
    """Return the first part of a package's section (`restricted/libs`), or the first component where it has none."""
    first, slash, _ = dict(package.fields).get("Section", "").partition("/")
    return first if slash and first in known else known[0]


def write_repository(
    root: Path, content: Iterable[tuple[Package, Path]], fields: dict[str, str], key: "Key",
    suites: Sequence[str] = (), components: Sequence[str] = (),
) -> None:  # fmt: skip
    """Write a signed repository: a flat one, or one with suites, of which the first has the packages.

    Several releases may share the root of one with suites.
    """
    index = {f"{name}/binary-amd64/": "" for name in components} or {"": ""}
    for package, deb in sorted(content, key=lambda pair: (pair[0].name, pair[0].version)):
        name = component(package, components) if suites else ""
        directory = f"pool/{name}/{package.name[0]}" if suites else "."
        (root / directory).mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # of another release
            os.link(deb, root / directory / package.file_name)
        index[name and f"{name}/binary-amd64/"] += stanza(package, deb, f"{directory}/{package.file_name}")
    if not suites:
        _write_indexes(root, index, fields, key)
    for suite in suites:
        own = {**fields, "Suite": suite, "Components": " ".join(components)}
        _write_indexes(root / "dists" / suite, index, own, key)
        index = dict.fromkeys(index, "")


def _write_indexes(directory: Path, index: dict[str, str], fields: dict[str, str], key: "Key") -> None:
    """Write the indexes in three forms, and the signed list of their checksums."""
    files: dict[str, bytes] = {}
    for name, text in index.items():
        data = text.encode()
        forms = {"": data, ".gz": gzip.compress(data, mtime=MADE), ".xz": lzma.compress(data)}
        files |= {f"{name}Packages{end}": packed for end, packed in forms.items()}
    for name, data in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)
    date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())
    rows = {**fields, "Date": date, "Architectures": "amd64"}
    release = "".join(f"{name}: {value}\n" for name, value in rows.items())
    for title, algorithm in (("MD5Sum", "md5"), ("SHA256", "sha256")):
        sums = [(hashlib.new(algorithm, data).hexdigest(), len(data), name) for name, data in files.items()]
        release += f"{title}:\n" + "".join(f" {digest} {size:>16} {name}\n" for digest, size, name in sums)
    (directory / "Release").write_text(release)
    key.sign(directory)


class Key:
    """The lab's signing key: made once for a cache, without a passphrase, in a file that only its owner reads."""

    def __init__(self, directory: Path) -> None:
        self.secret = directory / "secret.asc"
        self.public = directory / "public.asc"
        self._fingerprint = directory / "fingerprint"
        if not (self.secret.exists() and self.public.exists() and self._fingerprint.exists()):
            self._make(directory)

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint, 40 hexadecimal digits."""
        return self._fingerprint.read_text().strip()

    @property
    def binary(self) -> bytes:
        """Return the public key in the form that a distribution's keyring file has."""
        body = self.public.read_text().split("\n\n", 1)[1].split("\n=", 1)[0].split("\n-----", 1)[0]
        return base64.b64decode(body)

    def _make(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _gpg_home() as home:
            name = "gpu-ready lab (signs the lab's repositories) <lab@gpu-ready.invalid>"
            gpg(home, "--quick-generate-key", name, "rsa3072", "sign", "never")
            rows = gpg(home, "--with-colons", "--list-secret-keys").splitlines()
            fingerprint = next(row.split(":")[9] for row in rows if row.startswith("fpr:"))
            (directory / "public.asc").write_text(gpg(home, "--armor", "--export", fingerprint))
            secret = directory / "secret.asc"
            secret.touch(mode=0o600)
            secret.write_text(gpg(home, "--armor", "--export-secret-keys", fingerprint))
            self._fingerprint.write_text(f"{fingerprint}\n")

    @contextlib.contextmanager
    def home(self) -> Iterator[Path]:
        """A temporary GnuPG home with this key."""
        with _gpg_home() as home:
            gpg(home, "--import", str(self.secret))
            yield home

    def sign(self, directory: Path) -> None:
        """Sign Release of a repository, inline (InRelease) and detached (Release.gpg)."""
        with self.home() as home:
            gpg(home, "--clearsign", "--output", str(directory / "InRelease"), str(directory / "Release"))
            gpg(
                home, "--armor", "--detach-sign", "--output", str(directory / "Release.gpg"), str(directory / "Release")
            )


NO_QUESTIONS = ("--batch", "--no-tty", "--pinentry-mode", "loopback")
"""Options of gpg where nobody can answer a question."""


def gpg(home: Path, *arguments: str) -> str:
    """Run gpg with a home of its own and return what it printed."""
    options = ["--homedir", str(home), *NO_QUESTIONS, "--quiet", "--yes", "--passphrase", "", "--digest-algo", "SHA512"]
    return run(["/usr/bin/gpg", *options, *arguments], limit=360, what=f"run gpg {arguments[0]}")


@contextlib.contextmanager
def _gpg_home() -> Iterator[Path]:
    """A temporary directory for gpg; its agent ends with it. The path is short because sockets are in it."""
    home = tempfile.mkdtemp(prefix="grl-gpg-")
    try:
        yield Path(home)
    finally:
        subprocess.run(
            ["/usr/bin/gpgconf", "--homedir", home, "--kill", "all"], capture_output=True, timeout=30, check=False
        )
        shutil.rmtree(home, ignore_errors=True)  # the agent may still be removing its sockets
