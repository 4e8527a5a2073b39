"""Purges packages that gpu-ready installed, and what their own scripts leave of the driver's module."""

import os
from typing import List

from ...base.host import Host
from ...packaging.manager import Manager
from .errors import UninstallError
from .package_plan import WHAT, find_foreign_changes

MODULE_SOURCES = ("/usr/src", "/var/lib/dkms")
"""Directories with the sources of the driver's module, which not every package removes."""


def remove_empty(directory: str) -> None:
    """Remove the empty directories below a directory, and itself if it is empty then."""
    for path, _, _ in os.walk(directory, topdown=False):
        if not os.listdir(path):
            os.rmdir(path)


def purge_packages(host: Host, manager: Manager, names: List[str]) -> None:
    """Purge exactly these packages. Raises UninstallError where that would change others."""
    others = find_foreign_changes(manager, names, names)
    if others:
        raise UninstallError(
            "%s needs packages that gpu-ready installed and would be removed or changed with them: remove it "
            "yourself, then run again; nothing was removed" % ", ".join(others[:8])
        )
    sources = find_module_sources(host)
    manager.run_change(WHAT, manager.removal_command(names))
    for directory in sources:
        remove_empty(directory)


def find_module_sources(host: Host) -> List[str]:
    """Return directories with sources of a driver's module."""
    return [
        "%s/%s" % (directory, name)
        for directory in MODULE_SOURCES
        for name in host.listdir(directory)
        if name.startswith("nvidia") and host.isdir("%s/%s" % (directory, name))
    ]
