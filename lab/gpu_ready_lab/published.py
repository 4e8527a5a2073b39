"""Files that vendors' install pages name, beside their repositories: source files, packages with a source and its key.

Each entry of lab/mirror/published.yml belongs to repositories and is written with them: `path`, below the mirror's
root, has a `text`, or is the `package` of that name in the repository; `each` has values for @name@ in all of them.
"""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

from .declarations import fill
from .say import LabError

KEYS = {"each", "repository", "path", "text", "package"}
METALINK = """\
<?xml version="1.0" encoding="utf-8"?>
<metalink version="3.0" xmlns="http://www.metalinker.org/" xmlns:mm0="http://fedorahosted.org/mirrormanager">
  <files>
    <file name="repomd.xml">
      <mm0:timestamp>{timestamp}</mm0:timestamp>
      <size>{size}</size>
      <verification><hash type="sha256">{sha256}</hash></verification>
      <resources maxconnections="1">
        <url protocol="https" type="https" location="US" preference="100">https://{place}/repodata/repomd.xml</url>
      </resources>
    </file>
  </files>
</metalink>
"""


class Published(NamedTuple):
    """A file beside a repository: a text, or a package of the repository under another path."""

    repository: str
    path: str
    text: str | None
    package: str | None


def read(declaration: Path) -> list[Published]:
    """Read the declaration of published files."""
    found = []
    for given in yaml_load(declaration.read_text()):
        if not {"repository", "path"} <= set(given) <= KEYS or ("text" in given) == ("package" in given):
            raise LabError(f"lab/mirror/{declaration.name}: expected {', '.join(sorted(KEYS))}, found {given!r}")
        for values in given.get("each", [{}]):
            found.append(_entry(given, {key: str(value) for key, value in values.items()}))
    return found


def _entry(given: dict[str, Any], values: dict[str, str]) -> Published:
    texts = {key: fill(given[key], values) if key in given else None for key in ("text", "package")}
    return Published(fill(given["repository"], values), fill(given["path"], values), texts["text"], texts["package"])


def write(root: Path, directory: Path, entries: list[Published]) -> None:
    """Write the published files of a repository, which is complete in its directory."""
    for entry in entries:
        path = root / entry.path
        if entry.text is not None:
            write_file(path, entry.text.encode())
        else:
            built = sorted(directory.rglob(f"{entry.package}-[0-9]*.rpm"))
            if len(built) != 1:
                raise LabError(
                    f"{entry.path}: {entry.repository} has {len(built)} packages {entry.package}, expected 1"
                )
            write_file(path, built[0].read_bytes())


def write_metalink(path: Path, directory: Path, place: str) -> None:
    """Write the answer of Fedora's mirror list for a repository at a place, HOST/PATH."""
    data = (directory / "repodata/repomd.xml").read_bytes()
    changed = int((directory / "repodata/repomd.xml").stat().st_mtime)
    text = METALINK.format(timestamp=changed, size=len(data), sha256=hashlib.sha256(data).hexdigest(), place=place)
    write_file(path, text.encode())


def write_file(path: Path, data: bytes) -> None:
    """Write a file unless it has this content: repositories share some, and a host may be reading it."""
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_bytes(data)
    new.replace(path)
