"""The calls to dnf 4, dnf5 and yum 3. What they print is read in dnf_output, why they failed in dnf_errors.

Only their commands are used: their Python libraries belong to one interpreter of the host, which need not be Ansible's.
"""

import contextlib
import os
import re
import time
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..base import manifest
from ..base.files import delete_file, write_json_file
from ..base.host import TIMED_OUT, Host, Result
from . import proxies, rpm, yum_repos
from .dnf_errors import (
    explain_failed_repository,
    explain_failure,
    explain_lock,
    explain_rights,
    find_explanation,
    find_failed_repositories,
    find_hidden_names,
    join_lines,
)
from .dnf_filters import MAIN_FILES, MOST_SHOWN, find_hiding_lines
from .dnf_output import parse_list, parse_lowest_versions, parse_offers, parse_simulation
from .locks import PID_FILES, RPM_LOCKS, held_locks, held_pid_files
from .manager import (
    LOCK_WAIT,
    RUN_LIMIT,
    Installed,
    Manager,
    PackageChange,
    PackageError,
    PackageSpec,
    Simulation,
    TransactionKilled,
    choose_version,
    find_dkms_failure,
    refuse_unrequested,
)

ASK_LIMIT = 600.0
"""Seconds for a query; it may have to fetch the metadata of all repositories."""
ENVIRONMENT = {"COLUMNS": "200", "FORCE_COLUMNS": "200"}
CACHE = "/var/cache"
WRITTEN = ("/var/cache/dnf", "/var/cache/libdnf5", "/var/cache/yum", CACHE, "/var/lib", "/usr", "/tmp")
FULL = 2 * 1024 * 1024
"""Bytes: with less, a failure is reported as a full disk, which dnf itself often does not name."""
ABORTED = re.compile(r"Operation aborted|Exiting on user [Cc]ommand")


WITHOUT_LOCKS = ["--disableplugin=versionlock"]
OWN = "gpu-ready-"
"""Beginning of the names of our sections."""


class Dnf(Manager):
    """dnf 4, dnf5 or yum 3 on this host."""

    log = "/var/log/dnf.rpm.log"

    def __init__(
        self, host: Host, wait: float = LOCK_WAIT, pending: str = rpm.PENDING, keep_cache: bool = False
    ) -> None:
        Manager.__init__(self, host, wait)
        self.keep_cache = keep_cache
        self.pending = pending
        self.extra_options = []  # type: List[str]
        self.skipped = []  # type: List[str]
        """Third-party repositories that failed; later calls of this run skip them."""
        self.recorded = None  # type: Optional[Dict[str, Dict[str, Any]]]
        self.program, self.form = find_program(host)

    @property
    def adopted(self) -> Dict[str, Dict[str, Any]]:
        """Third-party repository sections that gpu-ready uses, with the pinned key passed to dnf."""
        if self.recorded is None:
            self.recorded = manifest.collect(self.host).get("adopted", {})
        return self.recorded

    @property
    def ignores_locks(self) -> bool:
        """Whether transactions are only simulated."""
        return WITHOUT_LOCKS[0] in self.extra_options

    # queries

    def held(self) -> List[str]:
        """Return names in version locks, also of removed packages: a lock outlives its package."""
        return rpm.read_held_names(self.host)

    def installed(self) -> Dict[str, Installed]:
        """Return each name with its newest version, and each version under its full name."""
        answer = self.host.run(rpm.QUERY, timeout=120.0)
        if answer.rc != 0 or not answer.out:
            raise PackageError(self.describe_failure("reading the package database", answer))
        packages = rpm.parse_packages(answer.out)
        held = rpm.read_held_names(self.host)
        found = {}  # type: Dict[str, Installed]
        for package in packages:
            for name in (package.full, package.full.rpartition(".")[0]):
                found[name] = Installed(package.evr, "installed", package.name in held)
        for name, package in rpm.newest(packages).items():
            found[name] = Installed(package.evr, "installed", name in held)
        return found

    def user_installed(self) -> Set[str]:
        """Return packages whose reason in the history is the user (dnf(8), repoquery --userinstalled.

        Yumdb of yum 3).
        """
        if self.form == "yum":
            return rpm.read_user_installed(self.host)
        answer = self.call("-y", ["repoquery", "--userinstalled", "--qf", "%{name}\\n"], ASK_LIMIT)
        if answer.rc != 0:
            raise PackageError(self.describe_failure("reading why packages were installed", answer))
        return set(answer.out.split())

    def find_interrupted(self) -> List[str]:
        return rpm.read_state(self.host, self.pending).broken

    def offers(self, names: List[str]) -> Dict[str, List[str]]:
        if not names:
            return {}
        # "Yes": when the metadata is fetched again, dnf asks whether to import the key that its .repo file names.
        answer = self.call("-y", ["list", "--showduplicates"] + names, ASK_LIMIT)
        text = answer.out + answer.err
        if answer.rc != 0 and text.strip() and not re.search(r"No match|[Nn]o matching", text):
            raise PackageError(self.describe_failure("asking the package sources for " + ", ".join(names[:5]), answer))
        return parse_offers(parse_list(answer.out), names)

    def lowest_versions(self, packages: List[Tuple[str, str]]) -> Dict[str, str]:
        verb = ["deplist"] if self.form == "yum" else ["repoquery", "--requires"]
        answer = self.call("-y", verb + ["%s-%s" % pair for pair in packages], ASK_LIMIT)
        if answer.rc != 0:
            raise PackageError(self.describe_failure("asking for the dependencies of %s" % packages[0][0], answer))
        return parse_lowest_versions(answer.out)

    def streams(self) -> Dict[str, str]:
        return rpm.read_streams(self.host)

    # calls

    def options(self, needed: str = "") -> List[str]:
        """Return options of every call: no weak dependencies, no removal of unneeded packages.

        One more version of kernel-devel would remove the oldest (installonly_limit, 3), which nobody requested.
        Other people's repositories may fail: Red Hat's release notes of 8.1 give this form for all repositories. The
        sections that we use with the pinned key (dnf.conf(5): gpgkey) may not.
        """
        found = ["--setopt=clean_requirements_on_remove=False", "--setopt=exit_on_lock=True", "--setopt=retries=3"]
        found.append("--setopt=installonly_limit=0")
        if self.keep_cache:
            found.append("--setopt=keepcache=1")
        if self.form != "yum":
            found += ["--setopt=*.skip_if_unavailable=1", "--setopt=%s*.skip_if_unavailable=0" % OWN]
        elif not needed:  # yum 3 applies such options in any order
            found.append("--setopt=*.skip_if_unavailable=1")
        for section, record in sorted(self.adopted.items()):
            found += ["--setopt=%s.%s" % (section, option) for option in adopted_options(record)]
        found += self.extra_options
        return found if self.form == "yum" else found + ["--setopt=install_weak_deps=False"]

    def call(self, answer: str, argv: List[str], limit: float, needed: str = "") -> Result:
        """Call the program when no other package manager runs, again where one was faster.

        ``answer``: to questions. ``needed``: the one repository that is read.
        """
        end = time.monotonic() + self.wait
        while True:
            self.wait_for_locks()
            skipped = [] if needed else ["--disablerepo=" + name for name in self.skipped]
            options = self.options(needed) + skipped
            found = self.host.run([self.program, answer] + options + argv, timeout=limit, env=ENVIRONMENT)
            text = found.out + found.err
            waits = explain_lock(text) and not explain_rights(text)
            if found.rc == 0 or not waits or time.monotonic() >= end:
                return self.note_failed_sources(found, needed)
            time.sleep(2.0)

    def note_failed_sources(self, answer: Result, needed: str) -> Result:
        """Record the repositories of others that failed; the answer, in which they count as ignored.

        dnf 4 names those that it leaves out in a line of its own. dnf5 does not.
        """
        text = answer.out + "\n" + answer.err
        failed = [
            name
            for name in find_failed_repositories(text)
            if name != needed and not name.startswith(OWN) and name not in self.adopted
        ]
        for name in failed:
            if name not in self.skipped:
                self.skipped.append(name)
                reported = explain_failed_repository(text, name)
                reported += self.describe_proxies(reported)
                self.failed_sources.append(": ".join(filter(None, [self.find_file(name), reported])))
        return (
            answer._replace(err="%s\nIgnoring repositories: %s\n" % (answer.err, ", ".join(failed)))
            if failed
            else answer
        )

    def find_proxies(self) -> List[str]:
        names = [name for name in self.host.listdir(yum_repos.DIRECTORY) if name.endswith(".repo")]
        paths = [path for path in MAIN_FILES if self.host.readlink(path) is None]
        paths += ["%s/%s" % (yum_repos.DIRECTORY, name) for name in names]
        return proxies.find_dnf_proxies({path: self.host.read(path) or "" for path in paths}) or Manager.find_proxies(
            self
        )

    def find_file(self, section: str) -> str:
        """Return the .repo file with a section, "" where there is none."""
        paths = [yum_repos.DIRECTORY + "/" + name for name in self.host.listdir(yum_repos.DIRECTORY)]
        found = [
            path
            for path in paths
            if path.endswith(".repo") and section in yum_repos.parse_sections(self.host.read(path) or "")
        ]
        return found[0] if found else ""

    def describe_failure(self, what: str, answer: Result) -> str:
        text = answer.out + "\n" + answer.err
        message = explain_failure(what, answer)
        message += self.describe_proxies(message) + self.describe_hidden(find_hidden_names(text))
        spaces = [(path, self.host.free(path)) for path in WRITTEN]
        full = [path for path, free in spaces if free is not None and free < FULL]
        if not full:
            return message
        known = find_explanation(text)
        space = "the disk is full, no free space left in %s. Free space there, then run again" % full[0]
        # With another cause in the text, a full disk need not be the one: a small /tmp is not written by everything.
        return "%s. Besides, %s" % (message, space) if known else "%s: %s" % (what, space)

    def describe_hidden(self, names: List[str]) -> str:
        """Return the end of a message about packages that were not found.

        Lines that hide them, sources that were not read.
        """
        lines = [line for name in names for line in find_hiding_lines(self.host, name)]
        hidden = sorted(set(lines), key=lines.index)[:MOST_SHOWN]
        text = ". Hidden by %s: change that, then run again" % " and ".join(hidden) if hidden else ""
        return text + (self.describe_failed_sources() if names else "")

    def run_change(self, what: str, argv: List[str], needed: str = "") -> Result:
        """Call dnf (changes the host). A failed DKMS build of the driver is an error too, although rpm succeeds."""
        answer = self.call("-y", argv, RUN_LIMIT, needed)
        text, build = answer.out + answer.err, self.find_build(answer)
        why = self.describe_build(build) if build else ""
        if answer.rc != 0:
            kind = TransactionKilled if answer.rc == TIMED_OUT or answer.rc < 0 else PackageError
            raise kind(self.describe_failure(what, answer) + why)
        if build and build.of_driver:
            raise PackageError((find_dkms_failure(what, text) or what) + why)
        return answer

    def simulate(self, what: str, argv: List[str]) -> Simulation:
        answer = self.call("--assumeno", argv, ASK_LIMIT)
        text = answer.out + answer.err
        missing = re.search(r"No package \S+ available", text)
        if missing or (answer.rc != 0 and not ABORTED.search(text)):
            raise PackageError(self.describe_failure(what, answer))
        return parse_simulation(answer.out, self.installed())

    def locks_held(self) -> List[Tuple[str, int]]:
        """Return the files of dnf and yum name the process; rpm's is a lock of the kernel."""
        return held_pid_files(self.host, PID_FILES) + held_locks(self.host, RPM_LOCKS)

    # changes

    def update(self) -> None:
        if self.form == "yum":
            self.run_change("reading the package lists", ["clean", "expire-cache"])
        self.run_change("reading the package lists", ["makecache"] + ([] if self.form == "yum" else ["--refresh"]))

    def check_sources(self) -> None:
        """Make dnf read all .repo files, without network."""
        self.run_change("reading all repositories of this host", ["-C", "repolist"])

    def read_repository(self, section: str) -> None:
        """Read the metadata of one repository (changes the host)."""
        only = (
            ["--disablerepo=*", "--enablerepo=" + section] if self.form == "yum" else ["--repo=" + section, "--refresh"]
        )
        only += ["--setopt=%s.skip_if_unavailable=0" % section]
        self.run_change("reading the repository " + section, only + ["makecache"], needed=section)

    def resolve(self, specs: List[PackageSpec]) -> List[str]:
        """Return arguments for install; PackageError names the offered versions where one is missing."""
        exact = [spec for spec in specs if spec.version is not None]
        offers = self.offers([spec.name for spec in exact])
        arguments = [spec.name for spec in specs if spec.version is None]
        for spec in exact:
            offered = offers.get(spec.name, [])
            version = choose_version(spec, offered, self.describe_hidden([spec.name]))
            arguments.append("%s-%s" % (spec.name, version))
        return arguments

    def plan_change(self, what: str, change: PackageChange) -> Tuple[List[List[str]], Simulation]:
        """No command of all three programs installs and removes at once.

        Conflicting packages are removed by the installation, where removals are allowed; others in a call before it.
        """
        calls = []  # type: List[List[str]]
        simulation = Simulation({}, [])
        if change.install:
            calls = self.installations(self.resolve(change.install), bool(change.remove or change.allowed))
            try:
                for argv in calls:
                    simulation = join_simulations(simulation, self.simulate(what, argv))
            except PackageError:
                if self.form != "yum" or not change.remove:
                    raise
                # yum 3 removes no conflicting packages: they are removed by a call of their own.
                calls = []
        others = [name for name in change.remove if name not in simulation.remove]
        if others:
            argv = ["remove"] + others
            simulation = join_simulations(simulation, self.simulate(what, argv))
            calls.insert(0, argv)
        refuse_unrequested(simulation, change.remove + change.allowed)
        if simulation.install:
            self.check_free_space(len(simulation.install), [("/usr", simulation.unpacked), (CACHE, simulation.fetch)])
        return calls, simulation

    def installations(self, arguments: List[str], erasing: bool) -> List[List[str]]:
        """Return calls that install packages; yum 3 needs a separate command for older versions."""
        if self.form != "yum":
            return [["install"] + (["--allowerasing"] if erasing else []) + arguments]
        present = self.installed()
        older = []
        for argument in arguments:
            name = re.sub(r"-(?:\d+:)?[^-]+-[^-]+$", "", argument)
            evr = argument[len(name) + 1 :]
            if name in present and evr and rpm.compare(evr, present[name].version) < 0:
                older.append(argument)
        newer = [argument for argument in arguments if argument not in older]
        return [[verb] + names for verb, names in (("downgrade", older), ("install", newer)) if names]

    def apply_change(self, what: str, calls: List[List[str]], simulation: Simulation) -> None:
        """Make the calls of :meth:`plan_change`; a mark on the disk shows the next run that this one was killed."""
        mark_pending(self.pending, sorted(simulation.install))
        try:
            for argv in calls:
                self.run_change(what, argv)
        except TransactionKilled:
            raise
        except PackageError:
            clear_pending(self.pending)
            raise
        self.host.sync_disks()  # rpm waits for its database, and for none of the files
        clear_pending(self.pending)

    def removal_command(self, names: List[str]) -> List[str]:
        return ["remove"] + names

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        """Ignore all version locks meanwhile: dnf reads none of another file."""
        before = self.extra_options
        self.extra_options = before + WITHOUT_LOCKS
        try:
            yield
        finally:
            self.extra_options = before

    def hold(self, names: List[str]) -> None:
        """Lock packages to their installed versions (changes the host)."""
        if self.ignores_locks:
            return
        self.run_change("holding " + ", ".join(names), ["versionlock", "add"] + names)

    def unhold(self, names: List[str]) -> None:
        """Release packages (changes the host)."""
        if self.ignores_locks:
            return
        found = names
        if self.form == "yum":
            # yum compares with whole lines of its file.
            lines = (self.host.read(rpm.YUM_LOCKS) or "").splitlines()
            found = [line.strip() for line in lines if set(rpm.parse_locks(line)) & set(names)] or names
        self.run_change("releasing " + ", ".join(names), ["versionlock", "delete"] + found)

    def enable_streams(self, streams: Dict[str, str]) -> None:
        """Enable module streams; another stream of the same module is reset first (changes the host)."""
        if self.form == "yum":
            Manager.enable_streams(self, streams)
        present = self.streams()
        for name, stream in sorted(streams.items()):
            if present.get(name) == stream:
                continue
            if name in present:
                self.run_change("resetting the module stream %s:%s" % (name, present[name]), ["module", "reset", name])
            self.run_change(
                "enabling the module stream %s:%s" % (name, stream), ["module", "enable", "%s:%s" % (name, stream)]
            )

    def restore_streams(self, before: Dict[str, Optional[str]]) -> None:
        """Restore module streams (changes the host)."""
        present = self.streams()
        for name, stream in sorted(before.items()):
            if name in present and present[name] != stream:
                self.run_change("resetting the module stream %s:%s" % (name, present[name]), ["module", "reset", name])
            if stream and present.get(name) != stream:
                what = "%s:%s" % (name, stream)
                self.run_change("restoring the module stream " + what, ["module", "enable", what])
            path = "%s/%s.module" % (rpm.MODULES, name)
            if not stream and os.path.exists(path):
                # dnf 4 leaves a file without a stream.
                os.unlink(path)

    def repair(self, owned: Optional[List[str]] = None) -> List[str]:
        """Finish what a killed run left incomplete (changes the host); returns the affected packages.

        Packages that were being installed are reinstalled, so that their scripts run. The older of two versions of one
        package is removed, and a package of ``owned`` that cannot be reinstalled.
        """
        self.wait_for_locks()  # while somebody installs, packages look interrupted
        state = rpm.read_state(self.host, self.pending)
        if not state.broken:
            return []
        concerned = state.broken
        if state.unreadable:
            self.rebuild_database()
            state = rpm.read_state(self.host, self.pending)
        if state.unfinished:
            self.finish_yum()
        older = rpm.older_duplicates(state.packages)
        if older:
            argv = ["remove"] + older
            names = rpm.duplicate_names(state.packages)
            simulation = self.simulate("removing the older of two versions", argv)
            # Own packages that need the older version are removed too: the plan installs them in the desired version.
            refuse_unrequested(simulation, names + (owned or []))
            self.run_change("removing the older of two versions of " + ", ".join(names[:5]), argv)
            state = rpm.read_state(self.host, self.pending)
        if state.pending:
            self.reinstall(state.pending, owned or [])
        clear_pending(self.pending)
        left = rpm.read_state(self.host, self.pending).broken
        if left:
            raise PackageError(
                "%s stayed half installed after the repair. See `rpm -qa` and `%s check` on this host"
                % (", ".join(left[:5]), self.program)
            )
        return concerned

    def reinstall(self, names: List[str], owned: List[str]) -> None:
        what = "reinstalling " + ", ".join(names[:5])
        try:
            refuse_unrequested(self.simulate(what, ["reinstall"] + names), [])
            self.run_change(what, ["reinstall"] + names)
        except PackageError:
            removable = [name for name in names if name in owned]
            if removable != names:
                raise
            argv = ["remove"] + removable
            refuse_unrequested(self.simulate("removing what cannot be reinstalled", argv), owned)
            self.run_change("removing what cannot be reinstalled: " + ", ".join(removable[:5]), argv)

    def rebuild_database(self) -> None:
        """Rebuild the RPM database from its packages (changes the host)."""
        answer = self.host.run(["rpm", "--rebuilddb"], timeout=RUN_LIMIT)
        if answer.rc == 0:
            answer = self.host.run(["rpm", "-qa"], timeout=120.0)
        if answer.rc != 0:
            raise PackageError(
                "the RPM database stayed unreadable after `rpm --rebuilddb` (%s). Restore it from a backup"
                % join_lines(answer.err.splitlines(), 2)[:300]
            )

    def finish_yum(self) -> None:
        """Finish or forget an interrupted transaction of yum 3 (changes the host)."""
        program = self.host.which("yum-complete-transaction")
        if not program:
            raise PackageError(
                "yum was interrupted in a transaction, and yum-complete-transaction, which finishes it, is missing. "
                "Install yum-utils, then run again"
            )
        answer = self.host.run([program, "-y"], timeout=RUN_LIMIT)
        if answer.rc != 0:
            raise PackageError(self.describe_failure("finishing the interrupted transaction of yum", answer))


def join_simulations(first: Simulation, second: Simulation) -> Simulation:
    return Simulation(
        dict(first.install, **second.install),
        first.remove + [name for name in second.remove if name not in first.remove],
        first.fetch + second.fetch,
        first.unpacked + second.unpacked,
    )


def adopted_options(record: Dict[str, Any]) -> List[str]:
    """Return options of a section that is not ours.

    Only packages and metadata with the pinned key count, in our calls.
    """
    checks = ["%s=%d" % (name, record[name]) for name in ("gpgcheck", "repo_gpgcheck") if record.get(name)]
    return ["gpgkey=file://" + str(record["keyring"]), *checks, "skip_if_unavailable=0"]


def find_program(host: Host) -> Tuple[str, str]:
    """Return the path and form of the program: ``dnf``, ``dnf5`` or ``yum`` (version 3).

    /usr/bin/yum may be a link to dnf.
    """
    for name in ("dnf", "dnf5", "yum"):
        path = host.which(name)
        if path:
            real = os.path.basename(host.realpath(path))
            return path, "dnf5" if real == "dnf5" else "dnf" if real.startswith("dnf") else "yum"
    raise PackageError("this host has rpm, but neither dnf nor yum. Install one, then run again")


def mark_pending(path: str, names: List[str]) -> None:
    if names:
        write_json_file(path, names)


def clear_pending(path: str) -> None:
    delete_file(path)
