"""CUDA toolkits on a host: the folders /usr/local/cuda-X.Y, their version files, the link /usr/local/cuda."""

import json
import posixpath
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..base import manifest
from ..base.host import Host

PREFIX = "/usr/local"
LINK = PREFIX + "/cuda"
UNINSTALLER = "bin/cuda-uninstaller"
"""What NVIDIA's .run installer leaves in a toolkit's folder to take that toolkit away."""
RECORDS = manifest.DIRECTORY + "/cuda"
"""Where it is recorded which toolkits a .run installer of ours brought."""
PACKAGE, RUNFILE, FOREIGN, PARTIAL, ALIAS = "package", "runfile", "foreign", "partial", "alias"
"""Where a toolkit comes from: packages; a .run installer; neither (copied by hand); or it is no whole toolkit, or none
of its own: the folder, or a link of that name, holds another version."""
GROUP = "cuda"
"""Name of the update-alternatives group that NVIDIA's packages register for :data:`LINK`."""
ALTERNATIVES = ("/var/lib/dpkg/alternatives/cuda", "/var/lib/alternatives/cuda")

MOST_LINKS = 40
"""As many links in a row as the kernel follows (MAXSYMLINKS)."""
CUDNN_FILE = re.compile(r"^(?:libcudnn[\w.-]*\.(?:so(?:\.\d+)*|a)|cudnn\w*\.h)$")
"""Names of cuDNN's files, which people copy into toolkits."""

_FILE = re.compile(r"^cuda_(\d+\.\d+\.\d+)_(?:[\d.]+_)?linux(?:_\w+)?\.run$")
_FOLDER = re.compile(r"^cuda-(\d+\.\d+)$")
_PART = r"^(?:cuda|gds|nsight|lib(?:cu|nv|npp)[a-z0-9]*)(?:-[a-z0-9]+)*-%s(?:-config-common)?$"
_PACKAGE = re.compile(r"^cuda-toolkit-(\d+)-(\d+)$")
_RELEASE = re.compile(r"(\d+(?:\.\d+)+)")


class Group(NamedTuple):
    """An update-alternatives group: how its link is kept and which folders it offers."""

    mode: str
    link: str
    candidates: Tuple[str, ...]


class Record(NamedTuple):
    """A toolkit that a .run installer of ours brought; not ``complete``: the installer did not end, or not well."""

    release: str
    complete: bool


class Default(NamedTuple):
    """Where the link of the default toolkit leads, and who keeps it.

    ``kind`` is "alternatives", "link" (a plain one), "folder" or "absent"; ``mode`` is that of update-alternatives.
    """

    target: Optional[str]
    kind: str
    mode: Optional[str]


def version_of_folder(name: str) -> Optional[str]:
    """Return "12.9" for the folder name "cuda-12.9", None for every other name."""
    found = _FOLDER.match(name)
    return found.group(1) if found else None


def version_of_package(name: str) -> Optional[str]:
    """Return "12.9" for "cuda-toolkit-12-9", None for every other package (its parts and metapackages included)."""
    found = _PACKAGE.match(name)
    return "%s.%s" % found.groups() if found else None


def folder(version: str) -> str:
    """Return the folder of a toolkit."""
    return "%s/cuda-%s" % (PREFIX, version)


def package(version: str) -> str:
    """Return the package that brings a whole toolkit and nothing of a driver (``cuda`` and ``cuda-12-9`` would)."""
    return "cuda-toolkit-" + version.replace(".", "-")


def series(version: str) -> str:
    """Return the two numbers that name a toolkit's folder: "12.9" of "12.9.1" and of "12.9"."""
    return ".".join(version.split(".")[:2])


def is_release(found: Optional[str], wanted: str) -> bool:
    """Return whether the release that was found is the wanted one; "12.9" is fulfilled by each of its releases."""
    return found is not None and (found == wanted or found.startswith(wanted + "."))


def is_dated(release: str) -> bool:
    """Return whether a toolkit states a date in place of its third number, as some of CUDA 11 do (11.4.20210728)."""
    return re.match(r"\d+\.\d+\.\d{6,}", release) is not None


def release_of_file(name: str) -> Optional[str]:
    """Return the release that an installer's name tells, with a driver in it (up to 13.3) or without."""
    found = _FILE.match(name.rpartition("/")[2])
    return found.group(1) if found else None


def parts(version: str, packages: Iterable[str]) -> List[str]:
    """Return which of these packages belong to one toolkit: its parts and its metapackages, sorted.

    Packages that several toolkits share (``cuda-toolkit-config-common``, ``nsight-compute-2025.2``) are none of it.
    """
    form = re.compile(_PART % re.escape(version.replace(".", "-")))
    return sorted(name for name in packages if form.match(name))


def record_path(version: str, folder: str = RECORDS) -> str:
    """Return where the record of a toolkit lies."""
    return "%s/%s.json" % (folder, version)


def read_record(text: str) -> Optional[Record]:
    """Read a record; None for any other text."""
    try:
        value = json.loads(text)
        return Record(str(value["release"]), value["complete"] is True)
    except (ValueError, TypeError, KeyError):
        return None


def write_record(record: Record) -> str:
    """Return the text of a record."""
    return json.dumps(dict(record._asdict()), indent=1, sort_keys=True) + "\n"


def read_version_json(text: str) -> Optional[str]:
    """Return the release that version.json (CUDA 11.1 and newer) states, None for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    cuda = value.get("cuda") if isinstance(value, dict) else None
    release = cuda.get("version") if isinstance(cuda, dict) else None
    return release if isinstance(release, str) and _RELEASE.match(release) else None


def read_version_txt(text: str) -> Optional[str]:
    """Return the release of version.txt (``CUDA Version 10.2.89``), None for any other text."""
    found = _RELEASE.search(text) if text.startswith("CUDA Version") else None
    return found.group(1) if found else None


def read_alternatives(text: str) -> Optional[Group]:
    """Read the state file of one update-alternatives group; None for an empty or garbled one.

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
    return Group(lines[0], lines[1], tuple(candidates))


def read_group(host: Host, link: str = LINK, states: Tuple[str, ...] = ALTERNATIVES) -> Optional[Group]:
    """Return the update-alternatives group that keeps a link, None where none does."""
    for path in states:
        group = read_alternatives(host.read(path) or "")
        if group is not None and group.link == link:
            return group
    return None


def read_default(host: Host, link: str = LINK, states: Tuple[str, ...] = ALTERNATIVES) -> Default:
    """Return where the link leads (None: nowhere) and who keeps it."""
    written = host.readlink(link)
    if written is None:
        return Default(None, "folder" if host.exists(link) else "absent", None)
    target = _toolkit_of(host, link) if host.exists(link) else None
    group = read_group(host, link, states)
    if group is not None and written.rpartition("/")[0].endswith("/alternatives"):
        return Default(target, "alternatives", group.mode)
    return Default(target, "link", None)


def _toolkit_of(host: Host, link: str) -> str:
    """Return the first folder of a toolkit that a link leads to: on another disk, that is a link itself."""
    path = link
    for _ in range(MOST_LINKS):
        written = host.readlink(path)
        if written is None:
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), written))
        if posixpath.dirname(path) == posixpath.dirname(link) and version_of_folder(posixpath.basename(path)):
            return path
    return host.realpath(link)


def toolkits_of_packages(packages: Dict[str, Any]) -> List[str]:
    """Return the toolkit versions whose whole-toolkit package is among the names of ``packages``."""
    return [version for version in (version_of_package(name) for name in packages) if version]
