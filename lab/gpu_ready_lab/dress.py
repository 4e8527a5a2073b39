"""What a Debian root file system is dressed as: the distributions of lab hosts, each a file data/dress/NAME.yml.

`root`: the Debian suite below; `manager`: apt or dnf; `packages`: Debian packages beside those that every host has.
A dress without `os_release` is that suite itself, with its real kernel headers. The others say `kernel` (what
`uname -r` shall tell), `gcc` (the compiler that /proc/version names), `files` and `links` to lay over the root,
`remove` (paths to delete first), `fetch` (files that come from the lab's mirror) and `rpms` (packages of the mirror
that are installed from the beginning). `@NAME@` in a text stands for `kernel`, `mirror` (its address) or an entry of
`values`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from . import paths
from .say import LabError

FOLDER = paths.DATA / "dress"
MANAGERS = ("apt", "dnf")
ROOTS = ("bookworm", "trixie")
KEYS = (
    "root", "manager", "packages", "os_release", "kernel", "gcc", "files", "links", "remove", "fetch", "rpms", "values",
)  # fmt: skip


@dataclass(frozen=True)
class Dress:
    """A distribution of lab hosts."""

    name: str
    root: str
    manager: str
    packages: tuple[str, ...] = ()
    os_release: str | None = None
    kernel: str | None = None
    gcc: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    fetch: Mapping[str, str] = field(default_factory=dict)
    """Path on the host -> path on the mirror."""
    rpms: tuple[str, ...] = ()
    """Paths on the mirror."""


@cache
def names() -> tuple[str, ...]:
    """Return the distributions that the lab has."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yml")))


@cache
def read(name: str) -> Dress:
    """Read a dress; a LabError says where it is wrong."""
    if name not in names():
        raise LabError(f"no lab image for {name!r}; there are {', '.join(names())}")
    return parse(name, (FOLDER / f"{name}.yml").read_text())


def parse(name: str, text: str) -> Dress:
    """Return the dress that a file's text describes."""
    where = f"lab/gpu_ready_lab/data/dress/{name}.yml"
    try:
        said = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"{where} is no valid YAML: {error}") from None
    unknown = sorted(set(said) - set(KEYS))
    if unknown:
        raise LabError(f"{where}: unknown {', '.join(unknown)}; known are {', '.join(KEYS)}")
    for key, choices in (("root", ROOTS), ("manager", MANAGERS)):
        if said.get(key) not in choices:
            raise LabError(f"{where}: {key}: expected one of {', '.join(choices)}, found {said.get(key)!r}")
    if ("os_release" in said) != ("kernel" in said):
        raise LabError(f"{where}: os_release and kernel go together: say both, or neither for the suite itself")
    values = {"kernel": said.get("kernel", ""), "mirror": paths.MIRROR_URL, **said.get("values", {})}
    filled = _fill({key: said[key] for key in KEYS if key in said and key != "values"}, values, where)
    lists = {key: tuple(filled[key]) for key in ("packages", "remove", "rpms") if key in filled}
    return Dress(name, **{**filled, **lists})


def _fill(said: Any, values: Mapping[str, object], where: str) -> Any:
    """Replace @NAME@ in every text of a value."""
    if isinstance(said, dict):
        return {_fill(key, values, where): _fill(value, values, where) for key, value in said.items()}
    if isinstance(said, list):
        return [_fill(value, values, where) for value in said]
    if not isinstance(said, str):
        raise LabError(f"{where}: expected a text, found {said!r}; put it in quotes")

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise LabError(f"{where}: @{match[1]}@ has no value; there are {', '.join(sorted(values))}")
        return str(values[match[1]])

    return re.sub(r"@([a-z_]+)@", value, said)
