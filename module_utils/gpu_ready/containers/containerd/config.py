"""containerd's configuration files: where they are and what they import.

Facts need no more than this on a host whose containerd is not configured by gpu-ready, so TOML is parsed only where a
file has ``imports``; the planned edits are in edits.py.
"""

import base64
import fnmatch
import posixpath
import re
from typing import Any, List, NamedTuple, Optional, Tuple

from ...base.errors import GpuReadyError

MAIN = "/etc/containerd/config.toml"
DROP_IN_DIRECTORY = "/etc/containerd/conf.d"
DROP_IN = DROP_IN_DIRECTORY + "/99-gpu-ready.toml"
UNIT = "containerd.service"
SOCKET = "/run/containerd/containerd.sock"
NONE = "none"
"""The mode of a containerd that is no longer configured for GPUs."""
RESTART_MARK = "containerd-restart.json"
"""Written before the files; facts compare its age with the age of containerd's socket."""

Path = Tuple[str, ...]
KeyValues = List[Tuple[Path, Any]]


class ConfigFile(NamedTuple):
    """``text`` is None for a missing file. Lists of files are in the order in which containerd reads them."""

    path: str
    text: Optional[str]


class FileEdit(NamedTuple):
    """``before`` or ``after`` is None where the file does not exist."""

    path: str
    before: Optional[str]
    after: Optional[str]


class ContainerdChange(NamedTuple):
    """``keys`` for messages; ``record`` has the previous value of each key that changes in config.toml (None: absent).

    ``required``: keys below the CRI plugin's table that containerd must report afterwards.
    """

    edits: List[FileEdit]
    keys: List[str]
    record: KeyValues
    required: KeyValues


class ConfigError(GpuReadyError, ValueError):
    """The configuration cannot be edited. ``code`` names the refusal."""

    def __init__(self, code: str, problem: str, remedy: str) -> None:
        super().__init__("%s: %s" % (problem, remedy))
        self.code = code
        self.problem = problem
        self.remedy = remedy


def parse_version(text: str) -> Optional[Tuple[int, ...]]:
    """Return the version in a package's version or the output of ``containerd --version``."""
    match = re.search(r"(?:^|[\s:v])(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in match.groups()) if match else None


def config_path(unit_texts: List[str]) -> str:
    """Return the file that the service reads: named by the last ExecStart with ``--config``, else the default."""
    found = MAIN
    for text in unit_texts:
        for line in re.findall(r"(?m)^\s*ExecStart\s*=(.*)$", text):
            match = re.search(r"\s(?:--config|-c)[= ]\s*(\S+)", line)
            found = match.group(1) if match else found if not line.strip() else MAIN
    return found


def keeps_containers(unit_texts: List[str]) -> bool:
    """Return True if containers survive a restart of the service, which then stops its main process only."""
    modes = [mode for text in unit_texts for mode in re.findall(r"(?m)^\s*KillMode\s*=\s*(\S+)", text)]
    return bool(modes) and modes[-1] in ("process", "mixed", "none")


def import_patterns(main: ConfigFile) -> List[str]:
    """``imports`` of a file as absolute patterns; [] for a file that is not valid TOML."""
    if "imports" not in (main.text or ""):
        return []
    from . import toml

    try:
        given = toml.parse(main.text).value.get("imports")
    except toml.TomlError:
        return []
    directory = posixpath.dirname(main.path)
    names = given if isinstance(given, list) else []
    return [posixpath.normpath(posixpath.join(directory, name)) for name in names if isinstance(name, str)]


def is_imported(main: ConfigFile, path: str) -> bool:
    return any(matches_import(path, pattern) for pattern in import_patterns(main))


def matches_import(path: str, pattern: str) -> bool:
    """Return True if a pattern of ``imports`` matches a file; a star does not match a slash."""
    same = posixpath.dirname(path) == posixpath.dirname(pattern)
    return same and fnmatch.fnmatchcase(posixpath.basename(path), posixpath.basename(pattern))


def encode_text(text: Optional[str]) -> Optional[str]:
    return None if text is None else base64.b64encode(text.encode("utf-8")).decode("ascii")


def decode_text(text: Optional[str]) -> Optional[str]:
    return None if text is None else base64.b64decode(text).decode("utf-8")
