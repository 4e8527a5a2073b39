"""What the package sources of this host offer, read in a private root: nothing of the host changes.

The package manager works with the host's database and sources, and with those that a plan will add, but with lists,
caches and logs of its own. The lists of the host are copied there first: a source that has nothing new is not
downloaded again, and one that does not answer is answered from them. Read-only, also for a plan under --check.
"""

import fnmatch
import os
import re
import shutil
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..base.errors import GpuReadyError
from ..base.host import Host
from ..base.work_directories import vanishing_directory
from . import apt, apt_entries, apt_lists, apt_policy, apt_sources, dnf, repositories, rpm, yum_repos
from .apt_errors import explain_failure, find_failed_sources
from .dnf_filters import MOST_SHOWN, find_hiding_lines
from .family import uses_rpm
from .index_record import FRESH, STALE, UNAVAILABLE, PackageIndex
from .locations import url_location
from .manager import PackageError, PackageSpec, format_megabytes
from .repositories import Edits, Request

PARENT = "/var/cache"
PREFIX = "gpu-ready-index-"
LIMIT = 300.0
"""Seconds for reading all sources."""
SPACE = 768 * 1024 * 1024
"""Bytes for the lists of a distribution with all its components, beside the copies of those that a host has."""
APT_CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {{
 MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages"; flatMetaKey "Packages"; ShortDescription "Packages";
 Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages"; flatDescription "$(RELEASE) Packages";
 Optional "0"; }};
Acquire::Languages "none";
Acquire::Retries "1";
Dir::State::Lists "{root}/lists/";
Dir::Cache "{root}/cache/";
Dir::Cache::archives "archives/";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "srcpkgcache.bin";
Dir::Etc::SourceList "{root}/etc/apt/sources.list";
Dir::Etc::SourceParts "{root}/etc/apt/sources.list.d/";
Dir::Etc::PreferencesParts "{root}/etc/apt/preferences.d/";
"""
"""Read by -c, after every other file (apt.conf(5)). The hooks of others would change the host: PackageKit's cache, and
in images of docker all downloaded packages (docker-clean). No translations, icons, contents, sources."""
DNF_DIRECTORIES = ("cachedir", "system_cachedir", "persistdir", "logdir")
"""Options of dnf 4 and dnf5 for what they write (dnf.conf(5)); dnf5 of root has its cache in system_cachedir."""
DNF_OPTIONS = [
    "--disableplugin=versionlock",
    "--disableplugin=subscription-manager",
    "--disableplugin=generate_completion_cache",
    "--setopt=*.module_hotfixes=1",
]
"""What a plan releases, and the streams that it switches, hide nothing. subscription-manager writes redhat.repo,
generate_completion_cache /var/cache/dnf/packages.db whatever the cachedir is (seen with dnf 4.14)."""
URI = re.compile(r"(?m)^'[^']+' \S+ (\d+) ")
"""A line of `apt-get --print-uris`: URL, file name, bytes, checksum (apt-get(8))."""
HIDDEN = "the package %s is hidden by %s. Change that, then run again"
LOCKS = (rpm.DNF_LOCKS, rpm.DNF5_LOCKS, rpm.YUM_LOCKS)
"""Files of version locks, which a plan releases."""
DNF_CACHES = {"dnf": "/var/cache/dnf", "dnf5": "/var/cache/libdnf5"}


class IndexQuestion(NamedTuple):
    """What is asked: names, or patterns with ``*``; the sources that a plan adds, and what it installs and removes.

    ``needed``: URLs (apt) or sections (dnf) of sources of the host on which the plan depends. These, those that it
    adds, and the distribution's archive must answer for a fresh index.
    """

    names: List[str]
    sources: Request
    needed: List[str] = []
    install: List[PackageSpec] = []
    remove: List[str] = []


def read_index(host: Host, request: IndexQuestion, parent: str = PARENT) -> PackageIndex:
    """Return what is offered. Takes minutes at most; never raises."""
    try:
        with vanishing_directory(parent, PREFIX) as root:
            edits = repositories.plan_edits(host, request.sources)
            read = read_dnf if uses_rpm(host) else read_apt
            index = read(host, root, request, edits)
            asked = {name: index.versions.get(name, []) for name in request.names if "*" not in name}
            return index._replace(versions=dict(index.versions, **asked))
    except GpuReadyError as error:
        return PackageIndex(UNAVAILABLE, cause=str(error))
    except OSError as error:
        return PackageIndex(UNAVAILABLE, cause="%s: %s" % (error.filename or parent, error.strerror or error))


def write_sources(host: Host, root: str, directories: List[str], edits: Edits) -> None:
    """Write the host's files of these directories below ``root``, with the edits; keys are read from there."""
    texts = {}
    for directory in directories:
        paths = ["%s/%s" % (directory, name) for name in host.listdir(directory)]
        texts.update({path: host.read_bytes(path) for path in paths})
    texts.update({path: host.read_bytes(path) for path in [apt_sources.MAIN_FILE]})
    keyrings = [path for path in edits.files if os.path.dirname(path) not in directories and path not in texts]
    for path, data in dict(texts, **edits.files).items():
        if data is None:
            continue
        if path in edits.files and path not in keyrings:
            for keyring in keyrings:
                data = data.replace(keyring.encode("utf-8"), (root + keyring).encode("utf-8"))
        os.makedirs(os.path.dirname(root + path), mode=0o755, exist_ok=True)
        # A sources file may have a password; a key is read by an unprivileged user.
        handle = os.open(root + path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644 if path in keyrings else 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)


def require_space(host: Host, root: str, copies: int) -> None:
    free = host.free(root)
    if free is not None and free < copies + SPACE:
        raise PackageError(
            "reading the package sources needs %s in %s, but only %s are free"
            % (format_megabytes(copies + SPACE), os.path.dirname(root), format_megabytes(free))
        )


def age_of(host: Host, path: str) -> int:
    """Return the seconds since a path changed, by the host's clock."""
    stamp = host.stamp(path)
    return max(0, int(time.time()) - stamp[1]) if stamp else 0


# ---- apt -----------------------------------------------------------------------------------------------------------


def read_apt(host: Host, root: str, request: IndexQuestion, edits: Edits) -> PackageIndex:
    lists = copy_lists(host, root)
    for name in ("lists/partial", "cache/archives/partial", "etc/apt/sources.list.d", "etc/apt/preferences.d"):
        os.makedirs(os.path.join(root, name), mode=0o755, exist_ok=True)
    write_sources(host, root, [apt_sources.DIRECTORY, apt.PREFERENCES + ".d"], edits)
    configuration = os.path.join(root, "apt.conf")
    with open(configuration, "w") as stream:
        stream.write(APT_CONFIGURATION.format(root=root))
    manager = apt.Apt(host, locks=())
    manager.options = ["-c", configuration]
    argv = ["apt-get"] + apt.OPTIONS + manager.options
    answer = host.run(argv + ["update"], timeout=LIMIT, env=apt.ENVIRONMENT)
    added = {path: data.decode("utf-8") for path, data in edits.files.items() if path.endswith((".list", ".sources"))}
    failed = find_failed_sources(answer, apt_entries.parse_sources(added) + manager.sources())
    if answer.rc != 0 and not failed:
        return PackageIndex(UNAVAILABLE, cause=explain_failure(apt.READING, answer).replace(root, ""))
    own = [url_location(url) for url in [one.url for one in request.sources.repositories] + request.needed]
    own += repositories.distribution_locations(host, repositories.read_codename(host), repositories.sources_files(host))
    lost = [one for one in failed if one.location in own]
    index = PackageIndex(FRESH, failed=[one.message for one in failed if one not in lost])
    if lost:
        index = index._replace(state=STALE, cause=lost[0].message, age=age_of(host, apt_lists.DIRECTORY))
        if any(not has_lists_of(one.location, lists) for one in lost):
            return index._replace(state=UNAVAILABLE, age=0)
    found = expand_patterns(host, manager, request.names)
    policies = apt_policy.parse_policies(manager.query_cache("policy", found)) if found else {}
    hidden = {
        name: apt_policy.describe_missing_candidate(name, policy, manager.read_pins(), [])
        for name, policy in policies.items()
        if policy.candidate is None and any(priority < 0 for _, priority in policy.versions)
    }
    offers = manager.offers(found)
    return index._replace(versions=offers, hidden=hidden, download=apt_download(manager, request, offers))


def apt_download(manager: apt.Apt, request: IndexQuestion, offers: Dict[str, List[str]]) -> int:
    """Return the bytes of the files that apt would fetch, 0 where it finds no solution."""
    if not request.install:
        return 0
    try:
        arguments = manager.resolve(request.install, offers)
    except PackageError:
        return 0  # the plan refuses what is not offered
    options = ["--print-uris", "--allow-downgrades", "--allow-change-held-packages", "-o", "Debug::NoLocking=1"]
    argv = ["apt-get"] + apt.OPTIONS + manager.options + options + ["install"] + arguments
    answer = manager.host.run(argv + [name + "-" for name in request.remove], apt.ASK_LIMIT, apt.ENVIRONMENT)
    return sum(map(int, URI.findall(answer.out))) if answer.rc == 0 else 0


def copy_lists(host: Host, root: str) -> List[str]:
    """Copy apt's lists, except damaged ones; returns their names."""
    damaged = apt_lists.find_damaged_lists(host.listdir(apt_lists.DIRECTORY), host.read, host.stamp)
    names = [
        name
        for name in host.listdir(apt_lists.DIRECTORY)
        if name not in damaged and (name.endswith(apt_lists.RELEASE) or apt_lists.INDEX.search(name))
    ]
    paths = {name: "%s/%s" % (apt_lists.DIRECTORY, name) for name in names}
    require_space(host, root, sum((host.stamp(path) or (0, 0))[0] for path in paths.values()))
    os.mkdir(os.path.join(root, "lists"), 0o755)
    for name, path in paths.items():
        data, stamp = host.read_bytes(path), host.stamp(path)
        if data is not None and stamp is not None:
            target = os.path.join(root, "lists", name)
            with open(target, "wb") as stream:
                stream.write(data)
            os.utime(target, (stamp[1], stamp[1]))  # apt asks whether there is a newer one
    return names


def has_lists_of(location: str, names: List[str]) -> bool:
    """Return True if apt has lists of a source: their names begin with its URL (apt-pkg/contrib/strutl.cc)."""
    start = location.replace("_", "%5f").replace("/", "_") + "_"
    return any(name.startswith(start) and apt_lists.INDEX.search(name) for name in names)


def expand_patterns(host: Host, manager: apt.Apt, names: List[str]) -> List[str]:
    """Return the names, with those that apt knows in the place of patterns."""
    found = [name for name in names if "*" not in name]
    for pattern in [name for name in names if "*" in name]:
        known = manager.query_cache("pkgnames", [pattern.partition("*")[0]]).split()
        found += sorted(name for name in known if fnmatch.fnmatchcase(name, pattern))
    return sorted(set(found), key=found.index)


# ---- dnf -----------------------------------------------------------------------------------------------------------


class PrivateDnf(dnf.Dnf):
    """dnf in a private root: it needs none of the host's locks."""

    def locks_held(self) -> List[Tuple[str, int]]:
        return []


def read_dnf(host: Host, root: str, request: IndexQuestion, edits: Edits) -> PackageIndex:
    names, needed = request.names, request.needed
    manager = PrivateDnf(host)
    if manager.form == "yum":
        raise PackageError("yum 3 cannot read its sources in another place")
    age = copy_metadata(host, root, DNF_CACHES[manager.form])
    write_sources(host, root, [yum_repos.DIRECTORY], edits)
    manager.recorded = dict(manager.adopted)
    for one in request.sources.repositories:
        if one.adopted:
            keyring = root + one.keyring if one.keyring in edits.files else one.keyring
            manager.recorded[one.adopted] = repositories.describe_adopted(one._replace(keyring=keyring))
    own = ["--setopt=%s=%s/%s" % (name, root, name.rpartition("_")[2]) for name in DNF_DIRECTORIES]
    own += ["--setopt=reposdir=%s%s" % (root, yum_repos.DIRECTORY)]
    enabled = ["--enablerepo=" + name for sections in edits.sections.values() for name in sections]
    manager.extra_options = own + DNF_OPTIONS + enabled + ["--refresh"]
    index = PackageIndex(FRESH)
    try:
        versions = manager.offers(names)
        lost = [manager.failed_sources[at] for at, name in enumerate(manager.skipped) if name in needed]
        if lost:
            raise PackageError(lost[0])
    except PackageError as error:
        if age is None:
            raise
        index = index._replace(state=STALE, cause=str(error).replace(root, ""), age=age)
        manager.extra_options = own + DNF_OPTIONS + enabled + ["-C"]
        manager.skipped, failed = [], list(manager.failed_sources)
        versions = manager.offers(names)
        manager.failed_sources = failed
    lines = {
        name: [line for line in find_hiding_lines(host, name) if not line.startswith(LOCKS)]
        for name in names
        if not versions.get(name)
    }
    return index._replace(
        versions={name: found for name, found in versions.items() if is_asked(name, names)},
        hidden={name: HIDDEN % (name, " and ".join(found[:MOST_SHOWN])) for name, found in lines.items() if found},
        failed=[one for one in manager.failed_sources if one != index.cause],
        download=dnf_download(manager, request),
    )


def dnf_download(manager: dnf.Dnf, request: IndexQuestion) -> int:
    """Return the bytes of the packages that dnf would fetch, 0 where it finds no solution."""
    if not request.install:
        return 0
    try:
        argv = ["install", "--allowerasing"] + manager.resolve(request.install)
        return manager.simulate("the size of the downloads", argv).fetch
    except PackageError:
        return 0  # the plan refuses what is not offered


def is_asked(name: str, names: List[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, one) for one in names)


def copy_metadata(host: Host, root: str, cache: str) -> Optional[int]:
    """Copy the metadata of the host's cache, without packages; returns its age in seconds, None where there is none."""
    target = os.path.join(root, "cachedir")
    found = []
    for directory, _, files in os.walk(cache):
        if os.path.basename(directory) != "packages":
            found += [os.path.join(directory, name) for name in files if not name.endswith((".pid", ".lock"))]
    require_space(host, root, sum((host.stamp(path) or (0, 0))[0] for path in found))
    for path in found:
        copy = target + path[len(cache) :]
        os.makedirs(os.path.dirname(copy), mode=0o755, exist_ok=True)
        shutil.copy2(path, copy)
    ages = [age_of(host, path) for path in found if re.search(r"/repodata/repomd\.xml$", path)]
    return min(ages) if ages else None
