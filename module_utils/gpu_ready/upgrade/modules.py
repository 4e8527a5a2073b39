"""Modules of the coming driver, built once beside the one that runs, and taken by hosts that are alike.

DKMS reads a file of /etc/dkms that is named after module, version, kernel and machine after the module's own dkms.conf
(dkms(8), "override"). For the time of the installation such a file of ours has DKMS copy the modules in place of
compiling them. All the rest stays DKMS's work on each host: signing with the host's own key, compression, installation.
Its own tarballs (`dkms ldtarball`) do not serve here: the postinst of Debian's packages drops what is loaded before it.
"""

import glob
import io
import os
import re
import shutil
import tarfile
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional

from ..base import files, manifest
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..base.json_file import read_json_object, write_json_file
from ..driver.runfile import messages as runfile_messages
from ..packaging import apt
from ..system import nvrm_version, os_release

FOLDER = manifest.DIRECTORY + "/modules"
ARCHIVE = "modules.tar.gz"
RECORD = "modules.json"
UNPACKED = "files"
OVERRIDES = "/etc/dkms"
BUILD_LIMIT = 1800.0
LIMIT = 300.0
RPM_CACHES = ("/var/cache/dnf", "/var/cache/libdnf5")
PACKAGE = re.compile(r"^(?:kmod-)?nvidia-(?:[\w-]*-)?dkms(?:-[\w-]+)?$")
SOURCE = re.compile(r"^nvidia-kernel-source(?:-[\w-]+)?$")
"""Ubuntu has the sources in a package of their own, and dkms.conf in the one that compiles them."""
MEMBER = re.compile(r"^(?:\./)?(?:[\w-]+/)*[\w-]+\.ko$")


class ModulesError(GpuReadyError):
    """The modules cannot be built or taken; one sentence with the cause. The host compiles its own in its turn then."""


class Paths(NamedTuple):
    """Where things lie on a host."""

    folder: str = FOLDER
    overrides: str = OVERRIDES
    listing: str = manifest.PATH


HERE = Paths()


# ---- which hosts are alike ------------------------------------------------------------------------------------------


def alike(host: Host, coming: List[str], unsigned: bool) -> Dict[str, str]:
    """Return what two hosts have to share for one to take the other's modules; only ``why`` where a host takes none.

    ``coming``: packages that will be installed, as ``name=version``. The name tells the flavour.
    """
    found = [one for one in coming if PACKAGE.match(one.partition("=")[0])]
    if len(found) != 1:
        return {"why": "no package of this driver compiles any"}
    if unsigned:
        return {"why": "Secure Boot is on and DKMS's key is not enrolled"}
    release = os_release.read_os_release(host.read("/etc/os-release") or "")
    kernel, machine = host.uname()
    system = " ".join(one for one in (release.id, release.version_id) if one)
    shared = {"package": found[0], "system": system, "kernel": kernel, "machine": machine}
    source = [one for one in coming if SOURCE.match(one.partition("=")[0])]
    return dict(shared, source=source[0]) if source else shared


# ---- what lies here -------------------------------------------------------------------------------------------------


def record(host: Host, wanted: Optional[Dict[str, str]], paths: Paths = HERE) -> Optional[Dict[str, Any]]:
    """Return what is known of the archive that lies here, None where it is damaged, or not for ``wanted`` (alike)."""
    found = read_json_object(host, os.path.join(paths.folder, RECORD))
    if found is None or found.get("alike") != (wanted or found.get("alike")):
        return None
    return found if digest(os.path.join(paths.folder, ARCHIVE)) == found.get("sha256") else None


def digest(path: str) -> Optional[str]:
    """Return the checksum of a file, None where there is none."""
    return files.checksum(path) if os.path.isfile(path) else None


def write_record(found: Dict[str, Any], paths: Paths) -> Dict[str, Any]:
    """Write what is known of the archive; the archive is whole by then."""
    write_json_file(os.path.join(paths.folder, RECORD), found)
    return found


# ---- build ----------------------------------------------------------------------------------------------------------


def build(host: Host, wanted: Dict[str, str], paths: Paths = HERE) -> Dict[str, Any]:
    """Build the modules of a package that lies in the cache, from files and in folders of our own; return the record.

    Nothing of it is registered with this host's DKMS, so that a kernel which comes meanwhile gets the old driver.
    """
    os.makedirs(paths.folder, mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=paths.folder) as folder:
        root, tree, out = (os.path.join(folder, name) for name in ("root", "tree", "out"))
        for name in (root, tree, out):
            os.mkdir(name)
        for package in [wanted["package"]] + ([wanted["source"]] if "source" in wanted else []):
            unpack_package(host, package, root)
        name, version = prepare(root, out)
        common = ["--dkmstree", tree, "--sourcetree", root + "/usr/src", "-m", name, "-v", version]
        ask(host, ["dkms", "add"] + common)
        # A host in service computes: the compiler comes after that.
        argv = ["nice", "-n", "5", "dkms", "build"] + common + ["-k", wanted["kernel"]]
        answer = host.run(argv, BUILD_LIMIT)
        if answer.rc != 0:
            log = host.read("%s/%s/%s/build/make.log" % (tree, name, version)) or ""
            why = runfile_messages.explain_failure(log, answer.out + "\n" + answer.err)
            raise ModulesError(
                "DKMS could not build %s for the kernel %s (it ended with %d): %s"
                % (wanted["package"], wanted["kernel"], answer.rc, runfile_messages.format_explanation(why))
            )
        built = sorted(glob.glob(out + "/**/*.ko", recursive=True))
        if not built:
            raise ModulesError("the build of %s left no module" % wanted["package"])
        ask(host, ["strip", "--strip-debug"] + built)
        check(host, built, wanted["kernel"], version)
        pack(out, os.path.join(paths.folder, ARCHIVE))
    sha256 = digest(os.path.join(paths.folder, ARCHIVE))
    return write_record({"alike": wanted, "name": name, "version": version, "sha256": sha256}, paths)


def ask(host: Host, argv: List[str]) -> None:
    """Run a program that has to succeed."""
    answer = host.run(argv, LIMIT)
    if answer.rc != 0:
        raise ModulesError(
            "`%s` ended with %d (%s)" % (" ".join(argv[:2]), answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def unpack_package(host: Host, package: str, root: str) -> None:
    """Unpack a package of the package manager's cache below ``root``, without its scripts."""
    name, _, version = package.partition("=")
    upstream = version.rpartition(":")[2]
    debs = glob.glob("%s/%s_%s_*.deb" % (apt.ARCHIVES, glob.escape(name), glob.escape(version.replace(":", "%3a"))))
    rpms = [
        path
        for cache in RPM_CACHES
        for path in glob.glob("%s/**/%s-%s.*.rpm" % (cache, glob.escape(name), glob.escape(upstream)), recursive=True)
    ]
    if debs:
        ask(host, ["dpkg-deb", "-x", debs[0], root])
    elif rpms:
        ask(host, ["rpm", "-i", "--root", root, "--nodeps", "--noscripts", "--notriggers", "--nosignature", rpms[0]])
    else:
        raise ModulesError("the package %s is not in the package manager's cache" % package)


def prepare(root: str, out: str) -> "tuple[str, str]":
    """Have the build copy its modules to ``out`` before DKMS signs and compresses them; return its name and version."""
    found = glob.glob(root + "/usr/src/*/dkms.conf")
    if len(found) != 1:
        raise ModulesError("the package holds %d files dkms.conf, expected is one" % len(found))
    with open(found[0], encoding="utf-8", errors="replace") as handle:
        text = handle.read()
    words = {key: value for key, _, value in re.findall(r"(?m)^PACKAGE_(NAME|VERSION)=(['\"]?)([\w.+-]+)\2\s*$", text)}
    if set(words) != {"NAME", "VERSION"}:
        raise ModulesError("its dkms.conf does not say which module and version it is")
    with open(found[0], "a", encoding="utf-8") as handle:
        handle.write("\nMAKE[0]=\"${MAKE[0]} && find . -name '*.ko' -exec cp --parents {} %s ';'\"\n" % out)
    return words["NAME"], words["VERSION"]


def pack(folder: str, path: str) -> None:
    """Write the modules below a folder to an archive that says nothing of times and owners."""

    def plain(member: tarfile.TarInfo) -> Optional[tarfile.TarInfo]:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = "root"
        return member if member.isdir() or MEMBER.match(member.name) else None

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=6) as archive:
        archive.add(folder, arcname=".", filter=plain)
    files.write_atomic(path, buffer.getvalue(), 0o600)


# ---- take -----------------------------------------------------------------------------------------------------------


def take(host: Host, given: Dict[str, Any], wanted: Dict[str, str], paths: Paths = HERE) -> Dict[str, Any]:
    """Accept an archive that the role brought: the checksum that its builder told, and modules for this very kernel."""
    if given.get("alike") != wanted:
        raise ModulesError("the modules were built for %s" % given.get("alike"))
    found = digest(os.path.join(paths.folder, ARCHIVE))
    if found != given["sha256"]:
        raise ModulesError("the archive with the modules has sha256 %s, expected %s" % (found, given["sha256"]))
    with tempfile.TemporaryDirectory(prefix="take-", dir=paths.folder) as folder:
        check(host, unpack(os.path.join(paths.folder, ARCHIVE), folder), wanted["kernel"], given["version"])
    return write_record(given, paths)


def unpack(archive: str, folder: str) -> List[str]:
    """Unpack modules, and nothing that is none; return their paths."""
    found = []
    with tarfile.open(archive, "r:gz") as handle:
        for member in handle:
            if member.isdir():
                continue
            source = handle.extractfile(member) if member.isfile() and MEMBER.match(member.name) else None
            if source is None:
                raise ModulesError("the archive holds %s, which is no kernel module" % member.name)
            path = os.path.join(folder, os.path.normpath(member.name))
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            with open(path, "wb") as target:
                shutil.copyfileobj(source, target)
            found.append(path)
    return found


def check(host: Host, modules: List[str], kernel: str, version: str) -> None:
    """Raise ModulesError where a module is for another kernel, or the driver's own of another version."""
    for path in modules:
        text = host.run(["modinfo", path]).out
        magic = re.search(r"(?m)^vermagic:\s+(\S+)", text)
        if magic is None or magic.group(1) != kernel:
            raise ModulesError(
                "%s is for the kernel %s, not %s" % (os.path.basename(path), magic and magic.group(1), kernel)
            )
        said = nvrm_version.read_modinfo(text).version
        if said not in (None, version):
            raise ModulesError("%s is of version %s, not %s" % (os.path.basename(path), said, version))


# ---- use ------------------------------------------------------------------------------------------------------------


def override(found: Dict[str, Any], paths: Paths = HERE) -> str:
    """Return the path of the file that DKMS reads for this module, version, kernel and machine only."""
    return "%s/%s-%s-%s-%s.conf" % (
        paths.overrides, found["name"], found["version"], found["alike"]["kernel"], found["alike"]["machine"],
    )  # fmt: skip


def offer(host: Host, paths: Paths = HERE) -> bool:
    """Have DKMS take the modules that lie here (changes the host); return whether any do, for the running kernel."""
    found = record(host, None, paths)
    if found is None or host.uname() != (found["alike"]["kernel"], found["alike"]["machine"]):
        return False
    path, target = override(found, paths), os.path.join(paths.folder, UNPACKED)
    if os.path.exists(path) and path not in manifest.read(paths.listing).get("files", {}):
        raise ModulesError("%s belongs to this host" % path)
    if os.path.isdir(target):
        shutil.rmtree(target)
    os.makedirs(target, mode=0o755)
    check(host, unpack(os.path.join(paths.folder, ARCHIVE), target), found["alike"]["kernel"], found["version"])
    manifest.note("files", {path: {"before": None, "mode": None}}, paths.listing)
    text = "# Modules that gpu-ready brought for this kernel. This file goes after the installation.\n"
    text += 'MAKE[0]="cp -r %s/. ."\n' % target
    os.makedirs(paths.overrides, mode=0o755, exist_ok=True)
    files.write_atomic(path, text.encode("utf-8"), 0o644)
    return True


def withdraw(host: Host, paths: Paths = HERE) -> bool:
    """Have DKMS compile again (changes the host); return whether anything of ours was there."""
    noted = manifest.read(paths.listing).get("files", {})
    there = [path for path in noted if os.path.dirname(path) == paths.overrides]
    for path in there:
        if os.path.exists(path):
            os.unlink(path)
    manifest.drop("files", there, paths.listing)
    target = os.path.join(paths.folder, UNPACKED)
    if os.path.isdir(target):
        shutil.rmtree(target)
        return True
    return bool(there)
