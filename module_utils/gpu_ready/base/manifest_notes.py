"""Records of files and of keys in files that others own too: written to the manifest before each change."""

import base64
import os
from typing import Any, Container, ContextManager, Dict, Iterable, Mapping, Optional

from .files import write_json_file
from .host import Host
from .locks import hold_lock
from .manifest import DIRECTORY, PATH, FileState, digest, read, read_state

LOCK_WAIT = 60.0
"""Seconds that a run waits for another one that writes the manifest, which takes it milliseconds."""


def note_files(
    host: Host,
    contents: Mapping[str, Optional[bytes]],
    path: str = PATH,
    *,
    mode: Optional[int] = None,
    generated: bool = False,
) -> None:
    """Record files before they are written: what they are now, and what they will be.

    ``contents``: new content by path, None where the file is deleted. ``mode`` of a file that is written; None: the
    mode that it has, 0644 for a new one, as files.write_atomic() does. ``generated``: programs write such a file from
    the state of the host, so a version that somebody wrote after gpu-ready is not worth restoring.
    """
    with lock_manifest():
        value = read(path)
        known = value.setdefault("files", {})
        for name, content in contents.items():
            known[name] = record_write(host, name, content, mode, known.get(name), generated)
        write_json_file(path, value)


def record_write(
    host: Host,
    name: str,
    content: Optional[bytes],
    mode: Optional[int],
    known: Optional[Dict[str, Any]],
    generated: bool = False,
) -> Dict[str, Any]:
    """Return the record of a file that is about to be written; ``known`` is its present record.

    Content that gpu-ready did not write is somebody's edit: uninstalling gives the file this content, not an older one.
    A ``generated`` file gets its content from before gpu-ready.
    """
    data, now = host.read_bytes(name), read_state(host, name)
    entry = dict(known or {})
    written = [FileState(*item) for item in entry.get("written", [])]
    edited = (
        written and not {"components", "sections"} & set(entry) and now.sha256 not in {one.sha256 for one in written}
    )
    if known is None or (edited and not generated):
        entry["before"] = None if data is None else base64.b64encode(data).decode("ascii")
        entry["mode"] = now.mode
    later = FileState(None, None, None)
    if content is not None:
        owner = os.geteuid() if now.owner is None else now.owner
        later = FileState(digest(content), now.mode or 0o644 if mode is None else mode, owner)
    # A run that ends before the write leaves the file as it is.
    entry["written"] = [list(one) for one in written if one.sha256 == now.sha256 and one != later] + [list(later)]
    return entry


def make_parents(file: str, path: str = PATH) -> None:
    """Make the missing directories of a file, recorded first: uninstalling removes them if they are empty."""
    missing, directory = [], os.path.dirname(os.path.realpath(file))
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    if missing:
        note("parents", {name: {} for name in missing}, path)
        os.makedirs(missing[0], mode=0o755, exist_ok=True)


def note_packages(names: Mapping[str, bool], path: str = PATH) -> None:
    """Record packages before they are installed; the value is True for those requested by name.

    One that is requested by name now counts as requested: the package manager marks it so.
    """
    with lock_manifest():
        value = read(path)
        known = value.setdefault("packages", {})
        for name, manual in names.items():
            entry = known.get(name, {})
            if not entry or entry.get("removed"):
                known[name] = {"manual": manual}
            elif manual:
                entry["manual"] = True
        write_json_file(path, value)


def forget_packages(names: Iterable[str], owners: Container[str] = (), path: str = PATH) -> None:
    """Drop the records of packages that are not installed: somebody may install them later.

    Those in ``owners`` are marked as removed: their users, groups and files are still to be removed.
    """
    if not os.path.exists(path):
        return
    with lock_manifest():
        value = read(path)
        known = value.get("packages", {})
        before = dict(known)
        for name in names:
            if name in owners and name in known:
                known[name] = dict(known[name], removed=True)
            else:
                known.pop(name, None)
        if known != before:
            write_json_file(path, value)


def note_components(path_of_file: str, names: "list[str]", codename: str, path: str = PATH) -> None:
    """Add enabled components to the existing record of a source list of Debian."""
    with lock_manifest():
        value = read(path)
        entry = value["files"][path_of_file]
        known = entry.get("components", [])
        entry.update(components=known + [name for name in names if name not in known], codename=codename)
        write_json_file(path, value)


def note_sections(path_of_file: str, names: "list[str]", path: str = PATH) -> None:
    """Add enabled repositories to the existing record of a .repo file of the distribution."""
    with lock_manifest():
        value = read(path)
        entry = value["files"][path_of_file]
        known = entry.get("sections", [])
        entry["sections"] = known + [name for name in names if name not in known]
        write_json_file(path, value)


def note_keys(path_of_file: str, before: "str | None", keys: Dict[str, Any], path: str = PATH) -> None:
    """Record keys of docker's configuration; the recorded text and recorded keys keep their first value.

    A key that is set again keeps the value from before gpu-ready and gets the newest one that gpu-ready set. A key that
    returns to its value before gpu-ready is not recorded: :func:`forget_keys` drops its record after the write.
    """
    with lock_manifest():
        value = read(path)
        entry = value.setdefault("daemon_json", {}).setdefault(path_of_file, {"before": before, "keys": {}})
        for name, state in keys.items():
            if keys_restored_by(entry["keys"], name, state):
                continue
            known = entry["keys"].setdefault(name, state)
            if "after" in state:
                known["after"] = state["after"]
        write_json_file(path, value)


def keys_restored_by(known: Dict[str, Any], name: str, state: Dict[str, Any]) -> "list[str]":
    """Return recorded keys that a change of ``name`` returns to their value before gpu-ready."""
    if "after" in state:
        return [name] if name in known and known[name].get("before") == state["after"] else []
    related = [one for one in known if one == name or name in known[one].get("made", ())]
    return related if all("after" in known[one] and "before" not in known[one] for one in related) else []


def forget_keys(path_of_file: str, keys: Dict[str, Any], path: str = PATH) -> None:
    """Forget daemon.json keys that are back at their original value."""
    if not os.path.exists(path):
        return
    with lock_manifest():
        value = read(path)
        known = value.get("daemon_json", {}).get(path_of_file, {"keys": {}})["keys"]
        restored = [one for name, state in keys.items() for one in keys_restored_by(known, name, state)]
        for one in restored:
            known.pop(one, None)
        if restored:
            write_json_file(path, value)


def note_containerd(
    path_of_file: str, before: "str | None", after: "str | None", record: "list[Any]", path: str = PATH
) -> None:
    """Record containerd's main file: text and keys keep their first recorded value, ``after`` the last."""
    with lock_manifest():
        value = read(path)
        entry = value.setdefault("containerd", {}).setdefault(path_of_file, {"before": before, "record": []})
        known = [list(name) for name, _ in entry["record"]]
        entry["record"] += [[list(name), old] for name, old in record if list(name) not in known]
        entry["after"] = after
        write_json_file(path, value)


def forget_containerd(path_of_file: str, keys: "list[list[str]]", path: str = PATH) -> None:
    """Drop records of keys in containerd's main file, and the record of the file when no key is left."""
    if not os.path.exists(path):
        return
    with lock_manifest():
        value = read(path)
        entry = value.get("containerd", {}).get(path_of_file)
        if entry is None:
            return
        entry["record"] = [[list(name), old] for name, old in entry["record"] if list(name) not in keys]
        if not entry["record"]:
            del value["containerd"][path_of_file]
        write_json_file(path, value)


def lock_manifest() -> ContextManager[None]:
    """Lock the manifest and the lease: of two runs that change them at once, the later would drop records."""
    return hold_lock("manifest", LOCK_WAIT)


def note(section: str, entries: Dict[str, Any], path: str = PATH) -> None:
    """Record ``entries`` in a section; recorded keys keep their first value."""
    with lock_manifest():
        value = read(path)
        known = value.setdefault(section, {})
        fresh = {key: entry for key, entry in entries.items() if key not in known}
        if fresh:
            known.update(fresh)
            write_json_file(path, value)


def replace_note(section: str, key: str, entry: Any, path: str = PATH) -> None:
    """Replace a record in one step: a run that is killed leaves one of the two."""
    with lock_manifest():
        value = read(path)
        if value.get(section, {}).get(key) != entry:
            value.setdefault(section, {})[key] = entry
            write_json_file(path, value)


def delete_copied_file(path: str, directory: str = "") -> None:
    """Delete a file that a role copied to this directory from the control node; files elsewhere are kept.

    The role deletes it too, but a run may end before that, and no later run would know of the file.
    """
    if os.path.dirname(path) == (directory or DIRECTORY) and os.path.isfile(path):
        os.unlink(path)


def drop(section: str, keys: "list[str]", path: str = PATH) -> None:
    """Drop records (after the changes were reverted)."""
    if not os.path.exists(path):
        return
    with lock_manifest():
        value = read(path)
        known = value.get(section, {})
        if any(key in known for key in keys):
            for key in keys:
                known.pop(key, None)
            if not known:
                value.pop(section, None)
            write_json_file(path, value)
