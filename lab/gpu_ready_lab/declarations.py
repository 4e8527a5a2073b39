"""Declarations of the mirror's packages (lab/mirror/*.yml), for debs (packages.py) and RPMs (rpms.py) alike.

A file has packages by name under `packages`, or under `debs` or `rpms` if only repositories of that kind have them,
and defaults for all of them. `each` lists the values for which its packages are made; a list of lists means all
combinations, a name means the list of that name in tables.yml. `only` and `but` limit a row or a package to some
values of others, given as a list or, for numbers, as a range (`570..`). `@name@` in any text and in the text of a
source file is replaced by a value; @lib@, @dev@ and @all@ are what the kind of package calls libraries' directory,
development packages and "every architecture".

`parts` names sets of keys of parts.yml. `depends`, `provides` and the other relations have entries NAME or
NAME OPERATOR VERSION; `same` depends on packages in the package's own version, `instead_of` provides, conflicts with
and replaces what it names. `service` is a unit that the package's scripts start and stop. `libraries` are sonames, each
a small real library of the package's version with its link, or of the version that follows the soname.

A file is its text, or one of: {text}, {source} (below data/vendor), {link}, {library} (a small real ELF with that
SONAME, of `source` or of nothing), {debian} (from a package of Debian's archive), {key} (the lab's public key, armored
or binary), {copies} (that many bytes), {module} (a kernel module of that name, built from the sources in
data/vendor/kernel for the kernel @kernel@, with an appended signature of `signed_by`); and `mode`.
"""

import functools
import itertools
import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from ansible.module_utils.common.yaml import yaml_load

from . import paths
from .say import LabError

DIRECTORY = paths.REPO / "lab" / "mirror"
NOT_PACKAGES = ("repositories", "downloads", "published", "streams", "tables", "parts", "later")
TIME = "GPU_READY_LAB_TIME"
SOURCES = paths.DATA / "vendor"
DEB, RPM = "deb", "rpm"
SECTIONS = {"packages": (DEB, RPM), "debs": (DEB,), "rpms": (RPM,)}
CONSTANTS = {
    DEB: {"lib": "/usr/lib/x86_64-linux-gnu", "dev": "dev", "all": "all"},
    RPM: {"lib": "/usr/lib64", "dev": "devel", "all": "noarch"},
}
RELATIONS = {
    DEB: ("depends", "recommends", "provides", "conflicts", "replaces"),
    RPM: ("requires", "recommends", "supplements", "provides", "conflicts", "obsoletes"),
}
SCRIPTS = {
    DEB: ("preinst", "postinst", "prerm", "postrm"),
    RPM: ("pre", "post", "preun", "postun"),
}
OF_SERVICES: dict[str, dict[str, Any]] = {
    DEB: {name: {"source": f"service-{name}"} for name in ("postinst", "prerm", "postrm")},
    RPM: {name: {"source": f"rpm/service-{name}"} for name in ("post", "preun")},
}
DEFAULTS = ("repositories", "source", "version", "section", "architecture", "module", "signed")
KEYS = {
    *DEFAULTS, *RELATIONS[DEB], *RELATIONS[RPM], "each", "only", "but", "parts", "same", "instead_of", "service",
    "libraries", "files", "scripts", "triggers", "description",
}  # fmt: skip
ENTRY = {"text", "source", "link", "library", "debian", "mode", "copies", "module", "signed_by", "key"}
MODULE_VALUES = ("kernel", "license", "version")  # used by data/vendor/kernel and kbuild
LAB_KEY = "the lab's key"
"""In place of a suite of Debian: the public key, whose form, armored or binary, is the path."""


class File(NamedTuple):
    """A file of a package, not yet made: one of its sources is set."""

    path: str
    mode: int
    text: str | None = None
    link: str | None = None
    library: str | None = None
    source: str | None = None
    values: tuple[tuple[str, str], ...] = ()
    debian: tuple[str, str, str] | None = None
    module: str | None = None
    signed_by: str | None = None


class Declared(NamedTuple):
    """A package of one kind, for one set of values."""

    kind: str
    name: str
    version: str
    given: Mapping[str, Any]
    relations: Mapping[str, Sequence[str]]
    files: tuple[File, ...]
    scripts: tuple[tuple[str, str], ...]
    repositories: tuple[str, ...]
    where: str


def let_time_pass() -> None:
    """Declare what there is six months later, from now on in this process; before anything is read."""
    os.environ[TIME] = "later"


def is_later() -> bool:
    """True if it is six months later for the declarations."""
    return os.environ.get(TIME) == "later"


def read_yaml(path: Path) -> Any:
    """Return the content of a file of declarations, with the changes of later.yml once that time has passed."""
    try:
        given = yaml_load(path.read_text())
    except yaml.YAMLError as error:
        raise LabError(f"lab/mirror/{path.name} is no valid YAML: {error}") from None
    changes = yaml_load(path.with_name("later.yml").read_text()).get(path.stem, {}) if is_later() else {}
    for where, change in changes.items():
        *parents, last = where.split(".")
        holder = functools.reduce(operator.getitem, parents, given)
        drops = [drop.items() for drop in change.get("drop", [])]
        kept = [row for row in holder[last] if not any(all(row[key] == value for key, value in each) for each in drops)]
        holder[last] = kept + change.get("add", [])
    return given


@functools.cache
def repositories() -> dict[str, dict[str, Any]]:
    """Return the declared repositories by id."""
    found = {}
    for given in read_yaml(DIRECTORY / "repositories.yml"):
        for values in given.get("each", [{}]):
            entry = fill_all({key: value for key, value in given.items() if key != "each"}, texts(values))
            entry = fill_all(entry, {"path": entry["path"]})
            name = entry.pop("id")
            found[name] = {"for": values.get("for"), **entry}
    return found


def kinds() -> dict[str, str]:
    """Return the kind of the packages of each repository."""
    return {name: entry.get("kind", DEB) for name, entry in repositories().items()}


# ---- values ---------------------------------------------------------------------------------------


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace @name@ by values; other text between two @ stays."""
    return re.sub(r"@(\w+)@", lambda found: values.get(found[1], found[0]), text)


def fill_all(given: Any, values: Mapping[str, str]) -> Any:
    """Replace @name@ in all texts of a value, keys included."""
    if isinstance(given, dict):
        return {fill_all(key, values): fill_all(value, values) for key, value in given.items()}
    if isinstance(given, list):
        return [fill_all(value, values) for value in given]
    return fill(given, values) if isinstance(given, str) else given


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return values as texts."""
    return {key: str(value) for key, value in values.items()}


def allows(bound: Any, value: Any) -> bool:
    """True if a list or a range of numbers has a value."""
    if isinstance(bound, str):
        low, _, high = bound.partition("..")
        return int(low or 0) <= int(value) <= int(high or 10**9)
    return value in bound


def combinations(each: Sequence[Any], given: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The sets of values of `each`: a list of them, or lists to combine; each `only` restricts them."""
    axes = [_tables()[axis] if isinstance(axis, str) else axis for axis in each]
    if not all(isinstance(axis, list) for axis in axes):
        axes = [axes]
    found = []
    for chosen in itertools.product([given or {}], *axes):
        values = {key: one[key] for one in chosen for key in one if key != "only"}
        bounds = [bound for one in chosen for bound in one.get("only", {}).items()]
        if all(allows(allowed, values[key]) for key, allowed in bounds):
            found.append(values)
    return found


def is_for(package: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """True if a package is made for these values: its `only` and `but` name values and lists of them."""
    only = all(allows(bound, values.get(key)) for key, bound in package.get("only", {}).items())
    return only and not any(allows(bound, values.get(key)) for key, bound in package.get("but", {}).items())


# ---- packages -------------------------------------------------------------------------------------


def read_all() -> list[Declared]:
    """Return all declared packages."""
    files = [path for path in sorted(DIRECTORY.glob("*.yml")) if path.stem not in NOT_PACKAGES]
    files = [path for path in files if is_later() or not path.stem.startswith("later-")]
    return [declared for path in files for declared in read(path, kinds())]


def read(path: Path, kind_of: Mapping[str, str]) -> list[Declared]:
    """Read a file of declarations."""
    given, where = read_yaml(path), f"lab/mirror/{path.name}"
    defaults = {key: given[key] for key in DEFAULTS if key in given}
    found: list[Declared] = []
    for outer in combinations(given.get("each", [{}])):
        for section, allowed in SECTIONS.items():
            for name, package in (given.get(section) or {}).items():
                complete = {**defaults, **_with_parts(package or {}, f"{where}: {name}")}
                for values in combinations(complete.get("each", [{}]), outer):
                    if is_for(complete, values):
                        found += _declared(name, complete, values, kind_of, allowed, where)
    names = [(one.name, one.version, repository) for one in found for repository in one.repositories]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LabError(f"{where}: declared twice: {' '.join(twice[0])}")
    return found


@functools.cache
def _parts() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read_yaml(DIRECTORY / "parts.yml")
    return found


@functools.cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = read_yaml(DIRECTORY / "tables.yml")
    return found


def _with_parts(package: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the keys of a package merged over the keys of its parts; lists, files and scripts are joined."""
    complete: dict[str, Any] = {}
    for given in [*(_parts()[name] for name in package.get("parts", [])), package]:
        unknown = set(given) - KEYS
        if unknown:
            raise LabError(f"{where}: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(KEYS))}")
        for key, value in given.items():
            before = complete.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                value = {**before, **value}
            elif isinstance(before, list) and isinstance(value, list):
                value = [*before, *value]
            complete[key] = value
    return complete


def _declared(
    name: str, complete: Mapping[str, Any], all_values: Mapping[str, Any], kind_of: Mapping[str, str],
    allowed: Sequence[str], where: str,
) -> Iterator[Declared]:  # fmt: skip
    """The package of each kind that has repositories."""
    in_values = all_values.get("repositories", complete.get("repositories", []))
    for kind in allowed:
        plain = texts({key: value for key, value in all_values.items() if key != "repositories"})
        values = {key: fill(value, plain) for key, value in plain.items()}
        if "service" in complete:
            values["service"] = complete["service"]
        given = fill_all(complete, {**values, **CONSTANTS[kind]})
        chosen = fill_all(in_values, values)
        unknown = [one for one in chosen if one not in kind_of]
        if unknown:
            raise LabError(f"{where}: lab/mirror/repositories.yml has no {', '.join(unknown)}")
        chosen = [one for one in chosen if kind_of[one] == kind]
        if not chosen:
            continue
        full_name, version = fill(name, {**values, **CONSTANTS[kind]}), str(given.get("version", ""))
        place = f"{where}: {full_name}"
        files = {**_libraries(kind, given, values.get("version", "")), **(given.get("files") or {})}
        yield Declared(
            kind, full_name, version, given, _relations(kind, given, version, place),
            tuple(read_file(path, entry, values, place) for path, entry in files.items()),
            _scripts(kind, given, values, place), tuple(chosen), place,
        )  # fmt: skip


def _libraries(kind: str, given: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The files of the package's libraries; one of NAME.c below data/vendor, if there is that, else an empty one."""
    files: dict[str, Any] = {}
    for entry in given.get("libraries", []):
        soname, _, own = entry.partition(" ")
        stem = soname.partition(".so")[0]
        made, code = f"{stem}.so.{own or version}", f"{stem}.c" if (SOURCES / f"{stem}.c").exists() else "library.c"
        files[f"{CONSTANTS[kind]['lib']}/{made}"] = {"library": soname, "source": code}
        files[f"{CONSTANTS[kind]['lib']}/{soname}"] = {"link": made}
    return files


def _relations(kind: str, given: Mapping[str, Any], version: str, where: str) -> dict[str, list[str]]:
    """The package's relations, by the kind's own names."""
    found: dict[str, list[str]] = {}
    for relation in RELATIONS[kind]:
        words = given.get(relation, [])
        if not isinstance(words, list):
            raise LabError(f"{where}: {relation}: expected a list, found {words!r}")
        found[relation] = list(words)
    needs = "depends" if kind == DEB else "requires"
    if kind == RPM:
        found[needs] += given.get("depends", [])
    found[needs] += [f"{name} = {version}" for name in given.get("same", [])]
    for relation in ("provides", "conflicts", "replaces") if kind == DEB else ():
        found[relation] += given.get("instead_of", [])
    return {relation: words for relation, words in found.items() if words}


def _scripts(kind: str, given: Mapping[str, Any], values: Mapping[str, str], where: str) -> tuple[tuple[str, str], ...]:
    """Return the scripts of a package and of its service; parts may have scripts of the other kind too."""
    scripts = dict(OF_SERVICES[kind]) if "service" in given else {}
    for script, text in (given.get("scripts") or {}).items():
        if script not in (*SCRIPTS[DEB], *SCRIPTS[RPM]):
            raise LabError(f"{where}: unknown script {script!r}; known are {', '.join(SCRIPTS[kind])}")
        if script in SCRIPTS[kind]:
            scripts[script] = text
    found = {}
    for script, text in scripts.items():
        found[script] = fill(source(text["source"], where).read_text(), values) if isinstance(text, dict) else text
    return tuple(sorted(found.items()))


def source(name: str, where: str) -> Path:
    """Return a file below data/vendor that a declaration names."""
    path = SOURCES / name
    if not path.is_file():
        raise LabError(f"{where}: there is no file {name} below {SOURCES}")
    return path


def read_file(path: str, given: Any, values: Mapping[str, str], where: str) -> File:
    """Read one entry of `files`."""
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, dict) or not set(given) <= ENTRY:
        raise LabError(f"{where}: {path}: expected a text or {'/'.join(sorted(ENTRY))}, found {given!r}")
    if not path.startswith("/"):
        raise LabError(f"{where}: {path}: paths in a package are absolute")
    program = re.search(r"/s?bin/[^/]+$", path) is not None
    mode = int(str(given.get("mode", "755" if program else "644")), 8)
    if "link" in given:
        return File(path, 0o777, link=given["link"])
    if "library" in given:
        code = given.get("source", "library.c")
        text = source(code, where).read_text()
        used = tuple(sorted((name, value) for name, value in values.items() if re.search(rf"\b{name.upper()}\b", text)))
        return File(path, mode, library=given["library"], source=code, values=used)
    if "module" in given:
        used = tuple(sorted((name, value) for name, value in values.items() if name in MODULE_VALUES))
        return File(path, mode, module=given["module"], signed_by=given.get("signed_by") or None, values=used)
    if "debian" in given:
        taken = given["debian"]
        return File(path, mode, debian=(taken["suite"], taken["package"], taken["path"]))
    if "key" in given:
        return File(path, mode, debian=(LAB_KEY, "", given["key"]))
    if "copies" in given:
        return File(path, mode, text=given.get("text", ".") * int(given["copies"]))
    text = given["text"] if "text" in given else fill(source(given["source"], where).read_text(), values)
    return File(path, mode, text=text)
