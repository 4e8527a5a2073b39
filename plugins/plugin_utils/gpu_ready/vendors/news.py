"""What the vendors' own indexes have and the catalog has not: rows for the operator's file (catalog/overlay.py).

What no index says is estimated by the rule that held for the releases before, and named in ``review``: a person reads
these rows before a fleet follows them.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from ....module_utils.gpu_ready.base import versions
from ..catalog import data as catalog_data
from ..catalog import driver_sources, overlay
from ..catalog import model as catalog
from . import check, indexes, published
from .check import Checker
from .indexes import Index, IndexAbsent, IndexUnread, SupportedGpu
from .published import Chip

YEARS = {"lts": 3, "production": 1}
"""Years of support by kind: docs.nvidia.com/datacenter/tesla/drivers/driver-lifecycle.html. The real end of a branch is
in the table of supported drivers, for people only, up to two months beside this."""
ARCHITECTURES = {
    "TU": "turing", "GA": "ampere", "AD": "ada", "GH": "hopper", "GB": "blackwell", "GR": "rubin",
}  # fmt: skip
"""By the beginning of a chip's name in pci.ids."""
DRIVER_PACKAGES = re.compile(r"nvidia-driver-cuda|libnvidia-compute(-\d+)?(-server)?")
"""Packages with the version of the driver, in NVIDIA's repositories and in Ubuntu's archive."""
MANIFESTS = 60
"""Manifests read of one directory, the newest."""
T = TypeVar("T")


class CatalogRow(NamedTuple):
    """A row for the operator's file. ``review``: values that no index has; ``old``: what the catalog has of them."""

    section: str
    key: int | str
    values: dict[str, Any]
    review: tuple[str, ...] = ()
    old: dict[str, Any] = {}


class News(NamedTuple):
    """The rows; what could not be read (``unread``) or is not there (``absent``); what needs no row (``notes``)."""

    rows: list[CatalogRow]
    unread: list[str]
    absent: list[str]
    notes: list[str]


class Vendors:
    """Reads everything once. What cannot be read is remarks and counts as unknown."""

    def __init__(self, checker: Checker, distros: list[str]) -> None:
        self.checker, self.distros = checker, distros
        self.unread: list[str] = []
        self.absent: list[str] = []
        self.releases: dict[int, dict[str, str]] = {}
        """Days, or "", of the releases of each branch."""
        self.kinds: dict[int, str] = {}
        self.cuda: dict[int, str] = {}
        self.toolkits: set[str] = set()
        """Releases: 13.6.0."""
        self.cudnns: dict[str, dict[str, str]] = {}
        """sha256, or "", by major version of CUDA."""
        self.gpus: dict[str, tuple[SupportedGpu, int]] = {}
        """With the first branch that has it in its list."""
        self.indexes: dict[tuple[str, str], Index] = {}
        """By distribution and driver source."""
        self.chips: dict[str, Chip] = {}

    def attempt(self, read: Callable[..., T], *given: Any) -> T | None:
        """Return what a function reads, None where that is not possible."""
        try:
            return read(*given)
        except IndexAbsent as error:
            # A mirror need not have everything; what a vendor himself has no more is a fault.
            (self.absent if self.checker.tree.base else self.unread).append(str(error))
        except IndexUnread as error:
            self.unread.append(str(error))
        return None

    def read(self) -> None:
        """Read the indexes of packages, then the files about releases."""
        for distro in self.distros:
            for source, entry in catalog.distro(distro)["driver_sources"].items():
                if source != driver_sources.RUNFILE:
                    self.read_source(distro, source, entry.get("repository"))
        tree = self.checker.tree
        for number, branch in (self.attempt(published.read_releases, tree) or {}).items():
            self.kinds[number] = branch.kind
            self.releases.setdefault(number, {}).update(branch.releases)
        self.chips = self.attempt(published.read_pci_ids, tree) or {}
        self.read_drivers()
        self.toolkits.update(self.attempt(published.read_labels, tree, published.CUDA) or [])
        self.read_cudnns()
        if not (self.indexes or self.releases or self.toolkits or self.cudnns):
            self.unread.append(f"{tree.base or 'the vendors'}: nothing of this is there")

    def read_source(self, distro: str, source: str, repository: str | None) -> None:
        if repository:
            index = self.attempt(self.checker.repository, repository)
        elif catalog.distro(distro).get("codename"):
            index = self.attempt(self.checker.archive, distro)
        else:
            return  # the repositories of a dnf distribution itself have no one URL
        if index is None:
            return
        self.indexes[distro, source] = index
        for name, packages in index.packages.items():
            for one in packages:
                self.note_package(name, indexes.upstream(one.version), bool(one.replaced_by))

    def note_package(self, name: str, version: str, transitional: bool) -> None:
        cudnn = re.fullmatch(r"libcudnn\d+-cuda-(\d+)", name)
        compat = re.fullmatch(r"cuda-compat-(\d+)-(\d+)", name)
        if DRIVER_PACKAGES.fullmatch(name) and published.DRIVER.fullmatch(version) and not transitional:
            self.releases.setdefault(versions.branch(version), {}).setdefault(version, "")
        elif re.fullmatch(r"cuda-toolkit-\d+-\d+", name) and re.fullmatch(r"\d+\.\d+\.\d+", version):
            self.toolkits.add(version)
        elif compat and published.DRIVER.fullmatch(version):
            # libcuda of a driver for older ones, in its version: one package for each version of CUDA.
            self.note_cuda(versions.branch(version), f"{compat[1]}.{compat[2]}")
        elif cudnn and re.fullmatch(r"\d+(\.\d+){3}", version):
            self.cudnns.setdefault(version, {}).setdefault(cudnn[1], "")

    def note_cuda(self, number: int, cuda: str) -> None:
        if cuda:
            self.cuda[number] = max(cuda, self.cuda.get(number, cuda), key=versions.key)

    def read_drivers(self) -> None:
        """Read the manifests of releases newer than the catalog's, and the list of GPUs of each such branch."""
        tree = self.checker.tree
        labels = self.attempt(published.read_labels, tree, published.DRIVERS) or []
        for label in labels:
            self.releases.setdefault(versions.branch(label), {}).setdefault(label, "")
        last: dict[int, published.Manifest] = {}
        for label in [one for one in labels if is_later(one)][-MANIFESTS:]:
            manifest = self.read_manifest(published.DRIVERS, label)
            if manifest:
                number = versions.branch(label)
                self.releases[number][label] = self.releases[number][label] or manifest.day
                self.note_cuda(number, published.driver_cuda(manifest))
                last[number] = manifest
        for number, manifest in sorted(last.items()):
            for device, gpu in (self.attempt(published.read_supported_gpus, tree, manifest) or {}).items():
                self.gpus.setdefault(device, (gpu, number))

    def read_manifest(self, base: str, label: str) -> published.Manifest | None:
        return self.attempt(published.read_manifest, self.checker.tree, base, label)

    def read_cudnns(self) -> None:
        newest = catalog.cudnns()[-1].version
        known = {".".join(one.version.split(".")[:3]) for one in catalog.cudnns()}
        labels = self.attempt(published.read_labels, self.checker.tree, published.CUDNN) or []
        for label in [one for one in labels if one in known or versions.compare(one, newest) > 0][-MANIFESTS:]:
            manifest = self.read_manifest(published.CUDNN, label)
            found = self.attempt(published.cudnn_archives, manifest) if manifest else None
            if found:
                self.cudnns.setdefault(found[0], {}).update(found[1])


def is_later(version: str) -> bool:
    """True for a driver after the newest one that the catalog has of its branch, or of a branch after all of it."""
    known = catalog.branch(versions.branch(version))
    return versions.compare(version, known.newest) > 0 if known else is_new_branch(versions.branch(version))


def is_new_branch(number: int) -> bool:
    """True for a branch after all of the catalog: it left out some of those before on purpose."""
    return number > max(one.number for one in catalog.branches())


def find_news(vendors: Vendors, path: str, today: str) -> News:
    """Compare with the catalog and the rows of ``path`` ("": none). ``today``: the day, for what has ended.

    What its lists do not have once the rows of branches and toolkits are there is a row of a distribution.
    """
    rows = [*branch_rows(vendors, today), *toolkit_rows(vendors), *cudnn_rows(vendors), *gpu_rows(vendors)]
    remarks = list(notes(vendors))
    with overlay.extended(path, as_sections(rows)):
        rows += distro_rows(vendors, path, today)
    return News(rows, vendors.unread, vendors.absent, remarks)


def as_sections(rows: list[CatalogRow]) -> dict[str, dict[int | str, dict[str, Any]]]:
    """Return rows in the form of the operator's file."""
    found: dict[str, dict[int | str, dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.section, {})[row.key] = row.values
    return found


# ---- drivers ---------------------------------------------------------------------------------------------------------


def branch_rows(vendors: Vendors, today: str) -> Iterator[CatalogRow]:
    for number, releases in sorted(vendors.releases.items()):
        known, kind = catalog.branch(number), vendors.kinds.get(number, "")
        newest = max(releases, key=versions.key, default="")
        if known is None:
            if newest and is_new_branch(number):
                yield new_branch(vendors, number, newest, kind)
            continue
        values: dict[str, Any] = {}
        review: tuple[str, ...] = ()
        if newest and versions.compare(newest, known.newest) > 0:
            values["newest"] = newest
        if kind and kind != known.kind and not catalog.has_ended(number, today):
            values |= {"kind": kind, "eol": end_of_support(kind, known.since)}
            review = ("eol",)
        if values:
            yield CatalogRow("branches", number, values, review, {name: getattr(known, name) for name in values})


def new_branch(vendors: Vendors, number: int, newest: str, kind: str) -> CatalogRow:
    days = sorted(filter(None, vendors.releases[number].values()))
    since, before = days[0] if days else "", catalog.branch_rules(number)
    last = catalog.branches()[-1]
    values = {
        "newest": newest,
        "kind": kind or "new_feature",
        "since": since or catalog.DATE,
        "eol": end_of_support(kind, since),
        "cuda": vendors.cuda.get(number) or last.cuda,
        "flavours": list(before.flavours),
    }
    known = {"kind": bool(kind), "since": bool(since), "eol": not values["eol"], "cuda": bool(vendors.cuda.get(number))}
    return CatalogRow("branches", number, values, tuple(name for name, is_known in known.items() if not is_known))


def end_of_support(kind: str, since: str) -> str | None:
    """Return the month by the rule of a kind, None where it has none or its first day is unknown."""
    return f"{int(since[:4]) + YEARS[kind]}{since[4:7]}" if kind in YEARS and since else None


# ---- CUDA and cuDNN --------------------------------------------------------------------------------------------------


def toolkit_rows(vendors: Vendors) -> Iterator[CatalogRow]:
    last, installer = catalog.toolkits()[-1], catalog.cuda_installers()[-1].release
    series = {".".join(one.split(".")[:2]) for one in vendors.toolkits}
    for version in sorted(series, key=versions.key):
        if versions.compare(version, last.version) > 0:
            rules = catalog.toolkit_rules(version)
            driver = rules.min_driver if rules else first_driver(vendors, version)
            review = ("compute",) if rules else ("compute", "min_driver")
            values = {"min_driver": driver, "compute": list(last.compute)}
            yield CatalogRow("toolkits", version, values, review)
    for release in sorted(vendors.toolkits, key=versions.key):
        if release.count(".") == 2 and versions.compare(release, installer) > 0:
            yield CatalogRow("installers", release, {})


def first_driver(vendors: Vendors, toolkit: str) -> str:
    """Return the first driver of a major version of CUDA, as 580.65.06 is of 13: it runs every toolkit of it."""
    major = toolkit.split(".")[0]
    own = {one.number: one.cuda for one in catalog.branches()} | vendors.cuda
    found = [
        version
        for number, cuda in own.items()
        if cuda.split(".")[0] == major
        for version in vendors.releases.get(number, ())
    ]
    newest = vendors.releases.get(max(vendors.releases, default=0), ())
    return min(found or newest, key=versions.key, default=catalog.branches()[-1].newest)


def cudnn_rows(vendors: Vendors) -> Iterator[CatalogRow]:
    known, last = {one.version: one for one in catalog.cudnns()}, catalog.cudnns()[-1]
    for version, archives in sorted(vendors.cudnns.items(), key=lambda item: versions.key(item[0])):
        majors = sorted(archives, key=int)
        if version in known and not set(majors) <= set(known[version].cuda):
            both = sorted({*majors, *known[version].cuda}, key=int)
            yield CatalogRow("cudnn", version, {"cuda": both}, (), {"cuda": list(known[version].cuda)})
        elif versions.compare(version, last.version) > 0:
            values: dict[str, Any] = {"cuda": majors, "compute": list(last.compute)}
            checksums = {major: checksum for major, checksum in archives.items() if checksum}
            values |= {"sha256": checksums} if checksums else {}
            same = version.split(".")[0] == last.version.split(".")[0]
            yield CatalogRow("cudnn", version, values, () if same else ("compute",))


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def gpu_rows(vendors: Vendors) -> Iterator[CatalogRow]:
    for device, (gpu, branch) in sorted(vendors.gpus.items()):
        known = catalog.gpu(device)
        if known is None:
            yield new_gpu(vendors, device, gpu, branch)
        elif gpu.last_branch not in (None, known.last_branch):
            yield CatalogRow("gpus", device, {"last_branch": gpu.last_branch}, (), {"last_branch": known.last_branch})


def new_gpu(vendors: Vendors, device: str, gpu: SupportedGpu, branch: int) -> CatalogRow:
    chip = vendors.chips.get(device, Chip("", ""))
    architecture = ARCHITECTURES.get(chip.name[:2], "")
    flavours = list(catalog.branch_rules(branch).flavours) if gpu.is_open else [driver_sources.PROPRIETARY]
    same = [one for one in catalog_data.GPU_GROUPS if one["architecture"] == architecture]
    if gpu.is_open and same and all(one["flavours"] == [driver_sources.OPEN] for one in same):
        flavours = [driver_sources.OPEN]
    values = {
        "name": gpu.name or device, "architecture": architecture or "unknown", "first_branch": branch,
        "last_branch": gpu.last_branch, "flavours": flavours, "compute": None,
        "verified": "supported-gpus.json of driver %d" % branch,
    }  # fmt: skip
    return CatalogRow("gpus", device, values, ("compute",) if architecture else ("architecture", "compute"))


# ---- distributions ---------------------------------------------------------------------------------------------------


def distro_rows(vendors: Vendors, path: str, today: str) -> Iterator[CatalogRow]:
    """Yield what a source has beyond its list. A list with an open end has a new branch by the row of the branch."""
    written = overlay.read_files(path)["distros"]
    numbers = [one.number for one in catalog.branches() if not catalog.has_ended(one.number, today)]
    for distro in vendors.distros:
        data, values, old = catalog.distro(distro), dict[str, Any](), dict[str, Any]()
        for source, index in ((one, found) for (name, one), found in vendors.indexes.items() if name == distro):
            file = (written.get(distro) or {}).get("driver_sources", {}).get(source) or {}
            for kind in driver_sources.module_kinds(data, source):
                more = [n for n in numbers if is_unlisted(data, source, kind, n)]
                more = [n for n in more if offers(index, data, source, kind, n)]
                own = file.get("precompiled") or {}
                below = ["precompiled"] if kind == driver_sources.PRECOMPILED and "branches" in own else []
                entry = own if below else file
                listed = entry.get("branches", driver_sources.branches(data, source, kind))
                if more:
                    put(values, [source, *below, "branches"], [*listed, *more])
                    put(old, [source, *below, "branches"], driver_sources.branches(data, source, kind))
            toolkits = unlisted_toolkits(driver_sources.source_entry(data, source), index)
            if toolkits:
                put(values, [source, "toolkits"], [*(file.get("toolkits") or []), *toolkits])
                put(old, [source, "toolkits"], file.get("toolkits"))
        if values:
            yield CatalogRow("distros", distro, {"driver_sources": values}, (), {"driver_sources": old})


def put(values: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def is_unlisted(data: catalog.Distribution, source: str, kind: str, number: int) -> bool:
    return not driver_sources.carries(data, source, kind, number)


def offers(index: Index, data: catalog.Distribution, source: str, kind: str, number: int) -> bool:
    """True if an index has all packages of a branch in one flavour."""
    for flavour in driver_sources.FLAVOURS:
        names = driver_sources.packages(data, source, number, "compute", flavour, kind, check.KERNEL)
        stream = driver_sources.module_stream(data, source, number, flavour, kind)
        if not names or (stream and stream not in index.streams.get("nvidia-driver", set())):
            continue
        if all(has_package(index, name, number) for name in names):
            return True
    return False


def has_package(index: Index, name: str, number: int) -> bool:
    if not check.driver_versioned(name):
        return bool(check.matching(index, name))
    return check.branch_state(index, name, number)[0] == check.RIGHT


def unlisted_toolkits(entry: dict[str, Any], index: Index) -> list[str]:
    """Return the toolkits after the first one of a closed list that the index has and the list has not."""
    known, open_from = entry.get("toolkits") or [], entry.get("toolkits_from")
    if not known or open_from:
        return []
    names = (re.fullmatch(r"cuda-toolkit-(\d+)-(\d+)", name) for name in index.packages)
    offered = {f"{match[1]}.{match[2]}" for match in names if match} - set(known)
    return sorted((one for one in offered if versions.compare(one, known[0]) > 0), key=versions.key)


# ---- what needs no row -----------------------------------------------------------------------------------------------


def notes(vendors: Vendors) -> Iterator[str]:
    last = max(device for group in catalog_data.GPU_GROUPS for device in group["ids"])
    chips = [f"{device} {chip.name}" for device, chip in sorted(vendors.chips.items())
             if device > last and device not in vendors.gpus and not chip.product.startswith("Reserved")]  # fmt: skip
    if chips:
        yield f"pci.ids names, and no list of a driver has: {', '.join(chips[:40])}"
    for name, reason in sorted(signatures(vendors).items()):
        yield f"{name}: not verified by a signature: {reason}"


def signatures(vendors: Vendors) -> dict[str, str]:
    """Return why an index is not known to be signed, by repository."""
    found = {}
    for (distro, source), index in vendors.indexes.items():
        name = driver_sources.source_entry(catalog.distro(distro), source).get("repository") or f"archive of {distro}"
        if index.signed:
            found[name] = index.signed
    return found
