"""NVIDIA's .run installer of CUDA toolkits: run it for the toolkit alone, and take away what it brought.

The order keeps what is there until the new file is proved: it is fetched beside everything else; then a record in
``/var/lib/gpu-ready/cuda`` says that the toolkit is being installed; an earlier release in the same folder is taken
away by its own uninstaller; the installer runs; the record says complete. A run that was killed is repaired.

The installer leads /usr/local/cuda to what it installs, over a link of update-alternatives too. The default toolkit is
a decision of its own, so the link is put back.
"""

import contextlib
import os
import shutil
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..base import files, manifest
from ..base.host import Host
from ..driver.runfile import fetch as runfile_fetch
from ..driver.runfile import messages as runfile_messages
from ..driver.runfile import spec as runfile_spec
from ..driver.runfile.fetch import InstallerSource, RunfileLimits
from ..driver.runfile.spec import RunfileError
from . import default as cuda_default
from . import toolkit as cuda
from .cudnn import install as cudnn_install

LOG = "/var/log/cuda-installer.log"
UNINSTALL_LOG = "/var/log/cuda-uninstaller.log"
UNPACKED = 2
"""How many times its own size the installer needs for its unpacked files."""
INSTALLED = 2
"""How many times the installer's size a toolkit takes in its own folder."""
REMOVAL_LIMIT = 1800.0
LINKER_LIMIT = 300.0
SECTION = "cuda_runfile"
"""The manifest's section of toolkits that we installed."""

CAUSES: List[Tuple[str, str, str, str]] = [
    (
        "library_missing",
        r"error while loading shared libraries: \S+",
        "the installer's program needs a library that this host lacks",
        "install it (libxml2, for instance), then run again",
    ),
    (
        "no_space",
        r"No space left on device|[Nn]ot enough (?:disk )?space|Disk space check has failed",
        "a disk is full",
        "make room under /usr/local and /var/tmp",
    ),
    (
        "no_place_for_programs",
        r"cuda-installer: Permission denied|Permission denied.*cuda-installer",
        "the temporary folder cannot hold programs (mounted noexec)",
        "give the host a /var/tmp without noexec",
    ),
    (
        "compiler_refused",
        r"Failed to verify gcc version|unsupported compiler version",
        "the installer does not know this host's compiler",
        "choose a newer toolkit, or install a gcc that it knows",
    ),
    ("archive_corrupt", r"[Ee]rror in check ?sums|Error in MD5", "the archive is damaged", "fetch it again"),
    (
        "option_unknown",
        r"[Uu]nknown option|[Uu]nrecogni[sz]ed option",
        "the installer does not know an option",
        "choose a release from 11.0 on",
    ),
    ("not_root", r"must be run as root|Permission denied", "it did not run as root", "let Ansible become root"),
]
"""(code, pattern, cause, remedy) of a failed run, causes before consequences."""


class Installer(NamedTuple):
    """A toolkit that is wanted; ``release`` is "" where nothing but the installer tells it."""

    version: str
    release: str
    path: str
    source: InstallerSource


class Where(NamedTuple):
    """Where records, the manifest and the link of the default toolkit are."""

    records: str = cuda.RECORDS
    manifest: str = manifest.PATH
    default: cuda_default.Where = cuda_default.Where()


# ---- what is here ---------------------------------------------------------------------------------------------------


def stated(host: Host, path: str) -> Optional[str]:
    """Return the release that a toolkit's folder states, None where none is there."""
    text = host.read(path + "/version.json")
    if text is not None:
        return cuda.read_version_json(text)
    text = host.read(path + "/version.txt")
    return None if text is None else cuda.read_version_txt(text)


def recorded(host: Host, version: str, where: Where) -> Optional[cuda.Record]:
    """Return the record of a toolkit, None where it is not ours."""
    text = host.read(cuda.record_path(version, where.records))
    return None if text is None else cuda.read_record(text)


def uninstaller(path: str) -> str:
    """Return a toolkit's own uninstaller."""
    return path + "/" + cuda.UNINSTALLER


def lacking(host: Host, wanted: Installer, where: Where) -> str:
    """Return in words what is not as wanted, "" where nothing is to be done."""
    record = recorded(host, wanted.version, where)
    if record is not None and not record.complete:
        return "the rest of an installation of CUDA %s that was cut off" % wanted.version
    found = stated(host, wanted.path)
    if not found or not host.exists(wanted.path + "/bin/nvcc"):
        return "CUDA %s" % (wanted.release or wanted.version)
    found = record.release if record is not None and cuda.is_dated(found) else found
    if wanted.release and not cuda.is_release(found, wanted.release):
        return "CUDA %s in place of %s" % (wanted.release, found)
    return ""


# ---- change ---------------------------------------------------------------------------------------------------------


def options(wanted: Installer, folder: str) -> List[str]:
    """Return the arguments of a run that brings the toolkit and nothing else.

    --override: the installer would refuse a host without the compiler of its list, which is nvcc's matter, not its.
    """
    return [
        "--silent",
        "--toolkit",
        "--toolkitpath=" + wanted.path,
        "--tmpdir=" + folder,
        "--no-man-page",
        "--override",
    ]


def install(host: Host, wanted: Installer, limits: RunfileLimits, where: Where) -> str:
    """Install one toolkit and return its release; nothing is changed before the file is proved. Raises RunfileError."""
    refuse_alias(host, wanted.version, wanted.path, where)
    local = wanted.source.location
    size = os.path.getsize(local) if os.path.isfile(local) else 0
    with runfile_fetch.work_directory(size * UNPACKED) as temporary:
        file = runfile_fetch.fetch_file(wanted.source, temporary, limits, UNPACKED)
        judge(file, wanted)
        room(file, temporary, wanted)
        with marked(host, wanted, where), link_kept(host, where):
            if host.exists(uninstaller(wanted.path)):
                uninstall(host, wanted.version, wanted.path)
            call(host, ["sh", file] + options(wanted, temporary), limits.install, temporary, wanted)
            manifest.delete_copied_file(local)
        return release(host, wanted)


def refuse_alias(host: Host, version: str, path: str, where: Where) -> None:
    """Raise RunfileError where a folder holds another toolkit than its name says, and not by a run of ours."""
    found = stated(host, path)
    if found and recorded(host, version, where) is None and cuda.series(found) != version:
        raise RunfileError(
            "%s holds CUDA %s, so it is no toolkit %s that could be brought or taken away: delete the link, or move "
            "the folder to its right name, then run again" % (path, found, version)
        )


def judge(file: str, wanted: Installer) -> None:
    """Raise RunfileError where a file is no program at all: a mirror's error page, for instance."""
    with open(file, "rb") as handle:
        head = handle.read(2)
    if head != b"#!":
        raise RunfileError(
            "%s is no .run installer of a CUDA toolkit: nothing was changed; check its address" % wanted.source.location
        )


def room(file: str, temporary: str, wanted: Installer) -> None:
    """Raise RunfileError where the toolkit does not fit beside what is unpacked."""
    place = os.path.dirname(wanted.path)
    shared = os.stat(place).st_dev == os.stat(temporary).st_dev
    times = INSTALLED + UNPACKED if shared else INSTALLED
    runfile_fetch.check_free_space(
        place + "/", os.path.getsize(file) * times, "CUDA " + (wanted.release or wanted.version)
    )


@contextlib.contextmanager
def marked(host: Host, wanted: Installer, where: Where) -> Iterator[None]:
    """Record that a toolkit is being installed, and that it is; an installer that did nothing leaves no record."""
    before = recorded(host, wanted.version, where)
    there = stated(host, wanted.path)
    record = cuda.Record(wanted.release, False)
    path = cuda.record_path(wanted.version, where.records)
    os.makedirs(where.records, mode=0o755, exist_ok=True)
    known = manifest.read(where.manifest).get(SECTION, {}).get(wanted.version, {})
    # Of a half that is repaired, the folder is ours if it was; a whole toolkit may hold somebody's files by now.
    repairs = before is not None and not before.complete
    noted = {
        "before": known.get("before", there),
        "folder": known.get("folder", True) if repairs else host.exists(wanted.path),
    }
    manifest.replace_note(SECTION, wanted.version, noted, where.manifest)
    files.write_atomic(path, cuda.write_record(record).encode("ascii"), 0o644)
    try:
        yield
        done = cuda.Record(release(host, wanted), True)
    except RunfileError:
        if stated(host, wanted.path) == there and (there or not host.exists(wanted.path)):
            if before is None:
                os.unlink(path)
                manifest.drop(SECTION, [wanted.version], where.manifest)
            else:
                files.write_atomic(path, cuda.write_record(before).encode("ascii"), 0o644)
        raise
    host.sync_disks()
    files.write_atomic(path, cuda.write_record(done).encode("ascii"), 0o644)


@contextlib.contextmanager
def link_kept(host: Host, where: Where) -> Iterator[None]:
    """Put the link of the default toolkit back to what it was: a program that installs or removes one changes it."""
    link = where.default.link
    before = host.readlink(link)
    try:
        yield
    finally:
        if host.readlink(link) != before and (host.readlink(link) is not None or not host.exists(link)):
            if before is not None:
                cuda_default.point(before, link)
            elif os.path.lexists(link):
                os.unlink(link)


def release(host: Host, wanted: Installer) -> str:
    """Return the release that is in place after a run; RunfileError where it is not the wanted one."""
    found = stated(host, wanted.path)
    if not found or not host.exists(wanted.path + "/bin/nvcc"):
        raise RunfileError(
            "the installer of CUDA %s ended well, but %s holds no whole toolkit: see %s on the host"
            % (wanted.release or wanted.version, wanted.path, LOG)
        )
    if cuda.series(found) != wanted.version or (
        wanted.release and not cuda.is_dated(found) and not cuda.is_release(found, wanted.release)
    ):
        raise RunfileError(
            "%s installed CUDA %s into %s, wanted is %s: correct its entry in cuda_toolkit_runfiles, then run again"
            % (wanted.source.location, found, wanted.path, wanted.release or wanted.version)
        )
    return wanted.release or found


def call(host: Host, argv: List[str], limit: float, temporary: str, wanted: Installer) -> None:
    """Run the installer once; RunfileError with the cause that its log names."""
    _forget(LOG)
    environment: Dict[str, str] = dict(runfile_spec.ENVIRONMENT, TMPDIR=temporary)
    answer = host.run(argv, limit, environment)
    if answer.rc == 0:
        return
    why = runfile_messages.explain_failure(host.read(LOG) or "", answer.out + "\n" + answer.err, CAUSES)
    raise RunfileError(
        "the installer of CUDA %s ended with %d: %s; the whole log is %s on the host"
        % (wanted.release or wanted.version, answer.rc, runfile_messages.format_explanation(why), LOG)
    )


def uninstall(host: Host, version: str, path: str) -> None:
    """Have a toolkit's own uninstaller take it away; RunfileError when the toolkit is still there afterwards."""
    answer = host.run([uninstaller(path), "--silent"], REMOVAL_LIMIT, runfile_spec.ENVIRONMENT)
    if answer.rc != 0 or host.exists(path + "/bin/nvcc"):
        why = runfile_messages.explain_failure(host.read(UNINSTALL_LOG) or "", answer.out + "\n" + answer.err, CAUSES)
        raise RunfileError(
            "%s did not take CUDA %s away (it ended with %d): %s"
            % (uninstaller(path), version, answer.rc, runfile_messages.format_explanation(why))
        )


def rests(host: Host, version: str, path: str, where: Where) -> bool:
    """Return whether anything of a toolkit is still here: its folder, our record, or the link that led to it."""
    group = cuda.read_group(host, where.default.link, where.default.states)
    return (
        host.isdir(path)
        or host.readlink(path) is not None
        or recorded(host, version, where) is not None
        or (group is not None and path in group.candidates)
        or dangling(host, path, where.default)
    )


def dangling(host: Host, path: str, default: cuda_default.Where) -> bool:
    """Return whether the default link leads to a toolkit that is gone."""
    written = host.readlink(default.link)
    if written is None or host.exists(default.link):
        return False
    return os.path.normpath(os.path.join(os.path.dirname(default.link), written)) == path


def remove(host: Host, version: str, path: str, where: Where) -> List[str]:
    """Take one toolkit away with all that lies in its folder; return what went, in words.

    Packages are gone by now. cuDNN's files go with the toolkit, whoever placed them; anything else that is left is
    somebody's work, and a RunfileError names it.
    """
    refuse_alias(host, version, path, where)
    gone = []
    paths = cudnn_install.Paths(manifest=where.manifest)
    if cudnn_install.remove(version, paths, lambda: linker(host)):
        gone.append("cuDNN in CUDA " + version)
    if host.exists(uninstaller(path)):
        with link_kept(host, where):
            uninstall(host, version, path)
        gone.append("CUDA " + version)
    elif half_done(host, version, path, where):
        shutil.rmtree(path)
        gone.append("the half of CUDA " + version)
    if os.path.isdir(path):
        # A folder that was moved to another disk is a link here.
        rest = sweep(os.path.realpath(path))
        if rest:
            raise RunfileError(
                "CUDA %s is gone, but %s still holds what is neither the toolkit's nor cuDNN's (%s%s): move it away or "
                "delete it, then run again" % (version, path, ", ".join(rest[:3]), ", ..." if len(rest) > 3 else "")
            )
        gone.append(path)
    if os.path.islink(path):
        os.unlink(path)
    gone += unlink(host, path, where)
    record = cuda.record_path(version, where.records)
    if os.path.exists(record):
        os.unlink(record)
    manifest.drop(SECTION, [version], where.manifest)
    if not host.listdir(where.records):
        if os.path.isdir(where.records):
            os.rmdir(where.records)
        for log in (LOG, UNINSTALL_LOG) if gone else ():
            _forget(log)
    return gone


def half_done(host: Host, version: str, path: str, where: Where) -> bool:
    """Return whether a folder is nothing but what an installer of ours left when it was cut off."""
    record = recorded(host, version, where)
    noted = manifest.read(where.manifest).get(SECTION, {}).get(version, {})
    return record is not None and not record.complete and noted.get("folder") is False and host.isdir(path)


def linker(host: Host) -> None:
    """Tell the dynamic linker which libraries are there."""
    answer = host.run(["ldconfig"], LINKER_LIMIT)
    if answer.rc != 0:
        raise RunfileError(
            "ldconfig ended with %d (%s): repair what it names, then run again"
            % (answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def sweep(path: str) -> List[str]:
    """Delete cuDNN's files, dangling links and empty folders below a removed toolkit; return what is left."""
    rest = []
    for folder, _, _ in os.walk(path, topdown=False):
        for name in sorted(os.listdir(folder)):
            file = os.path.join(folder, name)
            if cuda.CUDNN_FILE.match(name) or (os.path.islink(file) and not os.path.exists(file)):
                os.unlink(file)
            elif os.path.islink(file) or not os.path.isdir(file):
                rest.append(file)
        if not os.listdir(folder):
            os.rmdir(folder)
    return rest


def unlink(host: Host, path: str, where: Where) -> List[str]:
    """Take a toolkit that is gone out of update-alternatives, and a plain link to it away."""
    default = where.default
    group = cuda.read_group(host, default.link, default.states)
    if group is not None and path in group.candidates:
        cuda_default.forget(host, path, default)
    if not dangling(host, path, default):
        return []
    manifest.note("alternatives", {cuda.GROUP: {"before": path, "mode": "link", "link": default.link}}, where.manifest)
    os.unlink(default.link)
    return [default.link]


def _forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
