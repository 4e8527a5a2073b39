"""CUDA toolkits on a host: the folders /usr/local/cuda-X.Y, their version files, the link /usr/local/cuda."""

import json
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .host import Host

PREFIX = "/usr/local"
LINK = PREFIX + "/cuda"
GROUP = "cuda"
"""Name of the update-alternatives group that NVIDIA's packages register for :data:`LINK`."""
ALTERNATIVES = ("/var/lib/dpkg/alternatives/cuda", "/var/lib/alternatives/cuda")

_FOLDER = re.compile(r"^cuda-(\d+\.\d+)$")
_PACKAGE = re.compile(r"^cuda-toolkit-(\d+)-(\d+)$")
_RELEASE = re.compile(r"(\d+(?:\.\d+)+)")


class Group(NamedTuple):
    """An update-alternatives group: how its link is kept and which folders it offers."""

    mode: str
    link: str
    candidates: Tuple[str, ...]


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
    target = host.realpath(link) if host.exists(link) else None
    group = read_group(host, link, states)
    if group is not None and written.rpartition("/")[0].endswith("/alternatives"):
        return Default(target, "alternatives", group.mode)
    return Default(target, "link", None)


def toolkits_of_packages(packages: Dict[str, Any]) -> List[str]:
    """Return the toolkit versions whose whole-toolkit package is among the names of ``packages``."""
    return [version for version in (version_of_package(name) for name in packages) if version]
