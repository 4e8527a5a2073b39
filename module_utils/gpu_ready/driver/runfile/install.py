"""NVIDIA's .run installer of the driver: run it, and take away what it installed.

The order keeps the driver that is there until the new one is built: the file is fetched beside everything else and its
checksum proved; what would make the installer refuse is looked for and said in words; then the installer builds its
modules, has the uninstaller of an earlier .run driver take that one away, and installs itself. A mark lies on the disk
(``runfile-pending``) from before the installer's start until all is done, so a killed run is repaired.
"""

import contextlib
import os
from typing import Dict, Iterator, List, Optional

from ...base import files, manifest
from ...base.host import Host
from . import fetch as runfile_fetch
from . import installed_files
from . import messages as runfile_text
from . import state as runfile_state
from .fetch import Limits, Source
from .messages import ENVIRONMENT, RunfileError, Wish
from .state import module_lacks

LOGS = (runfile_text.LOG, "/var/log/nvidia-uninstall.log")
DKMS_LIMIT = 1800.0
CHECK_LIMIT = 600.0


def install(host: Host, wish: Wish, source: Source, limits: Limits, folder: str = manifest.FOLDER) -> None:
    """Install a driver, or only build the modules that kernels lack. Raises RunfileError.

    Refusals come before anything is fetched, and nothing is changed before the file is proved.
    """
    runfile_state.refuse_unbuildable(host, wish)
    builds = runfile_state.only_builds(host, wish, folder)
    if builds:
        dkms(host, wish.version, builds)
    else:
        size = os.path.getsize(source.location) if os.path.isfile(source.location) else 0
        with runfile_fetch.workplace(size * runfile_fetch.UNPACKED) as temporary:
            path = runfile_fetch.obtain(source, wish, host.uname()[1], temporary, limits)
            run(host, wish, path, temporary, limits, folder)
    rest = runfile_state.lacking(host, wish, folder)
    if rest:
        raise RunfileError(
            "the installer of the driver %s ended well, but %s is still missing: see %s and `dkms status` on the host"
            % (wish.version, ", ".join(rest), runfile_text.LOG)
        )


def run(host: Host, wish: Wish, path: str, temporary: str, limits: Limits, folder: str = manifest.FOLDER) -> None:
    """Prove the archive and run the installer; then one DKMS build for each further kernel."""
    environment = dict(ENVIRONMENT, TMPDIR=temporary)
    answer = host.run(["sh", path, "--check"], CHECK_LIMIT, environment)
    if answer.rc != 0:
        raise RunfileError(
            "the archive of the driver %s is damaged (%s): nothing was changed; fetch it again"
            % (wish.version, (answer.out + answer.err).strip()[-200:] or "it ended with %d" % answer.rc)
        )
    running = host.uname()[0]
    with marked(host, wish, folder) as earlier:
        call(host, wish, ["sh", path] + runfile_text.options(wish, running, temporary), limits, environment, earlier)
        if wish.dkms:
            dkms(host, wish.version, [kernel for kernel in wish.kernels if module_lacks(host, wish, kernel)])
        else:
            for kernel in wish.kernels[1:]:
                argv = ["sh", path] + runfile_text.further_options(wish, running, temporary, kernel)
                call(host, wish, argv, limits, environment, earlier)
        manifest.drop_copy(path, folder)


@contextlib.contextmanager
def marked(host: Host, wish: Wish, folder: str) -> Iterator[Optional[str]]:
    """Note that the driver is ours and mark that the work goes on; an installer that did nothing leaves neither.

    Yields the version of the .run driver from before.
    """
    listing, mark = os.path.join(folder, "manifest.json"), os.path.join(folder, installed_files.PENDING)
    earlier, known = installed_files.installed(host), "driver" in manifest.read(listing).get("runfile", {})
    manifest.note("runfile", {"driver": {"before": earlier}}, listing)
    files.write_atomic(mark, (wish.version + "\n").encode("ascii"), 0o600)
    try:
        yield earlier
    except RunfileError:
        if installed_files.installed(host) == earlier:
            os.unlink(mark)
            if not known:
                manifest.drop("runfile", ["driver"], listing)
        raise
    host.settle()
    os.unlink(mark)


def call(
    host: Host, wish: Wish, argv: List[str], limits: Limits, environment: Dict[str, str], earlier: Optional[str]
) -> None:
    """Run the installer once; RunfileError with the cause that its log names."""
    answer = host.run(argv, limits.install, environment)
    if answer.rc == 0:
        return
    from ...diagnostics import failure

    log = host.read(runfile_text.LOG) or ""
    compiler = failure.make_log(log + answer.out)  # DKMS built: the installer's log only names the one with the reason
    log += "\n" + ((host.read(compiler) if compiler else None) or "")
    why = runfile_text.explain(log, answer.out + "\n" + answer.err)
    after = "its work is half done"
    if installed_files.installed(host) == earlier:
        after = "the driver %s that was here is still in place" % earlier if earlier else "no driver was installed"
    raise RunfileError(
        "the installer of the driver %s ended with %d: %s; %s; the whole log is %s on the host"
        % (wish.version, answer.rc, runfile_text.sentence(why), after, runfile_text.LOG)
    )


def dkms(host: Host, version: str, kernels: List[str]) -> None:
    """Have DKMS build and install the modules for kernels, one build each."""
    for kernel in kernels:
        answer = host.run(["dkms", "install", "-m", "nvidia", "-v", version, "-k", kernel], DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0:
            path = "/var/lib/dkms/nvidia/%s/build/make.log" % version
            log = host.read(path) or ""
            why = runfile_text.explain(log, answer.out + "\n" + answer.err)
            raise RunfileError(
                "DKMS could not build the driver %s for the kernel %s (it ended with %d): %s; the whole log is %s"
                % (version, kernel, answer.rc, runfile_text.sentence(why), path)
            )


def remove(host: Host, folder: str = manifest.FOLDER) -> List[str]:
    """Take a .run driver away with its own uninstaller, and what that one leaves; return what went, in words.

    Modules in use stay loaded until they are unloaded or the host reboots. The uninstaller ends with 0 even where it
    failed, so the host is looked at afterwards. Raises RunfileError.
    """
    version, program = installed_files.installed(host), installed_files.uninstaller(host)
    gone = []
    if program:
        argv = [program, "--silent"] + (["--uninstall"] if program == installed_files.UNINSTALLERS[1] else [])
        answer = host.run(argv, DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0 or installed_files.installed(host) or installed_files.uninstaller(host):
            why = runfile_text.explain(host.read(LOGS[1]) or "", answer.out + "\n" + answer.err)
            raise RunfileError(
                "%s did not take the driver %s away (it ended with %d): %s"
                % (program, version or "of an unknown version", answer.rc, runfile_text.sentence(why))
            )
        gone.append("the driver %s" % (version or "of a .run installer"))
    elif version:
        raise RunfileError(
            "the .run driver %s is listed in %s, but its uninstaller is gone: install the same version again with its "
            "installer, then remove it" % (version, installed_files.BACKUP_LOG)
        )
    if version and host.isdir("/var/lib/dkms/nvidia/" + version):
        answer = host.run(["dkms", "remove", "-m", "nvidia", "-v", version, "--all"], DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0:
            raise RunfileError(
                "DKMS does not forget nvidia %s (%s): see `dkms status` on the host"
                % (version, (answer.err or answer.out).strip()[-300:])
            )
        gone.append("its modules in DKMS")
    for path in LOGS + (os.path.join(folder, installed_files.PENDING),):
        if gone and os.path.exists(path):
            os.unlink(path)
    manifest.drop("runfile", ["driver"], os.path.join(folder, "manifest.json"))
    return gone
