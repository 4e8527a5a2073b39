"""NVIDIA's .run installer: fetch it, judge it, run it, and take away what it installed.

The order keeps the driver that is there until the new one is built: the file is fetched beside everything else and its
checksum proved; what would make the installer refuse is looked for and said in words; then the installer builds its
modules, has the uninstaller of an earlier .run driver take that one away, and installs itself. A mark lies on the disk
(``runfile-pending``) from before the installer's start until all is done, so a killed run is repaired.
"""

import contextlib
import errno
import fcntl
import hashlib
import http.client
import os
import re
import shutil
import socket
import tempfile
import time
import urllib.error
import urllib.parse
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from . import driver, files, kernel_module, manifest, runfile_text
from .download import open_url
from .host import Host
from .runfile_text import Wish

BACKUP_LOG = "/var/lib/nvidia/log"
UNINSTALLERS = ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer")
LOGS = (runfile_text.LOG, "/var/log/nvidia-uninstall.log")
PENDING = "runfile-pending"
WORKPLACES = ("/var/tmp", manifest.FOLDER, "/root", "/tmp")
PREFIX = "gpu-ready-runfile-"
LOCK = "/run/gpu-ready-runfile.lock"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
LIBRARY = re.compile(r"^lib(?:nvidia-ml|cuda)\.so\.\d+\.\d+(?:\.\d+)?$")
TOOLS = ("cc", "make", "ld")
UNPACKED = 4
"""How many times its own size an installer needs beside itself: unpacked files and built modules."""
CHUNK = 1 << 20
DIGITS = {"sha256": 64, "md5": 32}
HEAD = 1 << 16
CHECKSUM_LIMIT = 1 << 20
DKMS_LIMIT = 1800.0
CHECK_LIMIT = 600.0


class RunfileError(Exception):
    """The driver cannot be installed or removed; one sentence with cause and remedy."""


class Source(NamedTuple):
    """Where an installer comes from: a URL or a path on this host, and what proves it ("" where nothing does).

    The URLs name lists of checksums; an md5 is what NVIDIA states of toolkits, and it proves what a broken transfer or
    a mirror did to a file, not what an attacker did.
    """

    location: str
    sha256: str = ""
    sha256_url: str = ""
    md5_url: str = ""


class Proof(NamedTuple):
    """A checksum: the algorithm's name and the digits, "" where nothing proves a file."""

    algorithm: str
    digits: str


class Limits(NamedTuple):
    """Seconds without a byte, for the whole download, and for the installer's run."""

    silence: float = 60.0
    download: float = 3600.0
    install: float = 3600.0


# ---- what is here ---------------------------------------------------------------------------------------------------


def installed(host: Host) -> Optional[str]:
    """Return the version of the driver that a .run installer installed here, None where none did."""
    return runfile_text.read_backup_log(host.read(BACKUP_LOG) or "")


def uninstaller(host: Host) -> Optional[str]:
    """Return the uninstaller of a .run driver, None where there is none."""
    return next((path for path in UNINSTALLERS if host.exists(path)), None)


def libraries(host: Host) -> List[str]:
    """Return the paths of the driver's management and CUDA libraries."""
    return [
        "%s/%s" % (folder, name) for folder in LIBRARY_FOLDERS for name in host.listdir(folder) if LIBRARY.match(name)
    ]


def pending(host: Host, folder: str = manifest.FOLDER) -> bool:
    """Return whether a run of the installer was cut off, so that what it left cannot be trusted."""
    return host.exists(os.path.join(folder, PENDING))


def lacking(host: Host, wish: Wish, folder: str = manifest.FOLDER) -> List[str]:
    """Return what is not as wished, in words; [] when there is nothing to do."""
    there = installed(host)
    if there != wish.version:
        return ["the .run driver " + wish.version + (" in place of " + there if there else "")]
    found = ["the rest of an installation that was cut off"] if pending(host, folder) else []
    if not any(path.endswith(".so." + wish.version) for path in libraries(host)):
        found.append("the libraries of " + wish.version)
    return found + [words for kernel in wish.kernels for words in module_lacks(host, wish, kernel)]


def module_lacks(host: Host, wish: Wish, kernel: str) -> List[str]:
    """Return what the module that modprobe would load under a kernel lacks, in words; [] where it is right."""
    info = driver.read_modinfo(host.run(["modinfo", "-k", kernel, "nvidia"]).out)
    if info.version is None:
        return ["the module for " + kernel]
    if info.version != wish.version:
        return ["the module %s in place of %s for %s" % (wish.version, info.version, kernel)]
    if info.flavour != wish.flavour:
        return ["the %s module in place of the %s one for %s" % (wish.flavour, info.flavour or "unknown", kernel)]
    return []


def only_builds(host: Host, wish: Wish, folder: str = manifest.FOLDER) -> List[str]:
    """Return the kernels that DKMS can serve from what is installed, [] where the installer has to run."""
    absent = [kernel for kernel in wish.kernels if module_lacks(host, wish, kernel) == ["the module for " + kernel]]
    whole = wish.dkms and len(lacking(host, wish, folder)) == len(absent) < len(wish.kernels)
    return absent if whole and host.isdir("/usr/src/nvidia-" + wish.version) else []


# ---- refusals -------------------------------------------------------------------------------------------------------


def owners(host: Host, kernels: List[str]) -> Dict[str, str]:
    """Return the packages that own files of a driver here, each with one of its files."""
    paths = [path for path in ("/usr/bin/nvidia-smi", UNINSTALLERS[0]) if host.exists(path)] + libraries(host)
    sources = ["/usr/src/%s/dkms.conf" % name for name in host.listdir("/usr/src") if name.startswith("nvidia-")]
    paths += [path for path in sources if host.exists(path)]
    for kernel in kernels:
        match = re.search(r"(?m)^filename:\s+(/\S+)$", host.run(["modinfo", "-k", kernel, "nvidia"]).out)
        paths += [match.group(1)] if match else []
    real = sorted({host.realpath(path) for path in paths})
    if not real:
        return {}
    if host.exists("/var/lib/dpkg/status"):
        # A merged /usr has each path under two names, and a package knows only the one that it was built with.
        both = real + [path[len("/usr") :] for path in real if path.startswith("/usr/lib")]
        return read_dpkg_owners(host.run(["dpkg-query", "-S"] + both).out)
    return read_rpm_owners(host.run(["rpm", "-qf", "--queryformat", "%{NAME}\\n"] + real).out, real)


def read_dpkg_owners(text: str) -> Dict[str, str]:
    """Read `dpkg-query -S`: "package:arch, package: /path" for each path that a package owns."""
    found = {}
    for line in text.splitlines():
        names, colon, path = line.rpartition(": ")
        if colon and path.startswith("/") and not names.startswith("diversion "):
            found.update({name.split(":")[0]: path for name in names.split(", ")})
    return found


def read_rpm_owners(text: str, paths: List[str]) -> Dict[str, str]:
    """Read `rpm -qf`: for each path a package's name, or a sentence that nobody owns it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    pairs = zip(lines, paths)  # noqa: B905 - strict= is younger than the hosts' Python
    return {line: path for line, path in pairs if " " not in line and "/" not in line}


def refuse_packages(host: Host, wish: Wish) -> None:
    """Raise RunfileError where packages own a driver: an installer over them leaves neither whole."""
    found = owners(host, wish.kernels)
    if found:
        names = sorted(found)
        raise RunfileError(
            "the driver on this host belongs to packages (%s%s; %s, for instance), and the .run installer of %s would "
            "write over their files: remove these packages first, or set nvidia_driver_source to a package source"
            % (", ".join(names[:5]), ", ..." if len(names) > 5 else "", found[names[0]], wish.version)
        )


def refuse_foreign(host: Host, ours: bool, replace: bool) -> None:
    """Raise RunfileError for a .run driver of somebody else that nobody allowed to replace."""
    old = uninstaller(host)
    if (installed(host) or old) and not ours and not replace:
        raise RunfileError(
            "a .run installer that gpu-ready did not run has installed the driver %s here (%s): set "
            "nvidia_driver_replace_foreign to true to have it replaced, or nvidia_driver_source to none to keep it"
            % (installed(host) or "of an unknown version", old or BACKUP_LOG)
        )


def refuse_flavour(wish: Wish) -> None:
    """Raise RunfileError where a release has no modules of the flavour."""
    if wish.flavour == driver.OPEN and runfile_text.before(wish.version, runfile_text.OPEN_MODULES):
        raise RunfileError(
            "the driver %s has no open kernel modules (they came with branch 515): set nvidia_driver_flavour to "
            "proprietary, or choose a newer branch" % wish.version
        )


def refuse_unbuildable(host: Host, wish: Wish) -> None:
    """Raise RunfileError where headers or tools are missing, or the installer would mind what is in use."""
    for kernel in wish.kernels:
        if not host.exists("/lib/modules/%s/build" % kernel):
            raise RunfileError(
                "the headers of the kernel %s are missing (/lib/modules/%s/build), so the .run installer cannot build "
                "its modules: install them, or boot a kernel that has its headers" % (kernel, kernel)
            )
    missing = [name for name in TOOLS + (("dkms",) if wish.dkms else ()) if host.which(name) is None]
    if missing:
        raise RunfileError(
            "the .run installer of %s needs %s to build its kernel modules, and that is not installed here: install it "
            "(packages gcc, make, binutils, dkms)" % (wish.version, " and ".join(missing))
        )
    if not runfile_text.before(wish.version, runfile_text.RUNNING_DRIVER):
        return
    bound = [name for name in host.listdir("/sys/bus/pci/drivers/nouveau") if name[:1].isdigit()]
    if bound:
        raise RunfileError(
            "nouveau drives the GPU %s, and the installer of %s proves its module by loading it: reboot the host, so "
            "that its blacklist keeps nouveau away, then run again" % (bound[0], wish.version)
        )
    held = kernel_module.held(host, kernel_module.loaded(host))
    if held:
        raise RunfileError(
            "%s uses the loaded NVIDIA driver, and the installer of %s replaces none that is in use: end it or reboot "
            "the host, then run again" % (held, wish.version)
        )


# ---- the file -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def workplace(needed: int = 0) -> Iterator[str]:
    """Give a folder of our own where programs may run, with room; it goes with all that is in it."""
    with open(LOCK, "w", encoding="ascii") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunfileError(
                "another run works with a .run installer on this host just now (%s is locked): wait for it, then run "
                "again" % LOCK
            ) from error
        for root in WORKPLACES:
            for name in os.listdir(root) if os.path.isdir(root) else []:
                if name.startswith(PREFIX):  # a killed run left it: the lock says that it runs no more
                    shutil.rmtree(os.path.join(root, name))
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=place(needed))
        try:
            yield folder
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise RunfileError("the disk under %s is full: make room there, then run again" % folder) from error
            raise
        finally:
            shutil.rmtree(folder)


def place(needed: int) -> str:
    """Return a folder with so many bytes free where programs may run (a /tmp that is mounted noexec is none)."""
    tried = []
    for root in WORKPLACES:
        if not os.path.isdir(root):
            continue
        state = os.statvfs(root)
        free = state.f_bavail * state.f_frsize
        if state.f_flag & os.ST_NOEXEC:
            tried.append("%s is mounted noexec" % root)
        elif free < needed:
            tried.append("%s has %d MiB free" % (root, free >> 20))
        else:
            return root
    raise RunfileError(
        "the .run installer needs a folder for %d MiB where programs may run, and there is none (%s): make room in one "
        "of them, or mount it without noexec" % (needed >> 20, ", ".join(tried))
    )


def obtain(source: Source, wish: Wish, machine: str, folder: str, limits: Limits) -> str:
    """Return the path of the installer on this host, fetched where it is a URL, proved and of the right version."""
    path = fetch(source, folder, limits)
    judge(path, source.location, wish, machine)
    return path


def fetch(source: Source, folder: str, limits: Limits, unpacked: int = UNPACKED) -> str:
    """Return the path of a file on this host, proved by its checksum; one of a URL is brought into ``folder``.

    ``unpacked`` is how many times its own size the file will need there beside itself.
    """
    name = urllib.parse.unquote(source.location.rpartition("/")[2])
    wanted = expected(source, name, folder, limits)
    path = source.location
    if "://" in source.location:
        if not wanted.digits and not source.location.startswith("https://"):
            raise RunfileError(
                "nothing proves %s: it comes without encryption and without a checksum or the address of one; give its "
                "sha256, or use https" % source.location
            )
        path = os.path.join(folder, "installer.run")
        found = download(source.location, path, limits, 0, wanted.algorithm, unpacked)
    elif not os.path.isfile(path):
        raise RunfileError("there is no installer %s on this host: check the path, or give a URL" % path)
    else:
        found = digest(path, wanted.algorithm)
    if wanted.digits and found != wanted.digits:
        raise RunfileError(
            "%s has %s %s, expected %s: it is damaged or not the file that is meant; nothing was changed; correct "
            "the checksum, or repair the mirror" % (source.location, wanted.algorithm, found, wanted.digits)
        )
    return path


def expected(source: Source, name: str, folder: str, limits: Limits) -> Proof:
    """Return the checksum that is given, or that a list on the server names; without digits where there is neither."""
    url = source.sha256_url or source.md5_url
    if source.sha256 or not url:
        return Proof("sha256", source.sha256.lower())
    algorithm = "sha256" if source.sha256_url else "md5"
    listing = os.path.join(folder, algorithm + "sum")
    download(url, listing, limits, CHECKSUM_LIMIT)
    with open(listing, encoding="utf-8", errors="replace") as handle:
        found = runfile_text.read_checksum(handle.read(), name, DIGITS[algorithm])
    if found is None:
        raise RunfileError(
            "%s names no %s of %s: nothing was changed; give the sha256 itself, or repair the mirror"
            % (url, algorithm, name)
        )
    return Proof(algorithm, found)


def hasher(algorithm: str) -> Any:
    """Return a new sum; RunfileError where this host's Python refuses the algorithm, as one in FIPS mode does md5."""
    try:
        return hashlib.new(algorithm)
    except ValueError as error:
        raise RunfileError(
            "this host calculates no %s (%s), so the file cannot be proved: give its sha256" % (algorithm, error)
        ) from error


def digest(path: str, algorithm: str = "sha256") -> str:
    """Return the checksum of a file."""
    total = hasher(algorithm)
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(CHUNK), b""):
            total.update(block)
    return str(total.hexdigest())


def judge(path: str, said: str, wish: Wish, machine: str) -> None:
    """Raise RunfileError where a file is no installer of the wished driver for this machine, by its own words."""
    with open(path, "rb") as handle:
        found = runfile_text.read_head(handle.read(HEAD).decode("utf-8", "replace"))
    if found is None:
        raise RunfileError("%s is no .run installer of NVIDIA's driver: check its address" % said)
    if found != (machine, wish.version):
        raise RunfileError(
            "%s holds the driver %s for %s, wanted is %s for %s: correct its address or nvidia_driver_version"
            % (said, found[1], found[0], wish.version, machine)
        )


def download(
    url: str, path: str, limits: Limits, most: int = 0, algorithm: str = "sha256", unpacked: int = UNPACKED
) -> str:
    """Write the body of ``url`` to ``path`` and return its checksum; ``most`` bytes are read (0: any number)."""
    deadline = time.monotonic() + limits.download
    total, size = hasher(algorithm), 0
    try:
        with open_url(url, limits.silence) as answer, open(path, "wb") as handle:
            length = answer.headers.get("Content-Length") or ""
            if length.isdigit() and not most:
                room(os.path.dirname(path), int(length) * (1 + unpacked), url)
            for block in iter(lambda: answer.read(CHUNK), b""):
                handle.write(block)
                total.update(block)
                size += len(block)
                if most and size > most:
                    raise RunfileError("%s is longer than %d bytes: it is not the file that is meant" % (url, most))
                if time.monotonic() > deadline:
                    raise _unfetched(url, "only %d bytes came in %g s" % (size, limits.download))
    except urllib.error.HTTPError as error:
        raise RunfileError(
            "%s: the server answered %d (%s); nothing was changed; check the version, and that gpu_ready_mirror holds "
            "this file" % (url, error.code, error.reason)
        ) from error
    except socket.timeout as error:
        raise _unfetched(url, "no answer in %g s" % limits.silence) from error
    except urllib.error.URLError as error:
        raise _unfetched(url, str(error.reason)) from error
    except (http.client.HTTPException, ConnectionError, ValueError) as error:
        raise _unfetched(url, "%s after %d bytes" % (str(error) or type(error).__name__, size)) from error
    if length.isdigit() and int(length) != size:
        raise _unfetched(url, "the connection ended after %d of %s bytes" % (size, length))
    return str(total.hexdigest())


def room(folder: str, needed: int, said: str) -> None:
    """Raise RunfileError where an installer cannot be unpacked and do its work; ``needed`` in bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise RunfileError(
            "%s needs %d MiB under %s (the file, and what is unpacked and built from it), but %d MiB are free: make "
            "room there, then run again" % (said, needed >> 20, os.path.dirname(folder), free >> 20)
        )


def _unfetched(url: str, cause: str) -> RunfileError:
    return RunfileError(
        "%s could not be fetched: %s; nothing was changed; check that this host reaches it (proxy, DNS, firewall), "
        "or set gpu_ready_mirror" % (url, cause)
    )


# ---- change ---------------------------------------------------------------------------------------------------------


def install(host: Host, wish: Wish, source: Source, limits: Limits, folder: str = manifest.FOLDER) -> None:
    """Install a driver, or only build the modules that kernels lack. Raises RunfileError.

    Refusals come before anything is fetched, and nothing is changed before the file is proved.
    """
    refuse_unbuildable(host, wish)
    builds = only_builds(host, wish, folder)
    if builds:
        dkms(host, wish.version, builds)
    else:
        size = os.path.getsize(source.location) if os.path.isfile(source.location) else 0
        with workplace(size * UNPACKED) as temporary:
            path = obtain(source, wish, host.uname()[1], temporary, limits)
            run(host, wish, path, temporary, limits, folder)
    rest = lacking(host, wish, folder)
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
    listing, mark = os.path.join(folder, "manifest.json"), os.path.join(folder, PENDING)
    earlier, known = installed(host), "driver" in manifest.read(listing).get("runfile", {})
    manifest.note("runfile", {"driver": {"before": earlier}}, listing)
    files.write_atomic(mark, (wish.version + "\n").encode("ascii"), 0o600)
    try:
        yield earlier
    except RunfileError:
        if installed(host) == earlier:
            os.unlink(mark)
            if not known:
                manifest.drop("runfile", ["driver"], listing)
        raise
    os.unlink(mark)


def call(
    host: Host, wish: Wish, argv: List[str], limits: Limits, environment: Dict[str, str], earlier: Optional[str]
) -> None:
    """Run the installer once; RunfileError with the cause that its log names."""
    answer = host.run(argv, limits.install, environment)
    if answer.rc == 0:
        return
    from . import failure  # not above: a look at a host needs none of it, and its tables take time to read

    log = host.read(runfile_text.LOG) or ""
    compiler = failure.make_log(log + answer.out)  # DKMS built: the installer's log only names the one with the reason
    log += "\n" + ((host.read(compiler) if compiler else None) or "")
    why = runfile_text.explain(log, answer.out + "\n" + answer.err)
    after = "its work is half done"
    if installed(host) == earlier:
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
    version, program = installed(host), uninstaller(host)
    gone = []
    if program:
        argv = [program, "--silent"] + (["--uninstall"] if program == UNINSTALLERS[1] else [])
        answer = host.run(argv, DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0 or installed(host) or uninstaller(host):
            why = runfile_text.explain(host.read(LOGS[1]) or "", answer.out + "\n" + answer.err)
            raise RunfileError(
                "%s did not take the driver %s away (it ended with %d): %s"
                % (program, version or "of an unknown version", answer.rc, runfile_text.sentence(why))
            )
        gone.append("the driver %s" % (version or "of a .run installer"))
    elif version:
        raise RunfileError(
            "the .run driver %s is listed in %s, but its uninstaller is gone: install the same version again with its "
            "installer, then remove it" % (version, BACKUP_LOG)
        )
    if version and host.isdir("/var/lib/dkms/nvidia/" + version):
        answer = host.run(["dkms", "remove", "-m", "nvidia", "-v", version, "--all"], DKMS_LIMIT, ENVIRONMENT)
        if answer.rc != 0:
            raise RunfileError(
                "DKMS does not forget nvidia %s (%s): see `dkms status` on the host"
                % (version, (answer.err or answer.out).strip()[-300:])
            )
        gone.append("its modules in DKMS")
    for path in LOGS + (os.path.join(folder, PENDING),):
        if gone and os.path.exists(path):
            os.unlink(path)
    manifest.drop("runfile", ["driver"], os.path.join(folder, "manifest.json"))
    return gone
