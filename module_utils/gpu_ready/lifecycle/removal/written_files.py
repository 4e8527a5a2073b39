"""Restores or deletes the files and directories that gpu-ready wrote."""

import functools
import os
import shutil
from typing import Any, Dict, List, Optional

from ...base import files, managed_files, manifest_notes
from ...base import pending as rebuilds
from ...base.host import Host
from ...packaging import apt_components, apt_sources, yum_repos, yum_sections
from .context import Action, Removal
from .errors import UninstallError
from .recorded_files import DIRECTORIES, describe_edit, restored

INITRAMFS = (["update-initramfs", "-u", "-k", "all"], ["dracut", "--force", "--regenerate-all"])
"""What rebuilds the initial RAM disk, as the catalog's distributions name it."""


SAVED = ".gpu-ready.orig"
"""Ending of the copy of a file before gpu-ready, where the present one is kept.

No program reads it: apt ignores it silently (Dir::Ignore-Files-Silently of `apt-config dump`), yum, modprobe and
systemd read files with their own endings only.
"""


def is_merged(entry: Dict[str, Any]) -> bool:
    """Return True for a file of the distribution in which gpu-ready enabled components or sections."""
    return entry.get("before") is not None and bool({"components", "sections"} & set(entry))


def find_user(host: Host, keyring: str, deleted: List[str]) -> str:
    """Return a list of package sources that is not deleted and names a keyring, "" where there is none."""
    paths = [apt_sources.MAIN_FILE]
    for directory in (apt_sources.DIRECTORY, yum_repos.DIRECTORY):
        paths += [directory + "/" + name for name in host.listdir(directory) if not name.endswith(SAVED)]
    return next((path for path in paths if path not in deleted and keyring in (host.read(path) or "")), "")


def reverted_content(path: str, entry: Dict[str, Any], now: Optional[bytes]) -> Optional[bytes]:
    """Return a file without the changes of gpu-ready.

    Its former content, or a source list without what was enabled in it.
    """
    before = restored(entry)
    if before is None or not is_merged(entry):
        return before
    if now is None:
        return None
    try:
        text, old = now.decode("utf-8"), before.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UninstallError("%s is not UTF-8 (%s): repair it, then run again" % (path, error)) from None
    if "sections" in entry:
        enabled = [name for name in entry["sections"] if not yum_repos.parse_sections(old).get(name, True)]
        return yum_sections.disable_sections(text, enabled).encode("utf-8")
    return apt_components.disable_components(path, text, old, entry["components"], entry["codename"]).encode("utf-8")


def find_files(removal: Removal) -> List[Action]:
    """Restore or delete the files that gpu-ready wrote; one that somebody changed since is kept."""
    found = []
    rebuild = rebuilds.read_pending_rebuild(removal.host, removal.mark)
    changes = find_changed_files(removal)
    deleted = [path for path, after in changes.items() if after is None]
    for path, after in changes.items():
        entry = removal.recorded["files"][path]
        user = find_user(removal.host, path, deleted) if after is None and "/keyrings/" in path else ""
        if user:
            removal.kept.append("%s: %s needs it" % (path, user))
            continue
        if path == yum_sections.SUBSCRIPTIONS and removal.host.which("subscription-manager"):
            off = ["subscription-manager", "repos"] + ["--disable=" + name for name in entry.get("sections", [])]
            found.append(Action("restore " + path, functools.partial(removal.run, off)))
            continue
        tools = [tool for tool in INITRAMFS if removal.host.which(tool[0])]
        argv = tools[0] if tools and path.startswith("/etc/modprobe.d/") else []
        rebuild = rebuild or argv
        words = ("delete " if after is None else "restore ") + path
        found.append(Action(words, functools.partial(restore_file, removal, path, after, entry.get("mode"), argv)))
    if rebuild:
        found.append(Action("rebuild the initial RAM disk", lambda: removal.run(rebuild)))
    return found + find_originals(removal)


def find_changed_files(removal: Removal) -> Dict[str, Optional[bytes]]:
    """Return the content for each file that is not reverted yet, None to delete it, without files that are kept."""
    found = {}
    for path, entry in sorted(removal.recorded.get("files", {}).items()):
        now = removal.host.read_bytes(path)
        after = reverted_content(path, entry, now)
        if now == after:
            continue
        edit = "" if is_merged(entry) else describe_edit(removal.host, path, entry)
        if edit:
            removal.kept.append("%s: %s" % (path, edit))
        else:
            found[path] = after
    return found


def find_originals(removal: Removal) -> List[Action]:
    """Save what was in kept files before gpu-ready, which the manifest alone has."""
    found = []
    for path, entry in sorted(removal.recorded.get("files", {}).items()):
        now, before = removal.host.read_bytes(path), restored(entry)
        if before is None or is_merged(entry) or now == before or not describe_edit(removal.host, path, entry):
            continue
        if removal.host.read_bytes(path + SAVED) != before:
            act = functools.partial(files.write_atomic, path + SAVED, before, entry.get("mode"))
            found.append(Action("save %s as it was before gpu-ready as %s" % (path, path + SAVED), act))
    return found


def restore_file(removal: Removal, path: str, after: Optional[bytes], mode: Optional[int], rebuild: List[str]) -> None:
    """Restore one file; the mark of a rebuild that it needs is written first."""
    if rebuild:
        managed_files.mark_rebuild(rebuild, removal.mark)
    if after is not None:
        files.write_atomic(path, after, mode)
    elif os.path.lexists(path):
        os.unlink(path)
        directory = os.path.dirname(path)
        if directory in DIRECTORIES and not os.listdir(directory):
            os.rmdir(directory)
    manifest_notes.drop("files", [path], removal.path)


def find_directories(removal: Removal) -> List[Action]:
    """Delete the directories that belong to gpu-ready completely."""
    return [
        Action("delete " + path, functools.partial(shutil.rmtree, path))
        for path in sorted(removal.recorded.get("directories", {}))
        if removal.host.isdir(path)
    ]


def find_parents(removal: Removal) -> List[Action]:
    """Remove the directories that gpu-ready made for its files, where nobody has put anything else into them."""
    made = sorted(removal.recorded.get("parents", {}), key=len, reverse=True)
    return [
        Action("remove %s if it is empty" % path, functools.partial(remove_if_empty, path))
        for path in made
        if removal.host.isdir(path)
    ]


def remove_if_empty(path: str) -> None:
    """Remove a directory that may be removed already; one with entries is kept."""
    if os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path):
        os.rmdir(path)
