"""Modules of the new driver, built once beside the running one and shared by equal hosts.

After a module's own dkms.conf DKMS reads a file in /etc/dkms that is named after module, version, kernel and
architecture (dkms(8), "override"). During the installation such a file makes DKMS copy the modules, not compile them.
DKMS still signs them with the host's own key, compresses and installs them. DKMS's own tarballs (`dkms ldtarball`)
cannot be used: the postinst of Debian's packages removes what was loaded before it.
"""

import glob
import io
import os
import re
import shutil
import tarfile
import tempfile
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..base import files, manifest, records
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..base.json_file import read_json_object, write_json_file
from ..driver.runfile import messages as runfile_messages
from ..packaging import archives
from ..system import nvrm_version, os_release

DIRECTORY = manifest.DIRECTORY + "/modules"
SCHEMA = 1
ARCHIVE = "modules.tar.gz"
RECORD = "modules.json"
UNPACKED = "files"
OVERRIDES = "/etc/dkms"
BUILD_LIMIT = 1800.0
LIMIT = 300.0
PACKAGE = re.compile(r"^(?:kmod-)?nvidia-(?!headless-no-)(?:[\w-]*-)?dkms(?:-[\w-]+)?$")
SOURCE = re.compile(r"^nvidia-kernel-source(?:-[\w-]+)?$")
"""Ubuntu's sources are in this package, and dkms.conf in the package that compiles them."""
PART = re.compile(r"^[\w+~][\w.+~-]*$")
"""A name, version, kernel or architecture, of which DKMS makes a file name."""
MEMBER = re.compile(r"^(?:\./)?(?:[\w-]+/)*[\w-]+\.ko$")


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
    """An archive of modules. ``alike``: properties of hosts that may use it. ``name``: DKMS's name of the module."""

    alike: Dict[str, str]
    name: str
    version: str
    sha256: str


def from_json(value: object) -> ModuleArchive:
    """Read a record of this or another host; ModulesError if it has another form."""
    try:
        found = records.from_json(ModuleArchive, records.without_schema(value, SCHEMA, RECORD))
        parts = (found.name, found.version, found.alike.get("kernel", ""), found.alike.get("architecture", ""))
        if not all(PART.match(part) for part in parts):
            raise records.RecordError("%s cannot be part of a file name" % "-".join(parts))
        return found
    except records.RecordError as error:
        raise ModulesError("%s: it has another form (%s). Build the modules again." % (RECORD, error)) from None


def to_json(archive: ModuleArchive) -> Dict[str, object]:
    return dict(records.to_json(archive), schema=SCHEMA)


# ---- which hosts can share modules -----------------------------------------------------------------------------------


def shared_properties(host: Host, coming: List[str], unsigned: bool) -> Dict[str, str]:
    """Properties that two hosts must share for one to use the other's modules; only ``why`` if this host uses none.

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


def find_archive(
    host: Host, alike: Optional[Mapping[str, str]] = None, paths: ModulePaths = DEFAULT_PATHS
) -> Optional[ModuleArchive]:
    """The stored archive; None if it is missing, damaged, or for other hosts than ``alike``."""
    value = read_json_object(host, os.path.join(paths.directory, RECORD), SCHEMA)
    try:
        found = from_json(value) if value else None
    except ModulesError:
        return None
    if found is None or (alike and found.alike != alike):
        return None
    return found if file_checksum(paths.archive) == found.sha256 else None


def file_checksum(path: str) -> Optional[str]:
    return files.checksum(path) if os.path.isfile(path) else None


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
        for package in [alike["package"]] + ([alike["source"]] if "source" in alike else []):
            unpack_package(host, package, root)
        name, version = prepare_build(root, out)
        common = ["--dkmstree", tree, "--sourcetree", root + "/usr/src", "-m", name, "-v", version]
        run_program(host, ["dkms", "add"] + common)
        # The host is in service: its work has priority over the compiler.
        argv = ["nice", "-n", "5", "dkms", "build"] + common + ["-k", alike["kernel"]]
        answer = host.run(argv, BUILD_LIMIT)
        if answer.rc != 0:
            log = host.read("%s/%s/%s/build/make.log" % (tree, name, version)) or ""
            why = runfile_messages.explain_failure(log, answer.out + "\n" + answer.err)
            raise ModulesError(
                "%s: DKMS could not build it for the kernel %s (exit status %d): %s"
                % (alike["package"], alike["kernel"], answer.rc, runfile_messages.format_explanation(why))
            )
        built = sorted(glob.glob(out + "/**/*.ko", recursive=True))
        if not built:
            raise ModulesError("%s: its build created no module." % alike["package"])
        run_program(host, ["strip", "--strip-debug"] + built)
        check_modules(host, built, alike["kernel"], version)
        pack(out, paths.archive)
    return write_record(ModuleArchive(dict(alike), name, version, files.checksum(paths.archive)), paths)


def run_program(host: Host, argv: List[str]) -> None:
    """ModulesError if the program fails."""
    answer = host.run(argv, LIMIT)
    if answer.rc != 0:
        raise ModulesError(
            "`%s`: exit status %d (%s)." % (" ".join(argv[:2]), answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def unpack_package(host: Host, package: str, root: str) -> None:
    """Unpack a package from the package manager's cache below ``root``, without running its scripts."""
    name, _, version = package.partition("=")
    path = archives.find_archive(host, name, version)
    if path is None:
        raise ModulesError("%s: it is not in the package manager's cache." % package)
    if path.endswith(".deb"):
        run_program(host, ["dpkg-deb", "-x", path, root])
    else:
        run_program(
            host, ["rpm", "-i", "--root", root, "--nodeps", "--noscripts", "--notriggers", "--nosignature", path]
        )


def prepare_build(root: str, out: str) -> Tuple[str, str]:
    """Make the build copy its modules to ``out`` before DKMS signs and compresses them; returns name and version."""
    found = glob.glob(root + "/usr/src/*/dkms.conf")
    if len(found) != 1:
        raise ModulesError("the package: it contains %d dkms.conf files in place of one." % len(found))
    with open(found[0], encoding="utf-8", errors="replace") as handle:
        text = handle.read()
    names = {key: value for key, _, value in re.findall(r"(?m)^PACKAGE_(NAME|VERSION)=(['\"]?)([\w.+-]+)\2\s*$", text)}
    if set(names) != {"NAME", "VERSION"}:
        raise ModulesError("dkms.conf: it does not contain PACKAGE_NAME and PACKAGE_VERSION.")
    with open(found[0], "a", encoding="utf-8") as handle:
        handle.write("\nMAKE[0]=\"${MAKE[0]} && find . -name '*.ko' -exec cp --parents {} %s ';'\"\n" % out)
    return names["NAME"], names["VERSION"]


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
    """Accept an archive that the role copied: by its builder's checksum, and if its modules are for this kernel."""
    if given.alike != alike:
        raise ModulesError("the archive of modules: it was built for %s." % given.alike)
    found = file_checksum(paths.archive)
    if found != given.sha256:
        raise ModulesError("the archive of modules: its sha256 is %s in place of %s." % (found, given.sha256))
    with tempfile.TemporaryDirectory(prefix="take-", dir=paths.directory) as directory:
        check_modules(host, unpack(paths.archive, directory), alike["kernel"], given.version)
    return write_record(given, paths)


def unpack(archive: str, directory: str) -> List[str]:
    """Unpack an archive that must contain only kernel modules; returns their paths."""
    found = []
    with tarfile.open(archive, "r:gz") as handle:
        for member in handle:
            if member.isdir():
                continue
            source = handle.extractfile(member) if member.isfile() and MEMBER.match(member.name) else None
            if source is None:
                raise ModulesError("the archive of modules: it contains %s, which is no kernel module." % member.name)
            path = os.path.join(directory, os.path.normpath(member.name))
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            with open(path, "wb") as target:
                shutil.copyfileobj(source, target)
            found.append(path)
    return found


def check_modules(host: Host, modules: List[str], kernel: str, version: str) -> None:
    """ModulesError if a module is for another kernel, or one of the driver is of another version."""
    for path in modules:
        text = host.run(["modinfo", path]).out
        magic = re.search(r"(?m)^vermagic:\s+(\S+)", text)
        if magic is None or magic.group(1) != kernel:
            raise ModulesError(
                "%s: it is for the kernel %s, not %s." % (os.path.basename(path), magic and magic.group(1), kernel)
            )
        found = nvrm_version.read_modinfo(text).version
        if found not in (None, version):
            raise ModulesError("%s: it is of version %s, not %s." % (os.path.basename(path), found, version))


# ---- use ------------------------------------------------------------------------------------------------------------


def override_path(archive: ModuleArchive, paths: ModulePaths = DEFAULT_PATHS) -> str:
    """The file that DKMS reads for exactly this module, version, kernel and architecture."""
    return "%s/%s-%s-%s-%s.conf" % (
        paths.overrides, archive.name, archive.version, archive.alike["kernel"], archive.alike["architecture"],
    )  # fmt: skip


def is_for_running_kernel(host: Host, archive: ModuleArchive) -> bool:
    return host.uname() == (archive.alike.get("kernel"), archive.alike.get("architecture"))


def offer(host: Host, paths: ModulePaths = DEFAULT_PATHS) -> bool:
    """Make DKMS copy the stored modules; False if there are none for the running kernel."""
    found = find_archive(host, None, paths)
    if found is None or not is_for_running_kernel(host, found):
        return False
    path, target = override_path(found, paths), os.path.join(paths.directory, UNPACKED)
    if os.path.exists(path) and path not in manifest.read(paths.listing).get("files", {}):
        raise ModulesError("%s: it is not a file of gpu-ready." % path)
    if os.path.isdir(target):
        shutil.rmtree(target)
    os.makedirs(target, mode=0o755)
    check_modules(host, unpack(paths.archive, target), found.alike["kernel"], found.version)
    manifest.note("files", {path: {"before": None, "mode": None}}, paths.listing)
    text = "# Modules that gpu-ready built beforehand for this kernel. This file is removed after the installation.\n"
    text += 'MAKE[0]="cp -r %s/. ."\n' % target
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
    manifest.drop("files", overrides, paths.listing)
    target = os.path.join(paths.directory, UNPACKED)
    if os.path.isdir(target):
        shutil.rmtree(target)
        return True
    return bool(overrides)
