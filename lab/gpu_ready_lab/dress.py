"""What a Debian root file system is dressed as: the distributions of lab hosts, each a file data/dress/NAME.yml.

`root`: the Debian suite below; `manager`: apt or dnf; `packages`: Debian packages beside those that every host has.
A dress without `os_release` is that suite itself, with its real kernel headers. The others have `kernel` (the output
of `uname -r`), `gcc` (the compiler that /proc/version names), `files` and `links` to lay over the root, `remove` (paths
to delete first), `fetch` (files from the lab's mirror) and `rpms` (packages of the mirror that are installed from the
beginning). `repositories` are files of /etc/yum.repos.d: sections with their name and place, and "off" if they are not
enabled. `@NAME@` in a text is replaced by `kernel` or an entry of `values`. `like` names another file, of which a
dress has everything that it does not have itself; files that begin with _ are no dress of their own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

from . import paths
from .say import LabError

DIRECTORY = paths.DATA / "dress"
MANAGERS = ("apt", "dnf")
ROOTS = ("bookworm", "trixie")
KEYS = (
    "like", "root", "manager", "packages", "os_release", "kernel", "gcc", "files", "links", "remove", "fetch", "rpms",
    "repositories", "values",
)  # fmt: skip
REPOSITORY = """\
[{section}]
name={name}
baseurl=http://{place}
enabled={enabled:d}
gpgcheck=1
countme=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-lab-base
"""


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
    return tuple(sorted(path.stem for path in DIRECTORY.glob("[!_]*.yml")))


@cache
def read(name: str) -> Dress:
    """Read a dress; raises a LabError that names the place of an error."""
    if name not in names():
        raise LabError(f"no lab image for {name!r}; there are {', '.join(names())}")
    return parse(name, (DIRECTORY / f"{name}.yml").read_text())


def parse(name: str, text: str) -> Dress:
    """Return the dress that a file's text describes."""
    where = f"lab/gpu_ready_lab/data/dress/{name}.yml"
    given = _complete(text, where)
    for key, choices in (("root", ROOTS), ("manager", MANAGERS)):
        if given.get(key) not in choices:
            raise LabError(f"{where}: {key}: expected one of {', '.join(choices)}, found {given.get(key)!r}")
    if ("os_release" in given) != ("kernel" in given):
        raise LabError(f"{where}: set both os_release and kernel, or neither for the suite itself")
    values = {"kernel": given.get("kernel", ""), **given.get("values", {})}
    filled = _fill({key: given[key] for key in KEYS if key in given and key != "values"}, values, where)
    for file, sections in filled.pop("repositories", {}).items():
        texts = [_section(section, *row) for section, row in sections.items()]
        filled["files"][f"/etc/yum.repos.d/{file}.repo"] = "\n".join(texts)
    lists = {key: tuple(filled[key]) for key in ("packages", "remove", "rpms") if key in filled}
    return Dress(name, **{**filled, **lists})


def _section(section: str, name: str, place: str, off: str = "") -> str:
    return REPOSITORY.format(section=section, name=name, place=place, enabled=not off)


def _complete(text: str, where: str) -> dict[str, Any]:
    """Return the keys of a file merged over the keys of the file that it is like."""
    try:
        given: dict[str, Any] = yaml_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"{where} is no valid YAML: {error}") from None
    unknown = sorted(set(given) - set(KEYS))
    if unknown:
        raise LabError(f"{where}: unknown {', '.join(unknown)}; known are {', '.join(KEYS)}")
    if "like" in given:
        found = [path for path in DIRECTORY.glob("*.yml") if path.stem.lstrip("_") == given["like"]]
        if len(found) != 1:
            raise LabError(f"{where}: like: there is no {given['like']}")
        other = _complete(found[0].read_text(), where)
        given = {**other, **given, "values": {**other.get("values", {}), **given.get("values", {})}}
    return {key: value for key, value in given.items() if key != "like"}


def _fill(given: Any, values: Mapping[str, object], where: str) -> Any:
    """Replace @NAME@ in every text of a value."""
    if isinstance(given, dict):
        return {_fill(key, values, where): _fill(value, values, where) for key, value in given.items()}
    if isinstance(given, list):
        return [_fill(value, values, where) for value in given]
    if not isinstance(given, str):
        raise LabError(f"{where}: expected a text, found {given!r}; write it in quotes")

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise LabError(f"{where}: @{match[1]}@ has no value; there are {', '.join(sorted(values))}")
        return str(values[match[1]])

    return re.sub(r"@([a-z_]+)@", value, given)
