"""The operator's own rows of the catalog: a YAML file on the control node that adds to it, or changes it.

A section has the rows of a file of catalog/, in the same form: what a row must have, may have, and of which types is
read from the rows there. A row that the catalog has is changed, key by key; a new one is complete, or a distribution
that is `like` another one.
"""

import contextlib
import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from . import data
from .expand import LIKE, merged
from .files import parse

PATTERNS: dict[str, dict[str, str]] = {
    "branches": {"": r"\d{3,4}", "newest": r"\d+(\.\d+){1,2}", "since": r"\d{4}-\d\d-\d\d", "eol": r"\d{4}-\d\d"},
    "toolkits": {"": r"\d+\.\d+", "min_driver": r"\d+(\.\d+){1,2}"},
    "installers": {"": r"\d+\.\d+\.\d+", "sha256": "[0-9a-f]{64}"},
    "cudnn": {"": r"\d+(\.\d+){3}"},
    "gpus": {"": "[0-9a-f]{4}"},
    "distros": {"": "[a-z0-9]+"},
    "bulletins": {"": r"[\w.-]+", "date": r"\d{4}-\d\d", "component": "driver|container_toolkit"},
    "repositories": {
        "": "[a-z0-9][a-z0-9.-]*", "url": "https?://.+", "key_url": "https?://.+", "fingerprint": "[0-9A-F]{40}",
    },
}  # fmt: skip
"""What the texts of a section look like, by key; "" is the name of a row."""


class OverlayError(Exception):
    """What is wrong with the file, as a cause and a remedy."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.remedy = remedy


class Section(NamedTuple):
    """The rows of a part of the catalog: how to find them, and the file that shows their form."""

    rows: Callable[[dict[str, Any]], dict[Any, dict[str, Any]]]
    file: str


def gpu_rows(files: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a row for each id of the groups of gpus.yml."""
    return {
        device: {**{key: value for key, value in group.items() if key != "ids"}, "name": name}
        for group in files["gpus"]["gpus"]
        for device, name in group["ids"].items()
    }


SECTIONS: dict[str, Section] = {
    "branches": Section(lambda files: files["branches"]["branches"], "branches.yml"),
    "toolkits": Section(lambda files: files["cuda"]["toolkits"], "cuda.yml"),
    "installers": Section(lambda files: files["cuda"]["installers"]["releases"], "cuda.yml"),
    "cudnn": Section(lambda files: files["cudnn"]["releases"], "cudnn.yml"),
    "gpus": Section(gpu_rows, "gpus.yml"),
    "bulletins": Section(lambda files: files["security"]["bulletins"], "security.yml"),
    "distros": Section(lambda files: files["distros"], "distros/"),
    "repositories": Section(lambda files: files["repositories"]["repositories"], "repositories.yml"),
}
FILLED = {"gpus": {"verified": "the operator's own file"}}
"""Keys that a row of the catalog has and an operator's need not have."""
_used: tuple[str, int, int] | None = None


def use(path: str) -> None:
    """Make the catalog of this process the one with the rows of a file; "": without any. Raises OverlayError."""
    global _used
    state = stamp(path) if path else None
    if state == _used:
        return
    install(read_files(path), path)
    _used = state


def read_files(path: str) -> dict[str, Any]:
    """Return the rows of the catalog (data.read_rows) with those of a file; "": without any. Raises OverlayError."""
    files = data.read_rows()
    if path:
        merge(files, read(path), path)
    return files


@contextlib.contextmanager
def extended(path: str, own: Mapping[str, Any]) -> Iterator[None]:
    """Make the catalog of this process the one with the rows of a file and further ones, until the block ends."""
    files = read_files(path)
    if own:
        merge(files, own, "these rows")
    install(files, "these rows")
    try:
        yield
    finally:
        install(read_files(path), path)


def install(files: dict[str, Any], path: str) -> None:
    """Make these rows the catalog of this process. Raises OverlayError where they do not fit together."""
    try:
        data.use(files)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        cause = "%s: its rows do not fit together (%s: %s)" % (path, type(error).__name__, error)
        raise OverlayError(cause, "write them as the files of catalog/ have them") from None


def stamp(path: str) -> tuple[str, int, int]:
    """Return by what a file is known not to have changed. Raises OverlayError."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise unreadable(path, error) from None
    return path, found.st_mtime_ns, found.st_size


def unreadable(path: str, error: OSError) -> OverlayError:
    cause = "%s cannot be read on the control node: %s" % (path, error.strerror)
    return OverlayError(cause, "give the absolute path of a file that this user can read")


def read(path: str) -> Any:
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(path, error) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        place = ", line %d" % (mark.line + 1) if mark else ""
        reason = getattr(error, "problem", None) or "it is no text"
        raise OverlayError("%s%s is no YAML: %s" % (path, place, reason), "correct that line") from None


def merge(files: dict[str, Any], own: Any, path: str) -> None:
    """Add the rows of an operator's file to the catalog. Raises OverlayError."""
    if not isinstance(own, Mapping) or not own:
        remedy = "begin with one of %s, and rows below it" % ", ".join(SECTIONS)
        raise OverlayError("%s has no section" % path, remedy)
    for name, rows in own.items():
        if name not in SECTIONS:
            raise OverlayError("%s: %s is no section" % (path, name), "use %s" % ", ".join(SECTIONS))
        if not isinstance(rows, Mapping):
            raise OverlayError("%s: %s has no rows" % (path, name), "write each row as NAME: {KEY: VALUE}")
        known = copy.deepcopy(SECTIONS[name].rows(files))
        for key, row in rows.items():
            where = "%s: %s %s" % (path, name, key)
            add_row(files, name, key, checked_row(name, key, row, known, where))
    check_repositories(files, own.get("distros") or {}, path)


def checked_row(name: str, key: Any, row: Any, known: dict[Any, dict[str, Any]], where: str) -> dict[str, Any]:
    """Return a complete row: with what the catalog has of it, or what a distribution like it has."""
    example = "write it as a row of catalog/%s" % SECTIONS[name].file
    if not isinstance(key, type(next(iter(known)))) or not re.fullmatch(PATTERNS[name][""], str(key)):
        quotes = ", in quotes" if isinstance(next(iter(known)), str) else ", without quotes"
        raise OverlayError("%s: that is no name of a row" % where, "write it as %s%s" % (list(known)[-1], quotes))
    if not isinstance(row, Mapping):
        raise OverlayError("%s is %r, and a row is KEY: VALUE" % (where, row), example)
    row = dict(row)
    like = row.pop(LIKE, None) if name == "distros" else None
    if like is not None and like not in known:
        raise OverlayError("%s: like: %s is no distribution" % (where, like), "use one of %s" % ", ".join(known))
    found = merged(known.get(key) or known.get(like) or FILLED.get(name, {}), row)
    every = {one for other in known.values() for one in other}
    for one in found:
        if one not in every:
            raise OverlayError("%s: %s is no key of it" % (where, one), "use %s" % ", ".join(sorted(every)))
    needed = set.intersection(*(set(other) for other in known.values()))
    missing = sorted(needed - set(found))
    if missing:
        raise OverlayError("%s: %s is missing" % (where, missing[0]), example)
    for one, value in row.items():
        check_value(name, one, value, known.values(), where)
    return found


def check_value(name: str, key: str, value: Any, known: Iterable[dict[str, Any]], where: str) -> None:
    """Raise OverlayError for a value of another type, or of another form, than the catalog has."""
    examples = [row[key] for row in known if key in row]
    if not any(isinstance(value, type(one)) and isinstance(value, bool) == isinstance(one, bool) for one in examples):
        quotes = " (in quotes)" if isinstance(value, (int, float)) and isinstance(examples[0], str) else ""
        raise OverlayError("%s: %s is %r" % (where, key, value), "write it as %r%s" % (examples[-1], quotes))
    pattern = PATTERNS[name].get(key)
    if pattern and isinstance(value, str) and not re.fullmatch(pattern, value):
        given = next(one for one in reversed(examples) if one)
        raise OverlayError("%s: %s is %r" % (where, key, value), "write it as %r" % given)


def add_row(files: dict[str, Any], name: str, key: Any, row: dict[str, Any]) -> None:
    if name != "gpus":
        SECTIONS[name].rows(files)[key] = row
        return
    for group in files["gpus"]["gpus"]:
        group["ids"] = {device: text for device, text in group["ids"].items() if device != key}
    group = {one: value for one, value in row.items() if one != "name"}
    files["gpus"]["gpus"].append({**group, "ids": {key: row["name"]}})


def check_repositories(files: dict[str, Any], own: Mapping[str, Any], path: str) -> None:
    """Raise OverlayError where a distribution of the operator names a repository that nobody describes."""
    known = files["repositories"]["repositories"]
    for key in own:
        distro = files["distros"][key]
        entries = [*distro["driver_sources"].values(), *distro["docker"].values()]
        for name in [distro["container_toolkit"], *(entry.get("repository") for entry in entries)]:
            if name and name not in known:
                cause = "%s: distros %s names the repository %s, which is not described" % (path, key, name)
                raise OverlayError(cause, "add it to the section repositories, with url, key_url and fingerprint")
