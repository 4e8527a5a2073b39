"""The RPM database, version locks and module streams: pure parsers, and the facts that they give."""

import functools
import re
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from ..base.host import Host
from ..base.json_file import read_text_mark

FORMAT = "%{NAME}\\t%{EPOCH}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\n"
QUERY = ["rpm", "-qa", "--qf", FORMAT]
"""The one question to the database; rpm prints "(none)" for a package without epoch."""
DNF_LOCKS = "/etc/dnf/plugins/versionlock.list"
DNF5_LOCKS = "/etc/dnf/versionlock.toml"
YUM_LOCKS = "/etc/yum/pluginconf.d/versionlock.list"
YUM_STATE = "/var/lib/yum"
YUMDB = YUM_STATE + "/yumdb"
PENDING = "/var/lib/gpu-ready/packages-pending.json"
REMEDY = "Repair what a killed installation left (rpm -Va, dnf check)"
"""Names of packages that are being installed; it outlives only a run that was killed. dpkg keeps such a mark itself."""
MODULES = "/etc/dnf/modules.d"
DNF5_MODULES = "/usr/lib/sysimage/libdnf5/modules.toml"
MANY = re.compile(r"kernel|gpg-pubkey$")
"""Packages of which several versions may be installed (installonlypkgs of dnf.conf(5)), by name."""


class Package(NamedTuple):
    """An installed package; ``epoch`` is "" where there is none."""

    name: str
    epoch: str
    version: str
    release: str
    arch: str

    @property
    def evr(self) -> str:
        return ("%s:" % self.epoch if self.epoch else "") + "%s-%s" % (self.version, self.release)

    @property
    def full(self) -> str:
        """Return "name-version-release.arch", as rpm -q prints it."""
        return "%s-%s-%s.%s" % (self.name, self.version, self.release, self.arch)


class RpmState(NamedTuple):
    """The packages of a host, and what a killed run left incomplete (``broken``).

    ``doubles``: names in two versions; ``pending``: installed names of gpu-ready's mark; ``unfinished``: yum was
    interrupted; ``unreadable``: the database cannot be read.
    """

    packages: List[Package]
    held: List[str]
    doubles: List[str]
    pending: List[str]
    unfinished: bool
    unreadable: bool

    @property
    def broken(self) -> List[str]:
        more = (["yum"] if self.unfinished else []) + (["rpm"] if self.unreadable else [])
        return sorted(set(self.doubles + self.pending)) + more


def parse_packages(text: str) -> List[Package]:
    """Parse the output of QUERY; an epoch of 0 counts as none."""
    found = []
    for line in text.splitlines():
        parts = line.split("\t")
        if len(parts) == 5 and parts[0]:
            epoch = "" if parts[1] in ("(none)", "0") else parts[1]
            found.append(Package(parts[0], epoch, parts[2], parts[3], parts[4]))
    return found


def parse_streams_toml(text: str) -> Dict[str, str]:
    """Parse modules.toml of dnf5 (written by a program, one key a line): the stream of each enabled module."""
    found = {}  # type: Dict[str, str]
    name, stream = "", ""
    for line in text.splitlines():
        head = re.match(r"\[modules\.[\"']?([^\]\"']+)[\"']?\]", line.strip())
        value = re.match(r"(\w+)\s*=\s*[\"']([^\"']*)[\"']", line.strip())
        if head:
            name, stream = head.group(1), ""
        elif value and value.group(1) == "enabled_stream":
            stream = value.group(2)
        elif value and value.group(1) == "state" and value.group(2).lower() == "enabled" and name and stream:
            found[name] = stream
    return found


def newest(packages: List[Package]) -> Dict[str, Package]:
    found = {}  # type: Dict[str, Package]
    for package in packages:
        if package.name not in found or compare(package.evr, found[package.name].evr) > 0:
            found[package.name] = package
    return found


def duplicate_names(packages: List[Package]) -> List[str]:
    seen = {}  # type: Dict[Tuple[str, str], str]
    found = set()
    for package in packages:
        if seen.setdefault((package.name, package.arch), package.evr) != package.evr and not MANY.match(package.name):
            found.add(package.name)
    return sorted(found)


def split_evr(text: str) -> Tuple[str, str, str]:
    """Return the epoch ("0" where it is left out), version and release ("" where it is left out)."""
    epoch, colon, rest = text.partition(":")
    if not colon:
        epoch, rest = "0", text
    version, _, release = rest.partition("-")
    return epoch or "0", version, release


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1 as rpm orders "[epoch:]version[-release]"; a release that is left out fits any."""
    first, second = split_evr(left), split_evr(right)
    for position in (0, 1, 2):
        if position == 2 and not (first[2] and second[2]):
            return 0
        order = compare_part(first[position], second[position])
        if order:
            return order
    return 0


def compare_part(left: str, right: str) -> int:
    """Return -1, 0 or 1 as rpmvercmp(3) orders two versions or releases."""
    first, second = (re.findall(r"\d+|[a-zA-Z]+|~|\^", text) for text in (left, right))
    for position in range(max(len(first), len(second))):
        one = first[position] if position < len(first) else ""
        two = second[position] if position < len(second) else ""
        if one == two:
            continue
        for sign, order in (("~", -1), ("^", 1)):
            # A tilde sorts before the end of a version, a caret after the end but before anything else.
            if sign in (one, two):
                other = two if one == sign else one
                side = 1 if one == sign else -1
                return order * side if sign == "~" or not other else -side
        if one.isdigit() and two.isdigit():
            if int(one) != int(two):
                return 1 if int(one) > int(two) else -1
        elif one.isdigit() != two.isdigit():
            return 1 if one.isdigit() else -1
        else:
            return 1 if one > two else -1
    return 0


order = functools.cmp_to_key(compare)
"""Sort key for "[epoch:]version[-release]"."""


def parse_locks(text: str) -> List[str]:
    """Parse versionlock.list: ``name-epoch:version-release.arch`` (dnf 4), ``epoch:name-version-release.arch`` (yum).

    Lines that begin with ``!`` exclude a version and hold nothing. A line may be a bare name.
    """
    found = []
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        match = re.match(r"(?:\d+:)?([^\s!].*?)(?:-(?:\d+:)?[^-\s:]+-[^-\s]+)?$", line)
        if match and not line.startswith("!") and match.group(1) not in found:
            found.append(match.group(1))
    return sorted(found)


def parse_locks_toml(text: str) -> List[str]:
    """Parse dnf5's versionlock.toml: return the packages with a condition that allows, not excludes, a version.

    dnf5 writes one key per line, so a line parser is enough (tomllib needs Python 3.11).
    """
    found = set()
    name: Optional[str] = None
    for line in text.splitlines():
        line = line.strip()
        if line == "[[packages]]":
            name = None
        match = re.match(r"name\s*=\s*[\"']([^\"']+)[\"']", line)
        if match:
            name = match.group(1)
        match = re.match(r"comparator\s*=\s*[\"']([^\"']+)[\"']", line)
        if match and name and match.group(1) != "!=":
            found.add(name)
    return sorted(found)


def parse_stream_file(text: str) -> Dict[str, str]:
    """Parse a file of /etc/dnf/modules.d: the stream of each module that is enabled."""
    found = {}  # type: Dict[str, str]
    name, values = "", {}  # type: str, Dict[str, str]
    for line in text.splitlines() + ["[]"]:
        line = line.strip()
        if line.startswith("["):
            if name and values.get("state") == "enabled" and values.get("stream"):
                found[name] = values["stream"]
            name, values = line.strip("[]"), {}
        elif "=" in line:
            key, _, value = line.partition("=")
            values[key.strip()] = value.strip()
    return found


def read_held_names(host: Host) -> List[str]:
    """Return names that a version lock holds, from the file of whichever manager there is."""
    found = parse_locks(host.read(DNF_LOCKS) or "") + parse_locks(host.read(YUM_LOCKS) or "")
    return sorted(set(found + parse_locks_toml(host.read(DNF5_LOCKS) or "")))


def read_streams(host: Host) -> Dict[str, str]:
    found = parse_streams_toml(host.read(DNF5_MODULES) or "")
    for name in host.listdir(MODULES):
        if name.endswith(".module"):
            found.update(parse_stream_file(host.read("%s/%s" % (MODULES, name)) or ""))
    return found


def read_user_installed(host: Host) -> Set[str]:
    """Return names of the packages that a user requested, from the database of yum 3.

    It has one directory per package, LETTER/CHECKSUM-NAME-VERSION-RELEASE-ARCH (yum 3, rpmsack.py,
    RPMDBAdditionalDataPackage).
    """
    found = set()
    for letter in host.listdir(YUMDB):
        for directory in host.listdir("%s/%s" % (YUMDB, letter)):
            if (host.read("%s/%s/%s/reason" % (YUMDB, letter, directory)) or "").strip() == "user":
                found.add(directory.partition("-")[2].rsplit("-", 3)[0])
    return found


def read_state(host: Host, pending: str = PENDING) -> RpmState:
    """Return one call of rpm, and a few files."""
    answer = host.run(QUERY, timeout=120.0)
    packages = parse_packages(answer.out)
    unfinished = [name for name in host.listdir(YUM_STATE) if name.startswith("transaction-all.")]
    names = {package.name for package in packages} | {package.full.rpartition(".")[0] for package in packages}
    names |= {package.full for package in packages}
    return RpmState(
        packages,
        read_held_names(host),
        duplicate_names(packages),
        sorted(name for name in read_text_mark(host, pending, REMEDY) if name in names),
        bool(unfinished),
        answer.rc != 0 or not packages,
    )


def older_duplicates(packages: List[Package]) -> List[str]:
    last = newest(packages)
    names = duplicate_names(packages)
    return sorted(
        package.full for package in packages if package.name in names and package.evr != last[package.name].evr
    )


def is_same_key(version: str, fingerprint: str) -> bool:
    """Return True if a gpg-pubkey package holds a key: its version is the end of the fingerprint, or all of it."""
    return bool(version) and fingerprint.lower().endswith(version.lower())
