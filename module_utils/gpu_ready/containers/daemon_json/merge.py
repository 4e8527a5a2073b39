"""Merge settings into docker's daemon.json: only our keys change, the order and all other keys stay.

A file that is not valid JSON is never edited, nor one with a repeated key: a rewrite would drop the first of the two.
"""

import copy
import json
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from .document import BLANK, DaemonJsonError, Document, format_like, parse, type_name

__all__ = (
    "DaemonJsonChange",
    "DaemonJsonError",
    "Document",
    "activation",
    "changed_keys",
    "merge",
    "parse",
    "revert",
    "same_value",
)

Path = Tuple[str, ...]
RELOADABLE = frozenset(
    (
        "authorization-plugins",
        "debug",
        "default-runtime",
        "insecure-registries",
        "labels",
        "live-restore",
        "max-concurrent-downloads",
        "max-concurrent-uploads",
        "max-download-attempts",
        "registry-mirrors",
        "runtimes",
        "shutdown-timeout",
    )
)
"""Keys that dockerd applies on SIGHUP; every other key needs a restart."""

RELOAD, RESTART = "reload", "restart"
"""What dockerd needs to apply a change: SIGHUP, or a new start."""
RESTART_MARK = "docker-restart.json"
"""Written before a change that needs a restart; facts compare its age with the start of dockerd."""
_ABSENT = object()


class DaemonJsonChange(NamedTuple):
    """``before`` is None where there is no file. ``keys`` are dotted, ``record`` is what :func:`revert` needs."""

    before: Optional[str]
    after: str
    changed: bool
    keys: List[str]
    record: Dict[str, Dict[str, Any]]

    @property
    def activation(self) -> str:
        """What dockerd needs to apply the change: ``none``, ``reload`` (SIGHUP) or ``restart``."""
        return activation(self.keys)


def activation(keys: Iterable[str]) -> str:
    """Return what dockerd needs after these keys (dotted, as in :attr:`DaemonJsonChange.keys`) have changed."""
    tops = {key.split(".", 1)[0] for key in keys}
    if not tops:
        return "none"
    return RELOAD if tops <= RELOADABLE else RESTART


def same_value(path: Path, have: Any, want: Any) -> bool:
    """Return True if both values mean the same to docker at this path (an absolute program path equals a bare name)."""
    if isinstance(have, bool) != isinstance(want, bool):
        return False
    if len(path) == 3 and path[0] == "runtimes" and path[2] == "path" and isinstance(have, str):
        return have == want or (
            isinstance(want, str)
            and ("/" not in have or "/" not in want)
            and have.rsplit("/", 1)[-1] == want.rsplit("/", 1)[-1]
        )
    if isinstance(have, dict) and isinstance(want, dict):
        if len(path) == 2 and path[0] == "runtimes":
            have, want = _normalize_runtime(have), _normalize_runtime(want)
        return have.keys() == want.keys() and all(same_value(path + (key,), have[key], want[key]) for key in have)
    if isinstance(have, list) and isinstance(want, list):
        return len(have) == len(want) and all(
            same_value(path + ("[]",), item, want[index]) for index, item in enumerate(have)
        )
    return type(have) in (type(want), int, float) and bool(have == want)


def _normalize_runtime(runtime: Dict[str, Any]) -> Dict[str, Any]:
    """Return a runtime with its arguments under docker's own key, and without empty ones."""
    plain = {key: value for key, value in runtime.items() if key not in ("args", "runtimeArgs")}
    arguments = runtime.get("runtimeArgs", runtime.get("args"))
    if arguments:
        plain["runtimeArgs"] = arguments
    return plain


def _pointer(path: Path) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)


def _path(pointer: str) -> Path:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _get(value: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _ABSENT
        value = value[key]
    return value


def _set(value: Dict[str, Any], path: Path, new: Any) -> None:
    for key in path[:-1]:
        if not isinstance(value.get(key), dict):
            value[key] = {}
        value = value[key]
    value[path[-1]] = copy.deepcopy(new)


def _delete(value: Any, path: Path) -> None:
    parent = _get(value, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)


def merge(
    text: Union[str, bytes, None], desired: Dict[str, Any], unset: Iterable[Union[str, Iterable[str]]] = ()
) -> DaemonJsonChange:
    """Set the values of ``desired`` in ``text`` and remove the keys of ``unset``.

    Objects are merged key by key, lists and single values replaced; a value that means the same already stays.
    ``unset`` names keys from the top, joined with dots (``features.cdi``) or as a list. Raises DaemonJsonError.
    """
    document = parse(text)
    before = None if text is None else document.text
    value = copy.deepcopy(document.value)
    record: Dict[str, Dict[str, Any]] = {}
    keys: List[str] = []
    for path, new in _differences((), document.value, desired):
        entry: Dict[str, Any] = {"after": new}
        old = _get(document.value, path)
        if old is not _ABSENT:
            entry["before"] = old
        entry["made"] = [
            _pointer(path[:size]) for size in range(1, len(path)) if _get(document.value, path[:size]) is _ABSENT
        ]
        _set(value, path, new)
        record[_pointer(path)] = entry
        keys.append(".".join(path))
    for name in unset:
        path = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
        old = _get(document.value, path)
        if old is not _ABSENT:
            _delete(value, path)
            record[_pointer(path)] = {"before": old}
            keys.append(".".join(path))
    if keys and document.repeated:
        raise DaemonJsonError("the key %s occurs twice in one object" % document.repeated[0])
    return DaemonJsonChange(before, format_like(value, document) if keys else document.text, bool(keys), keys, record)


def _differences(path: Path, have: Any, desired: Dict[str, Any]) -> List[Tuple[Path, Any]]:
    """(path, value) of everything in ``desired`` that ``have`` does not contain yet, in the order of ``desired``."""
    found: List[Tuple[Path, Any]] = []
    for key, want in desired.items():
        here = path + (key,)
        old = have.get(key, _ABSENT) if isinstance(have, dict) else _ABSENT
        if key in ("args", "runtimeArgs") and len(path) == 2 and path[0] == "runtimes" and isinstance(have, dict):
            spelt = "runtimeArgs" if "runtimeArgs" in have else "args" if "args" in have else key
            here, old = path + (spelt,), have.get(spelt, _ABSENT)
            if old is _ABSENT and not want:
                continue
        if isinstance(want, dict) and want and not (here[0] == "runtimes" and len(here) == 2 and old is _ABSENT):
            if old is not _ABSENT and old is not None and not isinstance(old, dict):
                raise DaemonJsonError("%s is %s, expected an object" % (".".join(here), type_name(old)))
            found += _differences(here, old if isinstance(old, dict) else {}, want)
        elif old is _ABSENT or not same_value(here, old, want):
            found.append((here, want))
    return found


def revert(text: Optional[str], record: Dict[str, Any]) -> Optional[str]:
    """``text`` without what gpu-ready wrote; ``record`` has ``before`` (text or None) and ``keys``.

    A key that somebody changed since stays. If nothing else has changed, the result is ``before``, byte for byte.
    None means that gpu-ready created the file and it can be removed.
    """
    if text is None:
        return None
    before = record.get("before")
    keys = record.get("keys") or {}
    document = parse(text)
    replayed = copy.deepcopy(parse(before).value)
    for pointer, entry in keys.items():
        if "after" in entry:
            _set(replayed, _path(pointer), entry["after"])
        else:
            _delete(replayed, _path(pointer))
    if _equal(replayed, document.value):
        return str(before) if before is not None else None
    value = copy.deepcopy(document.value)
    for pointer, entry in keys.items():
        path = _path(pointer)
        have = _get(value, path)
        if "after" not in entry:
            if have is _ABSENT:
                _set(value, path, entry["before"])
        elif have is not _ABSENT and _is_owned(path, have, entry["after"]):
            if "before" in entry:
                _set(value, path, entry["before"])
            else:
                _delete(value, path)
    parents = {parent for entry in keys.values() for parent in entry.get("made", ())}
    for pointer in sorted(parents, key=lambda name: -name.count("/")):
        if _get(value, _path(pointer)) == {}:
            _delete(value, _path(pointer))
    if not value and (before is None or not before.strip(BLANK)):
        return None if before is None else str(before)
    if _equal(value, document.value):
        return text
    if document.repeated:
        raise DaemonJsonError("the key %s occurs twice in one object" % document.repeated[0])
    return format_like(value, document)


def changed_keys(text: Optional[str], after: Optional[str]) -> List[str]:
    old, new = parse(text).value, parse(after).value
    return sorted(key for key in set(old) | set(new) if old.get(key, _ABSENT) != new.get(key, _ABSENT))


def _equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; unlike ``==`` it distinguishes 1, true and 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _is_owned(path: Path, have: Any, after: Any) -> bool:
    if len(path) == 2 and path[0] == "runtimes" and isinstance(have, dict) and isinstance(after, dict):
        # A runtime without its program is invalid: arguments that were added to our runtime are removed with it.
        return same_value(path + ("path",), have.get("path"), after.get("path"))
    return same_value(path, have, after)
