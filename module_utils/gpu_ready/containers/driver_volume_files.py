"""Create the driver volume on a host: the new directory first, then the link atomically; old directories last."""

import errno
import os
import shutil

from ..base import manifest, manifest_notes
from . import driver_volume

NEW, OLD = ".new", ".old"


def create_volume(
    layout: driver_volume.VolumeLayout, root: str = driver_volume.ROOT, manifest_path: str = manifest.PATH
) -> None:
    """Create or update the volume, recorded in the manifest first. Raises OSError and ManifestError."""
    manifest_notes.note("directories", {root: {}}, manifest_path)
    os.makedirs(root, mode=0o755, exist_ok=True)
    fresh = os.path.join(root, NEW)
    remove_entries(root, [NEW, OLD])
    for directory in ("", "bin", "lib64"):
        os.mkdir(os.path.join(fresh, directory), 0o755)
    for name, origin in layout.files.items():
        link_or_copy(origin, os.path.join(fresh, name))
    for name, target in layout.links.items():
        os.symlink(target, os.path.join(fresh, name))
    target = os.path.join(root, layout.version)
    if os.path.isdir(target):
        os.rename(target, os.path.join(root, OLD))
    os.rename(fresh, target)
    link = os.path.join(root, driver_volume.LINK)
    os.symlink(layout.version, link + NEW)
    os.rename(link + NEW, link)
    remove_entries(root, [name for name in os.listdir(root) if name not in (layout.version, driver_volume.LINK)])


def link_or_copy(origin: str, target: str) -> None:
    """Hard-link a file of the driver; copy it if the volume is on another file system."""
    try:
        os.link(origin, target)
    except OSError as error:
        # EPERM: file systems without hard links. A copy keeps size, time and mode.
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copy2(origin, target)


def remove_entries(root: str, names: "list[str]") -> None:
    """Remove existing entries of the volume: directories, and what a killed run left."""
    for name in names:
        path = os.path.join(root, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
