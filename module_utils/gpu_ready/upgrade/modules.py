"""Modules of the new driver, built once beside the running one and shared by equal hosts.

After a module's own dkms.conf DKMS reads a file in /etc/dkms that is named after module, version, kernel and
architecture (dkms(8), "override"). During the installation such a file makes DKMS copy the modules, not compile them.
DKMS still signs them with the host's own key, compresses and installs them. DKMS's own tarballs (`dkms ldtarball`)
cannot be used: the postinst of Debian's packages removes what was loaded before it.
"""

import glob
import gzip
import io
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from typing import IO, Dict, List, Mapping, NamedTuple, Optional

from ..base import files, manifest, manifest_notes, records
from ..base.errors import GpuReadyError
from ..base.files import write_json_file
from ..base.host import Host
from ..base.json_file import read_json_object
from ..driver.runfile import messages as runfile_messages
from ..packaging import archives, signatures
from ..packaging.manager import PackageError
from ..system import nvrm_version, os_release
from .model import ARCHIVE_LIMIT

DIRECTORY = manifest.DIRECTORY + "/modules"
SCHEMA = 1
ARCHIVE = "modules.tar.gz"
RECORD = "modules.json"
UNPACKED = "files"
OVERRIDES = "/etc/dkms"
BUILD_LIMIT = 1800.0
LIMIT = 300.0
LONGEST = 200
"""Characters of a text that another host wrote, in a message."""
PACKAGE = re.compile(r"^(?:kmod-)?nvidia-(?!headless-no-)(?:[\w-]*-)?dkms(?:-[\w-]+)?$")
SOURCE = re.compile(r"^nvidia-kernel-source(?:-[\w-]+)?$")
"""Ubuntu's sources are in this package, and dkms.conf in the package that compiles them."""
PART = re.compile(r"[\w+~][\w.+~-]{0,99}\Z", re.ASCII)
"""A name, version, kernel or architecture, of which DKMS makes a file name."""
CHECKSUM = re.compile(r"[0-9a-f]{64}\Z")
MEMBER = re.compile(r"(?:\./)?(?:[\w-]+/){0,9}[\w-]{1,99}\.ko\Z", re.ASCII)
MOST_MEMBERS = 64
"""Modules and directories of one archive; NVIDIA's drivers have five modules."""
UNPACKED_LIMIT = 256 * 1024 * 1024
"""Bytes of an unpacked archive. NVIDIA's modules without debugging symbols have about 100 MB."""


class ModulesError(GpuReadyError):
    """Modules cannot be built beforehand or accepted. The host compiles its own during its upgrade then."""


class ModulePaths(NamedTuple):
    """``overrides``: directory of DKMS. ``listing``: the manifest."""

    directory: str = DIRECTORY
    overrides: str = OVERRIDES
    listing: str = manifest.PATH

    @property
    def archive(self) -> str:
        return os.path.join(self.directory, ARCHIVE)


DEFAULT_PATHS = ModulePaths()


class ModuleArchive(NamedTuple):
    """An archive of modules. ``alike``: properties of hosts that may use it. ``name``: DKMS's name of the module.

    ``size``: bytes of the archive. ``built_here``: False if another host built it.
    """

    alike: Dict[str, str]
    name: str
    version: str
    sha256: str
    size: int
    built_here: bool


class DkmsPackage(NamedTuple):
    """What a package's dkms.conf builds: DKMS's name and version, and the names of the modules."""

    name: str
    version: str
    modules: List[str]


def from_json(value: object) -> ModuleArchive:
    """Read a record of this or another host; ModulesError if it has another form."""
    try:
        found = records.from_json(ModuleArchive, records.without_schema(value, SCHEMA, RECORD))
        parts = (found.name, found.version, found.alike.get("kernel", ""), found.alike.get("architecture", ""))
        if not all(PART.match(part) for part in parts):
            raise records.RecordError("%r cannot be part of a file name" % "-".join(parts)[:LONGEST])
        if not CHECKSUM.match(found.sha256) or not 0 < found.size <= ARCHIVE_LIMIT:
            raise records.RecordError("its checksum or its size")
        return found
    except records.RecordError as error:
        raise ModulesError("%s: it has another form (%s). Build the modules again." % (RECORD, error)) from None


def to_json(archive: ModuleArchive) -> Dict[str, object]:
    return dict(records.to_json(archive), schema=SCHEMA)


# ---- which hosts can share modules -----------------------------------------------------------------------------------


def shared_properties(host: Host, coming: List[str], unsigned: bool) -> Dict[str, str]:
    """Return properties that two hosts must share for one to use the other's modules; only ``why`` if it uses none.

    ``why`` is "" where nothing is compiled, because the packages contain the modules. ``coming``: packages of the
    upgrade as ``name=version``; the name implies the flavour. ``unsigned``: Secure Boot rejects modules that DKMS
    builds here.
    """
    found = [one for one in coming if PACKAGE.match(one.partition("=")[0])]
    if not coming:
        return {"why": "no package of this driver compiles modules"}
    if not found:
        return {"why": ""}
    if len(found) > 1:
        return {"why": "%s compile modules" % " and ".join(found)}
    if unsigned:
        return {"why": "Secure Boot is on and DKMS's key is not enrolled"}
    release = os_release.read_os_release(host.read("/etc/os-release") or "")
    kernel, architecture = host.uname()
    system = " ".join(one for one in (release.id, release.version_id) if one)
    shared = {"package": found[0], "system": system, "kernel": kernel, "architecture": architecture}
    source = [one for one in coming if SOURCE.match(one.partition("=")[0])]
    return dict(shared, source=source[0]) if source else shared


# ---- the archive on this host ----------------------------------------------------------------------------------------


def find_archive(host: Host, alike: Mapping[str, str], paths: ModulePaths = DEFAULT_PATHS) -> Optional[ModuleArchive]:
    """Return the stored archive; None if it is missing, damaged, or for other hosts than ``alike``."""
    value = read_json_object(host, os.path.join(paths.directory, RECORD), SCHEMA)
    try:
        found = from_json(value) if value else None
    except ModulesError:
        return None
    if found is None or found.alike != alike:
        return None
    return found if file_checksum(paths.archive) == found.sha256 else None


def file_checksum(path: str) -> Optional[str]:
    """Return SHA-256 checksum of an archive; None if there is none, or if it is too large to be one."""
    if not os.path.isfile(path) or os.path.getsize(path) > ARCHIVE_LIMIT:
        return None
    return files.checksum(path)


def write_record(archive: ModuleArchive, paths: ModulePaths) -> ModuleArchive:
    """Record an archive that is complete."""
    write_json_file(os.path.join(paths.directory, RECORD), to_json(archive))
    return archive


# ---- build ----------------------------------------------------------------------------------------------------------


def build(host: Host, alike: Mapping[str, str], paths: ModulePaths = DEFAULT_PATHS) -> ModuleArchive:
    """Build the modules of a package in the package manager's cache, in a directory of its own.

    The host's DKMS does not know of it: a kernel that is installed in the meantime gets the present driver.
    """
    os.makedirs(paths.directory, mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=paths.directory) as directory:
        root, tree, out = (os.path.join(directory, name) for name in ("root", "tree", "out"))
        for name in (root, tree, out):
            os.mkdir(name)
        for one in [alike["package"]] + ([alike["source"]] if "source" in alike else []):
            unpack_package(host, one, root)
        package = prepare_build(root, out)
        common = ["--dkmstree", tree, "--sourcetree", root + "/usr/src", "-m", package.name, "-v", package.version]
        run_program(host, ["dkms", "add"] + common)
        # The host is in service: its work has priority over the compiler.
        argv = ["nice", "-n", "5", "dkms", "build"] + common + ["-k", alike["kernel"]]
        answer = host.run(argv, BUILD_LIMIT)
        if answer.rc != 0:
            log = host.read("%s/%s/%s/build/make.log" % (tree, package.name, package.version)) or ""
            why = runfile_messages.explain_failure(log, answer.out + "\n" + answer.err)
            raise ModulesError(
                "%s: DKMS could not build it for the kernel %s (exit status %d): %s"
                % (alike["package"], alike["kernel"], answer.rc, runfile_messages.format_explanation(why))
            )
        built = sorted(glob.glob(out + "/**/*.ko", recursive=True))
        if not built:
            raise ModulesError("%s: its build created no module." % alike["package"])
        run_program(host, ["strip", "--strip-debug"] + built)
        check_modules(host, built, alike["kernel"], package)
        pack(out, paths.archive)
    found = describe_archive(paths)
    if not found.sha256:
        raise ModulesError("the archive of modules: it has more than %d bytes." % ARCHIVE_LIMIT)
    return write_record(found._replace(alike=dict(alike), name=package.name, version=package.version), paths)


def run_program(host: Host, argv: List[str]) -> None:
    """ModulesError if the program fails."""
    answer = host.run(argv, LIMIT)
    if answer.rc != 0:
        raise ModulesError(
            "`%s`: exit status %d (%s)." % (" ".join(argv[:2]), answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def unpack_package(host: Host, package: str, root: str) -> None:
    """Verify a package from the package manager's cache, and unpack it below ``root`` without running its scripts."""
    name, _, version = package.partition("=")
    path = archives.find_archive(host, name, version)
    if path is None:
        raise ModulesError("%s: it is not in the package manager's cache." % package)
    unpack_verified = signatures.unpack_deb if path.endswith(".deb") else signatures.unpack_rpm
    try:
        unpack_verified(host, package, path, root)
    except PackageError as error:
        raise ModulesError(str(error)) from None


def prepare_build(root: str, out: str) -> DkmsPackage:
    """Make the build copy its modules to ``out`` before DKMS signs and compresses them."""
    path = find_dkms_conf(root)
    found = read_dkms_conf(path)
    with open(path, "a", encoding="utf-8") as handle:
        handle.write("\nMAKE[0]=\"${MAKE[0]} && find . -name '*.ko' -exec cp --parents {} %s ';'\"\n" % out)
    return found


def find_dkms_conf(root: str) -> str:
    """Return the dkms.conf of an unpacked package."""
    found = glob.glob(glob.escape(root) + "/usr/src/*/dkms.conf")
    if len(found) != 1:
        raise ModulesError("the package: it contains %d dkms.conf files in place of one." % len(found))
    return found[0]


def read_dkms_conf(path: str) -> DkmsPackage:
    """Return the name, version and modules of a dkms.conf that has them as plain texts, as NVIDIA's has."""
    with open(path, encoding="utf-8", errors="replace") as handle:
        text = handle.read()
    names = {key: value for key, _, value in re.findall(r"(?m)^PACKAGE_(NAME|VERSION)=(['\"]?)([\w.+-]+)\2\s*$", text)}
    if set(names) != {"NAME", "VERSION"} or not all(PART.match(one) for one in names.values()):
        raise ModulesError("dkms.conf: it does not contain PACKAGE_NAME and PACKAGE_VERSION.")
    modules = re.findall(r"(?m)^\s*BUILT_MODULE_NAME\[\d+\]=(['\"]?)([\w-]+)\1\s*$", text)
    return DkmsPackage(names["NAME"], names["VERSION"], [name for _, name in modules])


def pack(directory: str, path: str) -> None:
    """Write the modules below a directory to an archive without times and owners."""

    def plain(member: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = "root"
        return member if member.isdir() or MEMBER.match(member.name) else None

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        archive.add(directory, arcname=".", filter=plain)
    files.write_atomic(path, buffer.getvalue(), 0o600)


# ---- accept ---------------------------------------------------------------------------------------------------------


def accept(
    host: Host, given: ModuleArchive, alike: Mapping[str, str], paths: ModulePaths = DEFAULT_PATHS
) -> ModuleArchive:
    """Accept an archive that the role copied from a builder that the operator named; deleted if it is refused.

    Its record is compared with this host's own package: name, version and modules are those of its dkms.conf.
    """
    try:
        if given.alike != alike:
            raise ModulesError("the archive of modules: it was built for hosts with other properties.")
        found = describe_archive(paths)
        if (found.sha256, found.size) != (given.sha256, given.size):
            raise ModulesError("the archive of modules: it is another archive than the builder recorded.")
        with tempfile.TemporaryDirectory(prefix="take-", dir=paths.directory) as directory:
            root = os.path.join(directory, "root")
            os.mkdir(root)
            unpack_package(host, alike["package"], root)
            package = read_dkms_conf(find_dkms_conf(root))
            if (given.name, given.version) != (package.name, package.version):
                raise ModulesError(
                    "the archive of modules: it is of %s %s, and %s builds %s %s."
                    % (given.name, given.version, alike["package"], package.name, package.version)
                )
            check_modules(host, unpack(paths.archive, os.path.join(directory, "out")), alike["kernel"], package)
    except ModulesError:
        delete_archive(paths)
        raise
    return write_record(given._replace(built_here=False), paths)


def describe_archive(paths: ModulePaths) -> ModuleArchive:
    """Return the checksum and size of the stored archive, "" and 0 where there is none of a permitted size."""
    found = file_checksum(paths.archive)
    return ModuleArchive({}, "", "", found or "", os.path.getsize(paths.archive) if found else 0, True)


def delete_archive(paths: ModulePaths) -> None:
    """Delete the stored archive and its record."""
    for path in (os.path.join(paths.directory, RECORD), paths.archive):
        if os.path.lexists(path):
            os.unlink(path)


class BoundedFile:
    """A file that can be read up to a number of bytes; ModulesError after that."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.file, self.limit, self.left = file, limit, limit

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size if 0 <= size <= self.left else self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise ModulesError("the archive of modules: it unpacks to more than %d bytes." % self.limit)
        return data


def unpack(archive: str, directory: str) -> List[str]:
    """Unpack an archive that must contain only kernel modules, to a directory; returns their paths.

    All that is decompressed counts, also tar's own headers: they are read to memory.
    """
    found: List[str] = []
    try:
        with gzip.open(archive, "rb") as packed:
            file = BoundedFile(packed, UNPACKED_LIMIT)  # type: ignore[arg-type]
            with tarfile.open(fileobj=file, mode="r|") as handle:  # type: ignore[call-overload]
                for number, member in enumerate(handle):
                    if number >= MOST_MEMBERS:
                        raise ModulesError("the archive of modules: it has more than %d members." % MOST_MEMBERS)
                    if not member.isdir():
                        found.append(unpack_member(handle, member, directory))
    except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
        raise ModulesError("the archive of modules: it is damaged (%s)." % error) from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise ModulesError("the archive of modules: it is damaged (%s)." % error) from None  # gzip's own
    return found


def unpack_member(handle: tarfile.TarFile, member: tarfile.TarInfo, directory: str) -> str:
    """Unpack one module; returns its path."""
    plain = member.isreg() and not member.issparse() and MEMBER.match(member.name)
    source = handle.extractfile(member) if plain else None
    if source is None:
        raise ModulesError("the archive of modules: it contains %r, which is no kernel module." % member.name[:LONGEST])
    path = os.path.join(directory, os.path.normpath(member.name))
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "wb") as target:
        shutil.copyfileobj(source, target)
    return path


def check_modules(host: Host, modules: List[str], kernel: str, package: DkmsPackage) -> None:
    """ModulesError if a module is for another kernel, none of the package, or one of the driver in another version."""
    for path in modules:
        name = os.path.basename(path)
        if name[: -len(".ko")] not in package.modules:
            raise ModulesError("%s: it is no module of %s %s." % (name, package.name, package.version))
        text = host.run(["modinfo", path]).out
        magic = re.search(r"(?m)^vermagic:\s+(\S+)", text)
        if magic is None or magic.group(1) != kernel:
            raise ModulesError(
                "%s: it is for the kernel %s, not %s." % (name, magic and magic.group(1)[:LONGEST], kernel)
            )
        found = nvrm_version.read_modinfo(text).version
        if found not in (None, package.version):
            raise ModulesError("%s: it is of version %s, not %s." % (name, found[:LONGEST], package.version))


# ---- use ------------------------------------------------------------------------------------------------------------


def override_path(archive: ModuleArchive, paths: ModulePaths = DEFAULT_PATHS) -> str:
    """Return the file that DKMS reads for exactly this module, version, kernel and architecture."""
    return "%s/%s-%s-%s-%s.conf" % (
        paths.overrides, archive.name, archive.version, archive.alike["kernel"], archive.alike["architecture"],
    )  # fmt: skip


def is_for_running_kernel(host: Host, archive: ModuleArchive) -> bool:
    return host.uname() == (archive.alike.get("kernel"), archive.alike.get("architecture"))


def offer(host: Host, alike: Mapping[str, str], paths: ModulePaths = DEFAULT_PATHS) -> bool:
    """Make DKMS copy the stored modules; False if there are none for ``alike`` and the running kernel."""
    found = find_archive(host, alike, paths)
    if found is None or not is_for_running_kernel(host, found):
        return False
    path, target = override_path(found, paths), os.path.join(paths.directory, UNPACKED)
    if os.path.exists(path) and path not in manifest.read(paths.listing).get("files", {}):
        raise ModulesError("%s: it is not a file of gpu-ready." % path)
    if os.path.isdir(target):
        shutil.rmtree(target)
    os.makedirs(target, mode=0o755)
    unpack(paths.archive, target)  # build or accept checked them, and find_archive that they are the same
    text = "# Modules that gpu-ready built beforehand for this kernel. This file is removed after the installation.\n"
    text += 'MAKE[0]="cp -r %s/. ."\n' % target
    manifest_notes.note_files(host, {path: text.encode("utf-8")}, paths.listing, mode=0o644)
    os.makedirs(paths.overrides, mode=0o755, exist_ok=True)
    files.write_atomic(path, text.encode("utf-8"), 0o644)
    return True


def withdraw(host: Host, paths: ModulePaths = DEFAULT_PATHS) -> bool:
    """Make DKMS compile again; True if modules were offered."""
    recorded = manifest.read(paths.listing).get("files", {})
    overrides = [path for path in recorded if os.path.dirname(path) == paths.overrides]
    for path in overrides:
        if os.path.exists(path):
            os.unlink(path)
    manifest_notes.drop("files", overrides, paths.listing)
    target = os.path.join(paths.directory, UNPACKED)
    if os.path.isdir(target):
        shutil.rmtree(target)
        return True
    return bool(overrides)
