"""Run NVIDIA's .run installer of CUDA toolkits, for the toolkit alone, and remove what it installed.

Nothing changes until the new file is fetched and verified. Then a record in ``/var/lib/gpu-ready/cuda`` marks the
installation as incomplete; the uninstaller of an earlier release in the same directory runs; the installer runs; the
record becomes complete. The next run repairs a killed one.

The installer points /usr/local/cuda to what it installs, also if update-alternatives manages that link. The default
toolkit is chosen elsewhere, so the link is restored.
"""

import contextlib
import os
import shutil
from typing import Dict, Iterator, List, NamedTuple, Optional

from ..base import files, manifest, manifest_notes
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
KIND = "cuda-installer"
"""Of these logs, for their explanation."""
UNPACKED = 2
"""Space for the unpacked files, in multiples of the installer's size."""
INSTALLED = 2
"""Size of the installed toolkit, in multiples of the installer's size."""
REMOVAL_LIMIT = 1800.0
LINKER_LIMIT = 300.0
SECTION = "cuda_runfile"
"""The manifest's section of toolkits installed by gpu-ready."""


class ToolkitInstaller(NamedTuple):
    """A requested toolkit; ``release`` is "" if only the installer knows it."""

    version: str
    release: str
    path: str
    source: InstallerSource


class ToolkitPaths(NamedTuple):
    """Paths of the records, the manifest and the link of the default toolkit."""

    records: str = cuda.RECORDS
    manifest: str = manifest.PATH
    default: cuda_default.DefaultPaths = cuda_default.DefaultPaths()


# ---- state ----------------------------------------------------------------------------------------------------------


def read_record(host: Host, version: str, paths: ToolkitPaths) -> Optional[cuda.ToolkitRecord]:
    """Return None if gpu-ready did not install the toolkit."""
    text = host.read(cuda.record_path(version, paths.records))
    return None if text is None else cuda.parse_record(text)


def uninstaller_path(path: str) -> str:
    return path + "/" + cuda.UNINSTALLER


def missing_toolkit(host: Host, request: ToolkitInstaller, paths: ToolkitPaths) -> str:
    """Return what is missing, for messages; "" if nothing is."""
    record = read_record(host, request.version, paths)
    if record is not None and not record.complete:
        return "the rest of an interrupted installation of CUDA %s" % request.version
    found = cuda.installed_release(host, request.path)
    if not found or not host.exists(request.path + "/bin/nvcc"):
        return "CUDA %s" % (request.release or request.version)
    found = record.release if record is not None and cuda.is_dated(found) else found
    if request.release and not cuda.is_release(found, request.release):
        return "CUDA %s in place of %s" % (request.release, found)
    return ""


# ---- installation ---------------------------------------------------------------------------------------------------


def installer_options(request: ToolkitInstaller, directory: str) -> List[str]:
    """Return arguments of a run that installs the toolkit and nothing else.

    Without --override the installer refuses a host whose compiler is not in its list; only nvcc needs the compiler.
    """
    return [
        "--silent",
        "--toolkit",
        "--toolkitpath=" + request.path,
        "--tmpdir=" + directory,
        "--no-man-page",
        "--override",
    ]


def install(host: Host, request: ToolkitInstaller, limits: RunfileLimits, paths: ToolkitPaths) -> str:
    """Install one toolkit and return its release; nothing changes before the file is verified. Raises RunfileError."""
    refuse_alias(host, request.version, request.path, paths)
    local = request.source.location
    size = os.path.getsize(local) if os.path.isfile(local) else 0
    with runfile_fetch.work_directory(size * UNPACKED) as temporary:
        file = runfile_fetch.fetch_file(request.source, temporary, limits, UNPACKED)
        check_program(file, request)
        check_toolkit_space(file, temporary, request)
        with _installation_record(host, request, paths), _preserved_default_link(host, paths):
            if host.exists(uninstaller_path(request.path)):
                run_uninstaller(host, request.version, request.path)
            run_installer(
                host, ["sh", file] + installer_options(request, temporary), limits.install, temporary, request
            )
            manifest_notes.delete_copied_file(local)
        return verify_release(host, request)


def refuse_alias(host: Host, version: str, path: str, paths: ToolkitPaths) -> None:
    """Raise RunfileError if a directory contains another toolkit than its name says, unless gpu-ready installed it."""
    found = cuda.installed_release(host, path)
    if found and read_record(host, version, paths) is None and cuda.series(found) != version:
        raise RunfileError(
            "%s contains CUDA %s, so CUDA %s cannot be installed or removed there. Delete the link, or rename the "
            "directory, then run again" % (path, found, version)
        )


def check_program(file: str, request: ToolkitInstaller) -> None:
    """Raise RunfileError if a file is not a script, for example a mirror's error page."""
    with open(file, "rb") as handle:
        head = handle.read(2)
    if head != b"#!":
        raise RunfileError(
            "%s is not a .run installer of a CUDA toolkit. Nothing was changed. Check its address"
            % request.source.location
        )


def check_toolkit_space(file: str, temporary: str, request: ToolkitInstaller) -> None:
    """Raise RunfileError if the toolkit does not fit on the disk, with the unpacked files if they are on the same."""
    parent = os.path.dirname(request.path)
    shared = os.stat(parent).st_dev == os.stat(temporary).st_dev
    times = INSTALLED + UNPACKED if shared else INSTALLED
    runfile_fetch.check_free_space(
        parent + "/", os.path.getsize(file) * times, "CUDA " + (request.release or request.version)
    )


@contextlib.contextmanager
def _installation_record(host: Host, request: ToolkitInstaller, paths: ToolkitPaths) -> Iterator[None]:
    """Record a toolkit as incomplete, then as complete; an installer that did nothing leaves no record."""
    before = read_record(host, request.version, paths)
    previous = cuda.installed_release(host, request.path)
    record = cuda.ToolkitRecord(request.release, False)
    path = cuda.record_path(request.version, paths.records)
    os.makedirs(paths.records, mode=0o755, exist_ok=True)
    known = manifest.read(paths.manifest).get(SECTION, {}).get(request.version, {})
    # If an incomplete toolkit is repaired, the directory is ours if it was; a complete one may have other files by now.
    repairs = before is not None and not before.complete
    entry = {
        "before": known.get("before", previous),
        "existed": known.get("existed", True) if repairs else host.exists(request.path),
    }
    manifest_notes.replace_note(SECTION, request.version, entry, paths.manifest)
    files.write_atomic(path, cuda.format_record(record).encode("ascii"), 0o644)
    try:
        yield
        done = cuda.ToolkitRecord(verify_release(host, request), True)
    except RunfileError:
        if cuda.installed_release(host, request.path) == previous and (previous or not host.exists(request.path)):
            if before is None:
                os.unlink(path)
                manifest_notes.drop(SECTION, [request.version], paths.manifest)
            else:
                files.write_atomic(path, cuda.format_record(before).encode("ascii"), 0o644)
        raise
    host.sync_disks()
    files.write_atomic(path, cuda.format_record(done).encode("ascii"), 0o644)


@contextlib.contextmanager
def _preserved_default_link(host: Host, paths: ToolkitPaths) -> Iterator[None]:
    """Restore the link of the default toolkit, which installers and uninstallers change."""
    link = paths.default.link
    before = host.readlink(link)
    try:
        yield
    finally:
        if host.readlink(link) != before and (host.readlink(link) is not None or not host.exists(link)):
            if before is not None:
                cuda_default.replace_link(before, link)
            elif os.path.lexists(link):
                os.unlink(link)


def verify_release(host: Host, request: ToolkitInstaller) -> str:
    """Return the release after a run; raises RunfileError if it is not the requested one."""
    found = cuda.installed_release(host, request.path)
    if not found or not host.exists(request.path + "/bin/nvcc"):
        raise RunfileError(
            "the installer of CUDA %s succeeded, but the toolkit in %s is incomplete. See %s on the host"
            % (request.release or request.version, request.path, LOG)
        )
    if cuda.series(found) != request.version or (
        request.release and not cuda.is_dated(found) and not cuda.is_release(found, request.release)
    ):
        raise RunfileError(
            "%s installed CUDA %s in %s, expected %s. Correct its entry in cuda_toolkit_runfiles, then run again"
            % (request.source.location, found, request.path, request.release or request.version)
        )
    return request.release or found


def run_installer(host: Host, argv: List[str], limit: float, temporary: str, request: ToolkitInstaller) -> None:
    """Raises RunfileError with the cause that the installer's log reports."""
    _delete(LOG)
    environment: Dict[str, str] = dict(runfile_spec.ENVIRONMENT, TMPDIR=temporary)
    answer = host.run(argv, limit, environment)
    if answer.rc == 0:
        return
    why = runfile_messages.describe_failure(host.read(LOG) or "", answer.out + "\n" + answer.err, LOG, KIND)
    raise RunfileError(
        "the installer of CUDA %s ended with %d: %s" % (request.release or request.version, answer.rc, why)
    )


def run_uninstaller(host: Host, version: str, path: str) -> None:
    """Raises RunfileError if the toolkit is still installed afterwards."""
    answer = host.run([uninstaller_path(path), "--silent"], REMOVAL_LIMIT, runfile_spec.ENVIRONMENT)
    if answer.rc != 0 or host.exists(path + "/bin/nvcc"):
        log = host.read(UNINSTALL_LOG) or ""
        why = runfile_messages.describe_failure(log, answer.out + "\n" + answer.err, "", KIND)
        raise RunfileError(
            "%s did not remove CUDA %s (it ended with %d): %s" % (uninstaller_path(path), version, answer.rc, why)
        )


def has_remains(host: Host, version: str, path: str, paths: ToolkitPaths) -> bool:
    """Return True if anything of a toolkit is left: its directory, our record, or a link to it."""
    group = cuda.read_group(host, paths.default.link, paths.default.states)
    return (
        host.isdir(path)
        or host.readlink(path) is not None
        or read_record(host, version, paths) is not None
        or (group is not None and path in group.candidates)
        or is_dangling(host, path, paths.default)
    )


def is_dangling(host: Host, path: str, default: cuda_default.DefaultPaths) -> bool:
    """Return True if the default link points to this toolkit, which is removed."""
    written = host.readlink(default.link)
    if written is None or host.exists(default.link):
        return False
    return os.path.normpath(os.path.join(os.path.dirname(default.link), written)) == path


def remove_toolkit(host: Host, version: str, path: str, paths: ToolkitPaths) -> List[str]:
    """Remove one toolkit with its directory; returns what was removed, for messages.

    Packages are removed before. cuDNN's files are removed with the toolkit, whoever installed them; any other file is
    left, and a RunfileError names it.
    """
    refuse_alias(host, version, path, paths)
    removed = []
    cudnn_paths = cudnn_install.CudnnPaths(manifest=paths.manifest)
    if cudnn_install.remove_archive(version, cudnn_paths, lambda: refresh_linker_cache(host)):
        removed.append("cuDNN in CUDA " + version)
    if host.exists(uninstaller_path(path)):
        with _preserved_default_link(host, paths):
            run_uninstaller(host, version, path)
        removed.append("CUDA " + version)
    elif is_incomplete(host, version, path, paths):
        shutil.rmtree(path)
        removed.append("the incomplete CUDA " + version)
    if os.path.isdir(path):
        # A directory that was moved to another disk is a link here.
        left = remove_leftovers(os.path.realpath(path))
        if left:
            raise RunfileError(
                "CUDA %s is removed, but %s still has files of neither the toolkit nor cuDNN (%s%s). Move or delete "
                "them, then run again" % (version, path, ", ".join(left[:3]), ", ..." if len(left) > 3 else "")
            )
        removed.append(path)
    if os.path.islink(path):
        os.unlink(path)
    removed += remove_links(host, path, paths)
    record = cuda.record_path(version, paths.records)
    if os.path.exists(record):
        os.unlink(record)
    manifest_notes.drop(SECTION, [version], paths.manifest)
    if not host.listdir(paths.records):
        if os.path.isdir(paths.records):
            os.rmdir(paths.records)
        for log in (LOG, UNINSTALL_LOG) if removed else ():
            _delete(log)
    return removed


def is_incomplete(host: Host, version: str, path: str, paths: ToolkitPaths) -> bool:
    """Return True if a directory contains only what our interrupted installer left."""
    record = read_record(host, version, paths)
    entry = manifest.read(paths.manifest).get(SECTION, {}).get(version, {})
    return record is not None and not record.complete and entry.get("existed") is False and host.isdir(path)


def refresh_linker_cache(host: Host) -> None:
    answer = host.run(["ldconfig"], LINKER_LIMIT)
    if answer.rc != 0:
        raise RunfileError(
            "ldconfig ended with %d (%s). Repair what it names, then run again"
            % (answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def remove_leftovers(path: str) -> List[str]:
    """Delete cuDNN's files, dangling links and empty directories of a removed toolkit; returns the files left."""
    left = []
    for directory, _, _ in os.walk(path, topdown=False):
        for name in sorted(os.listdir(directory)):
            file = os.path.join(directory, name)
            if cuda.CUDNN_FILE.match(name) or (os.path.islink(file) and not os.path.exists(file)):
                os.unlink(file)
            elif os.path.islink(file) or not os.path.isdir(file):
                left.append(file)
        if not os.listdir(directory):
            os.rmdir(directory)
    return left


def remove_links(host: Host, path: str, paths: ToolkitPaths) -> List[str]:
    """Remove an uninstalled toolkit from update-alternatives, and a plain link to it."""
    default = paths.default
    group = cuda.read_group(host, default.link, default.states)
    if group is not None and path in group.candidates:
        cuda_default.remove_candidate(host, path, default)
    if not is_dangling(host, path, default):
        return []
    manifest_notes.note(
        "alternatives", {cuda.GROUP: {"before": path, "mode": "link", "link": default.link}}, paths.manifest
    )
    os.unlink(default.link)
    return [default.link]


def _delete(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
