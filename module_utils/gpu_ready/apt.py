"""What apt and dpkg say, as values and sentences; and the calls to them. The readers are pure functions."""

import fcntl
import os
import re
import struct
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .host import Host, Result

LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
ARCHIVES = "/var/cache/apt/archives"
LISTS = "/var/lib/apt/lists"
STATUS = "/var/lib/dpkg/status"
LOCK_WAIT = 600.0
RUN_LIMIT = 5400.0
"""Seconds for one apt-get call: on a slow machine DKMS compiles for each installed kernel."""
ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "APT_LISTCHANGES_FRONTEND": "none",
    "NEEDRESTART_MODE": "l",
    "NEEDRESTART_SUSPEND": "1",
}
OPTIONS = [
    "-y",
    "-q",
    "--no-install-recommends",
    "-o", "DPkg::Lock::Timeout=120",
    "-o", "Dpkg::Options::=--force-confdef",
    "-o", "Dpkg::Options::=--force-confold",
    "-o", "Acquire::Retries=3",
    "-o", "Acquire::http::Timeout=30",
    "-o", "Acquire::https::Timeout=30",
]  # fmt: skip
GROUPS = {"docker": "docker.io", "nvidia-persistenced": "nvidia-persistenced"}
"""Groups that stay when their package is purged, by the package whose installation made them."""
LEFTOVERS = {
    "/etc/docker/key.json": "docker.io",
    "/var/lib/dkms/mok.key": "dkms",
    "/var/lib/dkms/mok.pub": "dkms",
}
"""Files that programs of a package write and its purge leaves, by that package."""
DAY = 86400.0
DISK_RESERVE = 64 * 1024 * 1024
"""Bytes that must stay free after an installation."""


class AptError(Exception):
    """A package operation cannot work or did not; the text is one sentence with cause and remedy."""


class Wish(NamedTuple):
    """A package by name, with an exact version, a prefix that ends in ``*``, or any version."""

    name: str
    version: Optional[str] = None


class Installed(NamedTuple):
    """A package of dpkg's database: version, state (``installed``, ``config-files``, ...), held or not."""

    version: str
    state: str
    hold: bool


class Simulation(NamedTuple):
    """What apt-get would do: version before (None for a new package) and after by name; names that would go."""

    install: Dict[str, Tuple[Optional[str], str]]
    remove: List[str]

    @property
    def new(self) -> List[str]:
        """Return the packages that are not on the host yet."""
        return sorted(name for name, (before, _) in self.install.items() if before is None)


def wishes(values: List[Any]) -> List[Wish]:
    """Return wishes from names or {name, version}; an empty version means any."""
    found = []
    for value in values:
        if isinstance(value, dict):
            version = value.get("version")
            found.append(Wish(str(value["name"]), str(version) if version not in (None, "") else None))
        else:
            found.append(Wish(str(value)))
    return found


def matches(wanted: Optional[str], version: str) -> bool:
    """Return whether a version fulfils a wish; an epoch may be left out of the wish."""
    if wanted is None:
        return True
    forms = (version, version.partition(":")[2]) if ":" in version else (version,)
    if wanted.endswith("*"):
        return any(form.startswith(wanted[:-1]) for form in forms)
    return wanted in forms


QUERY = "${Package}\\t${Version}\\t${db:Status-Status}\\t${db:Status-Want}\\n"


def read_installed(text: str) -> Dict[str, Installed]:
    """Read `dpkg-query -W -f QUERY`. Of several architectures the installed one counts."""
    found = {}  # type: Dict[str, Installed]
    for line in text.splitlines():
        parts = line.split("\t")
        if len(parts) == 4 and (parts[0] not in found or parts[2] == "installed"):
            found[parts[0]] = Installed(parts[1], parts[2], parts[3] == "hold")
    return found


def present(installed: Dict[str, Installed], name: str) -> bool:
    """Return whether a package is installed completely."""
    return name in installed and installed[name].state == "installed"


def read_simulation(text: str) -> Simulation:
    """Read `apt-get --simulate`: lines of Inst, Remv and Purg."""
    install = {}  # type: Dict[str, Tuple[Optional[str], str]]
    remove = []
    for line in text.splitlines():
        match = re.match(r"Inst (\S+?)(?::\w+)? (?:\[([^]]*)\] )?\((\S+)", line)
        if match:
            install[match.group(1)] = (match.group(2), match.group(3))
            continue
        match = re.match(r"(?:Remv|Purg) (\S+?)(?::\w+)?(?: |$)", line)
        if match and match.group(1) not in remove:
            remove.append(match.group(1))
    return Simulation(install, remove)


def read_madison(text: str) -> Dict[str, List[str]]:
    """Read `apt-cache madison`: the versions on offer by name, newest first as apt lists them."""
    found = {}  # type: Dict[str, List[str]]
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 3 and not parts[2].endswith("Sources"):
            versions = found.setdefault(parts[0], [])
            if parts[1] not in versions:
                versions.append(parts[1])
    return found


def read_sizes(text: str) -> Tuple[int, int]:
    """Read `apt-cache show`: bytes to fetch and bytes when installed, summed over the stanzas."""
    fetch = sum(int(size) for size in re.findall(r"(?m)^Size: (\d+)$", text))
    installed = sum(int(size) for size in re.findall(r"(?m)^Installed-Size: (\d+)$", text))
    return fetch, installed * 1024


MIDDLE = ("half-configured", "half-installed", "unpacked", "triggers-awaited", "triggers-pending")
"""States in which dpkg leaves a package when it is interrupted, or when a script of the package fails."""


def broken(status: str, states: Tuple[str, ...] = MIDDLE) -> List[str]:
    """Return the packages that dpkg left in the middle, from the text of its status file."""
    found = []
    for stanza in status.split("\n\n"):
        match = re.search(r"(?m)^Status: \S+ (\S+) (\S+)$", stanza)
        name = re.search(r"(?m)^Package: (\S+)$", stanza)
        if match and name and (match.group(2) in states or (states is MIDDLE and match.group(1) != "ok")):
            found.append(name.group(1))
    return found


def megabytes(count: int) -> str:
    """Return a size for people."""
    return "%d MB" % (count // 1000000)


def headers_gone(name: str) -> str:
    """Return the sentence for kernel headers that the archive no longer has."""
    return (
        "%s is in no package source of this host: the archive no longer carries the headers of the running kernel; "
        "either upgrade the kernel together with its headers and reboot, or add a source that keeps old kernels "
        "(Debian's snapshot archive), or install the headers package by hand" % name
    )


SIGNATURE = re.compile(
    r"signatures? (?:were|couldn't be|was) (?:invalid|verified)|NO_PUBKEY|EXPKEYSIG|BADSIG|is not signed|"
    r"Clearsigned file isn't valid|OpenPGP signature verification failed|not live until|Sub-process /usr/bin/sqv",
    re.IGNORECASE,
)


WRONG_SIGNATURE = "the mirror serves something else than its owner signed, or the key is not its key"


def explain(what: str, answer: Result) -> str:
    """Return one sentence with cause and remedy for an apt-get or dpkg call that failed."""
    text = answer.out + "\n" + answer.err
    errors = [line[2:].strip() for line in text.splitlines() if re.match(r"[EW]: ", line)]
    short = "; ".join(errors[:3]) or "; ".join(line.strip() for line in text.splitlines() if line.strip())[-400:]
    match = re.search(r"Could not get lock (\S+?)\.? (?:It is held by process (\d+) \(([^)]*)\))?", text)
    if match and match.group(2):
        return "%s: %s is held by process %s (%s): let it end, then run again" % (
            what, match.group(1), match.group(2), match.group(3),
        )  # fmt: skip
    match = re.search(r"You don't have enough free space in (\S+?)\.?$", text, re.MULTILINE)
    if match:
        return "%s: not enough free space in %s: make room there, then run again" % (what, match.group(1))
    if "No space left on device" in text:
        return "%s: the disk is full, no free space left (%s): make room, then run again" % (what, short)
    match = re.search(r"Bad return status for module build on kernel: (\S+)", text) or re.search(
        r"Error! .*?kernel(?: version)?:? (\d\S+)", text
    )
    if match or "dkms" in short.lower():
        log = re.search(r"Consult (\S*make\.log)", text)
        return "%s: DKMS could not build the module%s%s: the compiler's words are below" % (
            what,
            " for kernel " + match.group(1) if match else "",
            " (%s)" % log.group(1) if log else "",
        )
    match = re.search(r"Failed to fetch (\S+)\s+(.*)", text)
    if match and SIGNATURE.search(match.group(2)):
        return "%s: the signature of %s is not valid (%s): %s" % (
            what, match.group(1), match.group(2).strip()[:300], WRONG_SIGNATURE,
        )  # fmt: skip
    gone = re.search(r"The repository '(\S+).*' (?:does not have|no longer has) a Release file", text)
    if gone:
        status = re.search(r"(?m)^Err:\d+ .*\n +(\d{3} .*|\D.*)$", text)
        return "%s: %s could not be fetched (%s): the mirror does not have this repository" % (
            what, gone.group(1), " ".join(status.group(1).split())[:200] if status else "no Release file",
        )  # fmt: skip
    if SIGNATURE.search(text):
        return "%s: a signature is not valid (%s): %s" % (what, short[:500], WRONG_SIGNATURE)
    if match:
        cause = match.group(2).strip()
        remedy = (
            "the mirror does not have it"
            if "404" in cause
            else "the mirror does not answer: check network, proxy and gpu_ready_mirror"
        )
        return "%s: %s could not be fetched (%s): %s" % (what, match.group(1), cause[:200], remedy)
    match = re.search(r"Unable to locate package (\S+)|Package '?(\S+?)'? has no installation candidate", text)
    if match:
        return "%s: the package %s is in no package source of this host: enable the source that has it" % (
            what, match.group(1) or match.group(2),
        )  # fmt: skip
    if "unmet dependencies" in text:
        lines = re.findall(r"(?m)^ +(\S+ : \S+: .*|(?:Depends|Conflicts|Breaks): .*)$", text)
        return "%s: the dependencies cannot be fulfilled (%s): a pin, a hold or a foreign source is in the way" % (
            what, "; ".join(lines[:4]) or short,
        )  # fmt: skip
    if answer.rc == 124:
        return "%s: no end within %d minutes; the next run repairs what is half done" % (what, RUN_LIMIT // 60)
    return "%s: exit status %d: %s" % (what, answer.rc, short or "it said nothing")


def refuse(simulation: Simulation, allowed: List[str]) -> None:
    """Raise AptError when a simulation holds what nobody asked for: a kernel, or a removal."""
    kernels = [name for name in simulation.new if name.startswith(("linux-image-", "kernel-core"))]
    if kernels:
        raise AptError(
            "the packages would bring the kernel %s, and a kernel is never installed unasked: install it yourself and "
            "reboot, or choose packages that do not need it" % ", ".join(kernels)
        )
    unasked = [name for name in simulation.remove if name not in allowed]
    if unasked:
        raise AptError(
            "the packages would remove %s, which nobody asked for: remove them yourself, or choose another source"
            % ", ".join(unasked)
        )


def lock_holder(path: str) -> Optional[int]:
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


def complaints(log: str) -> List[str]:
    """Return the errors in a compiler's log, or its last lines where none is marked, cut to a readable length."""
    lines = log.splitlines()
    errors = [line for line in lines if re.search(r"(?:: (?:fatal )?error: |\*\*\* )", line)]
    return [line[:200] for line in (errors or lines[-8:])[:8]]


class Apt:
    """apt and dpkg on this host. Methods that change something say so; every failure is an AptError."""

    def __init__(self, host: Host, locks: Tuple[str, ...] = LOCKS, wait: float = LOCK_WAIT) -> None:
        self.host = host
        self.locks = locks
        self.wait = wait

    def installed(self) -> Dict[str, Installed]:
        """Return dpkg's database."""
        answer = self.host.run(["dpkg-query", "-W", "-f", QUERY])
        if answer.rc != 0:
            raise AptError(explain("reading the package database", answer))
        return read_installed(answer.out)

    def await_locks(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until no other package manager runs; AptError names the one that does not end."""
        end = time.monotonic() + self.wait
        while True:
            held = [(path, pid) for path in self.locks for pid in [lock_holder(path)] if pid is not None]
            if not held:
                return
            path, pid = held[0]
            if time.monotonic() >= end:
                command = (self.host.read("/proc/%d/cmdline" % pid) or "").replace("\0", " ").strip() if pid else ""
                raise AptError(
                    "%s is held by process %s (%s) for more than %d s: let it end, or stop it, then run again"
                    % (path, pid or "unknown", command or "command unknown", self.wait)
                )
            sleep(1.0)

    def get(self, what: str, argv: List[str]) -> Result:
        """Run apt-get (changes the host) and raise AptError with a sentence when it fails."""
        self.await_locks()
        answer = self.host.run(["apt-get"] + OPTIONS + argv, timeout=RUN_LIMIT, env=ENVIRONMENT)
        if answer.rc != 0:
            raise AptError(explain(what, answer) + self.make_log(answer))
        return answer

    def make_log(self, answer: Result) -> str:
        """Return what the compiler complained about, from the log that a failed DKMS build names."""
        match = re.search(r"Consult (\S*make\.log)", answer.out + answer.err)
        return "".join("\n" + line for line in complaints(self.host.read(match.group(1)) or "")) if match else ""

    def half_done(self) -> List[str]:
        """Return what a killed run left in the middle."""
        found = broken(self.host.read(STATUS) or "")
        if not found and [name for name in self.host.listdir("/var/lib/dpkg/updates") if name.isdigit()]:
            return ["dpkg"]
        return found

    def repair(self, ours: Optional[List[str]] = None) -> List[str]:
        """Finish what a killed run left in the middle (changes the host); returns the packages that were concerned.

        A package of ``ours`` that cannot be configured, such as a module that does not compile, is removed: the plan
        may want another one by now, and where it wants the same, its installation tells why it fails.
        """
        found = self.half_done()
        if not found:
            return []
        self.await_locks()
        self.host.run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"], RUN_LIMIT, ENVIRONMENT)
        # Its status is not asked: packages that were only unpacked may lack dependencies, which apt brings now.
        left = broken(self.host.read(STATUS) or "")
        trouble = ""
        failed = [name for name in broken(self.host.read(STATUS) or "", ("half-configured",)) if name in (ours or [])]
        if failed:
            argv = ["remove", "--allow-change-held-packages"] + failed
            try:
                refuse(self.simulate("removing what cannot be configured", argv), ours or [])
                self.get("removing what cannot be configured: " + ", ".join(failed[:5]), argv)
            except AptError as error:
                # Something else is in the way, which apt's own repair may clear.
                trouble = " (%s)" % error
            left = broken(self.host.read(STATUS) or "")
        if left:
            self.get("finishing the interrupted installation of " + ", ".join(left[:5]), ["install", "--fix-broken"])
            half = broken(self.host.read(STATUS) or "")
            if half:
                self.get("installing again " + ", ".join(half[:5]), ["install", "--reinstall"] + half)
        left = broken(self.host.read(STATUS) or "")
        if left:
            raise AptError(
                "%s stayed half installed after `dpkg --configure -a` and `apt-get install --fix-broken`: see "
                "`dpkg --audit` on the host%s" % (", ".join(left[:5]), trouble)
            )
        return found

    def update(self, extra: Optional[List[str]] = None) -> None:
        """Read the package lists again (changes the host); any list that fails is an AptError."""
        self.get("reading the package lists", ["-o", "APT::Update::Error-Mode=any"] + (extra or []) + ["update"])

    def stale(self) -> bool:
        """Return whether the package lists are missing or older than a day."""
        if not [name for name in self.host.listdir(LISTS) if "_Packages" in name or name.endswith("InRelease")]:
            return True
        return time.time() - os.stat(LISTS).st_mtime > DAY

    def offers(self, names: List[str]) -> Dict[str, List[str]]:
        """Return the versions that the package sources offer, by name."""
        return read_madison(self.host.run(["apt-cache", "madison"] + names).out) if names else {}

    def resolve(self, wanted: List[Wish], offers: Dict[str, List[str]]) -> List[str]:
        """Return arguments for apt-get install; AptError says what is offered instead of a missing version."""
        arguments = []
        for wish in wanted:
            versions = offers.get(wish.name, [])
            if not versions and wish.name.startswith("linux-headers-"):
                raise AptError(headers_gone(wish.name))
            if wish.version is None:
                arguments.append(wish.name)
                continue
            fitting = [version for version in versions if matches(wish.version, version)]
            if not fitting:
                raise AptError(
                    "%s %s is in no package source of this host (on offer: %s): choose a version that is on offer, or "
                    "enable the source that has it" % (wish.name, wish.version, ", ".join(versions[:8]) or "none")
                )
            arguments.append("%s=%s" % (wish.name, fitting[0]))
        return arguments

    def simulate(self, what: str, argv: List[str]) -> Simulation:
        """Return what an apt-get call would do; changes nothing and needs no lock."""
        answer = self.host.run(
            ["apt-get"] + OPTIONS + ["-s", "-o", "Debug::NoLocking=1"] + argv, timeout=300.0, env=ENVIRONMENT
        )
        if answer.rc != 0:
            raise AptError(explain(what, answer))
        return read_simulation(answer.out)

    def check_disk(self, simulation: Simulation) -> None:
        """Raise AptError when the packages do not fit on the disk."""
        names = ["%s=%s" % (name, after) for name, (_, after) in sorted(simulation.install.items())]
        if not names:
            return
        fetch, unpacked = read_sizes(self.host.run(["apt-cache", "show"] + names).out)
        needs = [(ARCHIVES, fetch), ("/usr", unpacked)]
        if os.stat(ARCHIVES).st_dev == os.stat("/usr").st_dev:
            needs = [("/usr", fetch + unpacked)]
        for path, need in needs:
            free = self.host.free(path)
            if free is not None and free < need + DISK_RESERVE:
                raise AptError(
                    "%d packages need %s in %s, free are %s: make room there, then run again"
                    % (len(names), megabytes(need + DISK_RESERVE), path, megabytes(free))
                )
