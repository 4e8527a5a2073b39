"""What dnf 4, dnf5 and yum 3 say, as values and sentences; and the calls to them. The readers are pure functions.

Only their commands are used: their Python libraries belong to one interpreter of the host, which need not be Ansible's.
"""

import json
import os
import re
import time
from typing import Dict, List, Optional, Tuple

from . import files, rpm
from .host import TIMED_OUT, Host, Result
from .packages import (
    HEADERS,
    LOCK_WAIT,
    RUN_LIMIT,
    WRONG_SIGNATURE,
    Change,
    Installed,
    Killed,
    Manager,
    PackageError,
    Simulation,
    Wish,
    dkms_failed,
    headers_gone,
    lock_holder,
    matches,
    not_on_offer,
    refuse,
)

ASK_LIMIT = 600.0
"""Seconds for a call that only asks; it may have to fetch the metadata of all repositories."""
ENVIRONMENT = {"COLUMNS": "200", "FORCE_COLUMNS": "200"}
PID_FILES = (
    "/var/cache/dnf/metadata_lock.pid",
    "/var/cache/dnf/download_lock.pid",
    "/var/lib/dnf/rpmdb_lock.pid",
    "/var/run/yum.pid",
)
LOCKS = ("/usr/lib/sysimage/rpm/.rpm.lock", "/var/lib/rpm/.rpm.lock", "/run/dnf/rpmtransaction.lock")
CACHE = "/var/cache"
WRITTEN = ("/var/cache/dnf", "/var/cache/libdnf5", "/var/cache/yum", CACHE, "/var/lib", "/usr", "/tmp")
FULL = 2 * 1024 * 1024
"""Bytes: with less, a failure is told as a full disk, which dnf itself often does not name."""
COMING = (
    "Installing",
    "Installing dependencies",
    "Installing for dependencies",
    "Installing weak dependencies",
    "Installing group/module packages",
    "Upgrading",
    "Updating",
    "Updating for dependencies",
    "Downgrading",
    "Reinstalling",
)
GOING = (
    "Removing",
    "Removing dependent packages",
    "Removing for dependencies",
    "Removing unused dependencies",
    "Removing depended packages",
)
FRESH = tuple(name for name in COMING if name.startswith("Installing"))
UNITS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
ABORTED = re.compile(r"Operation aborted|Exiting on user [Cc]ommand")


def read_table(text: str) -> List[Tuple[str, str, str, str]]:
    """Read the table of a transaction: (section, name, architecture, version); a replaced package as "Replacing".

    A value that is too long for its column stands alone on a line, and the rest of its row on the next.
    """
    found = []
    section, words = "", []  # type: str, List[str]
    for line in text.splitlines():
        head = re.match(r"([A-Z(][^\s:].*?):\s*$", line)
        if head or line.startswith("Transaction Summary"):
            section, words = head.group(1) if head else "", []
            continue
        if not line.startswith(" ") or not line.strip():
            words = []
            continue
        parts = line.split()
        if parts[0] == "replacing" and len(parts) > 2 and not words:
            name, _, arch = parts[1].rpartition(".")
            row = (parts[1], parts[2], parts[3]) if len(parts) > 4 else (name, arch, parts[2])
            found.append(("Replacing", row[0], row[1], without_zero(row[2])))
            continue
        words += parts
        if len(words) >= 5:
            found.append((section, words[0], words[1], without_zero(words[2])))
            words = []
    return found


def without_zero(version: str) -> str:
    """Return a version without the epoch 0, as rpm leaves it out."""
    return version[2:] if version.startswith("0:") else version


def read_simulation(text: str, before: Dict[str, Installed]) -> Simulation:
    """Read what dnf or yum would do, from its table; ``before`` is what is installed.

    A new version beside an installed one of the same name (kernel-devel) is new under its full name.
    """
    install = {}  # type: Dict[str, Tuple[Optional[str], str]]
    remove, replaced = [], []
    for section, name, arch, version in read_table(text):
        if section in FRESH:
            known = name in before or name in install
            install["%s-%s.%s" % (name, version.rpartition(":")[2], arch) if known else name] = (None, version)
        elif section in COMING:
            install[name] = (before[name].version if name in before else "", version)
        elif section in GOING and name not in remove:
            remove.append(name)
        elif section == "Replacing":
            replaced.append(name)
    remove += [name for name in replaced if name not in install and name not in remove]
    fetch, unpacked = read_sizes(text)
    return Simulation(install, remove, fetch, unpacked)


def read_sizes(text: str) -> Tuple[int, int]:
    """Return the bytes to fetch and the bytes more on the disk afterwards that a simulation tells."""
    fetch = re.search(r"Total download size: ([\d.]+) ?(\w?)", text) or re.search(
        r"Need to download ([\d.]+) (\w)", text
    )
    unpacked = re.search(r"(?m)^Installed size: ([\d.]+) ?(\w?)", text) or re.search(
        r"After this operation, ([\d.]+) (\w)\w* extra", text
    )
    return size_of(fetch), size_of(unpacked)


def size_of(match: "Optional[re.Match[str]]") -> int:
    """Return a size in bytes from its number and the first letter of its unit."""
    return int(float(match.group(1)) * UNITS.get(match.group(2).lower(), 1)) if match else 0


def read_list(text: str) -> Dict[str, List[str]]:
    """Read `dnf list --showduplicates`: the versions by name, newest first.

    A long name pushes the rest of its row to the next line.
    """
    found = {}  # type: Dict[str, List[str]]
    words = []  # type: List[str]
    for line in text.splitlines():
        if re.match(r"\S.* [Pp]ackages$", line) or not line.strip():
            words = []
            continue
        words += line.split()
        if len(words) >= 3:
            name, _, arch = words[0].rpartition(".")
            version = without_zero(words[1])
            if name and arch and version not in found.setdefault(name, []):
                found[name].append(version)
            words = []
    for name, versions in found.items():
        found[name] = sorted(versions, key=rpm.order, reverse=True)
    return found


def read_offers(listed: Dict[str, List[str]]) -> Dict[str, List[str]]:
    """Return offers also under full names, so that a wish for one version of kernel-devel finds itself."""
    found = dict(listed)
    for name, versions in listed.items():
        for version in versions:
            found.setdefault("%s-%s" % (name, version.rpartition(":")[2]), [version])
    return found


def words_of(lines: List[str], count: int = 4) -> str:
    """Return the first lines as one text."""
    return "; ".join(" ".join(line.split()) for line in lines[:count])


def explain(what: str, answer: Result) -> str:
    """Return one sentence with cause and remedy for a call of dnf or yum that failed."""
    text = answer.out + "\n" + answer.err
    dkms = dkms_failed(what, text)
    if dkms:
        return dkms
    for reason in (locked, disk, database, metadata, signature, download, unknown, unsolvable, transaction):
        found = reason(text)
        if found:
            return "%s: %s" % (what, found)
    if answer.rc == TIMED_OUT:
        return "%s: no end within %d minutes; the next run repairs what is half done" % (what, RUN_LIMIT // 60)
    if answer.rc < 0:
        return "%s: signal %d ended it in the middle; the next run repairs what is half done" % (what, -answer.rc)
    lines = [line for line in answer.err.splitlines() + answer.out.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?:Error|Failed|Fatal|Transaction failed)", line)]
    return "%s: exit status %d: %s" % (what, answer.rc, words_of(errors or lines[-4:])[:400] or "it said nothing")


def locked(text: str) -> Optional[str]:
    """Read that another package manager works."""
    pid = re.search(r"(?:process with pid|running as pid|already locked by) (\d+)", text)
    if not pid and not re.search(
        r"Failed to obtain (?:the )?\w* ?lock|holding the yum lock|can't create \w+ lock", text
    ):
        return None
    return "another package manager works%s: let it end, then run again" % (
        " (process %s)" % pid.group(1) if pid else ""
    )


def database(text: str) -> Optional[str]:
    """Read that the RPM database cannot be opened."""
    match = re.search(
        r"(?i)rpmdb open failed|(?:rpmdb|db\d+ error|BDB\d+)[^\n]*(?:error|fatal|panic|damaged)[^\n]*", text
    )
    return match and (
        "the RPM database cannot be read (%s): run again, gpu-ready rebuilds it (rpm --rebuilddb)"
        % " ".join(match.group().split())[:200]
    )


def causes(text: str) -> str:
    """Return what curl or the server said."""
    found = re.search(r"(Status code: \d+ for \S+)", text) or re.search(
        r"(Curl error \(\d+\): .*?)(?: - http\S+)?$", text, re.M
    )
    other = re.search(r"(\[Errno \d+\] [^\n]*|HTTP Error \d+[^\n]*)", text)
    match = found or other
    return " ".join(match.group(1).split())[:300] if match else ""


def metadata(text: str) -> Optional[str]:
    """Read that the metadata of a repository could not be had; one that dnf may go on without is none."""
    ignored = {name for names in re.findall(r"Ignoring repositories: ([^\n]*)", text) for name in names.split(", ")}
    failed = re.findall(
        r"Failed to download metadata (?:\([^)]*\) )?for repo(?:sitory)? ['\"](\S+?)['\"]: ?([^\n]*)", text
    ) + re.findall(r"failure: repodata/\S+ from ([^\s:]+): ([^\n]*)", text)
    failed = [one for one in failed if one[0] not in ignored]
    if not failed:
        missing = re.search(
            r"(?:Unknown repo|No matching repositories for|Error getting repository data for)[: ]+'?([^\s',]+)", text
        )
        if missing:
            return "the repository %s is not known to this host: add it, then run again" % missing.group(1)
        if re.search(r"There are no enabled repo", text):
            return "no package repository of this host is enabled: enable the distribution's own, then run again"
        return None
    name, cause = failed[-1]
    # dnf 4 lists the errors of each repository under its name; dnf5 as they come.
    block = re.search(r"for repository '%s':\n((?:  - [^\n]*\n)+)" % re.escape(name), text)
    text = block.group(1) if block else text
    if re.search(r"signature|GPG", cause) and "not available" not in cause:
        return "the signature of the repository %s is not valid (%s): %s" % (name, cause.strip()[:200], WRONG_SIGNATURE)
    if "not available" in cause and "GPG" in cause:
        return (
            "the repository %s has no signature (%s), but one is expected: the mirror does not carry repomd.xml.asc, "
            "or serves something else than its owner signed" % (name, causes(text) or cause.strip()[:200])
        )
    said = causes(cause) or causes(text) or cause.strip()[:200]
    if "404" in said:
        return "%s could not be fetched (%s): the mirror does not have this repository" % (name, said)
    if re.search(r"checksum|Checksum", cause):
        return "%s could not be fetched (%s): the mirror is in the middle of an update, or damaged" % (
            name,
            cause[:200],
        )
    return "%s could not be fetched (%s): the mirror does not answer: check network, proxy and gpu_ready_mirror" % (
        name, said,
    )  # fmt: skip


def signature(text: str) -> Optional[str]:
    """Read that a package is not signed by the key that is expected."""
    match = re.search(
        r"(Package \S+ is not signed|Public key for \S+ is not installed|"
        r"(?:Open)?PGP check for package [^\n]* has failed: [^\n]*|Failing package is: \S+|"
        r"[^\n]*(?:BAD|NOKEY|digest: BAD)[^\n]*|Couldn't open file RPM-GPG-KEY\S*|The GPG keys listed for [^\n]*)",
        text,
    )
    keyless = re.search(r"(?s)do not have any GPG public keys installed.*?Problem repository: \[?([^\]\s]+)", text)
    if keyless:
        return (
            "the repository %s wants signed packages, but names no key (gpgkey), and the RPM database has none: "
            "name its key there, then run again" % keyless.group(1)
        )
    if not match and not re.search(r"GPG check FAILED|Signature verification failed", text):
        return None
    said = " ".join(match.group(1).split())[:300] if match else "GPG check FAILED"
    return "a signature is not valid (%s): %s" % (said, WRONG_SIGNATURE)


def download(text: str) -> Optional[str]:
    """Read that a package could not be fetched."""
    if not re.search(
        r"Error downloading packages|Failed to download packages|\[MIRROR\]|Error Downloading Packages", text
    ):
        return None
    wrong = re.search(r"([^\n]*(?:Inconsistent server data|checksum doesn't match|Checksum)[^\n]*)", text)
    if wrong:
        said = re.sub(r"^(?:\[MIRROR\]|>>>) ", "", wrong.group(1).strip())
        return "a package is not what the repository's list says (%s): %s" % (said[:300], WRONG_SIGNATURE)
    said = causes(text) or "no cause told"
    if "404" in said:
        return "a package could not be fetched (%s): the mirror does not have it" % said
    return (
        "a package could not be fetched (%s): the mirror does not answer: check network, proxy and gpu_ready_mirror"
        % said
    )


def unknown(text: str) -> Optional[str]:
    """Read that a package, version or stream is in no source."""
    match = re.search(r"All matches were filtered out by (\w+) filtering for argument: (\S+)", text)
    other = re.search(r"Argument '(\S+)' matches only (?:excluded packages|packages excluded by (\w+))", text)
    if match or other:
        name, by = (
            (match.group(2), match.group(1)) if match else (other.group(1), other.group(2)) if other else ("", "")
        )
        remedies = {
            "modular": "enable the module stream that has it",
            None: "a module stream, a version lock or an `exclude=` of this host is in the way",
        }
        remedy = remedies.get(by, "a version lock or an `exclude=` of this host is in the way")
        return "the package %s is in a package source of this host, but hidden by %sfiltering: %s" % (
            name,
            by + " " if by else "",
            remedy,
        )
    match = re.search(r"missing groups or modules: (\S+)|No match for argument: (\S+:\S+)$", text, re.M)
    if match:
        return "the module stream %s is in no package source of this host: enable the source that has it" % (
            match.group(1) or match.group(2)
        )
    names = re.findall(r"No match for argument: (\S+)", text) + re.findall(r"No package (\S+) available", text)
    names += [name for line in re.findall(r"Unable to find a match: ([^\n]+)", text) for name in line.split()]
    names = sorted(set(names))
    headers = [name for name in names if HEADERS.match(name)]
    if headers:
        return headers_gone(headers[0])
    if names:
        return "the package %s is in no package source of this host: enable the source that has it" % ", ".join(names)
    return None


def unsolvable(text: str) -> Optional[str]:
    """Read that dependencies cannot be fulfilled: dnf's "Problem", yum's "Requires"."""
    protected = re.search(r"removing the following protected packages: ([^\n]+)", text)
    if protected:
        return "it would remove %s, which this host protects: choose another source" % protected.group(1).strip()
    problems = re.findall(r"(?m)^\s*Problem(?: \d+)?: [^\n]*(?:\n\s+- [^\n]*)*", text)
    if not problems:
        problems = re.findall(r"(?m)^Error: Package: [^\n]*\n\s+(?:Requires|Conflicts): [^\n]*", text)
    if not problems:
        problems = re.findall(r"(?m)^Error: \S+ conflicts with \S+", text)
    if not problems:
        return None
    lines = [line for problem in problems for line in problem.splitlines()]
    said = words_of([re.sub(r"^\s*(?:Problem(?: \d+)?:|- |Error: )\s*", "", line) for line in lines], 6)[:700]
    return (
        "the dependencies cannot be fulfilled (%s): a version lock, an exclude or a foreign source is in the way" % said
    )


def disk(text: str) -> Optional[str]:
    """Read that the disk is full."""
    match = re.search(r"At least (\S+) more space needed on the (\S+) filesystem", text) or re.search(
        r"needs (\S+) (?:more space )?on the (\S+) filesystem", text
    )
    if match:
        return "not enough free space: %s more are needed in %s: make room there, then run again" % match.groups()
    match = re.search(r"[^\n]*(?:No space left on device|Not enough free space|Disk quota exceeded)[^\n]*", text)
    return match and (
        "the disk is full, no free space left (%s): make room, then run again" % " ".join(match.group().split())[:300]
    )


def transaction(text: str) -> Optional[str]:
    """Read that rpm refused or broke off."""
    conflicts = re.findall(r"(?m)^\s*file \S+ (?:from install of|conflicts between) [^\n]*", text)
    if conflicts:
        return (
            "files of packages are in each other's way (%s): remove the other package, then run again"
            % (words_of(conflicts, 2)[:400])
        )
    if re.search(r"No such command:? '?versionlock|Unknown argument \"versionlock\"", text):
        return (
            "the versionlock plugin is not installed (python3-dnf-plugin-versionlock, yum-plugin-versionlock for yum), "
            "and without it no version can be held: install it, or do not ask for a hold"
        )
    match = re.search(r"%(\w+)\((\S+)\) scriptlet failed, exit status (\d+)", text)
    if match:
        return (
            "the script %%%s of the package %s failed with %s: see the package manager's log on the host"
            % match.groups()
        )
    if re.search(r"superuser privileges|You need to be root", text):
        return "root's rights are needed: run with become"
    return None


class Dnf(Manager):
    """dnf 4, dnf5 or yum 3 on this host."""

    def __init__(self, host: Host, wait: float = LOCK_WAIT, pending: str = rpm.PENDING) -> None:
        Manager.__init__(self, host, wait)
        self.pending = pending
        self.program, self.form = which(host)

    # what is there

    def held(self) -> List[str]:
        """Return the names that a version lock holds, of packages that are gone too: a lock outlives its package."""
        return rpm.held(self.host)

    def installed(self) -> Dict[str, Installed]:
        """Return the RPM database: each name with its newest version, and each version under its full name."""
        answer = self.host.run(rpm.QUERY, timeout=120.0)
        if answer.rc != 0 or not answer.out:
            raise PackageError(self.told("reading the package database", answer))
        packages = rpm.read_packages(answer.out)
        held = rpm.held(self.host)
        found = {}  # type: Dict[str, Installed]
        for package in packages:
            for name in (package.full, package.full.rpartition(".")[0]):
                found[name] = Installed(package.evr, "installed", package.name in held)
        for name, package in rpm.newest(packages).items():
            found[name] = Installed(package.evr, "installed", name in held)
        return found

    def half_done(self) -> List[str]:
        """Return what a killed run left in the middle: see rpm.look."""
        return rpm.look(self.host, self.pending).broken

    def offers(self, names: List[str]) -> Dict[str, List[str]]:
        """Return the versions that the package sources offer, by name, newest first."""
        if not names:
            return {}
        # "Yes": where the metadata is to be fetched anew, the key of its signature is asked for, from the file of ours.
        answer = self.call("-y", ["list", "--showduplicates"] + names, ASK_LIMIT)
        text = answer.out + answer.err
        if answer.rc != 0 and text.strip() and not re.search(r"No match|[Nn]o matching", text):
            raise PackageError(self.told("asking the package sources for " + ", ".join(names[:5]), answer))
        return read_offers(read_list(answer.out))

    def streams(self) -> Dict[str, str]:
        """Return the enabled module streams by module."""
        return rpm.streams(self.host)

    # calls

    def options(self) -> List[str]:
        """Return the options of every call: no weak dependencies, no clearing up of what others left."""
        found = ["--setopt=clean_requirements_on_remove=False", "--setopt=exit_on_lock=True", "--setopt=retries=3"]
        return found if self.form == "yum" else found + ["--setopt=install_weak_deps=False"]

    def call(self, answer: str, argv: List[str], limit: float) -> Result:
        """Make a call after other package managers ended; once more where one was quicker. ``answer``: to questions."""
        end = time.monotonic() + self.wait
        while True:
            self.await_locks()
            found = self.host.run([self.program, answer] + self.options() + argv, timeout=limit, env=ENVIRONMENT)
            if found.rc == 0 or not locked(found.out + found.err) or time.monotonic() >= end:
                return found
            time.sleep(2.0)

    def told(self, what: str, answer: Result) -> str:
        """Return the sentence for a call that failed."""
        for path in WRITTEN:
            free = self.host.free(path)
            if free is not None and free < FULL:
                return "%s: the disk is full, no free space left in %s: make room there, then run again" % (what, path)
        return explain(what, answer)

    def get(self, what: str, argv: List[str]) -> Result:
        """Make one call that changes the host; PackageError when it fails, and when DKMS did, which fails no RPM."""
        answer = self.call("-y", argv, RUN_LIMIT)
        if answer.rc != 0:
            kind = Killed if answer.rc == TIMED_OUT or answer.rc < 0 else PackageError
            raise kind(self.told(what, answer) + self.make_log(answer))
        dkms = dkms_failed(what, answer.out + answer.err)
        if dkms:
            raise PackageError(dkms + self.make_log(answer))
        return answer

    def simulate(self, what: str, argv: List[str]) -> Simulation:
        """Return what a call would do; changes nothing."""
        answer = self.call("--assumeno", argv, ASK_LIMIT)
        text = answer.out + answer.err
        missing = re.search(r"No package \S+ available", text)
        if missing or (answer.rc != 0 and not ABORTED.search(text)):
            raise PackageError(self.told(what, answer))
        return read_simulation(answer.out, self.installed())

    def busy(self) -> List[Tuple[str, int]]:
        """Return the locks that another process holds: dnf's and yum's files name it, rpm's is a lock of the kernel."""
        found = []
        for path in PID_FILES:
            text = (self.host.read(path) or "").strip()
            command = self.host.read("/proc/%s/cmdline" % text) if text.isdigit() else None
            if command and re.search(r"dnf|yum|packagekit|rpm", command, re.IGNORECASE):
                found.append((path, int(text)))
        return found + [(path, pid) for path in LOCKS for pid in [lock_holder(path)] if pid is not None]

    # changes

    def update(self) -> None:
        """Read the metadata again (changes the host)."""
        if self.form == "yum":
            self.get("reading the package lists", ["clean", "expire-cache"])
        self.get("reading the package lists", ["makecache"] + ([] if self.form == "yum" else ["--refresh"]))

    def read_repository(self, section: str) -> None:
        """Read the metadata of one repository, and of no other (changes the host)."""
        only = (
            ["--disablerepo=*", "--enablerepo=" + section] if self.form == "yum" else ["--repo=" + section, "--refresh"]
        )
        only += ["--setopt=%s.skip_if_unavailable=0" % section]
        self.get("reading the repository " + section, only + ["makecache"])

    def resolve(self, wanted: List[Wish]) -> List[str]:
        """Return arguments for install; PackageError says what is offered instead of a missing version."""
        exact = [wish for wish in wanted if wish.version is not None]
        offers = self.offers([wish.name for wish in exact])
        arguments = [wish.name for wish in wanted if wish.version is None]
        for wish in exact:
            versions = offers.get(wish.name, [])
            fitting = [version for version in versions if matches(wish.version, version)]
            if not fitting:
                raise PackageError(not_on_offer(wish, versions))
            arguments.append("%s-%s" % (wish.name, fitting[0]))
        return arguments

    def prepare(self, what: str, change: Change) -> Tuple[List[List[str]], Simulation]:
        """Return the calls for a change and what they would do.

        No command of all three installs and removes at once. What conflicts goes with the installation, where removals
        are allowed; what is left of the wanted removals goes first.
        """
        calls = []  # type: List[List[str]]
        simulation = Simulation({}, [])
        if change.install:
            calls = self.installations(self.resolve(change.install), bool(change.remove or change.allowed))
            try:
                for argv in calls:
                    simulation = joined(simulation, self.simulate(what, argv))
            except PackageError:
                if self.form != "yum" or not change.remove:
                    raise
                # yum 3 erases nothing to make room: what is in the way goes in a round of its own.
                calls = []
        rest = [name for name in change.remove if name not in simulation.remove]
        if rest:
            argv = ["remove"] + rest
            simulation = joined(simulation, self.simulate(what, argv))
            calls.insert(0, argv)
        refuse(simulation, change.remove + change.allowed)
        if simulation.install:
            self.fits(len(simulation.install), [("/usr", simulation.unpacked), (CACHE, simulation.fetch)])
        return calls, simulation

    def installations(self, arguments: List[str], erasing: bool) -> List[List[str]]:
        """Return the calls that bring packages; yum 3 alone needs a command of its own to go to an older version."""
        if self.form != "yum":
            return [["install"] + (["--allowerasing"] if erasing else []) + arguments]
        there = self.installed()
        older = []
        for argument in arguments:
            name = re.sub(r"-(?:\d+:)?[^-]+-[^-]+$", "", argument)
            evr = argument[len(name) + 1 :]
            if name in there and evr and rpm.compare(evr, there[name].version) < 0:
                older.append(argument)
        newer = [argument for argument in arguments if argument not in older]
        return [[verb] + names for verb, names in (("downgrade", older), ("install", newer)) if names]

    def carry_out(self, what: str, calls: List[List[str]], simulation: Simulation) -> None:
        """Make the calls of prepare; a mark on the disk tells the next run of one that was killed within."""
        begin(self.pending, sorted(simulation.install))
        try:
            for argv in calls:
                self.get(what, argv)
        except Killed:
            raise
        except PackageError:
            end(self.pending)
            raise
        end(self.pending)

    def removal(self, names: List[str]) -> List[str]:
        """Return the call that takes packages away."""
        return ["remove"] + names

    def hold(self, names: List[str]) -> None:
        """Lock packages to their installed versions (changes the host)."""
        self.get("holding " + ", ".join(names), ["versionlock", "add"] + names)

    def unhold(self, names: List[str]) -> None:
        """Release packages (changes the host)."""
        found = names
        if self.form == "yum":
            # yum compares with whole lines of its file.
            lines = (self.host.read(rpm.YUM_LOCKS) or "").splitlines()
            found = [line.strip() for line in lines if set(rpm.read_locks(line)) & set(names)] or names
        self.get("releasing " + ", ".join(names), ["versionlock", "delete"] + found)

    def enable_streams(self, wanted: Dict[str, str]) -> None:
        """Have module streams enabled; another stream of the same module is left first (changes the host)."""
        if self.form == "yum":
            Manager.enable_streams(self, wanted)
        there = self.streams()
        for name, stream in sorted(wanted.items()):
            if there.get(name) == stream:
                continue
            if name in there:
                self.get("leaving the module stream %s:%s" % (name, there[name]), ["module", "reset", name])
            self.get(
                "enabling the module stream %s:%s" % (name, stream), ["module", "enable", "%s:%s" % (name, stream)]
            )

    def restore_streams(self, before: Dict[str, Optional[str]]) -> None:
        """Bring module streams back to what they were (changes the host)."""
        there = self.streams()
        for name, stream in sorted(before.items()):
            if name in there and there[name] != stream:
                self.get("leaving the module stream %s:%s" % (name, there[name]), ["module", "reset", name])
            if stream and there.get(name) != stream:
                what = "%s:%s" % (name, stream)
                self.get("going back to the module stream " + what, ["module", "enable", what])
            path = "%s/%s.module" % (rpm.MODULES, name)
            if not stream and os.path.exists(path):
                # dnf 4 leaves a file that says nothing.
                os.unlink(path)

    def repair(self, ours: Optional[List[str]] = None) -> List[str]:
        """Finish what a killed run left in the middle (changes the host); returns what was concerned.

        Packages that were being installed are installed again, so that their scripts run; of two versions of one
        package the older goes. A package of ``ours`` that cannot be installed again is removed.
        """
        state = rpm.look(self.host, self.pending)
        if not state.broken:
            return []
        concerned = state.broken
        self.await_locks()
        if state.unreadable:
            self.rebuild()
            state = rpm.look(self.host, self.pending)
        if state.unfinished:
            self.finish_yum()
        older = rpm.older(state.packages)
        if older:
            argv = ["remove"] + older
            names = rpm.doubles(state.packages)
            simulation = self.simulate("removing the older of two versions", argv)
            # What of ours needs the older one goes with it: the plan brings it back in the version that it wants.
            refuse(simulation, names + (ours or []))
            self.get("removing the older of two versions of " + ", ".join(names[:5]), argv)
            state = rpm.look(self.host, self.pending)
        if state.pending:
            self.again(state.pending, ours or [])
        end(self.pending)
        left = rpm.look(self.host, self.pending).broken
        if left:
            raise PackageError(
                "%s stayed half installed after the repair: see `rpm -qa` and `%s check` on the host"
                % (", ".join(left[:5]), self.program)
            )
        return concerned

    def again(self, names: List[str], ours: List[str]) -> None:
        """Install packages again (changes the host)."""
        what = "installing again " + ", ".join(names[:5])
        try:
            refuse(self.simulate(what, ["reinstall"] + names), [])
            self.get(what, ["reinstall"] + names)
        except PackageError:
            mine = [name for name in names if name in ours]
            if mine != names:
                raise
            argv = ["remove"] + mine
            refuse(self.simulate("removing what cannot be installed again", argv), ours)
            self.get("removing what cannot be installed again: " + ", ".join(mine[:5]), argv)

    def rebuild(self) -> None:
        """Rebuild the RPM database from its packages (changes the host)."""
        answer = self.host.run(["rpm", "--rebuilddb"], timeout=RUN_LIMIT)
        if answer.rc == 0:
            answer = self.host.run(["rpm", "-qa"], timeout=120.0)
        if answer.rc != 0:
            raise PackageError(
                "the RPM database stayed unreadable after `rpm --rebuilddb` (%s): restore it from a backup"
                % words_of(answer.err.splitlines(), 2)[:300]
            )

    def finish_yum(self) -> None:
        """Finish or forget an interrupted transaction of yum 3 (changes the host)."""
        program = self.host.which("yum-complete-transaction")
        if not program:
            raise PackageError(
                "yum was interrupted in the middle of a transaction, and yum-complete-transaction is not there to "
                "finish it: install yum-utils, then run again"
            )
        answer = self.host.run([program, "-y"], timeout=RUN_LIMIT)
        if answer.rc != 0:
            raise PackageError(self.told("finishing the interrupted transaction of yum", answer))


def joined(first: Simulation, second: Simulation) -> Simulation:
    """Return what two calls would do together."""
    return Simulation(
        dict(first.install, **second.install),
        first.remove + [name for name in second.remove if name not in first.remove],
        first.fetch + second.fetch,
        first.unpacked + second.unpacked,
    )


def which(host: Host) -> Tuple[str, str]:
    """Return the program and which it is: ``dnf``, ``dnf5`` or ``yum`` (version 3). Links tell: yum may be dnf."""
    for name in ("dnf", "dnf5", "yum"):
        path = host.which(name)
        if path:
            real = os.path.basename(host.realpath(path))
            return path, "dnf5" if real == "dnf5" else "dnf" if real.startswith("dnf") else "yum"
    raise PackageError("this host has rpm, but neither dnf nor yum: install one, then run again")


def begin(path: str, names: List[str]) -> None:
    """Mark that packages are being installed."""
    if names:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        files.write_atomic(path, (json.dumps(names) + "\n").encode("utf-8"), 0o600)


def end(path: str) -> None:
    """Take the mark away."""
    if os.path.lexists(path):
        os.unlink(path)
