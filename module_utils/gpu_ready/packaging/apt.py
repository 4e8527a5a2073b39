"""Calls to apt and dpkg, and pure parsers of what they print."""

import contextlib
import os
import re
import time
from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ..base import files
from ..base.evidence import add_outcome
from ..base.host import TIMED_OUT, Host, Result
from . import apt_entries, apt_lists, apt_policy, apt_sources, apt_state, archives, proxies
from .apt_errors import TERM_LOG, explain_failure, find_failed_sources
from .dpkg_status import REINSTALL, STATUS, PackageStatus, parse_dpkg_status, qualified_name
from .locks import APT_LOCKS, held_locks
from .manager import (
    HEADERS,
    LOCK_WAIT,
    RUN_LIMIT,
    FailedChange,
    Installed,
    Manager,
    PackageChange,
    PackageError,
    PackageSpec,
    Simulation,
    choose_version,
    describe_missing_headers,
    describe_missing_version,
    is_installed,
    list_names,
    refuse_unrequested,
)

ARCHIVES = "/var/cache/apt/archives"
PREFERENCES = "/etc/apt/preferences"
CONFIGURATION = "/etc/apt/apt.conf"
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
WITHOUT_SOURCES = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", "Dir::Etc::sourceparts=-"]
"""A removal and a hold need no package source, and work where two contradict each other (apt.conf(5), Dir::Etc)."""
UNINSTALLED = ("not-installed", "config-files")
"""States of packages of which at most the configuration is left (dpkg-query(1))."""
MAKE_LOG = "dkms-make.log"
"""Copy of the compiler's log of a failed build, beside the rest of gpu-ready's state."""
DAY = 86400.0
READING = "reading the package lists"
RETRY = 2.0
"""Seconds between two tries to get a lock."""
LOCKED = re.compile(r"(?m)^E: (?:Could not get lock|Unable to (?:lock|acquire))")
ASK_LIMIT = 300.0
"""Seconds for a query: after an update apt-cache first reads all lists."""
QUERY = "${Package}\\t${Version}\\t${db:Status-Status}\\t${db:Status-Want}\\t${Architecture}\\n"


def parse_installed(text: str) -> Dict[str, Installed]:
    """Parse `dpkg-query -W -f QUERY`; names of a foreign architecture have that behind a colon."""
    rows = [parts for parts in (line.split("\t") for line in text.splitlines()) if len(parts) == 5]
    native = next((row[4] for row in rows if row[0] == "dpkg"), "")
    found = {}  # type: Dict[str, Installed]
    for row in rows:
        name = qualified_name(row[0], row[4], native)
        if name not in found or row[2] == "installed":
            found[name] = Installed(row[1], row[2], row[3] == "hold")
    return found


def parse_simulation(text: str) -> Simulation:
    """Parse `apt-get --simulate`: lines of Inst, Remv and Purg. Foreign packages are named as libcuda1:i386."""
    install = {}  # type: Dict[str, Tuple[Optional[str], str]]
    remove = []
    for line in text.splitlines():
        match = re.match(r"Inst (\S+) (?:\[([^]]*)\] )?\((\S+)", line)
        if match:
            install[match.group(1)] = (match.group(2), match.group(3))
            continue
        match = re.match(r"(?:Remv|Purg) (\S+)", line)
        if match and match.group(1) not in remove:
            remove.append(match.group(1))
    return Simulation(install, remove)


def parse_madison(text: str) -> Dict[str, List[str]]:
    """Parse `apt-cache madison`: the offered versions by name, newest first as apt lists them."""
    found = {}  # type: Dict[str, List[str]]
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 3 and not parts[2].endswith("Sources"):
            versions = found.setdefault(parts[0], [])
            if parts[1] not in versions:
                versions.append(parts[1])
    return found


def parse_lowest_versions(text: str) -> Dict[str, str]:
    """Parse `apt-cache show`: the lowest version that the stanzas' Depends require, by package."""
    found = {}  # type: Dict[str, str]
    for line in re.findall(r"(?m)^(?:Pre-)?Depends: (.*)$", text):
        found.update(re.findall(r"([a-z0-9][a-z0-9.+-]*)(?::\w+)? \(>= ([^)\s]+)\)", line))
    return found


def parse_sizes(text: str) -> Tuple[int, int]:
    """Parse `apt-cache show`: bytes to fetch and bytes when installed, summed over the stanzas."""
    fetch = sum(int(size) for size in re.findall(r"(?m)^Size: (\d+)$", text))
    installed = sum(int(size) for size in re.findall(r"(?m)^Installed-Size: (\d+)$", text))
    return fetch, installed * 1024


class Apt(Manager):
    """apt and dpkg on this host."""

    program = "apt-get"
    log = TERM_LOG

    def __init__(
        self, host: Host, locks: Tuple[str, ...] = APT_LOCKS, wait: float = LOCK_WAIT, store: str = archives.STORE
    ) -> None:
        Manager.__init__(self, host, wait)
        self.locks = locks
        self.store = store
        self.state = None  # type: Optional[apt_state.SimulatedState]
        """What is read in place of the host's packages and pins, while transactions are only simulated."""
        self.options: List[str] = []
        """Options of every call, by which apt works in a private root (private_root.py)."""

    def call_options(self) -> List[str]:
        """Return the options of a call of apt-get."""
        return OPTIONS + self.options + (self.state.options if self.state else [])

    def installed(self) -> Dict[str, Installed]:
        if self.state:
            found = parse_dpkg_status(self.state.text)
            return {one.name: Installed(one.version, one.state, one.selection == "hold") for one in found}
        answer = self.host.run(["dpkg-query", "-W", "-f", QUERY], timeout=ASK_LIMIT)
        if answer.rc != 0:
            raise PackageError(explain_failure("reading the package database", answer))
        return parse_installed(answer.out)

    def user_installed(self) -> Set[str]:
        """Return packages without apt's mark of a dependency (apt-mark(8), showmanual)."""
        answer = self.host.run(["apt-mark"] + WITHOUT_SOURCES + ["showmanual"], timeout=ASK_LIMIT)
        if answer.rc != 0:
            raise PackageError(explain_failure("reading apt's marks", answer))
        return set(answer.out.split())

    def locks_held(self) -> List[Tuple[str, int]]:
        return held_locks(self.host, self.locks)

    def run_change(self, what: str, argv: List[str]) -> Result:
        """Run apt-get (changes the host)."""
        answer = self.call(argv)
        if answer.rc != 0:
            failed, build = self.describe_failure(what, answer), self.find_build(answer)
            raise FailedChange(failed, build, self.describe_build(build)) if build else PackageError(failed)
        return answer

    def describe_failure(self, what: str, answer: Result) -> str:
        """Return the message for a failed call; why a package has no candidate is asked of apt and its preferences."""
        names = apt_policy.find_names(answer.out + "\n" + answer.err)
        if not names:
            message = explain_failure(what, answer)
            return message + self.describe_proxies(message)
        policies = apt_policy.parse_policies(self.query_cache("policy", names))
        return explain_failure(what, answer, policies, self.read_pins())

    def find_proxies(self) -> List[str]:
        names = ["%s.d/%s" % (CONFIGURATION, name) for name in self.host.listdir(CONFIGURATION + ".d")]
        files = {path: self.host.read(path) or "" for path in [CONFIGURATION, *names]}
        dump = self.host.run(["apt-config", "dump", "Acquire"]).out
        return proxies.find_apt_proxies(dump, files) or Manager.find_proxies(self)

    def remounts(self) -> bool:
        """Return True if apt remounts file systems before it calls dpkg (Securing Debian Manual, 4.10.1)."""
        dump = self.host.run(["apt-config", "dump", "DPkg::Pre-Invoke"]).out
        commands = re.findall(r'(?mi)^DPkg::Pre-Invoke\S* "(.*)";$', dump)
        return any("remount" in one and re.search(r"\brw\b", one) for one in commands)

    def read_pins(self) -> List[apt_policy.Pin]:
        """Return the stanzas of all preferences files that apt reads (apt_preferences(5))."""
        names = [
            name
            for name in self.host.listdir(PREFERENCES + ".d")
            if name.rpartition(".")[1:] in (("", name), (".", "pref"))
        ]
        paths = [PREFERENCES] + ["%s.d/%s" % (PREFERENCES, name) for name in names]
        return [pin for path in paths for pin in apt_policy.parse_pins(path, self.host.read(path) or "")]

    def call(self, argv: List[str]) -> Result:
        """Run apt-get when no other package manager runs, again where one was faster.

        DPkg::Lock::Timeout does not cover the locks of the lists and of the archives (apt-pkg/acquire.cc).
        """
        end = time.monotonic() + self.wait
        while True:
            self.wait_for_locks()
            answer = self.host.run(["apt-get"] + self.call_options() + argv, timeout=RUN_LIMIT, env=ENVIRONMENT)
            if answer.rc == 0 or not LOCKED.search(answer.err) or time.monotonic() >= end:
                return answer
            time.sleep(RETRY)

    def incomplete(self) -> List[PackageStatus]:
        return [one for one in parse_dpkg_status(self.host.read(STATUS) or "") if one.is_incomplete]

    def find_interrupted(self) -> List[str]:
        found = [one.name for one in self.incomplete()]
        if not found and [name for name in self.host.listdir("/var/lib/dpkg/updates") if name.isdigit()]:
            return ["dpkg"]
        return found

    def repair(self, owned: Optional[List[str]] = None) -> List[str]:
        """Finish what a killed run left incomplete (changes the host); returns the affected packages.

        A package of ``owned`` that cannot be configured, such as a module that does not compile, is removed: the plan
        may have another one by now, and the installation of the same one reports why it fails.
        """
        self.wait_for_locks()  # while somebody installs, packages look interrupted
        found = self.find_interrupted()
        if not found:
            return []
        self.host.run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"], RUN_LIMIT, ENVIRONMENT)
        # Its status does not count: dependencies of unpacked packages may be missing, which apt installs below.
        failed = [one.name for one in self.incomplete() if one.state == "half-configured" and one.name in (owned or [])]
        trouble = self.remove_incomplete(failed, owned or [])
        incomplete = self.incomplete()
        left = [one.name for one in incomplete]
        if left:
            what = "finishing the interrupted installation of " + ", ".join(left[:5])
            # Where dpkg was killed between the files and its mark of them, apt only has it configure the package, and
            # dpkg refuses that before it is unpacked again (dpkg's lib/dpkg/dpkg-db.h: PKG_EFLAG_REINSTREQ).
            damaged = sorted({one.name for one in incomplete if one.flag == REINSTALL})
            self.run_change(what, ["install", "--fix-broken"] + (["--reinstall"] + damaged if damaged else []))
            half = [one.name for one in self.incomplete()]
            if half:
                self.run_change("installing again " + ", ".join(half[:5]), ["install", "--reinstall"] + half)
        left = [one.name for one in self.incomplete()]
        if left:
            raise PackageError(
                "%s stayed half installed after `dpkg --configure -a` and `apt-get install --fix-broken`. See "
                "`dpkg --audit` on this host%s" % (", ".join(left[:5]), trouble)
            )
        return found

    def remove_incomplete(self, names: List[str], allowed: List[str]) -> str:
        """Remove incomplete packages (changes the host); returns the cause of a failure, else "".

        ``allowed``: packages that may be removed with them.
        """
        if not names:
            return ""
        what = "removing what cannot be configured: " + list_names(names)
        argv = ["remove", "--allow-change-held-packages"] + names
        try:
            refuse_unrequested(self.simulate(what, argv), allowed)
            self.run_change(what, argv)
        except PackageError as error:
            # Something else blocks the removal, which apt's own repair may clear.
            return " (%s)" % error
        return ""

    def update(self, needed: Sequence[str] = ()) -> None:
        """Read the package lists again (changes the host). Sources that fail are recorded in ``failed_sources``.

        PackageError where apt reads none, or where one at the locations ``needed`` fails. Other people's broken source
        is no reason to stop: what is missing then is reported when it is asked for.
        """
        self.remove_damaged_lists()
        answer = self.call(["update"])
        failed = find_failed_sources(answer, self.sources())
        failed = [one._replace(message=one.message + self.describe_proxies(one.message)) for one in failed]
        if answer.rc != 0 and not failed:
            raise PackageError(self.describe_failure(READING, answer))
        for one in failed:
            if one.location in needed:
                raise PackageError("%s: %s" % (READING, one.message))
        self.failed_sources = [one.message for one in failed]
        if failed and not self.has_lists():
            others = len(failed) - 1
            more = " (%d more source%s failed too)" % (others, "" if others == 1 else "s") if others else ""
            raise PackageError("%s: %s%s" % (READING, failed[0].message, more))

    def has_lists(self) -> bool:
        """Return True if apt knows the packages of any source."""
        return any(apt_lists.INDEX.search(name) for name in self.host.listdir(apt_lists.DIRECTORY))

    def remove_damaged_lists(self) -> None:
        for name in self.damaged():
            os.unlink(os.path.join(apt_lists.DIRECTORY, name))

    def update_only(self, path: str) -> None:
        """Read the package lists of one sources file (changes the host); any list that fails is a PackageError."""
        self.remove_damaged_lists()
        options = ["Dir::Etc::sourcelist=" + path, "Dir::Etc::sourceparts=-"]
        options += ["APT::Get::List-Cleanup=0", "APT::Update::Error-Mode=any"]
        self.run_change(READING, [word for option in options for word in ("-o", option)] + ["update"])

    def sources(self) -> List[apt_entries.AptEntry]:
        """Return the enabled entries of all sources files, in apt's order."""
        names = [apt_sources.DIRECTORY + "/" + name for name in self.host.listdir(apt_sources.DIRECTORY)]
        texts = {path: self.host.read(path) for path in [apt_sources.MAIN_FILE, *names]}
        return apt_entries.parse_sources({path: text for path, text in texts.items() if text is not None})

    def check_sources(self) -> None:
        """Make apt read all sources and lists, without network: one bad entry stops every call of apt."""
        answer = self.host.run(["apt-cache", "policy"], timeout=ASK_LIMIT)
        if answer.rc == 0:
            return
        pair = apt_entries.find_contradiction(self.sources())
        if pair is None:
            raise PackageError(explain_failure("reading all package sources of this host", answer))
        raise PackageError(
            "%s. Remove one of the two entries, then run again" % apt_entries.describe_contradiction(pair)
        )

    def lists_are_stale(self) -> bool:
        """Return True if the package lists of any source are missing or damaged, or all are older than a day."""
        answer = self.host.run(["apt-get", "update", "--print-uris"])  # asks nobody
        if (
            answer.rc != 0
            or apt_lists.find_unread_lists(answer.out, self.host.listdir(apt_lists.DIRECTORY))
            or self.damaged()
        ):
            return True
        return time.time() - os.stat(apt_lists.DIRECTORY).st_mtime > DAY

    def damaged(self) -> List[str]:
        return apt_lists.find_damaged_lists(self.host.listdir(apt_lists.DIRECTORY), self.host.read, self.host.stamp)

    def offers(self, names: List[str]) -> Dict[str, List[str]]:
        """Return versions in the package lists, then those kept for a rollback that no list has any more."""
        found = parse_madison(self.query_cache("madison", names)) if names else {}
        for name, _, version in [one.partition("=") for one in archives.read_listing(self.host, self.store)]:
            if name in names and version not in found.get(name, []):
                found.setdefault(name, []).append(version)
        return found

    def lowest_versions(self, packages: List[Tuple[str, str]]) -> Dict[str, str]:
        return parse_lowest_versions(self.query_cache("show", ["%s=%s" % pair for pair in packages]))

    def query_cache(self, verb: str, names: List[str]) -> str:
        """Return the output of apt-cache; its status does not count, since it is 100 where one package is unknown."""
        answer = self.host.run(["apt-cache"] + self.options + [verb] + names, timeout=ASK_LIMIT)
        if answer.rc == TIMED_OUT:
            raise PackageError(
                "asking the package lists for %s: %s. Check what keeps the disk of this host busy, then run again"
                % (", ".join(names[:5]), answer.err)
            )
        return answer.out

    def resolve(self, specs: List[PackageSpec], offers: Dict[str, List[str]]) -> List[str]:
        """Return arguments for apt-get install; PackageError names the offered versions where one is missing."""
        arguments = []
        for spec in specs:
            versions = offers.get(spec.name, [])
            if not versions and HEADERS.match(spec.name):
                raise PackageError(describe_missing_headers(spec.name, self.describe_failed_sources()))
            if spec.version is None:
                arguments.append(spec.name)
                continue
            version = choose_version(spec, versions, self.describe_failed_sources())
            kept = archives.find_kept(self.host, spec.name, version, self.store)
            arguments.append(kept or "%s=%s" % (spec.name, version))
        return arguments

    def plan_change(self, what: str, change: PackageChange) -> Tuple[List[List[str]], Simulation]:
        argv = ["--allow-downgrades", "install"]
        argv += self.resolve(change.install, self.offers([spec.name for spec in change.install]))
        argv += [name + "-" for name in change.remove]
        simulation = self.simulate(what, argv)
        refuse_unrequested(simulation, change.remove + change.allowed)
        self.check_disk(simulation)
        return [argv], simulation

    def apply_change(self, what: str, calls: List[List[str]], simulation: Simulation) -> None:
        before = self.installed()
        replaces = simulation.remove or any(version for version, _ in simulation.install.values())
        requested = self.user_installed() if replaces else set()
        try:
            for argv in calls:
                self.run_change(what, argv)
        except FailedChange as error:
            build = error.build
            there = bool(build.path and self.host.read(build.path) is not None)
            outcome = self.undo(before, simulation, requested)
            if there and self.host.read(str(build.path)) is None:  # it was removed with its package
                kept = os.path.join(os.path.dirname(self.store), MAKE_LOG)
                files.write_atomic(kept, build.text.encode("utf-8"))
                build = build._replace(path=kept)
            raise PackageError(error.call + self.describe_build(build, outcome)) from error
        except PackageError as error:
            raise PackageError(add_outcome(str(error), self.undo(before, simulation, requested))) from error
        self.host.sync_disks()  # dpkg waits for its own files, and for nothing that the packages' scripts write

    def undo(self, before: Dict[str, Installed], simulation: Simulation, requested: Set[str]) -> str:
        """Undo a failed transaction (changes the host); returns the end of its message.

        One package whose script fails makes every later call of apt fail, also the owner's. Packages that are new and
        incomplete are removed. Where others were replaced or removed, all new ones are removed and the earlier ones
        installed again; ``requested`` are those that were no mere dependencies.
        """
        after = self.installed()
        lost = {
            name: before[name].version
            for name in set(simulation.install) | set(simulation.remove)
            if is_installed(before, name) and (name not in after or after[name].version != before[name].version)
        }
        half = [one.name for one in self.incomplete()]
        if not half and not lost:
            return ""
        new = [name for name in simulation.new if name in after and after[name].state not in UNINSTALLED]
        text, trouble = "", self.restore(lost, new, requested)
        if lost and not trouble:
            text = ". The packages that were installed before were installed again"
        else:
            # The scripts of the earlier packages may fail too, as with a broken compiler.
            own = new + simulation.remove + [name for name in lost if name in self.owned]
            trouble += self.remove_incomplete([one.name for one in self.incomplete() if one.name in own], own)
        if self.incomplete():
            self.host.run(["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"], RUN_LIMIT, ENVIRONMENT)
        after = self.installed()
        removed = [name for name in half if name in new and (name not in after or after[name].state in UNINSTALLED)]
        if removed and not text:
            text = ". Removed again, because they were left half configured: %s" % list_names(removed)
        missing = [
            "%s %s" % one for one in sorted(lost.items()) if one[0] not in after or after[one[0]].state in UNINSTALLED
        ]
        if missing:
            text += ". No longer installed: %s%s" % (list_names(missing), trouble)
        left = sorted({one.name for one in self.incomplete()})
        if left:
            text += (
                ". Left half configured: %s%s. Apt installs nothing until that is repaired: see `dpkg --audit` on this "
                "host, then run `dpkg --configure -a` and `apt-get --fix-broken install`"
            ) % (list_names(left), trouble)
        return text

    def restore(self, lost: Dict[str, str], new: List[str], requested: Set[str]) -> str:
        """Install earlier versions again and remove the ``new`` packages (changes the host).

        Returns the cause of a failure, else "".
        """
        if not lost:
            return ""
        what = "installing the earlier packages again"
        try:
            argv = ["--allow-downgrades", "--allow-change-held-packages", "install"]
            argv += self.find_earlier(lost) + [name + "-" for name in new]
            simulation = self.simulate(what, argv)
            refuse_unrequested(simulation, new)
            others = sorted(set(simulation.install) - set(lost))
            if others:
                raise PackageError("%s: %s would be installed or upgraded with them" % (what, list_names(others)))
            self.run_change(what, argv)
            dependencies = sorted(set(lost) - requested)
            if dependencies:
                self.mark("auto", dependencies)
        except PackageError as error:
            return " (%s)" % error
        return ""

    def find_earlier(self, versions: Dict[str, str]) -> List[str]:
        """Return arguments that install exactly these versions, as a source or the disk has them; else PackageError."""
        offers = self.offers(sorted(versions))
        found = []
        for name, version in sorted(versions.items()):
            if version in offers.get(name, []):
                found += self.resolve([PackageSpec(name, version)], offers)
                continue
            path = archives.find_deb(self.host, name, version)
            if path is None:
                raise PackageError(describe_missing_version(PackageSpec(name, version), offers.get(name, [])))
            found.append(path)
        return found

    def removal_command(self, names: List[str]) -> List[str]:
        return WITHOUT_SOURCES + ["purge", "--allow-change-held-packages", "--ignore-hold"] + names

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        with apt_state.simulated_state(self.host, self.store) as self.state:
            try:
                yield
            finally:
                self.state = None

    def hold(self, names: List[str]) -> None:
        """Protect packages from upgrades (changes the host, or its simulated state)."""
        self.mark("hold", names)

    def unhold(self, names: List[str]) -> None:
        """Release packages (changes the host, or its simulated state)."""
        self.mark("unhold", names)

    def mark(self, verb: str, names: List[str]) -> None:
        """Set or release holds (changes the host, or its simulated state)."""
        if self.state:
            self.state.select(names, "hold" if verb == "hold" else "install")
            return
        self.wait_for_locks()
        answer = self.host.run(["apt-mark"] + WITHOUT_SOURCES + [verb] + names, timeout=120.0)
        if answer.rc != 0:
            raise PackageError(explain_failure("apt-mark %s %s" % (verb, " ".join(names)), answer))

    def simulate(self, what: str, argv: List[str]) -> Simulation:
        options = self.call_options() + ["-s", "-o", "Debug::NoLocking=1"]
        answer = self.host.run(["apt-get"] + options + argv, timeout=ASK_LIMIT, env=ENVIRONMENT)
        if answer.rc != 0:
            raise PackageError(self.describe_failure(what, answer) + self.describe_failed_sources())
        return parse_simulation(answer.out)

    def check_disk(self, simulation: Simulation) -> None:
        names = ["%s=%s" % (name, after) for name, (_, after) in sorted(simulation.install.items())]
        if names:
            fetch, unpacked = parse_sizes(self.query_cache("show", names))
            self.check_free_space(len(names), [("/usr", unpacked), (ARCHIVES, fetch)])
