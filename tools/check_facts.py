"""Compare the catalog with the vendors' own indexes and print what is right, changed or missing (docs/dev/checking.md).

usage: tools/check_facts.py [--tree DIR|URL] [--gpus FILE] [--all] [DISTRIBUTION ...]

Exit status: 0 everything is right, 1 something is changed or missing, 2 an index could not be read.
"""
# ruff: noqa: E402  the tools are no installed package

import argparse
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from plugins.module_utils.gpu_ready.base import versions
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from tools import vendor_indexes
from tools.vendor_indexes import Index, IndexUnread, Tree

RIGHT, CHANGED, MISSING, UNREAD = "right", "changed", "missing", "unread"
KERNEL = "{kernel}"
COMPANIONS = ("fabricmanager", "subnet_manager", "imex", "persistenced")


class Row(NamedTuple):
    """One comparison. ``found``: what the index says where it differs."""

    state: str
    where: str
    fact: str
    found: str = ""


class Checker:
    """Reads each index once. ``tree``: where from."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @functools.cache  # noqa: B019  one checker lives as long as the program
    def repository(self, name: str) -> Index:
        """Return the index of a third-party repository. Raises IndexUnread."""
        entry = catalog.repository(name)
        if entry.get("kind") == "rpm":
            return vendor_indexes.read_rpm(self.tree, entry["url"])
        components = str(entry["components"]).split()
        return vendor_indexes.read_apt(self.tree, entry["url"], str(entry["suites"]).split(), components)

    @functools.cache  # noqa: B019
    def archive(self, distro: str) -> Index:
        """Return the index of the archive of Debian or Ubuntu. Raises IndexUnread."""
        codename = catalog.distro(distro)["codename"]
        archives = yaml_load((ROOT / "catalog/archives.yml").read_text(encoding="utf-8"))
        found = Index({}, {})
        for archive in archives["ubuntu" if distro.startswith("ubuntu") else "debian"]:
            suites = [suite.format(codename=codename) for suite in archive["suites"]]
            index = vendor_indexes.read_apt(self.tree, archive["url"], suites, archive["components"])
            for name, packages in index.packages.items():
                found.packages.setdefault(name, []).extend(packages)
        return found


def branch_state(index: Index, name: str, branch: int) -> tuple[str, str]:
    """Return state and finding of a package that must have a version of a branch."""
    offered = [one for one in matching(index, name) if versions.branch(vendor_indexes.upstream(one.version)) == branch]
    real = [one for one in offered if not one.replaced_by]
    if real:
        return RIGHT, ""
    if offered:
        return CHANGED, f"{offered[0].name} {offered[0].version} is a transitional name of {offered[0].replaced_by}"
    others = sorted({one.version for one in matching(index, name)}, key=versions.key)
    if not others:
        return MISSING, "no package of that name"
    return CHANGED, f"no version of {branch}; newest {others[-1]}"


def matching(index: Index, name: str) -> list[vendor_indexes.Package]:
    """Return the packages of a name; ``{kernel}`` is any kernel."""
    if KERNEL not in name:
        return index.packages.get(name, [])
    pattern = re.compile(re.escape(name).replace(re.escape(KERNEL), r"\d\S*"))
    return [one for key, packages in index.packages.items() if pattern.fullmatch(key) for one in packages]


def is_offered(index: Index, where: str, name: str) -> Row:
    """Return whether an index has a package."""
    return Row(RIGHT if matching(index, name) else MISSING, where, name)


def check_source(checker: Checker, distro: str, source: str) -> Iterator[Row]:
    """Compare one driver source of a distribution."""
    data = catalog.distro(distro)
    entry = driver_sources.source_entry(data, source)
    where = f"{distro} {source}"
    try:
        index = checker.repository(entry["repository"]) if entry.get("repository") else checker.archive(distro)
    except IndexUnread as error:
        yield Row(UNREAD, where, "index", str(error))
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
                yield Row(state, where, f"{name} of {branch}", found)
        pinning = (entry.get("pinning") or "").format(branch=branch)
        if pinning:
            yield is_offered(index, where, pinning)
    for toolkit in entry.get("toolkits") or []:
        name = "cuda-toolkit-" + str(toolkit).replace(".", "-")
        yield is_offered(index, where, name)
    offered = {name for name in index.packages if re.fullmatch(r"cuda-toolkit-\d+-\d+", name)}
    known = {"cuda-toolkit-" + str(one).replace(".", "-") for one in entry.get("toolkits") or []}
    for name in sorted(offered - known) if entry.get("toolkits") else []:
        yield Row(CHANGED, where, name, "the catalog does not offer it")


def check_branch(index: Index, data: dict[str, Any], source: str, kind: str, branch: int, where: str) -> Iterator[Row]:
    """Compare the packages and streams of one branch."""
    known = catalog.branch(branch)
    for flavour in known.flavours if known else driver_sources.FLAVOURS:
        stream = driver_sources.module_stream(data, source, branch, flavour, kind)
        if stream:
            present = stream in index.streams.get("nvidia-driver", set())
            yield Row(RIGHT if present else MISSING, where, f"stream nvidia-driver:{stream}")
        names = {
            name
            for profile in driver_sources.PROFILES
            for name in driver_sources.packages(data, source, branch, profile, flavour, kind, KERNEL)
        }
        for name in sorted(names):
            state, found = RIGHT if matching(index, name) else MISSING, ""
            if driver_versioned(name):
                state, found = branch_state(index, name, branch)
            yield Row(state, where, f"{name} of {branch} ({flavour}, {kind})", found)


def driver_versioned(name: str) -> bool:
    """True if a package has the version of the driver: not modules of one kernel, nor what all branches share."""
    return KERNEL not in name and name not in ("nvidia-modprobe", "firmware-nvidia-gsp")


def check_docker(checker: Checker, distro: str) -> Iterator[Row]:
    """Compare the packages of the docker engine, and the version of the distribution's own."""
    for source, entry in catalog.distro(distro)["docker"].items():
        where = f"{distro} docker {source}"
        if "repository" not in entry and not catalog.distro(distro).get("codename"):
            continue  # the repositories of a dnf distribution itself have no one URL
        try:
            index = checker.repository(entry["repository"]) if "repository" in entry else checker.archive(distro)
        except IndexUnread as error:
            yield Row(UNREAD, where, "index", str(error))
            continue
        for package in entry["packages"]:
            name, version = (package["name"], package["version"]) if isinstance(package, dict) else (package, None)
            offered = matching(index, name)
            if offered and version and version not in [one.version.rpartition(":")[2] for one in offered]:
                newest = max((one.version for one in offered), key=versions.key)
                yield Row(CHANGED, where, f"{name} {version}", f"newest {newest}")
                continue
            yield Row(RIGHT if offered else MISSING, where, name)
        expected = entry.get("version")
        offered = matching(index, entry["engine"][0])
        if expected and "repository" not in entry and offered:
            found = {vendor_indexes.upstream(one.version) for one in offered}
            state = RIGHT if expected in found else CHANGED
            newest = max(found, key=versions.key)
            yield Row(state, where, f"version {expected}", "" if state == RIGHT else f"the index has {newest}")


def check_newest(checker: Checker, distros: list[str]) -> Iterator[Row]:
    """Compare the newest release of each branch with all indexes that were read."""
    found: dict[int, set[str]] = {}
    for name in sorted({entry for key in distros for entry in cuda_repositories(key)}):
        try:
            index = checker.repository(name)
        except IndexUnread:
            continue  # reported where the distribution was compared
        for package in (one for name in ("nvidia-driver-cuda", "libnvidia-compute", "libnvidia-compute-580")
                        for one in matching(index, name)):  # fmt: skip
            version = vendor_indexes.upstream(package.version)
            found.setdefault(versions.branch(version), set()).add(version)
    for branch in catalog.branches():
        newer = [one for one in found.get(branch.number, ()) if versions.compare(one, branch.newest) > 0]
        state = CHANGED if newer else RIGHT
        if branch.number in found:
            yield Row(
                state,
                "branches",
                f"newest of {branch.number}: {branch.newest}",
                max(newer, key=versions.key, default=""),
            )
    for number in sorted(set(found) - {branch.number for branch in catalog.branches()}):
        yield Row(CHANGED, "branches", f"branch {number}", "the catalog does not know it")


def cuda_repositories(distro: str) -> list[str]:
    """Return NVIDIA's repositories of a distribution."""
    sources = catalog.distro(distro)["driver_sources"]
    return [sources["cuda_repo"]["repository"]] if "cuda_repo" in sources else []


def check_files(checker: Checker) -> Iterator[Row]:
    """Compare single files: CUDA's installers, cuDNN's manifests, the newest driver installers."""
    for installer in catalog.cuda_installers():
        name = installer.url.rpartition("/")[2]
        try:
            names = vendor_indexes.parse_md5sums(checker.tree.read(installer.md5_url).decode("utf-8", "replace"))
        except IndexUnread as error:
            yield Row(UNREAD, "cuda installers", name, str(error))
            continue
        yield Row(RIGHT if name in names else MISSING, "cuda installers", name)
    for release in catalog.cudnns():
        yield from check_cudnn(checker, release)
    template = catalog.distro("el9")["driver_sources"]["runfile"]["url"]
    for branch in catalog.branches():
        if branch.newest.count("."):
            url = template.format(version=branch.newest) + ".sha256sum"
            yield from check_url(checker, url, f"installer {branch.newest}")


def check_url(checker: Checker, url: str, what: str) -> Iterator[Row]:
    """Compare the list with the checksum of one file."""
    name = url.rpartition("/")[2].rpartition(".sha256sum")[0]
    try:
        text = checker.tree.read(url).decode("utf-8", "replace")
    except IndexUnread as error:
        yield Row(UNREAD, "driver installers", what, str(error))
        return
    listed = re.search(r"(?m)^[0-9a-f]{64}\s+\*?(?:\S*/)?" + re.escape(name) + r"\s*$", text)
    yield Row(RIGHT if listed else CHANGED, "driver installers", what, "" if listed else "another file is listed")


def check_cudnn(checker: Checker, release: catalog.Cudnn) -> Iterator[Row]:
    """Compare path and checksum of the archives of a cuDNN release with its manifest."""
    base = "https://developer.download.nvidia.com/compute/cudnn/redist/"
    url = f"{base}redistrib_{'.'.join(release.version.split('.')[:3])}.json"
    try:
        manifest = vendor_indexes.read_json(checker.tree.read(url), url)
    except IndexUnread as error:
        yield Row(UNREAD, "cudnn", release.version, str(error))
        return
    platform = (manifest.get("cudnn") or {}).get("linux-x86_64") or {}
    for (_, major), archive in sorted(release.archives.items()):
        entry = platform.get(f"cuda{major}") or {}
        fact = f"{release.version} for CUDA {major}"
        if not entry:
            yield Row(MISSING, "cudnn", fact, f"the manifest has {', '.join(sorted(platform)) or 'nothing'}")
        elif entry.get("relative_path") != archive["path"]:
            yield Row(CHANGED, "cudnn", fact, str(entry.get("relative_path")))
        elif archive["sha256"] and entry.get("sha256") != archive["sha256"]:
            yield Row(CHANGED, "cudnn", fact, f"sha256 {entry.get('sha256')}")
        else:
            yield Row(RIGHT, "cudnn", fact)


def check_gpus(path: Path) -> Iterator[Row]:
    """Compare PCI ids with a supported-gpus.json."""
    try:
        listed = vendor_indexes.parse_supported_gpus(path.read_bytes(), str(path))
    except (OSError, IndexUnread) as error:
        yield Row(UNREAD, "gpus", path.name, str(error))
        return
    for device, found in sorted(listed.items()):
        gpu = catalog.gpu(device)
        if gpu is None:
            yield Row(MISSING, "gpus", device, "the catalog does not have it")
        elif found.last_branch not in (None, gpu.last_branch):
            yield Row(CHANGED, "gpus", f"{device}: last branch {gpu.last_branch}", str(found.last_branch))
        elif found.is_open and gpu.last_branch is None and driver_sources.OPEN not in gpu.flavours:
            yield Row(CHANGED, "gpus", f"{device}: {' '.join(gpu.flavours)}", "the open module drives it")
        else:
            yield Row(RIGHT, "gpus", device)


def check_all(checker: Checker, distros: list[str], with_files: bool) -> Iterator[Row]:
    """Compare everything that the named distributions use."""
    for distro in distros:
        data = catalog.distro(distro)
        for source in driver_sources.source_names(data):
            if source != driver_sources.RUNFILE:
                yield from check_source(checker, distro, source)
        yield from check_docker(checker, distro)
    yield from check_newest(checker, distros)
    if with_files:
        yield from check_files(checker)


def format_table(rows: list[Row], show_right: bool) -> str:
    """Return the table, and the number of rows by state."""
    unique = list(dict.fromkeys(rows))
    shown = [row for row in unique if show_right or row.state != RIGHT]
    widths = [max([len(row[column]) for row in shown] or [0]) for column in range(3)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, [*widths, 0], strict=True)).rstrip() for row in shown
    ]
    counts = {state: sum(row.state == state for row in unique) for state in (RIGHT, CHANGED, MISSING, UNREAD)}
    return "\n".join([*lines, ", ".join(f"{number} {state}" for state, number in counts.items())])


def exit_status(rows: list[Row]) -> int:
    """Return 2 if an index could not be read, 1 if something differs, else 0."""
    states = {row.state for row in rows}
    return 2 if UNREAD in states else 1 if states - {RIGHT} else 0


def main(arguments: list[str]) -> int:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("distributions", nargs="*", metavar="DISTRIBUTION", choices=[[], *catalog.distros()])
    parser.add_argument("--tree", default="", help="directory or URL of a mirror, files as HOST/PATH below it")
    parser.add_argument("--gpus", type=Path, help="a driver's supported-gpus.json; nothing else is compared")
    parser.add_argument("--all", action="store_true", help="print also what is right")
    given = parser.parse_args(arguments)
    if given.gpus:
        rows = list(check_gpus(given.gpus))
    else:
        named = list(given.distributions)
        rows = list(check_all(Checker(Tree(given.tree)), named or catalog.distros(), not named))
    print(format_table(rows, given.all))
    return exit_status(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
