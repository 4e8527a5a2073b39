#!/usr/bin/python
"""Take back single packages, files and folders that gpu-ready brought, as uninstall.yml would."""

DOCUMENTATION = r"""
module: gpu_revert
short_description: Take back packages, files and folders that gpu-ready brought to a node
description:
  - What the manifest on the node lists goes back to what it was before gpu-ready, and the manifest forgets it. What it
    does not list is the work of others and is left.
  - Packages are purged; where others need one of them, nothing is done and they are named.
options:
  packages:
    description: Packages to purge, before the files.
    type: list
    elements: str
    default: []
  paths:
    description: Files and folders to take back.
    type: list
    elements: path
    default: []
  remains:
    description: Files that are deleted whoever wrote them, such as those of a service whose package is gone.
    type: list
    elements: path
    default: []
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after; folders by name.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Take our CDI specification and the driver volume back
  gpu_revert:
    paths: [/etc/cdi/gpu-ready.json, /usr/local/nvidia-driver]

- name: See what would go
  gpu_revert:
    paths: [/usr/local/nvidia-driver]
  check_mode: true

- name: Purge the container toolkit, and delete what its service wrote
  gpu_revert:
    packages: [nvidia-container-toolkit, nvidia-container-toolkit-base]
    paths: [/etc/cdi/nvidia.yaml]
    remains: [/var/run/cdi/nvidia.yaml]
"""

RETURN = r"""
packages:
  description: Packages that were purged.
  returned: always
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
paths:
  description: What was taken back or deleted.
  returned: always
  type: list
  elements: str
  sample: [/etc/cdi/gpu-ready.json]
"""

import os
import shutil

from ansible.module_utils.gpu_ready.base import files, manifest
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.lifecycle import uninstall
from ansible.module_utils.gpu_ready.packaging import select
from ansible.module_utils.gpu_ready.upgrade import journal

ARGUMENT_SPEC = {
    "packages": {"type": "list", "elements": "str", "default": []},
    "paths": {"type": "list", "elements": "path", "default": []},
    "remains": {"type": "list", "elements": "path", "default": []},
}


def text(data):
    """Return bytes as a diff shows them."""
    return "" if data is None else data.decode("utf-8", "replace")


def take_back(path, before, mode):
    """Bring one file back to what it was; a folder that came with it goes when it is empty."""
    if before is not None:
        files.write_atomic(path, before, mode)
    elif os.path.lexists(path):
        os.unlink(path)
        folder = os.path.dirname(path)
        if folder in uninstall.FOLDERS and not os.listdir(folder):
            os.rmdir(folder)


def purge(host, names, noted, check):
    """Purge those of the packages that are noted; returns them."""
    installed = select.choose_manager(host, journal.is_open(host)).installed() if names else {}
    there = [name for name in names if name in installed and installed[name].state != "not-installed"]
    mine = [name for name in there if name in noted.get("packages", {})]
    if mine and not check:
        taker = uninstall.Uninstall(host)
        taker.purge(taker.manager.removal_command(mine), mine)
        manifest.drop("packages", mine)
    return mine


def run(host, wanted, check):
    """Take everything back; returns the module's answer."""
    noted = manifest.read()
    gone = purge(host, wanted["packages"], noted, check)
    diff = []
    if gone:
        diff.append(
            {"before_header": "packages", "after_header": "packages", "before": "\n".join(gone) + "\n", "after": ""}
        )
    for path in wanted["paths"] + wanted["remains"]:
        entry = noted.get("files", {}).get(path)
        folder = path in noted.get("folders", {})
        if folder and host.isdir(path):
            diff.append({"before_header": path, "after_header": path, "before": "a folder of ours\n", "after": ""})
            if not check:
                shutil.rmtree(path)
        elif entry or path in wanted["remains"]:
            before = uninstall.restored(entry) if entry else None
            now = host.read_bytes(path)
            if now == before:
                continue
            diff.append({"before_header": path, "after_header": path, "before": text(now), "after": text(before)})
            if not check:
                take_back(path, before, (entry or {}).get("mode"))
    if not check:
        manifest.drop("files", wanted["paths"])
        manifest.drop("folders", wanted["paths"])
    paths = [entry["before_header"] for entry in diff if entry["before_header"] != "packages"]
    return {"changed": bool(diff), "packages": gone, "paths": paths, "diff": diff}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
