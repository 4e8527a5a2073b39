"""Read the vendors' own indexes: Packages of apt, repomd with primary and modules of dnf, from files or the network.

A location is a URL as the catalog has it. ``Tree`` maps it to a file of a mirror (DIR/HOST/PATH), to another server, or
leaves it as it is.
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import re
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NamedTuple

import yaml

from ....module_utils.gpu_ready.packaging.openpgp import OpenPgpError
from ....module_utils.gpu_ready.packaging.pinned_key import pick_key
from . import trust

LIMIT = 256 * 1024 * 1024
"""Bytes, also of what is unpacked: primary.xml of EPEL has about 30 MB."""
SMALL = 8 * 1024 * 1024
"""Bytes of a file that is no index of packages: a manifest, a listing, a key, a signature."""
NAMES = 5000
"""Files of one kind in a directory: NVIDIA's have some hundreds."""
TIMEOUT = 60.0
"""Seconds without any byte."""
WHOLE = 600.0
"""Seconds for one file."""
CHECKSUMS = {64: "sha256", 96: "sha384", 128: "sha512"}
"""By the length of their text, those that createrepo_c(8) offers and that nobody can choose a collision for."""


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
    """What a repository has: packages by name, and the streams of its modules.

    ``signed``: "" where the pinned key signed it, else why that is not known.
    """

    packages: dict[str, list[IndexedPackage]]
    streams: dict[str, set[str]]
    signed: str = "no pinned key"


class Tree(NamedTuple):
    """Where files are read: ``base`` is a directory or a URL below which they are as HOST/PATH; "" are the vendors."""

    base: str = ""

    def place(self, url: str) -> str:
        """Return the path or URL where a file is read."""
        path = url.split("://", 1)[1]
        return f"{self.base.rstrip('/')}/{path}" if self.base else url

    def read(self, url: str, limit: int = LIMIT) -> bytes:
        """Return a file of at most ``limit`` bytes. Raises IndexUnread."""
        place = self.place(url)
        try:
            with open_place(place) as file:
                return read_bounded(file, limit, url)
        except (urllib.error.URLError, OSError, ValueError) as error:
            absent = isinstance(error, FileNotFoundError) or getattr(error, "code", None) == 404
            reason = "no such file" if absent else str(error)
            raise (IndexAbsent if absent else IndexUnread)(f"{url}: {reason}") from None

    def read_any(self, urls: Iterable[str]) -> tuple[str, bytes]:
        """Return URL and bytes, as they are, of the first of several files that exists. Raises IndexUnread."""
        reason = ""
        for url in urls:
            try:
                return url, self.read(url)
            except IndexAbsent as error:
                reason = str(error)
        raise IndexAbsent(reason)

    def names(self, url: str, pattern: str) -> list[str]:
        """Return the names in a directory that match, at most NAMES of them. Raises IndexUnread.

        A server's listing is HTML with a link for each ("Index of /compute/nvidia-driver/redist"): of it nothing
        counts but the names in links, without a path.
        """
        place = self.place(url)
        if "://" in place:
            text = self.read(url.rstrip("/") + "/", SMALL).decode("utf-8", "replace")
            found = re.findall(r"""href=["']?([\w.+-]+)/?["'\s>]""", text)
        else:
            try:
                found = [path.name for path in Path(place).iterdir()]
            except OSError as error:
                raise IndexAbsent(f"{url}: {error.strerror}") from None
        return sorted({name for name in found if re.fullmatch(pattern, name)})[:NAMES]


class NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows no redirection from https to anything else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"it redirects from https to {newurl[:200]}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_place(place: str) -> IO[bytes]:
    """Open a path or a URL. Raises OSError, urllib.error.URLError, ValueError."""
    if "://" not in place:
        return Path(place).open("rb")
    if not place.startswith(("http://", "https://")):
        raise ValueError("neither http nor https")
    answer: IO[bytes] = urllib.request.build_opener(NoDowngrade).open(place, timeout=TIMEOUT)
    return answer


def read_bounded(file: IO[bytes], limit: int, name: str) -> bytes:
    """Return the rest of a file of at most ``limit`` bytes, read within WHOLE seconds. Raises IndexUnread."""
    until, parts, size = time.monotonic() + WHOLE, [], 0
    while part := file.read(min(1 << 20, limit + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise IndexUnread(f"{name}: more than {limit} bytes")
        if time.monotonic() > until:
            raise IndexUnread(f"{name}: not complete after {WHOLE:.0f} s")
    return b"".join(parts)


def unpack(data: bytes, name: str, limit: int = LIMIT) -> bytes:
    """Return the content of a file by its ending, at most ``limit`` bytes. Raises IndexUnread where it is damaged."""
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    ending = next((one for one in openers if name.endswith(one)), "")
    if name.endswith(".zst"):
        raise IndexUnread(f"{name}: zstd is not read by this tool")
    if not ending:
        return data
    try:
        with openers[ending](io.BytesIO(data)) as file:
            return read_bounded(file, limit, name)
    except (OSError, EOFError, lzma.LZMAError, ValueError, zlib.error) as error:
        raise IndexUnread(f"{name} is damaged: {error}") from None


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


def read_apt(tree: Tree, url: str, suites: Iterable[str], components: Iterable[str], key: bytes | None = None) -> Index:
    """Read the packages of an apt repository; ``suites`` of "/" are flat. Raises IndexUnread.

    ``key``: the pinned one. It signs the list of checksums (InRelease, or Release with Release.gpg:
    https://wiki.debian.org/DebianRepository/Format), and Packages must have its own there. A component that a suite of
    updates does not have is empty there.
    """
    root, flat = url.rstrip("/"), list(suites) == ["/"]
    places = [(root, "")] if flat else []
    places += [(f"{root}/dists/{s}", f"{c}/binary-amd64/") for s in suites for c in components if s != "/"]
    packages: dict[str, list[IndexedPackage]] = {}
    signed = "no pinned key"
    for release, below in places:
        names = [f"{release}/{below}Packages{ending}" for ending in (".xz", ".gz", "")]
        try:
            name, data = tree.read_any(names)
        except IndexAbsent:
            if not re.search(r"-(updates|security)$", release):
                raise
            continue
        if key is not None:
            listed, signed = read_release(tree, release, key)
            if not signed and hashlib.sha256(data).hexdigest() not in listed.get(name.removeprefix(release + "/"), ()):
                raise IndexUnread(f"{name} has not the checksum of the signed list")
        text = unpack(data, name).decode("utf-8", "replace")
        for package, versions in parse_packages(text, name).items():
            packages.setdefault(package, []).extend(versions)
    return Index(packages, {}, signed)


def read_release(tree: Tree, place: str, key: bytes) -> tuple[dict[str, list[str]], str]:
    """Return the sha256 by file of a signed list, and why it is not known to be signed. Raises IndexUnread."""
    for name, signature in (("InRelease", ""), ("Release", "Release.gpg")):
        try:
            data = tree.read(f"{place}/{name}", SMALL)
            detached = tree.read(f"{place}/{signature}", SMALL) if signature else None
        except IndexAbsent:
            continue
        text, reason = verified(key, data, detached, f"{place}/{name}")
        found: dict[str, list[str]] = {}
        for checksum, file in re.findall(r"(?m)^ ([0-9a-f]{64}) +\d+ (?:\./)?(\S+)$", text.decode("utf-8", "replace")):
            found.setdefault(file, []).append(checksum)
        return found, reason
    return {}, "it has no signature"


def verified(key: bytes, data: bytes, detached: bytes | None, name: str) -> tuple[bytes, str]:
    """Return what the key signed, and why that is not known. Raises IndexUnread for a signature of another key."""
    try:
        return trust.verify(key, data, detached), ""
    except trust.Unavailable as error:
        return data, str(error)
    except trust.Wrong as error:
        raise IndexUnread(f"{name} is not signed by the pinned key: {error}") from None


def pinned_key(tree: Tree, url: str, fingerprint: str) -> bytes:
    """Return the pinned key of a repository from the vendor's file, without what else that has. Raises IndexUnread."""
    try:
        return pick_key(tree.read(url, SMALL), fingerprint)
    except OpenPgpError as error:
        raise IndexUnread(f"{url} is not the pinned key: {error}") from None


# ---- dnf -----------------------------------------------------------------------------------------------------------


def parse_xml(data: bytes, where: str) -> ET.Element:
    """Return an XML document in UTF-8 without a document type, so without entities. Raises IndexUnread."""
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise IndexUnread(f"{where} has a document type, which no index has")
    try:
        return ET.fromstring(data.decode("utf-8-sig").encode(), ET.XMLParser(encoding="utf-8"))
    except (ET.ParseError, UnicodeDecodeError) as error:
        raise IndexUnread(f"{where} is damaged: {error}") from None


def plain(tag: str) -> str:
    return tag.rpartition("}")[2]


def read_rpm(tree: Tree, url: str, key: bytes | None = None) -> Index:
    """Read packages and module streams of an rpm repository; each file must have its checksum. Raises IndexUnread.

    ``key``: the pinned one, which signs repomd.xml where repomd.xml.asc is beside it.
    """
    root = url.rstrip("/")
    data = tree.read(f"{root}/repodata/repomd.xml", SMALL)
    signed = "no pinned key"
    if key is not None:
        try:
            detached = tree.read(f"{root}/repodata/repomd.xml.asc", SMALL)
            data, signed = verified(key, data, detached, f"{root}/repodata/repomd.xml")
        except IndexAbsent:
            signed = "it has no signature"
    repomd = parse_xml(data, f"{root}/repodata/repomd.xml")
    files: dict[str, tuple[str, str]] = {}
    for entry in repomd:
        parts = {plain(part.tag): part for part in entry}
        if plain(entry.tag) == "data" and "location" in parts:
            checksum = parts["checksum"].text if "checksum" in parts else ""
            files[entry.get("type", "")] = (parts["location"].get("href", ""), (checksum or "").strip())
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
    return Index(packages, streams, signed)


def listed_file(tree: Tree, root: str, entry: tuple[str, str]) -> bytes:
    """Return a file that repomd.xml lists, unpacked; it must have the listed sha256. Raises IndexUnread."""
    place, checksum = entry
    if not place or "://" in place or place.startswith("/") or ".." in place.split("/"):
        raise IndexUnread(f"{root}/repodata/repomd.xml names the file {place!r}, which is not below it")
    kind = CHECKSUMS.get(len(checksum))
    if kind is None:
        raise IndexUnread(f"{root}/repodata/repomd.xml has no checksum of {place}")
    data = tree.read(f"{root}/{place}")
    if hashlib.new(kind, data).hexdigest() != checksum:
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
    name: str = ""


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
        name = str(chip.get("name", "")).removeprefix("NVIDIA ")[:120]
        # Rows of single boards (subdevid) have names of their own; no id differs in anything else among them.
        if "subdevid" not in chip or device[2:].lower() not in found:
            found[device[2:].lower()] = SupportedGpu(int(legacy[1]) if legacy else None, is_open, name)
    return found
