"""Reverts single packages, files and directories of the manifest, as uninstall would."""

import os
import shutil
from typing import Any, Dict, List, NamedTuple, Optional

from ..base import files, manifest, manifest_notes
from ..base.host import Host
from ..packaging.manager import Manager
from .removal import purge, recorded_files

DIRECTORY_OF_OURS = "a directory of gpu-ready\n"


class RevertRequest(NamedTuple):
    """What to revert, where the manifest lists it; ``leftovers`` are deleted whoever wrote them."""

    packages: List[str]
    paths: List[str]
    leftovers: List[str]


def revert(host: Host, manager: Manager, request: RevertRequest, check: bool) -> Dict[str, Any]:
    """Revert what the manifest lists of the request; returns the module's values."""
    recorded = manifest.read()
    purged = purge_packages(host, manager, request.packages, list(recorded.get("packages", {})), check)
    diff = [format_diff("packages", "\n".join(purged) + "\n", "")] if purged else []
    reverted, kept = [], []
    for path in request.paths + request.leftovers:
        entry = recorded.get("files", {}).get(path)
        if path in recorded.get("directories", {}) and host.isdir(path):
            diff.append(format_diff(path, DIRECTORY_OF_OURS, ""))
            reverted.append(path)
            if not check:
                shutil.rmtree(path)
        elif entry or path in request.leftovers:
            before = recorded_files.restored(entry) if entry else None
            present = host.read_bytes(path)
            if present == before:
                continue
            edit = recorded_files.describe_edit(host, path, entry) if entry and path not in request.leftovers else ""
            if edit:
                kept.append("%s is kept: %s. Delete it if nothing needs it" % (path, edit))
                continue
            diff.append(format_diff(path, decode(present), decode(before)))
            reverted.append(path)
            if not check:
                restore_file(path, before, (entry or {}).get("mode"))
    if not check:
        manifest_notes.drop("files", request.paths)
        manifest_notes.drop("directories", request.paths)
    return {"changed": bool(diff), "packages": purged, "paths": reverted, "diff": diff, "warnings": kept}


def purge_packages(host: Host, manager: Manager, names: List[str], recorded: List[str], check: bool) -> List[str]:
    """Purge the packages that are both installed and recorded; return them."""
    installed = manager.installed() if names else {}
    owned = [name for name in names if name in installed and installed[name].state != "not-installed"]
    owned = [name for name in owned if name in recorded]
    if owned and not check:
        manager.repair(manifest.owned_packages(manifest.read()))
        purge.purge_packages(host, manager, owned)
        manifest_notes.drop("packages", owned)
    return owned


def restore_file(path: str, before: Optional[bytes], mode: Optional[int]) -> None:
    """Give a file its recorded content; a directory that was created for it is removed when it is empty."""
    if before is not None:
        files.write_atomic(path, before, mode)
    elif os.path.lexists(path):
        os.unlink(path)
        directory = os.path.dirname(path)
        if directory in recorded_files.DIRECTORIES and not os.listdir(directory):
            os.rmdir(directory)


def decode(data: Optional[bytes]) -> str:
    """Return bytes as a diff shows them."""
    return "" if data is None else data.decode("utf-8", "replace")


def format_diff(header: str, before: str, after: str) -> Dict[str, str]:
    return {"before_header": header, "after_header": header, "before": before, "after": after}
