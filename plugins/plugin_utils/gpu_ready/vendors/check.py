"""Compares the catalog with the vendors' own indexes: what is right, changed or missing (docs/catalog.md)."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import versions
from ..catalog import driver_sources
from ..catalog import model as catalog
from ..catalog.files import read
from . import indexes
from .indexes import Index, IndexAbsent, IndexUnread, Tree

RIGHT, CHANGED, MISSING, UNREAD = "right", "changed", "missing", "unread"
KERNEL = "{kernel}"
COMPANIONS = ("fabricmanager", "subnet_manager", "imex", "persistenced")


class Compared(NamedTuple):
    """One comparison. ``found``: what the index says where it differs."""

    state: str
    where: str
    fact: str
    found: str = ""


class Checker:
    """Reads each index once.

    ``tree``: where from; ``mirror_key``: fingerprint of the key with which a mirror signs everything itself, or "".
    """

    def __init__(self, tree: Tree, mirror_key: str = "") -> None:
        self.tree = tree
        self.mirror_key = mirror_key

    @functools.cache  # noqa: B019  one checker lives as long as the program
    def repository(self, name: str) -> Index:
        """Return the index of a third-party repository. Raises IndexUnread."""
        entry = catalog.repository(name)
        fingerprint = self.mirror_key or entry["fingerprint"]
        try:
            key = indexes.pinned_key(self.tree, entry["key_url"], fingerprint) if fingerprint else None
        except IndexAbsent:  # a mirror need not have the key, which gpu-ready has from its vendor
            key = None
        if entry.get("kind") == "rpm":
            return indexes.read_rpm(self.tree, entry["url"], key)
        components = str(entry["components"]).split()
        return indexes.read_apt(self.tree, entry["url"], str(entry["suites"]).split(), components, key)

    @functools.cache  # noqa: B019
    def archive(self, distro: str) -> Index:
        """Return the index of the archive of Debian or Ubuntu. Raises IndexUnread."""
        codename = catalog.distro(distro)["codename"]
        archives = read("archives.yml")
        found = Index({}, {})
        for archive in archives["ubuntu" if distro.startswith("ubuntu") else "debian"]:
            suites = [suite.format(codename=codename) for suite in archive["suites"]]
            index = indexes.read_apt(self.tree, archive["url"], suites, archive["components"])
            for name, packages in index.packages.items():
                found.packages.setdefault(name, []).extend(packages)
        return found


def branch_state(index: Index, name: str, branch: int) -> tuple[str, str]:
    """Return state and finding of a package that must have a version of a branch."""
    offered = [one for one in matching(index, name) if versions.branch(indexes.upstream(one.version)) == branch]
    real = [one for one in offered if not one.replaced_by]
    if real:
        return RIGHT, ""
    if offered:
        return CHANGED, f"{offered[0].name} {offered[0].version} is a transitional name of {offered[0].replaced_by}"
    others = sorted({one.version for one in matching(index, name)}, key=versions.key)
    if not others:
        return MISSING, "no package of that name"
    return CHANGED, f"no version of {branch}; newest {others[-1]}"


def matching(index: Index, name: str) -> list[indexes.IndexedPackage]:
    """Return the packages of a name; ``{kernel}`` is any kernel."""
    if KERNEL not in name:
        return index.packages.get(name, [])
    pattern = re.compile(re.escape(name).replace(re.escape(KERNEL), r"\d\S*"))
    return [one for key, packages in index.packages.items() if pattern.fullmatch(key) for one in packages]


def is_offered(index: Index, where: str, name: str) -> Compared:
    """Return whether an index has a package."""
    return Compared(RIGHT if matching(index, name) else MISSING, where, name)


def check_source(checker: Checker, distro: str, source: str) -> Iterator[Compared]:
    """Compare one driver source of a distribution."""
    data = catalog.distro(distro)
    entry = driver_sources.source_entry(data, source)
    where = f"{distro} {source}"
    try:
        index = checker.repository(entry["repository"]) if entry.get("repository") else checker.archive(distro)
    except IndexUnread as error:
        yield Compared(UNREAD, where, "index", str(error))
        return
    for kind in driver_sources.module_kinds(data, source):
        for branch in driver_sources.branches(data, source, kind):
            yield from check_branch(index, data, source, kind, branch, where)
    for branch in driver_sources.all_branches(data, source):
        for what in COMPANIONS:
            name = driver_sources.companion_package(data, source, what, branch)
            if name and what == "subnet_manager":
                yield is_offered(index, where, name)
            elif name:
                state, found = branch_state(index, name, branch)
                yield Compared(state, where, f"{name} of {branch}", found)
        pinning = (entry.get("pinning") or "").format(branch=branch)
        if pinning:
            yield is_offered(index, where, pinning)
    for toolkit in entry.get("toolkits") or []:
        name = "cuda-toolkit-" + str(toolkit).replace(".", "-")
        yield is_offered(index, where, name)


def check_branch(
    index: Index, data: dict[str, Any], source: str, kind: str, branch: int, where: str
) -> Iterator[Compared]:
    """Compare the packages and streams of one branch."""
    known = catalog.branch(branch)
    for flavour in known.flavours if known else driver_sources.FLAVOURS:
        stream = driver_sources.module_stream(data, source, branch, flavour, kind)
        if stream:
            present = stream in index.streams.get("nvidia-driver", set())
            yield Compared(RIGHT if present else MISSING, where, f"stream nvidia-driver:{stream}")
        names = {
            name
            for profile in driver_sources.PROFILES
            for name in driver_sources.packages(data, source, branch, profile, flavour, kind, KERNEL)
        }
        for name in sorted(names):
            state, found = RIGHT if matching(index, name) else MISSING, ""
            if driver_versioned(name):
                state, found = branch_state(index, name, branch)
            yield Compared(state, where, f"{name} of {branch} ({flavour}, {kind})", found)


def driver_versioned(name: str) -> bool:
    """True if a package has the version of the driver: not modules of one kernel, nor what all branches share."""
    return KERNEL not in name and name not in ("nvidia-modprobe", "firmware-nvidia-gsp")


def check_docker(checker: Checker, distro: str) -> Iterator[Compared]:
    """Compare the packages of the docker engine, and the version of the distribution's own."""
    for source, entry in catalog.distro(distro)["docker"].items():
        where = f"{distro} docker {source}"
        if "repository" not in entry and not catalog.distro(distro).get("codename"):
            continue  # the repositories of a dnf distribution itself have no one URL
        try:
            index = checker.repository(entry["repository"]) if "repository" in entry else checker.archive(distro)
        except IndexUnread as error:
            yield Compared(UNREAD, where, "index", str(error))
            continue
        for package in entry["packages"]:
            name, version = (package["name"], package["version"]) if isinstance(package, dict) else (package, None)
            offered = matching(index, name)
            if offered and version and version not in [one.version.rpartition(":")[2] for one in offered]:
                newest = max((one.version for one in offered), key=versions.key)
                yield Compared(CHANGED, where, f"{name} {version}", f"newest {newest}")
                continue
            yield Compared(RIGHT if offered else MISSING, where, name)
        expected = entry.get("version")
        offered = matching(index, entry["engine"][0])
        if expected and "repository" not in entry and offered:
            found = {indexes.upstream(one.version) for one in offered}
            state = RIGHT if expected in found else CHANGED
            newest = max(found, key=versions.key)
            yield Compared(state, where, f"version {expected}", "" if state == RIGHT else f"the index has {newest}")


def check_files(checker: Checker) -> Iterator[Compared]:
    """Compare single files: CUDA's installers, cuDNN's manifests, the newest driver installers."""
    for installer in catalog.cuda_installers():
        name = installer.url.rpartition("/")[2]
        try:
            names = indexes.parse_md5sums(checker.tree.read(installer.md5_url).decode("utf-8", "replace"))
        except IndexUnread as error:
            yield Compared(UNREAD, "cuda installers", name, str(error))
            continue
        yield Compared(RIGHT if name in names else MISSING, "cuda installers", name)
    for release in catalog.cudnns():
        yield from check_cudnn(checker, release)
    template = catalog.distro("el9")["driver_sources"]["runfile"]["url"]
    for branch in catalog.branches():
        if branch.newest.count("."):
            url = template.format(version=branch.newest) + ".sha256sum"
            yield from check_url(checker, url, f"installer {branch.newest}")


def check_url(checker: Checker, url: str, what: str) -> Iterator[Compared]:
    """Compare the list with the checksum of one file."""
    name = url.rpartition("/")[2].rpartition(".sha256sum")[0]
    try:
        text = checker.tree.read(url).decode("utf-8", "replace")
    except IndexUnread as error:
        yield Compared(UNREAD, "driver installers", what, str(error))
        return
    listed = re.search(r"(?m)^[0-9a-f]{64}\s+\*?(?:\S*/)?" + re.escape(name) + r"\s*$", text)
    yield Compared(RIGHT if listed else CHANGED, "driver installers", what, "" if listed else "another file is listed")


def check_cudnn(checker: Checker, release: catalog.Cudnn) -> Iterator[Compared]:
    """Compare path and checksum of the archives of a cuDNN release with its manifest."""
    base = "https://developer.download.nvidia.com/compute/cudnn/redist/"
    url = f"{base}redistrib_{'.'.join(release.version.split('.')[:3])}.json"
    try:
        manifest = indexes.read_json(checker.tree.read(url), url)
    except IndexUnread as error:
        yield Compared(UNREAD, "cudnn", release.version, str(error))
        return
    platform = (manifest.get("cudnn") or {}).get("linux-x86_64") or {}
    for (_, major), archive in sorted(release.archives.items()):
        entry = platform.get(f"cuda{major}") or {}
        fact = f"{release.version} for CUDA {major}"
        if not entry:
            yield Compared(MISSING, "cudnn", fact, f"the manifest has {', '.join(sorted(platform)) or 'nothing'}")
        elif entry.get("relative_path") != archive["path"]:
            yield Compared(CHANGED, "cudnn", fact, str(entry.get("relative_path")))
        elif archive["sha256"] and entry.get("sha256") != archive["sha256"]:
            yield Compared(CHANGED, "cudnn", fact, f"sha256 {entry.get('sha256')}")
        else:
            yield Compared(RIGHT, "cudnn", fact)


def check_gpus(path: Path) -> Iterator[Compared]:
    """Compare PCI ids with a supported-gpus.json."""
    try:
        listed = indexes.parse_supported_gpus(path.read_bytes(), str(path))
    except (OSError, IndexUnread) as error:
        yield Compared(UNREAD, "gpus", path.name, str(error))
        return
    for device, found in sorted(listed.items()):
        gpu = catalog.gpu(device)
        if gpu is None:
            yield Compared(MISSING, "gpus", device, "the catalog does not have it")
        elif found.last_branch not in (None, gpu.last_branch):
            yield Compared(CHANGED, "gpus", f"{device}: last branch {gpu.last_branch}", str(found.last_branch))
        elif found.is_open and gpu.last_branch is None and driver_sources.OPEN not in gpu.flavours:
            yield Compared(CHANGED, "gpus", f"{device}: {' '.join(gpu.flavours)}", "the open module drives it")
        else:
            yield Compared(RIGHT, "gpus", device)


def check_all(checker: Checker, distros: list[str], with_files: bool) -> Iterator[Compared]:
    """Compare everything that the named distributions use."""
    for distro in distros:
        data = catalog.distro(distro)
        for source in driver_sources.source_names(data):
            if source != driver_sources.RUNFILE:
                yield from check_source(checker, distro, source)
        yield from check_docker(checker, distro)
    if with_files:
        yield from check_files(checker)


def format_table(rows: list[Compared], show_right: bool) -> str:
    """Return the table, and the number of rows by state."""
    unique = list(dict.fromkeys(rows))
    shown = [row for row in unique if show_right or row.state != RIGHT]
    widths = [max([len(row[column]) for row in shown] or [0]) for column in range(3)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in shown
    ]
    counts = {state: sum(row.state == state for row in unique) for state in (RIGHT, CHANGED, MISSING, UNREAD)}
    return "\n".join([*lines, ", ".join(f"{number} {state}" for state, number in counts.items())])


def exit_status(rows: list[Compared]) -> int:
    """Return 2 if an index could not be read, 1 if something differs, else 0."""
    states = {row.state for row in rows}
    return 2 if UNREAD in states else 1 if states - {RIGHT} else 0
