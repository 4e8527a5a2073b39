"""Read the vendors' own indexes: Packages of apt, repomd with primary and modules of dnf, from files or the network.

A location is a URL as the catalog has it. ``Tree`` maps it to a file of a mirror (DIR/HOST/PATH), to another server, or
leaves it as it is.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import re
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

LIMIT = 256 * 1024 * 1024
"""Bytes, also of what is unpacked: primary.xml of EPEL has about 30 MB."""
TIMEOUT = 60.0


class IndexUnread(Exception):
    """An index could not be read: absent, damaged, or not of its format."""


class IndexAbsent(IndexUnread):
    """There is no such file where the index is read."""


class IndexedPackage(NamedTuple):
    """A package of an index. ``replaced_by``: what a transitional package installs, "" for a real one."""

    name: str
    version: str
    replaced_by: str = ""


class Index(NamedTuple):
    """What a repository has: packages by name, and the streams of its modules."""

    packages: dict[str, list[IndexedPackage]]
    streams: dict[str, set[str]]


class Tree(NamedTuple):
    """Where files are read: ``base`` is a directory or a URL below which they are as HOST/PATH; "" are the vendors."""

    base: str = ""

    def place(self, url: str) -> str:
        """Return the path or URL where a file is read."""
        path = url.split("://", 1)[1]
        return f"{self.base.rstrip('/')}/{path}" if self.base else url

    def read(self, url: str) -> bytes:
        """Return a file. Raises IndexUnread."""
        place = self.place(url)
        try:
            if "://" not in place:
                data = Path(place).read_bytes()
            else:
                with urllib.request.urlopen(place, timeout=TIMEOUT) as answer:
                    data = answer.read(LIMIT + 1)
        except (urllib.error.URLError, OSError, ValueError) as error:
            absent = isinstance(error, FileNotFoundError) or getattr(error, "code", None) == 404
            reason = "no such file" if absent else str(error)
            raise (IndexAbsent if absent else IndexUnread)(f"{url}: {reason}") from None
        if len(data) > LIMIT:
            raise IndexUnread(f"{url}: more than {LIMIT} bytes")
        return data

    def read_any(self, urls: Iterable[str]) -> bytes:
        """Return the first of several files that exists, unpacked by its ending. Raises IndexUnread."""
        reason = ""
        for url in urls:
            try:
                return unpack(self.read(url), url)
            except IndexAbsent as error:
                reason = str(error)
        raise IndexAbsent(reason)


def unpack(data: bytes, name: str) -> bytes:
    """Return the content of a file by its ending. Raises IndexUnread where it is damaged."""
    openers: dict[str, Any] = {".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress}
    ending = next((one for one in openers if name.endswith(one)), "")
    if name.endswith(".zst"):
        raise IndexUnread(f"{name}: zstd is not read by this tool")
    try:
        found: bytes = openers[ending](data) if ending else data
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise IndexUnread(f"{name} is damaged: {error}") from None
    return found


def upstream(version: str) -> str:
    """Return the driver's version in a package's: 580.95.05 of 3:580.95.05-1.el9 and 580.95.05-0ubuntu0.24.04.2."""
    return re.sub(r"[-~+].*", "", version.rpartition(":")[2])


# ---- apt -----------------------------------------------------------------------------------------------------------


def parse_packages(text: str, where: str) -> dict[str, list[IndexedPackage]]:
    """Return the packages of a Packages file. Raises IndexUnread for another text."""
    found: dict[str, list[IndexedPackage]] = {}
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if not paragraph:
            continue
        fields = dict(re.findall(r"(?m)^([\w-]+):[ \t]*(.*)$", paragraph))
        if "Package" not in fields or "Version" not in fields:
            raise IndexUnread(f"{where} is no Packages file: {paragraph[:60]!r}")
        found.setdefault(fields["Package"], []).append(
            IndexedPackage(fields["Package"], fields["Version"], replacement(fields))
        )
    return found


def replacement(fields: dict[str, str]) -> str:
    """Return what a transitional package depends on."""
    if "transitional" not in fields.get("Description", "").lower():
        return ""
    return re.split(r"[\s,|(]", fields.get("Depends", "").strip())[0] or "nothing"


def read_apt(tree: Tree, url: str, suites: Iterable[str], components: Iterable[str]) -> Index:
    """Read the packages of an apt repository; ``suites`` of "/" are flat. Raises IndexUnread.

    A component that a suite of updates does not have is empty there.
    """
    root = url.rstrip("/")
    places = [root] if list(suites) == ["/"] else []
    places += [f"{root}/dists/{s}/{c}/binary-amd64" for s in suites for c in components if s != "/"]
    packages: dict[str, list[IndexedPackage]] = {}
    for place in places:
        names = [f"{place}/Packages{ending}" for ending in (".xz", ".gz", "")]
        try:
            text = tree.read_any(names).decode("utf-8", "replace")
        except IndexAbsent:
            if not re.search(r"-(updates|security)/", place):
                raise
            continue
        for name, versions in parse_packages(text, place).items():
            packages.setdefault(name, []).extend(versions)
    return Index(packages, {})


# ---- dnf -----------------------------------------------------------------------------------------------------------


def parse_xml(data: bytes, where: str) -> ET.Element:
    """Return an XML document without a document type. Raises IndexUnread."""
    if b"<!DOCTYPE" in data[:2000] or b"<!ENTITY" in data:
        raise IndexUnread(f"{where} has a document type, which no index has")
    try:
        return ET.fromstring(data)
    except ET.ParseError as error:
        raise IndexUnread(f"{where} is damaged: {error}") from None


def plain(tag: str) -> str:
    return tag.rpartition("}")[2]


def read_rpm(tree: Tree, url: str) -> Index:
    """Read packages and module streams of an rpm repository; each file must have its checksum. Raises IndexUnread."""
    root = url.rstrip("/")
    repomd = parse_xml(tree.read(f"{root}/repodata/repomd.xml"), f"{root}/repodata/repomd.xml")
    files: dict[str, tuple[str, str]] = {}
    for data in repomd:
        parts = {plain(part.tag): part for part in data}
        if plain(data.tag) == "data" and "location" in parts:
            checksum = parts["checksum"].text if "checksum" in parts else ""
            files[data.get("type", "")] = (parts["location"].get("href", ""), (checksum or "").strip())
    if "primary" not in files:
        raise IndexUnread(f"{root}/repodata/repomd.xml names no primary")
    packages: dict[str, list[IndexedPackage]] = {}
    for entry in parse_xml(listed_file(tree, root, files["primary"]), f"{root}: primary"):
        fields = {plain(part.tag): part for part in entry}
        if "name" in fields and "version" in fields:
            name, version = fields["name"].text or "", fields["version"]
            packages.setdefault(name, []).append(IndexedPackage(name, f"{version.get('ver')}-{version.get('rel')}"))
    streams: dict[str, set[str]] = {}
    if "modules" in files:
        text = listed_file(tree, root, files["modules"]).decode("utf-8", "replace")
        streams = parse_modules(text, f"{root}: modules")
    return Index(packages, streams)


def listed_file(tree: Tree, root: str, entry: tuple[str, str]) -> bytes:
    """Return a file that repomd.xml lists, unpacked; it must have the listed sha256. Raises IndexUnread."""
    place, checksum = entry
    if not place or "://" in place or place.startswith("/") or ".." in place.split("/"):
        raise IndexUnread(f"{root}/repodata/repomd.xml names the file {place!r}, which is not below it")
    data = tree.read(f"{root}/{place}")
    if len(checksum) == 64 and hashlib.sha256(data).hexdigest() != checksum:
        raise IndexUnread(f"{root}/{place} has not the checksum of repomd.xml")
    return unpack(data, place)


def parse_modules(text: str, where: str) -> dict[str, set[str]]:
    """Return the streams by module of a modules.yaml. Raises IndexUnread."""
    found: dict[str, set[str]] = {}
    try:
        documents = list(yaml.load_all(text, Loader=yaml.BaseLoader))
    except yaml.YAMLError as error:
        raise IndexUnread(f"{where} is damaged: {error}") from None
    for document in documents:
        data = document.get("data") if isinstance(document, dict) else None
        if isinstance(data, dict) and "name" in data and "stream" in data:
            found.setdefault(str(data["name"]), set()).add(str(data["stream"]))
    return found


# ---- single files --------------------------------------------------------------------------------------------------


def parse_md5sums(text: str) -> set[str]:
    """Return the file names of a list of md5 checksums."""
    return set(re.findall(r"(?m)^[0-9a-f]{32}\s+\*?(\S+)$", text))


def read_json(data: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object. Raises IndexUnread."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise IndexUnread(f"{where} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise IndexUnread(f"{where} is no JSON object")
    return value


class SupportedGpu(NamedTuple):
    """A device of supported-gpus.json: its last branch (None: current drivers), whether the open module drives it."""

    last_branch: int | None
    is_open: bool


def parse_supported_gpus(data: bytes, where: str) -> dict[str, SupportedGpu]:
    """Return the devices of a supported-gpus.json by id, in small letters. Raises IndexUnread."""
    chips = read_json(data, where).get("chips")
    if not isinstance(chips, list):
        raise IndexUnread(f"{where} is no supported-gpus.json: it has no list of chips")
    found: dict[str, SupportedGpu] = {}
    for chip in chips:
        device = str(chip.get("devid", "")) if isinstance(chip, dict) else ""
        if not re.fullmatch(r"0x[0-9A-Fa-f]{4}", device):
            raise IndexUnread(f"{where}: a chip without devid: {str(chip)[:60]}")
        legacy = re.match(r"(\d+)\.", str(chip.get("legacybranch", "")))
        # From 590 on pre-Turing chips have kernelopen beside their legacy branch, which decides.
        is_open = "kernelopen" in (chip.get("features") or []) and legacy is None
        found[device[2:].lower()] = SupportedGpu(int(legacy[1]) if legacy else None, is_open)
    return found
