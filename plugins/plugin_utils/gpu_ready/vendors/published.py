"""Read what NVIDIA publishes for machines about its releases, and pci.ids. A function for each format.

- releases.json: `{"595": {"type": "production branch", "driver_info": [..]}, ..}`, each release with `release_version`,
  `release_date` (a day or ""), `architectures` (x86_64), `runfile_url`; the newest first. It has no end of support.
  (Quoted in github.com/siderolabs/pkgs/pull/1496 and github.com/NVIDIA/gpu-operator/issues/2883.)
- redistrib_VERSION.json of nvidia-driver/redist, cuda/redist, cudnn/redist: `release_date`, `release_label`, and for
  each component `version` and by platform `relative_path`, `sha256`, `size`; those for several versions of CUDA have
  `cuda_variant` and one more level (`cuda13`). (redistrib_620.70.06.json, redistrib_9.28.1.json of 2026-11.)
- The component driver_assistant is for `linux-all`; its archive has supported-gpus/supported-gpus.json.
- pci.ids: `10de  NVIDIA Corporation`, below it a tab and `2330  GH100 [H100 SXM5 80GB]` (pci-ids.ucw.cz).

Nothing of this is signed: only TLS says who sent it. The checksum of driver_assistant is that of its manifest.
"""

import hashlib
import io
import re
import tarfile
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import versions
from . import indexes
from .indexes import IndexUnread, SupportedGpu, Tree

RELEASES = "https://docs.nvidia.com/datacenter/tesla/drivers/releases.json"
DOWNLOADS = "https://developer.download.nvidia.com/compute"
DRIVERS = f"{DOWNLOADS}/nvidia-driver/redist"
CUDA = f"{DOWNLOADS}/cuda/redist"
CUDNN = f"{DOWNLOADS}/cudnn/redist"
REPOSITORIES = f"{DOWNLOADS}/cuda/repos"
PCI_IDS = "https://pci-ids.ucw.cz/v2.2/pci.ids"
KINDS = {"lts branch": "lts", "production branch": "production", "new feature branch": "new_feature"}
"""Our word for each `type` of releases.json."""
DRIVER = re.compile(r"\d{3,4}(\.\d{1,4}){1,2}")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
CHECKSUM = re.compile("[0-9a-f]{64}")
ARCHIVE_LIMIT = 64 * 1024 * 1024
"""Bytes of driver_assistant, unpacked: it has about 40 kB packed."""


class PublishedBranch(NamedTuple):
    """A branch of releases.json: our word for its kind, "" for an unknown one, and the day of each release, or ""."""

    kind: str
    releases: dict[str, str]


class Manifest(NamedTuple):
    """A redistrib_*.json: its label, the day of the release or "", and its components."""

    label: str
    day: str
    components: dict[str, dict[str, Any]]


class Chip(NamedTuple):
    """A device of pci.ids: the chip, and the product in brackets or ""."""

    name: str
    product: str


def parse_releases(data: bytes, where: str) -> dict[int, PublishedBranch]:
    """Return the branches of a releases.json with what is for this machine. Raises IndexUnread."""
    found: dict[int, PublishedBranch] = {}
    for name, branch in indexes.read_json(data, where).items():
        listed = branch.get("driver_info") if isinstance(branch, dict) else None
        if not re.fullmatch(r"\d{3,4}", name) or not isinstance(listed, list):
            raise IndexUnread(f"{where}: {name[:20]} is no branch")
        releases = {}
        for one in listed:
            version = text(one, "release_version")
            if not DRIVER.fullmatch(version) or versions.branch(version) != int(name):
                raise IndexUnread(f"{where}: {version[:40]!r} is no release of {name}")
            if "x86_64" in (one.get("architectures") or ["x86_64"]):
                releases[version] = day(text(one, "release_date"))
        found[int(name)] = PublishedBranch(KINDS.get(text(branch, "type").lower(), ""), releases)
    return found


def read_releases(tree: Tree) -> dict[int, PublishedBranch]:
    return parse_releases(tree.read(RELEASES, indexes.SMALL), RELEASES)


def text(data: Any, key: str) -> str:
    """Return a text of a mapping, "" where there is none."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) else ""


def day(value: str) -> str:
    return value if DAY.fullmatch(value) else ""


def read_labels(tree: Tree, base: str) -> list[str]:
    """Return the versions that a directory has manifests of, ascending. Raises IndexUnread."""
    names = tree.names(base, r"redistrib_\d+(\.\d+){1,3}\.json")
    return sorted((name.removeprefix("redistrib_").removesuffix(".json") for name in names), key=versions.key)


def read_manifest(tree: Tree, base: str, label: str) -> Manifest:
    """Return the manifest of a release. Raises IndexUnread."""
    url = f"{base}/redistrib_{label}.json"
    found = indexes.read_json(tree.read(url, indexes.SMALL), url)
    components = {name: value for name, value in found.items() if isinstance(value, dict)}
    return Manifest(label, day(text(found, "release_date")), components)


def driver_cuda(manifest: Manifest) -> str:
    """Return the CUDA version of a driver ("13.5"), "" where its manifest has none: releases before 2026."""
    variants = manifest.components.get("cuda_compat", {}).get("cuda_variant")
    found = [one for one in variants or [] if isinstance(one, str) and re.fullmatch(r"\d+\.\d+", one)]
    return max(found, key=versions.key, default="")


def cudnn_archives(manifest: Manifest) -> tuple[str, dict[str, str]]:
    """Return version and sha256 by major version of CUDA. Raises IndexUnread."""
    entry = manifest.components.get("cudnn", {})
    version, found = text(entry, "version"), {}
    platform = entry.get("linux-x86_64")
    for name, archive in platform.items() if isinstance(platform, dict) else ():
        match = re.fullmatch(r"cuda(\d+)", name)
        if match and CHECKSUM.fullmatch(text(archive, "sha256")):
            found[match[1]] = text(archive, "sha256")
    if not re.fullmatch(r"\d+(\.\d+){3}", version) or not found:
        raise IndexUnread(f"{CUDNN}/redistrib_{manifest.label}.json has no cuDNN for this machine")
    return version, found


def read_supported_gpus(tree: Tree, manifest: Manifest) -> dict[str, SupportedGpu]:
    """Return the GPUs of a driver from its driver_assistant, {} where it has none. Raises IndexUnread."""
    entry = manifest.components.get("driver_assistant", {}).get("linux-all")
    path, checksum = text(entry, "relative_path"), text(entry, "sha256")
    if not path:
        return {}
    where = f"{DRIVERS}/{path}"
    if not re.fullmatch(r"[\w.+/-]+\.tar\.xz", path) or path.startswith("/") or ".." in path.split("/"):
        raise IndexUnread(f"redistrib_{manifest.label}.json names the file {path[:80]!r}, which is not below it")
    data = tree.read(where, indexes.SMALL)
    if hashlib.sha256(data).hexdigest() != checksum:
        raise IndexUnread(f"{where} has not the checksum of its manifest")
    try:
        with tarfile.open(fileobj=io.BytesIO(indexes.unpack(data, where, ARCHIVE_LIMIT))) as archive:
            for member in archive:  # read in memory: nothing is unpacked on the disk
                file = archive.extractfile(member) if member.name.endswith("/supported-gpus.json") else None
                if file is not None:
                    return indexes.parse_supported_gpus(file.read(), f"{where}: {member.name}")
    except tarfile.TarError as error:
        raise IndexUnread(f"{where} is damaged: {error}") from None
    raise IndexUnread(f"{where} has no supported-gpus.json")


def parse_pci_ids(data: bytes) -> dict[str, Chip]:
    """Return the chips of NVIDIA by device id; other devices of NVIDIA are not among them."""
    section = data.decode("utf-8", "replace").partition("\n10de  ")[2]
    section = re.split(r"\n[0-9a-f]{4}  ", section, maxsplit=1)[0]
    rows = re.findall(r"(?m)^\t([0-9a-f]{4})  ([A-Z]{2}\d{2,3}[A-Z]{0,3})(?: \[(.{1,120})\])?\s*$", section)
    return {device: Chip(chip, product) for device, chip, product in rows}


def read_pci_ids(tree: Tree) -> dict[str, Chip]:
    return parse_pci_ids(tree.read(PCI_IDS, indexes.SMALL))
