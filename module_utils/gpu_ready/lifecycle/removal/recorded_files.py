"""Files that the manifest lists: their content before gpu-ready, and whether somebody changed them since."""

import base64
import os
from typing import Any, Dict, Optional

from ...base import manifest
from ...base.host import Host
from ...containers import cdi
from ...containers.containerd import config as containerd_config
from ...driver import persistence_state

DIRECTORIES = cdi.DIRECTORIES + (
    os.path.dirname(cdi.BOOT_NODES),
    os.path.dirname(cdi.REFRESH_OLD),
    os.path.dirname(cdi.NODES[1]),
    os.path.dirname(containerd_config.DROP_IN),
    persistence_state.DROP_INS,
)
"""Directories that may have been created for a file of gpu-ready, and are removed with it when they are empty."""


def restored(entry: Dict[str, Any]) -> Optional[bytes]:
    """Return the content of a file before gpu-ready, None if it did not exist."""
    return None if entry.get("before") is None else base64.b64decode(entry["before"])


def describe_edit(host: Host, path: str, entry: Dict[str, Any]) -> str:
    """Return what somebody changed in a file after gpu-ready wrote it, "" where it is still as gpu-ready wrote it."""
    now = manifest.read_state(host, path)
    written = [manifest.FileState(*item) for item in entry["written"]]
    if now in written:
        return ""
    if now.sha256 is None:
        return "somebody deleted it"
    if now.sha256 not in [one.sha256 for one in written]:
        return "somebody changed it after gpu-ready wrote it"
    same = [one for one in written if one.sha256 == now.sha256]
    what = "mode" if now.mode not in [one.mode for one in same] else "owner"
    return "somebody changed its %s after gpu-ready wrote it" % what
