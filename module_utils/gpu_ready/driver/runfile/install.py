"""Run NVIDIA's .run installer of the driver, and remove what it installed.

The old driver stays until the new one is built: the file is fetched and verified first, and what would make the
installer refuse is checked; the installer then builds its modules, runs the uninstaller of an earlier .run driver, and
installs itself. The file ``runfile-pending`` exists from before the installer starts until all is done, so the next run
repairs an interrupted one.
"""

import contextlib
import os
from typing import Dict, Iterator, List, Optional

from ...base import files, manifest, manifest_notes
from ...base.host import Host
from ...base.log_texts import make_log
from . import installed_files, state
from .fetch import UNPACKED, InstallerSource, RunfileLimits, fetch_driver_installer, work_directory
from .messages import LOG, describe_failure
from .spec import ENVIRONMENT, DriverSpec, RunfileError, installer_options

LOGS = (LOG, "/var/log/nvidia-uninstall.log")
DKMS_LIMIT = 1800.0
CHECK_LIMIT = 600.0


def install(
    host: Host, spec: DriverSpec, source: InstallerSource, limits: RunfileLimits, state_dir: str = manifest.DIRECTORY
) -> None:
    """Install a driver, or only build missing modules with DKMS. Raises RunfileError.

    Refusals come before any download, and nothing is changed before the file is verified.
    """
    state.refuse_unbuildable(host, spec)
    kernels = state.kernels_to_build(host, spec, state_dir)
    if kernels:
        build_modules(host, spec.version, kernels)
    else:
        size = os.path.getsize(source.location) if os.path.isfile(source.location) else 0
        with work_directory(size * UNPACKED) as temporary:
            path = fetch_driver_installer(source, spec, host.uname()[1], temporary, limits)
            run_installer(host, spec, path, temporary, limits, state_dir)
    missing = state.missing_parts(host, spec, state_dir)
    if missing:
        raise RunfileError(
            "the installer of the driver %s succeeded, but %s is still missing. See %s and `dkms status` on the host"
            % (spec.version, ", ".join(missing), LOG)
        )


def run_installer(
    host: Host, spec: DriverSpec, path: str, temporary: str, limits: RunfileLimits, state_dir: str = manifest.DIRECTORY
) -> None:
    """Verify the archive and run the installer; then build the modules of each further kernel."""
    environment = dict(ENVIRONMENT, TMPDIR=temporary)
    answer = host.run(["sh", path, "--check"], CHECK_LIMIT, environment)
    if answer.rc != 0:
        raise RunfileError(
            "the archive of the driver %s is damaged (%s). Nothing was changed. Fetch it again"
            % (spec.version, (answer.out + answer.err).strip()[-200:] or "exit status %d" % answer.rc)
        )
    running = host.uname()[0]
    with _pending_mark(host, spec, state_dir) as previous:
        argv = ["sh", path] + installer_options(spec, running, temporary)
        _call_installer(host, spec, argv, limits, environment, previous)
        incomplete = [kernel for kernel in spec.kernels if state.module_differences(host, spec, kernel)]
        build_modules(host, spec.version, incomplete)
        manifest_notes.delete_copied_file(path, state_dir)


@contextlib.contextmanager
def _pending_mark(host: Host, spec: DriverSpec, state_dir: str) -> Iterator[Optional[str]]:
    """Record the driver as ours and mark the installation as pending; an installer that did nothing leaves neither.

    Yields the version of the previous .run driver.
    """
    manifest_path, mark = os.path.join(state_dir, "manifest.json"), os.path.join(state_dir, installed_files.PENDING)
    previous = installed_files.installed_version(host)
    recorded = manifest.read(manifest_path).get("runfile", {}).get("driver")
    entry = dict(recorded or {"before": previous})
    # An installer that is killed leaves the previous driver, which may be ours too.
    entry["versions"] = [version for version in entry.get("versions", []) if version == previous] + [spec.version]
    manifest_notes.replace_note("runfile", "driver", entry, manifest_path)
    files.write_atomic(mark, (spec.version + "\n").encode("ascii"), 0o600)
    try:
        yield previous
    except RunfileError:
        if installed_files.installed_version(host) == previous:
            os.unlink(mark)
            if recorded:
                manifest_notes.replace_note("runfile", "driver", recorded, manifest_path)
            else:
                manifest_notes.drop("runfile", ["driver"], manifest_path)
        raise
    host.sync_disks()
    os.unlink(mark)


def _call_installer(
    host: Host,
    spec: DriverSpec,
    argv: List[str],
    limits: RunfileLimits,
    environment: Dict[str, str],
    previous: Optional[str],
) -> None:
    """Raises RunfileError with the cause that the installer's log reports."""
    answer = host.run(argv, limits.install, environment)
    if answer.rc == 0:
        return
    log = host.read(LOG) or ""
    compiler = make_log(log + answer.out)  # DKMS built: the installer's log only names the log with the cause
    log += "\n" + ((host.read(compiler) if compiler else None) or "")
    why = describe_failure(log, answer.out + "\n" + answer.err, LOG)
    after = "the driver is incomplete"
    if installed_files.installed_version(host) == previous:
        after = "the previous driver %s is still installed" % previous if previous else "no driver was installed"
    raise RunfileError(
        "the installer of the driver %s ended with %d, and %s: %s" % (spec.version, answer.rc, after, why)
    )


def build_modules(host: Host, version: str, kernels: List[str]) -> None:
    """Build and install the modules of kernels with DKMS."""
    for kernel in kernels:
        answer = host.run(["dkms", "install", "-m", "nvidia", "-v", version, "-k", kernel], DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0:
            path = "/var/lib/dkms/nvidia/%s/build/make.log" % version
            log = host.read(path) or ""
            why = describe_failure(log, answer.out + "\n" + answer.err, path)
            raise RunfileError(
                "DKMS could not build the driver %s for the kernel %s (it ended with %d): %s"
                % (version, kernel, answer.rc, why)
            )


def remove(host: Host, state_dir: str = manifest.DIRECTORY) -> List[str]:
    """Remove a .run driver with its own uninstaller, and what that leaves; returns what was removed, for messages.

    Modules in use stay loaded until they are unloaded or the host reboots. The uninstaller exits with 0 even if it
    failed, so its result is checked. Raises RunfileError.
    """
    version, program = installed_files.installed_version(host), installed_files.find_uninstaller(host)
    removed = []
    if program:
        argv = [program, "--silent"] + (["--uninstall"] if program == installed_files.UNINSTALLERS[1] else [])
        answer = host.run(argv, DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0 or installed_files.installed_version(host) or installed_files.find_uninstaller(host):
            why = describe_failure(host.read(LOGS[1]) or "", answer.out + "\n" + answer.err)
            raise RunfileError(
                "%s did not remove the driver %s (it ended with %d): %s"
                % (program, version or "of an unknown version", answer.rc, why)
            )
        removed.append("the driver %s" % (version or "of a .run installer"))
    elif version:
        raise RunfileError(
            "%s lists the .run driver %s, but its uninstaller is missing. Install the same version again with its "
            "installer, then remove it" % (installed_files.BACKUP_LOG, version)
        )
    if version and host.isdir("/var/lib/dkms/nvidia/" + version):
        answer = host.run(["dkms", "remove", "-m", "nvidia", "-v", version, "--all"], DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0:
            raise RunfileError(
                "DKMS could not remove nvidia %s (%s). See `dkms status` on the host"
                % (version, (answer.err or answer.out).strip()[-300:])
            )
        removed.append("its modules in DKMS")
    for path in LOGS + (os.path.join(state_dir, installed_files.PENDING),):
        if removed and os.path.exists(path):
            os.unlink(path)
    manifest_notes.drop("runfile", ["driver"], os.path.join(state_dir, "manifest.json"))
    return removed
