"""Restores or deletes the files and directories that gpu-ready wrote."""

import functools
import os
import shutil
from typing import Any, Dict, List, Optional

from ...base import files, manifest
from ...base import pending as rebuilds
from ...containers import cdi
from ...containers.containerd import config as containerd_config
from ...packaging import apt_sources, yum_repos
from .context import Action, Removal, UninstallError, restored

DIRECTORIES = cdi.DIRECTORIES + (
    os.path.dirname(cdi.BOOT_NODES),
    os.path.dirname(cdi.REFRESH_OLD),
    os.path.dirname(cdi.NODES[1]),
    os.path.dirname(containerd_config.DROP_IN),
)
"""Directories that may have been created for a file of gpu-ready, and are removed with it when they are empty."""
INITRAMFS = (["update-initramfs", "-u", "-k", "all"], ["dracut", "--force", "--regenerate-all"])
"""What rebuilds the initial RAM disk, as the catalog's distributions name it."""


def reverted_content(path: str, entry: Dict[str, Any], now: Optional[bytes]) -> Optional[bytes]:
    """A file without the changes of gpu-ready: its former content, or a source list without what was enabled in it."""
    before = restored(entry)
    if before is None or not {"components", "sections"} & set(entry):
        return before
    if now is None:
        return None
    try:
        text, old = now.decode("utf-8"), before.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UninstallError("%s is not UTF-8 (%s): repair it, then run again" % (path, error)) from None
    if "sections" in entry:
        enabled = [name for name in entry["sections"] if not yum_repos.parse_sections(old).get(name, True)]
        return yum_repos.disable_sections(text, enabled).encode("utf-8")
    return apt_sources.disable_components(path, text, old, entry["components"], entry["codename"]).encode("utf-8")


def find_files(removal: Removal) -> List[Action]:
    """Restore or delete the files that gpu-ready wrote."""
    found = []
    rebuild = rebuilds.read_pending_rebuild(removal.host, removal.mark)
    for path, entry in sorted(removal.recorded.get("files", {}).items()):
        now = removal.host.read_bytes(path)
        after = reverted_content(path, entry, now)
        if now == after:
            continue
        if path == yum_repos.SUBSCRIPTIONS and removal.host.which("subscription-manager"):
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
    return found


def restore_file(removal: Removal, path: str, after: Optional[bytes], mode: Optional[int], rebuild: List[str]) -> None:
    """Restore one file; the mark of a rebuild that it needs is written first."""
    if rebuild:
        rebuilds.mark_rebuild(rebuild, removal.mark)
    if after is not None:
        files.write_atomic(path, after, mode)
    elif os.path.lexists(path):
        os.unlink(path)
        directory = os.path.dirname(path)
        if directory in DIRECTORIES and not os.listdir(directory):
            os.rmdir(directory)
    manifest.drop("files", [path], removal.path)


def find_directories(removal: Removal) -> List[Action]:
    """Delete the directories that belong to gpu-ready completely."""
    return [
        Action("delete " + path, functools.partial(shutil.rmtree, path))
        for path in sorted(removal.recorded.get("directories", {}))
        if removal.host.isdir(path)
    ]
