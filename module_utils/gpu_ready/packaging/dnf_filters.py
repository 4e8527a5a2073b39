"""Settings of a host that hide packages from dnf: ``exclude=`` in its files, and version locks."""

import fnmatch
import re
from typing import Iterator, List, Tuple

from ..base.host import Host
from . import rpm, yum_repos
from .locations import split_list

MAIN_FILES = ("/etc/dnf/dnf.conf", "/etc/yum.conf")
EXCLUDES = re.compile(r"(?:exclude|excludepkgs|excludes)\s*[=:]\s*(.*)$")
"""Names of the option in dnf 4, dnf5 and yum 3 (dnf.conf(5), yum.conf(5)); a continued line is indented."""
MOST_SHOWN = 3


def find_hiding_lines(host: Host, name: str) -> List[str]:
    """Return lines that hide a package from dnf, each as "FILE line N (its text)"; ``name`` may end with a version."""
    names = [name, re.sub(r"-(?:\d+:)?\d[^-]*(?:-[^-]+)?$", "", name)]
    found = []
    repositories = [yum_repos.DIRECTORY + "/" + one for one in host.listdir(yum_repos.DIRECTORY)]
    for path, number, line, patterns in read_filters(host, [one for one in repositories if one.endswith(".repo")]):
        if any(fnmatch.fnmatch(one, pattern) for one in names for pattern in patterns):
            found.append("%s line %d (%s)" % (path, number, line.strip()))
    return found


def read_filters(host: Host, repositories: List[str]) -> Iterator[Tuple[str, int, str, List[str]]]:
    """Yield the path, number and text of each line that hides packages, and the patterns in it.

    ``repositories``: .repo files to read too, whose lines hide packages of one repository.
    """
    main = [path for path in MAIN_FILES if host.readlink(path) is None]  # /etc/yum.conf may be a link to the other
    for path in main + repositories:
        inside = False
        for number, line in enumerate((host.read(path) or "").splitlines(), 1):
            match = EXCLUDES.match(line)
            inside = bool(match) or (inside and line[:1] in (" ", "\t"))
            if inside:
                yield path, number, line, split_list(match.group(1) if match else line)
    for path in (rpm.DNF_LOCKS, rpm.YUM_LOCKS):
        for number, line in enumerate((host.read(path) or "").splitlines(), 1):
            locked = rpm.parse_locks(line)
            if locked:
                yield path, number, line, locked
    for number, line in enumerate((host.read(rpm.DNF5_LOCKS) or "").splitlines(), 1):
        match = re.match(r"\s*name\s*=\s*[\"']([^\"']+)[\"']", line)
        if match:
            yield rpm.DNF5_LOCKS, number, line, [match.group(1)]
