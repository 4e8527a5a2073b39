"""What apt, dnf and yum have in common: wishes, what is installed, what a simulation shows, and what is refused."""

import fcntl
import os
import re
import struct
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..base import validation
from ..base.errors import GpuReadyError
from ..base.host import Host, Result
from .version_match import version_matches

LOCK_WAIT = 600.0
RUN_LIMIT = 5400.0
"""Seconds for one call that changes packages: on a slow machine DKMS compiles for each installed kernel."""
DISK_RESERVE = 64 * 1024 * 1024
"""Bytes that must stay free after an installation."""
WRITTEN = ("/etc", "/usr", "/var")
"""Folders that every installation writes to."""
KERNEL = re.compile(
    r"linux-image-|kernel(?:6\.\d+)?(?:-(?:uek|lt|ml|rt|64k|16k|debug|PAE))*(?:-(?:core|modules(?!-extra).*|virt.*))?(?:-\d.*)?$"
)
"""Packages that are a kernel, on any distribution; its headers, kernel-devel and more modules for one are none."""
HEADERS = re.compile(r"(?:linux|proxmox)-headers-|kernel[\w.-]*-devel-(?:matched-)?\d")
GROUPS = {
    "docker": ("docker.io", "docker-ce", "moby-engine", "docker"),
    "nvidia-persistenced": ("nvidia-persistenced", "nvidia-persistenced-latest-dkms"),
}
"""Groups that stay when their package goes, by the packages whose installation made them."""
USERS = {"nvidia-persistenced": GROUPS["nvidia-persistenced"]}
"""Users that stay when their package goes, by the packages whose installation made them."""
LEFTOVERS = {
    "/etc/docker/key.json": ("docker.io", "docker-ce", "moby-engine", "docker"),
    "/var/lib/dkms/mok.key": ("dkms",),
    "/var/lib/dkms/mok.pub": ("dkms",),
}
"""Files that programs of a package write and its removal leaves, by those packages."""
WRONG_SIGNATURE = "the mirror serves something else than its owner signed, or the key is not its key"
WRONG_CLOCK = "compare the clock of this host with another one (`timedatectl`) and set it, by NTP"


class PackageError(GpuReadyError):
    """A package operation cannot work or did not; the text is one sentence with cause and remedy.

    Package managers print the addresses of their sources whole: a user and a password in one are hidden.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(validation.mask_secrets(text))


class TransactionKilled(PackageError):
    """A package operation was ended in the middle, at its time limit or by a signal."""


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
    """What a call would do: version before (None for a new package) and after by name; names that would go.

    ``fetch`` and ``unpacked`` are bytes, where the manager tells them with the simulation.
    """

    install: Dict[str, Tuple[Optional[str], str]]
    remove: List[str]
    fetch: int = 0
    unpacked: int = 0

    @property
    def new(self) -> List[str]:
        """Return the packages that are not on the host yet."""
        return sorted(name for name, (before, _) in self.install.items() if before is None)


class PackageChange(NamedTuple):
    """What is asked of a manager in one go: packages to bring, to remove, and those that may go because others come."""

    install: List[PackageSpec]
    remove: List[str]
    allowed: List[str]


def package_specs(values: List[Any]) -> List[PackageSpec]:
    """Return wishes from names or {name, version}; an empty version means any."""
    found = []
    for value in values:
        if isinstance(value, dict):
            version = value.get("version")
            found.append(PackageSpec(str(value["name"]), str(version) if version not in (None, "") else None))
        else:
            found.append(PackageSpec(str(value)))
    return found


def pins_parts(value: Any) -> bool:
    """Return whether a wish is for a very version of a metapackage, whose parts are to fit it."""
    return isinstance(value, dict) and bool(value.get("parts")) and bool(value.get("version"))


def is_installed(installed: Dict[str, Installed], name: str) -> bool:
    """Return whether a package is installed completely."""
    return name in installed and installed[name].state == "installed"


def format_megabytes(count: int) -> str:
    """Return a size for people."""
    return "%d MB" % (count // 1000000)


def describe_missing_headers(name: str) -> str:
    """Return the sentence for kernel headers that the archive no longer has."""
    return (
        "%s is in no package source of this host: the archive no longer carries the headers of the running kernel; "
        "either upgrade the kernel together with its headers and reboot, or add a source that keeps old kernels "
        "(a snapshot or vault archive), or install the headers package by hand" % name
    )


def describe_missing_version(wish: PackageSpec, versions: List[str]) -> str:
    """Return the sentence for a version that no source has."""
    return (
        "%s %s is in no package source of this host (on offer: %s): choose a version that is on offer, or enable the "
        "source that has it" % (wish.name, wish.version, ", ".join(versions[:8]) or "none")
    )


def find_dkms_failure(what: str, text: str) -> Optional[str]:
    """Return that DKMS could not build a module, None where the text tells of none; the log that it names says why."""
    match = re.search(r"Bad return status for module build on kernel: (\S+)", text) or re.search(
        r"Error! .*?kernel(?: version)?:? (\d\S+)", text
    )
    return "%s: DKMS could not build the module for kernel %s" % (what, match.group(1)) if match else None


def refuse_unrequested(simulation: Simulation, allowed: List[str]) -> None:
    """Raise PackageError when a simulation holds what nobody asked for: a kernel, or a removal."""
    kernels = [name for name in simulation.new if KERNEL.match(name)]
    if kernels:
        raise PackageError(
            "the packages would bring the kernel %s, and a kernel is never installed unasked: install it yourself and "
            "reboot, or choose packages that do not need it" % ", ".join(kernels)
        )
    unasked = [name for name in simulation.remove if name not in allowed]
    if unasked:
        raise PackageError(
            "the packages would remove %s, which nobody asked for: remove them yourself, or choose another source"
            % ", ".join(unasked)
        )


def find_lock_holder(path: str) -> Optional[int]:
    """Return the process that holds a lock file (0 when it is not visible from here), None when it is free."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        query = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(
            "hhqqi", fcntl.fcntl(handle, fcntl.F_GETLK, query)[: struct.calcsize("hhqqi")]
        )
        return None if kind == fcntl.F_UNLCK else max(int(pid), 0)
    finally:
        os.close(handle)


class Manager:
    """A package manager of a host. Methods that change something say so; every failure is a PackageError."""

    program = ""
    log = ""

    def __init__(self, host: Host, wait: float = LOCK_WAIT) -> None:
        self.host = host
        self.wait = wait

    def installed(self) -> Dict[str, Installed]:
        """Return what is installed, by name."""
        raise NotImplementedError

    def held(self) -> List[str]:
        """Return the names that are held."""
        return sorted(name for name, package in self.installed().items() if package.hold)

    def find_interrupted(self) -> List[str]:
        """Return what a killed run left in the middle."""
        raise NotImplementedError

    def repair(self, ours: Optional[List[str]] = None) -> List[str]:
        """Finish what a killed run left in the middle (changes the host); returns the packages that were concerned."""
        raise NotImplementedError

    def update(self) -> None:
        """Read the package lists again (changes the host)."""
        raise NotImplementedError

    def lists_are_stale(self) -> bool:
        """Return whether the package lists are missing or old, and the manager does not see to it itself."""
        return False

    def offers(self, names: List[str]) -> Dict[str, List[str]]:
        """Return the versions that the package sources offer, by name, newest first."""
        raise NotImplementedError

    def lowest_versions(self, packages: List[Tuple[str, str]]) -> Dict[str, str]:
        """Return the lowest version that packages of the sources, (name, version) each, ask of others, by name."""
        raise NotImplementedError

    def add_parts(self, wanted: List[PackageSpec], parts: Dict[str, str]) -> List[PackageSpec]:
        """Return wishes with those for the parts of metapackages, each in the version that its metapackage came with.

        A metapackage asks for its parts in the version of its own release *or newer*, so an older release of it alone
        would bring the newest parts. ``parts`` says by metapackage which names are parts: a regular expression.
        """
        found = {wish.name: wish for wish in wanted}
        for name, pattern in sorted(parts.items()):
            level = [found[name]]
            while level:
                offers = self.offers([wish.name for wish in level])
                exact = [
                    (wish.name, version)
                    for wish in level
                    for version in [one for one in offers.get(wish.name, []) if version_matches(wish.version, one)][:1]
                ]
                asked = self.lowest_versions(exact) if exact else {}
                level = [
                    PackageSpec(part, low if "-" in low else low + "-*")
                    for part, low in sorted(asked.items())
                    if re.search(pattern, part) and part not in found
                ]
                found.update({wish.name: wish for wish in level})
        return list(found.values())

    def plan_change(self, what: str, change: PackageChange) -> Tuple[List[List[str]], Simulation]:
        """Return the calls that bring a change and what they would do; raises PackageError on what is refused."""
        raise NotImplementedError

    def run_change(self, what: str, argv: List[str]) -> Result:
        """Make one call that changes the host; PackageError with a sentence when it fails."""
        raise NotImplementedError

    def apply_change(self, what: str, calls: List[List[str]], simulation: Simulation) -> None:
        """Make the calls of prepare (changes the host)."""
        raise NotImplementedError

    def removal_command(self, names: List[str]) -> List[str]:
        """Return the call that takes packages away with all that they brought."""
        raise NotImplementedError

    def simulate(self, what: str, argv: List[str]) -> Simulation:
        """Return what a call would do; changes nothing."""
        raise NotImplementedError

    def hold(self, names: List[str]) -> None:
        """Protect packages from upgrades (changes the host)."""
        raise NotImplementedError

    def unhold(self, names: List[str]) -> None:
        """Release packages (changes the host)."""
        raise NotImplementedError

    def streams(self) -> Dict[str, str]:
        """Return the enabled module streams by module."""
        return {}

    def enable_streams(self, wanted: Dict[str, str]) -> None:
        """Have module streams enabled (changes the host)."""
        raise PackageError(
            "%s has no module streams, but %s is asked for: this is an error in the catalog"
            % (self.program, ", ".join("%s:%s" % item for item in sorted(wanted.items())))
        )

    def restore_streams(self, before: Dict[str, Optional[str]]) -> None:
        """Bring module streams back to what they were (changes the host)."""

    def locks_held(self) -> List[Tuple[str, int]]:
        """Return the locks that another process holds: (path, process; 0 where it is not visible from here)."""
        raise NotImplementedError

    def wait_for_locks(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until no other package manager runs; PackageError names the one that does not end."""
        end = time.monotonic() + self.wait
        while True:
            held = self.locks_held()
            if not held:
                return
            path, pid = held[0]
            if time.monotonic() >= end:
                command = (self.host.read("/proc/%d/cmdline" % pid) or "").replace("\0", " ").strip() if pid else ""
                raise PackageError(
                    "%s is held by process %s (%s) for more than %d s: let it end, or stop it, then run again"
                    % (path, pid or "unknown", command or "command unknown", self.wait)
                )
            sleep(1.0)

    def describe_make_log(self, answer: Result) -> str:
        """Return why a DKMS build failed, "" where none did: the cause in the compiler's log that DKMS names."""
        from ..diagnostics import failure

        text = answer.out + "\n" + answer.err
        if find_dkms_failure("", text) is None:
            return ""
        path = failure.make_log(text)
        log = self.host.read(path) if path else None
        return ": " + failure.because([("installer-log", log or text)], path or self.log, ("dkms_failed",))

    def check_free_space(self, count: int, needs: List[Tuple[str, int]]) -> None:
        """Raise PackageError when packages do not fit: ``needs`` are folders and the bytes that each gets."""
        for path in WRITTEN:
            # Root may write everywhere but here; a package manager would find out with half of the packages unpacked.
            if os.path.isdir(path) and not os.access(path, os.W_OK):
                raise PackageError(
                    "%s is read-only, so nothing can be installed: see `dmesg` (a disk with errors is mounted so) and "
                    "`mount -o remount,rw`, then run again" % path
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
                    "%d packages need %s in %s, free are %s: make room there, then run again"
                    % (count, format_megabytes(need + DISK_RESERVE), path, format_megabytes(free))
                )
