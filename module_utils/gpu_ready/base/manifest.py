"""The manifest: what gpu-ready changed on this host. Written before each change, read by uninstall.yml.

One JSON object of sections (docs/dev/manifest.md), each a mapping. The first record of a key is kept: it holds the
state before gpu-ready, which a run that was killed and repeated must not overwrite.
"""

import base64
import hashlib
from typing import Any, Dict, NamedTuple, Optional, Union

from .errors import GpuReadyError
from .host import Host
from .json_file import parse_json

DIRECTORY = "/var/lib/gpu-ready"
PATH = DIRECTORY + "/manifest.json"
DRAIN = DIRECTORY + "/drain.json"
SECTIONS: Dict[str, Dict[str, type]] = {
    "files": {"written": list},
    "packages": {},
    "stays": {},
    "streams": {},
    "rpm_keys": {},
    "adopted": {"keyring": str},
    "holds": {},
    "services": {},
    "alternatives": {},
    "daemon_json": {"keys": dict},
    "containerd": {"record": list},
    "cudnn": {"version": str, "files": dict},
    "modules": {},
    "directories": {},
    "parents": {},
    "cuda_runfile": {},
    "runfile": {"versions": list},
}
"""Every section, with the parts that each of its values must have."""
CONTENTS = {"files": ("before",), "daemon_json": ("before",), "containerd": ("before", "after")}
"""Parts that hold the content of a file, by section."""


class FileState(NamedTuple):
    """What makes a file ours: checksum, permission bits and number of the owner; None where it is absent."""

    sha256: Optional[str]
    mode: Optional[int]
    owner: Optional[int]


class ManifestError(GpuReadyError):
    """The manifest cannot be read or locked."""


def read(path: str = PATH) -> Dict[str, Dict[str, Any]]:
    """{} where there is no manifest; ManifestError on a damaged one."""
    try:
        with open(path, "rb") as handle:
            return parse(handle.read(), path)
    except FileNotFoundError:
        return {}


def collect(host: Host) -> Dict[str, Dict[str, Any]]:
    """Return the manifest for facts; ManifestError on a damaged one, which does not mean that nothing was changed."""
    data = host.read_bytes(PATH)
    return {} if data is None else parse(data)


def parse(data: Union[str, bytes], path: str = PATH) -> Dict[str, Dict[str, Any]]:
    """ManifestError on a damaged manifest, and on one of a newer release."""
    try:
        value = parse_json(data)
    except ValueError as error:
        raise ManifestError(
            "%s is not valid JSON (%s). Restore it, or move it away: uninstall.yml can then not remove what it listed"
            % (path, error)
        ) from None
    if not isinstance(value, dict):
        raise _damaged(path, "it is no mapping")
    for section, entries in value.items():
        if section not in SECTIONS:
            raise ManifestError(
                "%s has the section %s, which this release of gpu-ready does not know. Use the release that wrote it"
                % (path, section)
            )
        if not isinstance(entries, dict):
            raise _damaged(path, "%s is no mapping" % section)
        for key, entry in entries.items():
            if not _is_entry(section, entry):
                raise _damaged(path, "%s of %s has another form" % (key, section))
    return value


def _is_entry(section: str, entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), kind) for name, kind in SECTIONS[section].items())
        and all(_is_content(entry.get(name)) for name in CONTENTS.get(section, ()))
        and all(_is_key_value(item) for item in entry.get("record", ()))
        and (section != "files" or _are_states(entry["written"]))
    )


def _are_states(items: Any) -> bool:
    """Return True for a list of [sha256 or null, mode or null, owner or null]."""
    return isinstance(items, list) and all(
        isinstance(item, list)
        and len(item) == 3
        and isinstance(item[0], (str, type(None)))
        and all(isinstance(value, (int, type(None))) for value in item[1:])
        for item in items
    )


def _is_content(text: Any) -> bool:
    if not isinstance(text, str):
        return text is None
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _is_key_value(item: Any) -> bool:
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], list):
        return False
    return bool(item[0]) and all(isinstance(name, str) for name in item[0])


def _damaged(path: str, what: str) -> ManifestError:
    return ManifestError(
        "%s is no manifest of gpu-ready (%s). Restore it, or move it away: uninstall.yml can then not remove what it "
        "listed" % (path, what)
    )


def owned_packages(value: Dict[str, Dict[str, Any]]) -> "list[str]":
    """Return packages that gpu-ready installed and that were installed since."""
    return sorted(name for name, entry in value.get("packages", {}).items() if not entry.get("removed"))


def read_state(host: Host, path: str) -> FileState:
    data = host.read_bytes(path)
    return FileState(None if data is None else digest(data), host.mode(path), host.owner(path))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
