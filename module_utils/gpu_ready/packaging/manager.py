"""The common interface of apt, dnf and yum, and what gpu-ready refuses to do with them."""

import contextlib
import os
import re
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ..base import validation
from ..base.errors import GpuReadyError
from ..base.evidence import FailureEvidence, Search, explained_later, outside_evidence
from ..base.host import TIMED_OUT, Host, Result
from ..base.locks import describe_process
from ..base.log_texts import key_line, make_log
from . import proxies
from .locks import describe_holder
from .version_match import version_matches

LOCK_WAIT = 600.0
REPORTS = (5.0, 30.0)
"""Seconds after which a process that holds a lock is reported for the first time, and again."""
RUN_LIMIT = 5400.0
"""Seconds for one call that changes packages: on a slow machine DKMS compiles for each installed kernel."""
DISK_RESERVE = 64 * 1024 * 1024
"""Bytes that must stay free after an installation."""
WRITTEN = ("/etc", "/usr", "/var")
"""Directories that every installation writes to."""
KERNEL = re.compile(
    r"linux-image-|kernel(?:6\.\d+)?(?:-(?:uek|lt|ml|rt|64k|16k|debug|PAE))*(?:-(?:core|modules(?!-extra).*|virt.*))?(?:-\d.*)?$"
)
"""Kernel packages of all distributions, without headers, kernel-devel and extra modules."""
HEADERS = re.compile(r"(?:linux|proxmox)-headers-|kernel[\w.-]*-devel-(?:matched-)?\d")
BUILD_FAILED = "dkms_failed"
"""Code of the cause that only says that a DKMS build failed."""
DKMS_DRIVER = r"nvidia(?!-fs|-peer)[\w-]*"
"""The driver's modules in DKMS: nvidia, nvidia-open, nvidia-current, nvidia-srv; not nvidia-fs, nvidia-peermem."""
DKMS_BUILD = re.compile(
    r"Bad return status for module build on kernel: (\S+)[^\n]*(?:\n\s*Consult /var/lib/dkms/([^/\s]+/[^/\s]+)/[^\n]*)?"
)
GROUPS = {
    "docker": ("docker.io", "docker-ce", "moby-engine", "docker"),
    "nvidia-persistenced": ("nvidia-persistenced", "nvidia-persistenced-latest-dkms"),
}
"""Groups that remain when their package is removed, by the packages whose installation created them."""
USERS = {"nvidia-persistenced": GROUPS["nvidia-persistenced"]}
"""Users that remain when their package is removed, by the packages whose installation created them."""
LEFTOVERS = {
    "/etc/docker/key.json": ("docker.io", "docker-ce", "moby-engine", "docker"),
    "/var/lib/dkms/mok.key": ("dkms",),
    "/var/lib/dkms/mok.pub": ("dkms",),
}
"""Files that remain when the packages whose programs wrote them are removed."""
WRONG_SIGNATURE = "The mirror serves something else than its owner signed, or signs with another key"
WRONG_CLOCK = "Compare the clock of this host with another one (`timedatectl`) and set it, by NTP"


class PackageError(GpuReadyError):
    """A package operation is impossible or failed.

    Package managers print complete URLs of their sources: a user and a password in one are masked.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(outside_evidence(validation.mask_secrets, text))


class TransactionKilled(PackageError):
    """A package operation was ended at its time limit or by a signal."""


class FailedBuild(NamedTuple):
    """A DKMS build that failed: the compiler's log, if one is named, else what the package manager printed."""

    path: Optional[str]
    text: str
    of_driver: bool


class FailedChange(PackageError):
    """A call that changes packages failed with a DKMS build; the message is ``call`` and why the build failed."""

    def __init__(self, call: str, build: FailedBuild, why: str) -> None:
        super().__init__(call + why)
        self.call = call
        self.build = build


class PackageSpec(NamedTuple):
    """A package by name, with an exact version, a prefix that ends in ``*``, or any version."""

    name: str
    version: Optional[str] = None


class Installed(NamedTuple):
    """A package of the database: version, state (``installed``, ``config-files``, ...), held or not."""

    version: str
    state: str
    hold: bool


class Simulation(NamedTuple):
    """What a call would do: version before (None for a new package) and after by name; packages that it removes.

    ``fetch`` and ``unpacked`` are bytes, where the manager prints them.
    """

    install: Dict[str, Tuple[Optional[str], str]]
    remove: List[str]
    fetch: int = 0
    unpacked: int = 0

    @property
    def new(self) -> List[str]:
        return sorted(name for name, (before, _) in self.install.items() if before is None)


class PackageChange(NamedTuple):
    """One transaction: packages to install, to remove, and those that it may remove because others conflict."""

    install: List[PackageSpec]
    remove: List[str]
    allowed: List[str]


def package_specs(values: List[Any]) -> List[PackageSpec]:
    """Return specs from names or {name, version}; an empty version means any."""
    found = []
    for value in values:
        if isinstance(value, dict):
            version = value.get("version")
            found.append(PackageSpec(str(value["name"]), str(version) if version not in (None, "") else None))
        else:
            found.append(PackageSpec(str(value)))
    return found


def pins_parts(value: Any) -> bool:
    """Return True if an exact version of a metapackage is requested and its parts must match."""
    return isinstance(value, dict) and bool(value.get("parts")) and bool(value.get("version"))


def is_installed(installed: Dict[str, Installed], name: str) -> bool:
    """Return True if a package is installed completely."""
    return name in installed and installed[name].state == "installed"


def list_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:5]) + (" and %d more" % (len(names) - 5) if len(names) > 5 else "")


def format_megabytes(count: int) -> str:
    return "%d MB" % (count // 1000000)


def describe_missing_headers(name: str, unread: str = "") -> str:
    """``unread``: the sources that were not read, as describe_failed_sources() lists them. One of them may have it."""
    if unread:
        return (
            "%s (kernel headers) is in no package source that could be read%s. Repair these sources, "
            "then run this again" % (name, unread)
        )
    return (
        "%s is in no package source of this host: the archive no longer carries the headers of that kernel. "
        "Upgrade the kernel together with its headers and reboot, or add a source that keeps old kernels "
        "(a snapshot or vault archive), or install the headers package yourself" % name
    )


def describe_missing_version(spec: PackageSpec, versions: List[str]) -> str:
    return (
        "%s %s is in no package source of this host (offered: %s). Choose an offered version, or enable the source "
        "that has it" % (spec.name, spec.version, ", ".join(versions[:8]) or "none")
    )


def choose_version(spec: PackageSpec, offered: List[str], why: str = "") -> str:
    """Return the newest offered version that matches.

    PackageError names what is offered instead, and ends with ``why``.
    """
    matching = [version for version in offered if version_matches(spec.version, version)]
    if not matching:
        raise PackageError(describe_missing_version(spec, offered) + why)
    return matching[0]


def describe_full_disk(text: str) -> Optional[str]:
    """Return the message for a full file system (ENOSPC, EDQUOT in the kernel's words), None if the text reports none.

    ENOSPC has three causes: no free blocks, no free inodes, and too few watches of inotify, which systemctl reports as
    "Failed to add /run/systemd/ask-password to directory watch: No space left on device".
    """
    lines = [
        " ".join(line.split())[:300]
        for line in text.splitlines()
        if re.search(r"No space left on device|Disk quota exceeded", line) and "watch" not in line
    ]
    return (
        "a disk is full, no free space left or no free inodes (%s). See `df -h` and `df -i`, free some, then run again"
        % lines[0]
        if lines
        else None
    )


def describe_stopped_call(answer: Result) -> str:
    """Return the message for a call that was ended by us or by a signal."""
    if answer.rc == TIMED_OUT:
        return "it was ended (%s). Run again: that repairs what is incomplete" % (
            answer.err.strip()[-200:] or "no answer"
        )
    memory = " (9: also by the kernel where memory runs out, see `dmesg`)" if answer.rc == -9 else ""
    return "signal %d ended it%s. Run again: that repairs what is incomplete" % (-answer.rc, memory)


def find_dkms_failure(what: str, text: str) -> Optional[str]:
    """Return the message for a failed DKMS build, None if the text reports none. The log that it names has the cause.

    New headers make DKMS build all modules of a host. If only third-party modules fail, the message names one.
    """
    match = find_dkms_build(text)
    if match is None or is_driver_build(match):
        return match and "%s: DKMS could not build the module for kernel %s" % (what, match.group(1))
    return (
        "%s: DKMS could not build %s for kernel %s, which is no part of the driver. Repair it or remove it "
        "(`dkms remove %s --all`), then run again" % (what, match.group(2), match.group(1), match.group(2))
    )


def find_dkms_build(text: str) -> Optional["re.Match[str]"]:
    """Return the report of a failed DKMS build, first of a driver's module.

    Kernel, and "name/version" where it is named.
    """
    found = sorted(DKMS_BUILD.finditer(text), key=lambda match: not is_driver_build(match))
    return found[0] if found else re.search(r"Error! .*?kernel(?: version)?:? (\d\S+)()", text)


def is_driver_build(match: Optional["re.Match[str]"]) -> bool:
    """Return True if a report of :func:`find_dkms_build` is of a driver's module, or of one without a name."""
    return match is not None and (not match.group(2) or bool(re.match(DKMS_DRIVER + "/", match.group(2))))


def refuse_unrequested(simulation: Simulation, allowed: List[str]) -> None:
    """Raise PackageError when a transaction would do what nobody requested: install a kernel, or remove a package."""
    kernels = [name for name in simulation.new if KERNEL.match(name)]
    if kernels:
        raise PackageError(
            "the packages require the kernel %s, and a kernel is never installed unasked. Install it yourself and "
            "reboot, or choose packages that do not need it" % ", ".join(kernels)
        )
    unasked = [name for name in simulation.remove if name not in allowed]
    if unasked:
        raise PackageError(
            "the packages would remove %s, which was not requested. Remove them yourself, or choose another source"
            % ", ".join(unasked)
        )


class Manager:
    """A package manager of a host. Methods that change the host say so; every failure is a PackageError."""

    program = ""
    log = ""

    def __init__(self, host: Host, wait: float = LOCK_WAIT) -> None:
        self.host = host
        self.wait = wait
        self.failed_sources = []  # type: List[str]
        """Messages for the package sources that could not be read; each names the file where the source is."""
        self.owned = []  # type: List[str]
        """Packages that gpu-ready installed before, and may remove where they can no longer be configured."""

    def installed(self) -> Dict[str, Installed]:
        """Return installed packages by name."""
        raise NotImplementedError

    def user_installed(self) -> Set[str]:
        """Return names of the packages that somebody requested, in contrast to dependencies."""
        raise NotImplementedError

    def held(self) -> List[str]:
        return sorted(name for name, package in self.installed().items() if package.hold)

    def find_interrupted(self) -> List[str]:
        """Return packages that a killed run left incomplete."""
        raise NotImplementedError

    def repair(self, owned: Optional[List[str]] = None) -> List[str]:
        """Finish what a killed run left incomplete (changes the host); returns the affected packages."""
        raise NotImplementedError

    def update(self) -> None:
        """Read the package lists again (changes the host)."""
        raise NotImplementedError

    def describe_failed_sources(self) -> str:
        """Return the end of a message about something that no source offers, "" where all sources were read."""
        if not self.failed_sources:
            return ""
        return ". Not read were: " + "; ".join(self.failed_sources[:3])

    def check_sources(self) -> None:
        """Raise PackageError if the manager cannot work with all of the host's package sources together."""
        raise NotImplementedError

    def lists_are_stale(self) -> bool:
        """Return True if the package lists are missing or old, and the manager does not refresh them itself."""
        return False

    def offers(self, names: List[str]) -> Dict[str, List[str]]:
        """Return versions that the package sources offer, by name, newest first."""
        raise NotImplementedError

    def lowest_versions(self, packages: List[Tuple[str, str]]) -> Dict[str, str]:
        """Return the lowest version that packages of the sources, (name, version) each, require of a name."""
        raise NotImplementedError

    def add_parts(self, specs: List[PackageSpec], parts: Dict[str, str]) -> List[PackageSpec]:
        """Add the parts of metapackages to ``specs``, each in the version that was released with its metapackage.

        A metapackage requires its parts in the version of its own release *or newer*, so an older release of it alone
        would install the newest parts. ``parts`` is a regular expression for the names of parts, by metapackage.
        """
        found = {spec.name: spec for spec in specs}
        for name, pattern in sorted(parts.items()):
            level = [found[name]]
            while level:
                offers = self.offers([spec.name for spec in level])
                exact = [
                    (spec.name, version)
                    for spec in level
                    for version in [one for one in offers.get(spec.name, []) if version_matches(spec.version, one)][:1]
                ]
                asked = self.lowest_versions(exact) if exact else {}
                level = [
                    PackageSpec(part, low if "-" in low else low + "-*")
                    for part, low in sorted(asked.items())
                    if re.search(pattern, part) and part not in found
                ]
                found.update({spec.name: spec for spec in level})
        return list(found.values())

    def plan_change(self, what: str, change: PackageChange) -> Tuple[List[List[str]], Simulation]:
        """Return calls for a change and what they would do; raises PackageError on what is refused."""
        raise NotImplementedError

    def run_change(self, what: str, argv: List[str]) -> Result:
        """Make one call that changes the host."""
        raise NotImplementedError

    def apply_change(self, what: str, calls: List[List[str]], simulation: Simulation) -> None:
        """Make the calls of :meth:`plan_change` (changes the host)."""
        raise NotImplementedError

    def removal_command(self, names: List[str]) -> List[str]:
        """Return arguments that remove packages with their configuration."""
        raise NotImplementedError

    def simulate(self, what: str, argv: List[str]) -> Simulation:
        """Return what a call would do; changes nothing."""
        raise NotImplementedError

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        """Leave the host as it is meanwhile: holds are set, and the packages are, in a simulated state of it."""
        raise NotImplementedError

    def hold(self, names: List[str]) -> None:
        """Protect packages from upgrades (changes the host)."""
        raise NotImplementedError

    def unhold(self, names: List[str]) -> None:
        """Release packages (changes the host)."""
        raise NotImplementedError

    def streams(self) -> Dict[str, str]:
        """Return enabled module streams by module."""
        return {}

    def enable_streams(self, streams: Dict[str, str]) -> None:
        """Enable module streams (changes the host)."""
        raise PackageError(
            "%s has no module streams, but %s is requested. This is an error in the catalog"
            % (self.program, ", ".join("%s:%s" % item for item in sorted(streams.items())))
        )

    def restore_streams(self, before: Dict[str, Optional[str]]) -> None:
        """Restore module streams (changes the host)."""

    def locks_held(self) -> List[Tuple[str, int]]:
        """Return locks that another process holds: (path, process; 0 where it is not visible from here)."""
        raise NotImplementedError

    def wait_for_locks(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until no other package manager runs; PackageError names a process that does not end."""
        held = self.held_after(self.wait, sleep)
        if held:
            raise self.locked(*held[0])

    def held_after(self, seconds: float, sleep: Callable[[float], None]) -> List[Tuple[str, int]]:
        """Return no locks as soon as no other package manager runs, those that are held after these seconds."""
        end = time.monotonic() + seconds
        while True:
            held = self.locks_held()
            if not held or time.monotonic() >= end:
                return held
            sleep(1.0)

    def locked(self, path: str, pid: int) -> PackageError:
        """Return the error about a lock that another process did not release in time."""
        holder = describe_process(self.host, pid) if pid else "a process outside of this container"
        return PackageError(
            "%s is held by %s for more than %d s. Wait until it ends, or stop it, then run again"
            % (path, holder, self.wait)
        )

    def report_wait(self, waited: Optional[int], sleep: Callable[[float], None] = time.sleep) -> str:
        """Wait a few seconds for other package managers; return the process that is still awaited, "" for none.

        The caller shows it and asks again, with the seconds that it has ``waited`` so far: a module has no other way
        to say anything while it runs. With None nothing is awaited here. Raises PackageError after ``self.wait``.
        """
        if waited is None:
            return ""
        held = self.held_after(REPORTS[bool(waited)], sleep)
        if held and waited >= self.wait:
            raise self.locked(*held[0])
        return describe_holder(self.host, held)

    def find_build(self, answer: Result) -> Optional[FailedBuild]:
        """Return the DKMS build that failed in a call, None where none did."""
        text = answer.out + "\n" + answer.err
        match = find_dkms_build(text)
        if match is None:
            return None
        path = make_log(match.group()) or make_log(text)
        return FailedBuild(path, (self.host.read(path) if path else None) or text, is_driver_build(match))

    def describe_build(self, build: FailedBuild, outcome: str = "") -> str:
        """Return why a DKMS build failed, by the compiler's log, and what that left behind."""
        log = build.path or self.log
        if not build.of_driver:  # the driver's remedies would not help
            return " (%s; the whole log is %s on the host)%s" % (key_line([build.text]), log, outcome)
        search = Search([("installer-log", build.text)], [BUILD_FAILED])
        return ": " + explained_later(FailureEvidence([search], log, outcome=outcome))

    def remounts(self) -> bool:
        """Return True if the manager itself makes read-only file systems writable while it works."""
        return False

    def find_proxies(self) -> List[str]:
        """Return the proxies that the manager uses, each with the place where it is set."""
        return proxies.environment_proxies(os.environ)

    def describe_proxies(self, message: str) -> str:
        """Return the end of a message whose remedy speaks of a proxy: which one is configured, and where."""
        found = self.find_proxies() if re.search(r"\bproxy\b", message) else []
        return ". The proxy of this host is %s" % " and ".join(found[:3]) if found else ""

    def check_free_space(self, count: int, needs: List[Tuple[str, int]]) -> None:
        """Raise PackageError when packages do not fit: ``needs`` are directories and the bytes that each gets."""
        for path in WRITTEN:
            # A package manager would notice a read-only file system with half of the packages unpacked.
            if os.path.isdir(path) and not os.access(path, os.W_OK) and not self.remounts():
                raise PackageError(
                    "%s is read-only, so nothing can be installed. See `dmesg` (a disk with errors is mounted "
                    "read-only), make it writable (`mount -o remount,rw`), then run again" % path
                )
        by_device = {}  # type: Dict[Any, Tuple[str, int]]
        for path, need in needs:
            device = os.stat(path).st_dev if os.path.exists(path) else path
            first, sum_of = by_device.get(device, (path, 0))
            by_device[device] = (first, sum_of + need)
        for path, need in by_device.values():
            free = self.host.free(path)
            if free is not None and free < need + DISK_RESERVE:
                raise PackageError(
                    "%d packages need %s in %s, but only %s are free. Free space there, then run again"
                    % (count, format_megabytes(need + DISK_RESERVE), path, format_megabytes(free))
                )
