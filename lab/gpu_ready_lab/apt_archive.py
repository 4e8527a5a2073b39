"""Signed apt repositories with suites and components, as a distribution's own archive has them; flat ones: packages.py.

A package's component is the first part of its section (`restricted/libs`), `main` where the section has one part only.
The packages are in the first suite; the other suites exist and are empty.
"""

import base64
import gzip
import hashlib
import lzma
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .packages import MADE, Key, Package, stanza


def component(package: Package, known: Sequence[str]) -> str:
    """Return the component of a package; the first of an archive without sections such as `restricted/libs`."""
    first, slash, _ = dict(package.fields).get("Section", "").partition("/")
    return first if slash and first in known else known[0]


def keyring(key: Key) -> bytes:
    """Return the public key in the binary form that a distribution's keyring file has."""
    body = key.public.read_text().split("\n\n", 1)[1].split("\n=", 1)[0].split("\n-----", 1)[0]
    return base64.b64decode(body)


def write(
    root: Path,
    suites: Sequence[str],
    components: Sequence[str],
    content: Iterable[tuple[Package, Path]],
    fields: dict[str, str],
    key: Key,
) -> None:
    """Write suites into an archive: packages below pool/, indexes and a signed Release below dists/SUITE/."""
    index = dict.fromkeys(components, "")
    for package, deb in sorted(content, key=lambda pair: (pair[0].name, pair[0].version)):
        place = f"pool/{component(package, components)}/{package.name[0]}/{package.file_name}"
        if not (root / place).exists():  # another release has the same one
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            os.link(deb, root / place)
        index[component(package, components)] += stanza(package, deb, place)
    for suite in suites:
        _write_suite(root / "dists" / suite, suite, index, fields, key)
        index = dict.fromkeys(components, "")


def _write_suite(directory: Path, suite: str, index: dict[str, str], fields: dict[str, str], key: Key) -> None:
    files: dict[str, bytes] = {}
    for name, text in index.items():
        data = text.encode()
        files[f"{name}/binary-amd64/Packages"] = data
        files[f"{name}/binary-amd64/Packages.gz"] = gzip.compress(data, mtime=MADE)
        files[f"{name}/binary-amd64/Packages.xz"] = lzma.compress(data)
    for place, data in files.items():
        (directory / place).parent.mkdir(parents=True, exist_ok=True)
        (directory / place).write_bytes(data)
    rows = {**fields, "Suite": suite, "Date": time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime())}
    rows |= {"Architectures": "amd64", "Components": " ".join(index)}
    release = "".join(f"{name}: {value}\n" for name, value in rows.items())
    for title, algorithm in (("MD5Sum", "md5"), ("SHA256", "sha256")):
        release += f"{title}:\n"
        release += "".join(
            f" {hashlib.new(algorithm, data).hexdigest()} {len(data):>16} {place}\n" for place, data in files.items()
        )
    (directory / "Release").write_text(release)
    key.sign(directory)
