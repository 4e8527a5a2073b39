"""Debian packages from declarations, and signed flat apt repositories of them (RPMs of the same form: rpms.py).

A declaration file (lab/mirror/*.yml) lists the values for which its packages are made (`each`; a list of lists means
all combinations) and their content. `@name@` in its texts and in the texts of its source files is replaced by such a
value; the value `repositories` limits the packages to some repositories. A file in a package is its text, or one of:
{text}, {source} (below data/vendor), {link}, {library} (a small real ELF with that SONAME, of `source` or of nothing),
{debian} (from a package of Debian's archive), {key} (the lab's public key, armored or binary), {copies} (that many
bytes), {module} (a kernel module of that name, built from the sources in data/vendor/kernel for the kernel @kernel@,
with an appended signature of `signed_by`); and `mode`.
"""

import concurrent.futures
import contextlib
import functools
import gzip
import hashlib
import inspect
import itertools
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from ansible.module_utils.common.yaml import yaml_load

from . import paths
from .say import LabError, run

SOURCES = paths.DATA / "vendor"
MAINTAINER = "gpu-ready lab <lab@gpu-ready.invalid>"
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")
RELATIONS = (
    "depends",
    "pre_depends",
    "recommends",
    "suggests",
    "provides",
    "conflicts",
    "breaks",
    "replaces",
    "enhances",
)
ENTRY = {"text", "source", "link", "library", "debian", "mode", "copies", "module", "signed_by", "key"}
MODULE_VALUES = ("kernel", "license", "version")  # used by data/vendor/kernel and kbuild
MADE = 1775640862  # the time of everything made here, so that equal input gives equal bytes

MODULE_SIGNED = b"~Module signature appended~\n"

Fetch = Callable[[str, str, str], bytes]  # (suite, package, path inside) -> content
LAB_KEY = "the lab's key"
"""In place of a suite of Debian: the public key, whose form, armored or binary, is the path."""


class File(NamedTuple):
    """A file of a package, not yet made: one of its sources is set."""

    path: str
    mode: int
    text: str | None = None
    link: str | None = None
    library: str | None = None
    source: str | None = None
    values: tuple[tuple[str, str], ...] = ()
    debian: tuple[str, str, str] | None = None
    module: str | None = None
    signed_by: str | None = None


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


# ---- declarations ---------------------------------------------------------------------------------


def fill(text: str, values: dict[str, str]) -> str:
    """Replace @name@ by values; other text between two @ stays."""
    return re.sub(r"@(\w+)@", lambda found: values.get(found[1], found[0]), text)


def source(name: str, where: str) -> Path:
    """Return a file below data/vendor that a declaration names."""
    path = SOURCES / name
    if not path.is_file():
        raise LabError(f"{where}: there is no file {name} below {SOURCES}")
    return path


def read_file(path: str, given: Any, values: dict[str, str], where: str) -> File:
    """Read one entry of `files`."""
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, dict) or not set(given) <= ENTRY:
        raise LabError(f"{where}: {path}: expected a text or {'/'.join(sorted(ENTRY))}, found {given!r}")
    path = fill(path, values)
    if not path.startswith("/"):
        raise LabError(f"{where}: {path}: paths in a package are absolute")
    program = re.search(r"/s?bin/[^/]+$", path) is not None
    mode = int(str(given.get("mode", "755" if program else "644")), 8)
    if "link" in given:
        return File(path, 0o777, link=fill(given["link"], values))
    if "library" in given:
        code = given.get("source", "library.c")
        text = source(code, where).read_text()
        used = tuple(sorted((name, value) for name, value in values.items() if name.upper() in text))
        return File(path, mode, library=fill(given["library"], values), source=code, values=used)
    if "module" in given:
        used = tuple(sorted((name, value) for name, value in values.items() if name in MODULE_VALUES))
        return File(path, mode, module=given["module"], signed_by=given.get("signed_by"), values=used)
    if "debian" in given:
        taken = {key: fill(value, values) for key, value in given["debian"].items()}
        return File(path, mode, debian=(taken["suite"], taken["package"], taken["path"]))
    if "key" in given:
        return File(path, mode, debian=(LAB_KEY, "", given["key"]))
    if "copies" in given:
        return File(path, mode, text=given.get("text", ".") * int(given["copies"]))
    text = given["text"] if "text" in given else source(fill(given["source"], values), where).read_text()
    return File(path, mode, text=fill(text, values))


def combinations(each: Sequence[Any]) -> list[dict[str, Any]]:
    """The sets of values of `each`: a list of them, or lists to combine; each `only` restricts them."""
    if not each or not all(isinstance(axis, list) for axis in each):
        return list(each)
    found = []
    for chosen in itertools.product(*each):
        values = {key: one[key] for one in chosen for key in one if key != "only"}
        bounds = [bound for one in chosen for bound in one.get("only", {}).items()]
        if all(values[key] in allowed for key, allowed in bounds):
            found.append(values)
    return found


def is_for(package: dict[str, Any], values: dict[str, Any]) -> bool:
    """True if a package is made for these values: its `only` and `but` name values and lists of them."""
    only = all(values.get(key) in allowed for key, allowed in package.get("only", {}).items())
    return only and not any(values.get(key) in unwanted for key, unwanted in package.get("but", {}).items())


def _relation(given: Any) -> str:
    return ", ".join(given) if isinstance(given, list) else str(given)


def _package(name: str, given: dict[str, Any], values: dict[str, str], defaults: dict[str, Any], where: str) -> Package:
    """Read one package of a declaration, for one set of values."""
    known = {
        "version",
        "architecture",
        "source",
        "section",
        "description",
        "files",
        "scripts",
        "each",
        "repositories",
        "only",
        "but",
        *RELATIONS,
    }
    unknown = set(given) - known
    if unknown:
        raise LabError(f"{where}: {name}: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")
    given = {**defaults, **given}
    name = fill(name, values)
    fields: list[tuple[str, str]] = []
    if "source" in given:
        fields.append(("Source", fill(given["source"], values)))
    section = fill(given.get("section", "devel"), values)
    fields += [("Maintainer", MAINTAINER), ("Section", section), ("Priority", "optional")]
    for relation in RELATIONS:
        if given.get(relation):
            title = "-".join(word.capitalize() for word in relation.split("_"))
            fields.append((title, fill(_relation(given[relation]), values)))
    description = fill(given.get("description", "stand-in for the vendor's package of this name"), values)
    fields.append(
        (
            "Description",
            f"{description}\n Made by the gpu-ready lab: it behaves like the vendor's package but drives nothing.",
        )
    )
    scripts = {}
    for script, text in (given.get("scripts") or {}).items():
        if script not in SCRIPTS:
            raise LabError(f"{where}: {name}: unknown script {script!r}; known are {', '.join(SCRIPTS)}")
        text = source(text["source"], where).read_text() if isinstance(text, dict) else text
        scripts[script] = fill(text, values)
    return Package(
        name,
        fill(str(given["version"]), values),
        given.get("architecture", "amd64"),
        tuple(fields),
        tuple(read_file(path, entry, values, f"{where}: {name}") for path, entry in (given.get("files") or {}).items()),
        tuple(sorted(scripts.items())),
        tuple(given["repositories"]),
    )


def read(path: Path) -> list[Package]:
    """Read a declaration file."""
    where = f"lab/mirror/{path.name}"
    try:
        given = yaml_load(path.read_text())
    except yaml.YAMLError as error:
        raise LabError(f"{where} is no valid YAML: {error}") from None
    defaults = {key: given[key] for key in ("repositories", "source", "version", "section") if key in given}
    found = []
    for outer in combinations(given.get("each", [{}])):
        for name, package in given["packages"].items():
            for inner in combinations((package or {}).get("each", [{}])):
                all_values = {**outer, **inner}
                if not is_for(package or {}, all_values):
                    continue
                own = {**defaults, "repositories": all_values.pop("repositories", defaults.get("repositories", []))}
                values = {key: str(value) for key, value in all_values.items()}
                found.append(_package(name, package or {}, values, own, where))
    names = [(package.name, package.version, repository) for package in found for repository in package.repositories]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LabError(f"{where}: declared twice: {' '.join(twice[0])}")
    return found


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


def write_repository(
    directory: Path, content: Iterable[tuple[Package, Path]], fields: dict[str, str], key: "Key"
) -> None:
    """Write a signed flat repository: the packages, their index in three forms, and Release."""
    directory.mkdir(parents=True, exist_ok=True)
    stanzas = []
    for package, deb in sorted(content, key=lambda pair: (pair[0].name, pair[0].version)):
        os.link(deb, directory / package.file_name)
        stanzas.append(stanza(package, deb, f"./{package.file_name}"))
    index = "".join(stanzas).encode()
    indexes = {"Packages": index, "Packages.gz": gzip.compress(index, mtime=MADE), "Packages.xz": lzma.compress(index)}
    for name, data in indexes.items():
        (directory / name).write_bytes(data)
    rows = [*fields.items(), ("Date", time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime()))]
    rows.append(("Architectures", "amd64"))
    release = "".join(f"{name}: {value}\n" for name, value in rows)
    for title, algorithm in (("MD5Sum", "md5"), ("SHA256", "sha256")):
        release += f"{title}:\n"
        release += "".join(
            f" {hashlib.new(algorithm, data).hexdigest()} {len(data):>16} {name}\n" for name, data in indexes.items()
        )
    (directory / "Release").write_text(release)
    key.sign(directory)


class Key:
    """The lab's signing key: made once for a cache, without a passphrase, in a file that only its owner reads."""

    def __init__(self, directory: Path) -> None:
        self.secret = directory / "secret.asc"
        self.public = directory / "public.asc"
        self._fingerprint = directory / "fingerprint"
        self._home = Path()
        self._users = 0
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        if not (self.secret.exists() and self.public.exists() and self._fingerprint.exists()):
            self._make(directory)

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint, 40 hexadecimal digits."""
        return self._fingerprint.read_text().strip()

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
        """A temporary GnuPG home with this key, shared by all threads that use it at the same time.

        The last user removes it, and with it the agent that signs.
        """
        with self._lock:
            if self._users == 0:
                self._stack = contextlib.ExitStack()
                self._home = self._stack.enter_context(_gpg_home())
                gpg(self._home, "--import", str(self.secret))
            self._users += 1
        try:
            yield self._home
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._stack.close()

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
