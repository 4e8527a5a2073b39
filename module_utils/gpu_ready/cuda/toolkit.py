"""CUDA toolkits on a host: the directories /usr/local/cuda-X.Y, their version files, the link /usr/local/cuda."""

import json
import posixpath
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..base.json_file import parse_json

PREFIX = "/usr/local"
LINK = PREFIX + "/cuda"
UNINSTALLER = "bin/cuda-uninstaller"
"""Installed by NVIDIA's .run installer in the toolkit's directory."""
RECORDS = manifest.DIRECTORY + "/cuda"
"""Records of toolkits that gpu-ready installed with a .run installer."""
PACKAGE, RUNFILE, FOREIGN, PARTIAL, ALIAS = "package", "runfile", "foreign", "partial", "alias"
"""Origin of a toolkit: packages; a .run installer; neither (copied by hand). Or it is incomplete, or the directory (or
a link of that name) contains another version."""
GROUP = "cuda"
"""Name of the update-alternatives group that NVIDIA's packages register for :data:`LINK`."""
ALTERNATIVES = ("/var/lib/dpkg/alternatives/cuda", "/var/lib/alternatives/cuda")

MAX_LINKS = 40
"""The kernel's limit (MAXSYMLINKS)."""
CUDNN_FILE = re.compile(r"^(?:libcudnn[\w.-]*\.(?:so(?:\.\d+)*|a)|cudnn\w*\.h)$")
"""cuDNN's files, which people copy into toolkits."""

_FILE = r"^cuda_(\d+\.\d+\.\d+)_(?:[\d.]+_)?linux(?:_\w+)?\.run$"
_DIRECTORY = re.compile(r"^cuda-(\d+\.\d+)$")
_PART = r"^(?:cuda|gds|nsight|lib(?:cu|nv|npp)[a-z0-9]*)(?:-[a-z0-9]+)*-%s(?:-config-common)?$"
_PACKAGE = re.compile(r"^cuda-toolkit-(\d+)-(\d+)$")
_RELEASE = re.compile(r"(\d+(?:\.\d+)+)")


class AlternativesGroup(NamedTuple):
    """An update-alternatives group; ``mode`` is auto or manual."""

    mode: str
    link: str
    candidates: Tuple[str, ...]


class ToolkitRecord(NamedTuple):
    """A toolkit of our .run installer; not ``complete``: the installer was interrupted or failed."""

    release: str
    complete: bool


class DefaultLink(NamedTuple):
    """Target of the link of the default toolkit.

    ``kind`` is "alternatives", "link" (a plain one), "directory" or "absent"; ``mode`` is update-alternatives' mode.
    """

    target: Optional[str]
    kind: str
    mode: Optional[str]


def version_of_directory(name: str) -> Optional[str]:
    """Return the version 12.9 for the directory name "cuda-12.9", None for other names."""
    found = _DIRECTORY.match(name)
    return found.group(1) if found else None


def version_of_package(name: str) -> Optional[str]:
    """Return the version 12.9 for "cuda-toolkit-12-9", None for other packages, its parts and metapackages included."""
    found = _PACKAGE.match(name)
    return "%s.%s" % found.groups() if found else None


def toolkit_path(version: str) -> str:
    return "%s/cuda-%s" % (PREFIX, version)


def toolkit_package(version: str) -> str:
    """Return the package of a complete toolkit without a driver (``cuda`` and ``cuda-12-9`` depend on one)."""
    return "cuda-toolkit-" + version.replace(".", "-")


def series(version: str) -> str:
    """Return the two numbers of a toolkit's directory: "12.9" for "12.9.1" and "12.9"."""
    return ".".join(version.split(".")[:2])


def is_release(found: Optional[str], requested: str) -> bool:
    """Return True if a release matches the requested one; each release of 12.9 matches "12.9"."""
    return found is not None and (found == requested or found.startswith(requested + "."))


def is_dated(release: str) -> bool:
    """Return True for a release whose third number is a date, as in some of CUDA 11 (11.4.20210728)."""
    return re.match(r"\d+\.\d+\.\d{6,}", release) is not None


def release_of_file(name: str) -> Optional[str]:
    """Return the release in the name of an installer, with a driver version in it (up to 13.3) or without."""
    found = re.match(_FILE, name.rpartition("/")[2])
    return found.group(1) if found else None


def packages_of_toolkit(version: str, packages: Iterable[str]) -> List[str]:
    """Return packages of one toolkit, metapackages included, sorted.

    Packages shared by several toolkits (``cuda-toolkit-config-common``, ``nsight-compute-2025.2``) are excluded.
    """
    form = re.compile(_PART % re.escape(version.replace(".", "-")))
    return sorted(name for name in packages if form.match(name))


def record_path(version: str, directory: str = RECORDS) -> str:
    return "%s/%s.json" % (directory, version)


def parse_record(text: str) -> ToolkitRecord:
    """An installation that was not completed leaves a damaged record."""
    try:
        value = parse_json(text)
        return ToolkitRecord(str(value["release"]), value["complete"] is True)
    except (ValueError, TypeError, KeyError):
        return ToolkitRecord("", False)


def format_record(record: ToolkitRecord) -> str:
    return json.dumps(dict(record._asdict()), indent=1, sort_keys=True) + "\n"


def parse_version_json(text: str) -> Optional[str]:
    """Return the release in version.json (CUDA 11.1 and newer)."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    cuda = value.get("cuda") if isinstance(value, dict) else None
    release = cuda.get("version") if isinstance(cuda, dict) else None
    return release if isinstance(release, str) and _RELEASE.match(release) else None


def parse_version_txt(text: str) -> Optional[str]:
    """Return the release in version.txt (``CUDA Version 10.2.89``)."""
    found = _RELEASE.search(text) if text.startswith("CUDA Version") else None
    return found.group(1) if found else None


def installed_release(host: Host, path: str) -> Optional[str]:
    text = host.read(path + "/version.json")
    if text is not None:
        return parse_version_json(text)
    text = host.read(path + "/version.txt")
    return None if text is None else parse_version_txt(text)


def parse_alternatives(text: str) -> Optional[AlternativesGroup]:
    """Parse the state file of one update-alternatives group; None for an empty or garbled one.

    The format (dpkg's and chkconfig's agree on it): mode, link, pairs of slave name and slave link, an empty line,
    then for each candidate its path, its priority and a line for each slave, and an empty line at the end.
    """
    lines = text.splitlines()
    if len(lines) < 3 or lines[0] not in ("auto", "manual") or not lines[1].startswith("/"):
        return None
    rest: List[str] = lines[2:]
    if "" not in rest:
        return None
    slaves = rest.index("") // 2
    body = rest[rest.index("") + 1 :]
    candidates = []
    position = 0
    while position + 1 < len(body) and body[position].startswith("/"):
        candidates.append(body[position])
        position += 2 + slaves
    return AlternativesGroup(lines[0], lines[1], tuple(candidates))


def read_group(host: Host, link: str = LINK, states: Tuple[str, ...] = ALTERNATIVES) -> Optional[AlternativesGroup]:
    for path in states:
        group = parse_alternatives(host.read(path) or "")
        if group is not None and group.link == link:
            return group
    return None


def read_default(host: Host, link: str = LINK, states: Tuple[str, ...] = ALTERNATIVES) -> DefaultLink:
    """Return a target of None means that the link is missing or dangling."""
    written = host.readlink(link)
    if written is None:
        return DefaultLink(None, "directory" if host.exists(link) else "absent", None)
    target = _toolkit_of(host, link) if host.exists(link) else None
    group = read_group(host, link, states)
    if group is not None and written.rpartition("/")[0].endswith("/alternatives"):
        return DefaultLink(target, "alternatives", group.mode)
    return DefaultLink(target, "link", None)


def _toolkit_of(host: Host, link: str) -> str:
    """Return the first toolkit directory on the way to a link's target.

    It is a link itself if it is on another disk.
    """
    path = link
    for _ in range(MAX_LINKS):
        written = host.readlink(path)
        if written is None:
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), written))
        if posixpath.dirname(path) == posixpath.dirname(link) and version_of_directory(posixpath.basename(path)):
            return path
    return host.realpath(link)


def toolkits_of_packages(packages: Dict[str, Any]) -> List[str]:
    return [version for version in (version_of_package(name) for name in packages) if version]
