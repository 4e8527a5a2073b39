"""docker's daemon.json: read it strictly, change only our keys, and leave every other byte as it is.

The text itself is edited: each value knows where it stands, so order, indentation, line ends, escapes and the final
newline of a file survive. A file that is not strict JSON is never edited; an empty or blank one counts as ``{}``,
because docker itself starts with it. Of a key that stands twice the last one counts, and is the one we edit.
"""

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from .edit import Path, put, remove
from .parse import BLANK, SPACES, DaemonJsonError, Document, read, type_names

__all__ = (
    "Change",
    "DaemonJsonError",
    "Document",
    "activation",
    "difference",
    "explain",
    "merge",
    "read",
    "same",
    "take_back",
)

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
"""Keys that dockerd takes over on SIGHUP; every other one needs a restart."""

_ABSENT = object()
_REFUSE = "refuse to edit, leave the file as it is, tell the user"
_EMPTY = "treat as an empty object: Docker itself starts with such a file"


class Change(NamedTuple):
    """What an edit does: texts (``before`` None where there is no file), keys that change, and how to undo them."""

    before: Optional[str]
    after: str
    changed: bool
    keys: List[str]
    record: Dict[str, Dict[str, Any]]

    @property
    def activation(self) -> str:
        """What dockerd needs to take the change over: ``none``, ``reload`` (SIGHUP) or ``restart``."""
        return activation(self.keys)


def activation(keys: Iterable[str]) -> str:
    """Return what dockerd needs after these keys (dotted, as in :attr:`Change.keys`) have changed."""
    tops = {key.split(".", 1)[0] for key in keys}
    if not tops:
        return "none"
    return "reload" if tops <= RELOADABLE else "restart"


# ---------------------------------------------------------------------------------------------------------- meaning


def same(path: Path, have: Any, want: Any) -> bool:
    """Return whether two values mean the same to docker at this path (an absolute program path equals a bare one)."""
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
            have, want = _one_args_key(have), _one_args_key(want)
        return have.keys() == want.keys() and all(same(path + (key,), have[key], want[key]) for key in have)
    if isinstance(have, list) and isinstance(want, list):
        return len(have) == len(want) and all(
            same(path + ("[]",), item, want[index]) for index, item in enumerate(have)
        )
    return type(have) in (type(want), int, float) and bool(have == want)


def _one_args_key(runtime: Dict[str, Any]) -> Dict[str, Any]:
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


# ---------------------------------------------------------------------------------------------------------- editing


def merge(
    text: Union[str, bytes, None], wanted: Dict[str, Any], unset: Iterable[Union[str, Iterable[str]]] = ()
) -> Change:
    """Return ``text`` with the values of ``wanted`` in it and the keys of ``unset`` gone, everything else untouched.

    Objects are merged key by key, lists and single values replaced; what already means the same is not touched.
    ``unset`` names keys from the top, joined with dots (``features.cdi``) or as a list. Raises DaemonJsonError.
    """
    document = read(text)
    before = None if text is None else document.text
    edited = document.text
    record: Dict[str, Dict[str, Any]] = {}
    keys: List[str] = []
    for path, value in _differences((), document.value, wanted):
        entry: Dict[str, Any] = {"after": value}
        old = _get(document.value, path)
        if old is not _ABSENT:
            entry["before"] = old
        entry["made"] = [
            _pointer(path[:size]) for size in range(1, len(path)) if _get(document.value, path[:size]) is _ABSENT
        ]
        edited = put(edited, path, value)
        record[_pointer(path)] = entry
        keys.append(".".join(path))
    for name in unset:
        path = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
        old = _get(document.value, path)
        if old is not _ABSENT:
            edited = remove(edited, path)
            record[_pointer(path)] = {"before": old}
            keys.append(".".join(path))
    return Change(before, edited, bool(keys), keys, record)


def _differences(path: Path, have: Any, wanted: Dict[str, Any]) -> List[Tuple[Path, Any]]:
    """Return (path, value) of everything in ``wanted`` that ``have`` does not say yet, in the order of ``wanted``."""
    found: List[Tuple[Path, Any]] = []
    for key, want in wanted.items():
        here = path + (key,)
        old = have.get(key, _ABSENT) if isinstance(have, dict) else _ABSENT
        if key in ("args", "runtimeArgs") and len(path) == 2 and path[0] == "runtimes" and isinstance(have, dict):
            spelt = "runtimeArgs" if "runtimeArgs" in have else "args" if "args" in have else key
            here, old = path + (spelt,), have.get(spelt, _ABSENT)
            if old is _ABSENT and not want:
                continue
        if isinstance(want, dict) and want and not (here[0] == "runtimes" and len(here) == 2 and old is _ABSENT):
            if old is not _ABSENT and old is not None and not isinstance(old, dict):
                raise DaemonJsonError(
                    "%s is %s where docker wants an object" % (".".join(here), type_names(old)[0]), 1, 1
                )
            found += _differences(here, old if isinstance(old, dict) else {}, want)
        elif old is _ABSENT or not same(here, old, want):
            found.append((here, want))
    return found


def take_back(text: Optional[str], record: Dict[str, Any]) -> Optional[str]:
    """Return the text without what gpu-ready wrote: ``record`` has ``before`` (text or None) and ``keys``.

    A key that somebody changed since is theirs and stays. None means that the file was ours alone and goes.
    """
    if text is None:
        return None
    before = record.get("before")
    keys = record.get("keys") or {}
    replayed = before
    for pointer, entry in keys.items():
        replayed = put(replayed or "", _path(pointer), entry["after"]) if "after" in entry else replayed
    if replayed == text and all("after" in entry for entry in keys.values()):
        return str(before) if before is not None else None
    for pointer, entry in keys.items():
        path = _path(pointer)
        have = _get(read(text).value, path)
        if "after" not in entry:
            if have is _ABSENT:
                text = put(text, path, entry["before"])
            continue
        if have is _ABSENT or not _ours(path, have, entry["after"]):
            continue
        text = put(text, path, entry["before"]) if "before" in entry else remove(text, path)
    parents = {parent for entry in keys.values() for parent in entry.get("made", ())}
    for pointer in sorted(parents, key=lambda name: -name.count("/")):
        if _get(read(text).value, _path(pointer)) == {}:
            text = remove(text, _path(pointer))
    if not read(text).value and (before is None or not before.strip(BLANK)):
        return None if before is None else str(before)
    return text


def difference(text: Optional[str], after: Optional[str]) -> List[str]:
    """Return the keys at the top whose values differ between two texts (None: no file), for :func:`activation`."""
    old, new = read(text).value, read(after).value
    return sorted(key for key in set(old) | set(new) if old.get(key, _ABSENT) != new.get(key, _ABSENT))


def _ours(path: Path, have: Any, after: Any) -> bool:
    if len(path) == 2 and path[0] == "runtimes" and isinstance(have, dict) and isinstance(after, dict):
        # A runtime without its program is no valid one: arguments that were added to ours go with it.
        return same(path + ("path",), have.get("path"), after.get("path"))
    return same(path, have, after)


# ------------------------------------------------------------------------------------------------------- explaining


def _reads_trimmed(data: bytes) -> bool:
    """Return whether a text is right but for white space around it that JSON does not know; docker takes it away."""
    text = data.decode("utf-8", "replace")
    try:
        read(text.strip(SPACES))
    except DaemonJsonError:
        return False
    return text.strip(SPACES) != text.strip(BLANK)


def explain(data: bytes) -> Dict[str, Any]:
    """Return the reading of a daemon.json: its keys and runtimes, or what is wrong with it and what to do."""
    if not data.strip(BLANK.encode("ascii")):
        problem = "only white space" if data else "empty file"
        return {"valid_json": False, "problem": problem, "action": _EMPTY, "docker_starts": True}
    try:
        value = read(data).value
    except DaemonJsonError as error:
        if _reads_trimmed(data):
            error.docker_error = None
        answer: Dict[str, Any] = {
            "valid_json": False,
            "problem": error.problem,
            "action": _REFUSE,
            "line": error.line,
            "column": error.column,
            "docker_starts": error.docker_error is None,
        }
        if error.docker_error is not None:
            answer["docker_error"] = error.docker_error
        return answer
    runtimes = value.get("runtimes")
    runtimes = runtimes if isinstance(runtimes, dict) else {}
    nvidia = runtimes.get("nvidia")
    nvidia = nvidia if isinstance(nvidia, dict) else {}
    path = nvidia.get("path")
    default = value.get("default-runtime")
    features = value.get("features")
    cdi = features.get("cdi") if isinstance(features, dict) else None
    return {
        "valid_json": True,
        "keys": list(value),
        "default_runtime": default if isinstance(default, str) else None,
        "nvidia_runtime": "nvidia" in runtimes,
        "nvidia_runtime_path": path if isinstance(path, str) else None,
        "nvidia_args_key": next((key for key in ("runtimeArgs", "args") if key in nvidia), None),
        "other_runtimes": [name for name in runtimes if name != "nvidia"],
        "cdi_feature": cdi if isinstance(cdi, bool) else None,
    }
