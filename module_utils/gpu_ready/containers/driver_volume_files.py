"""Make the driver volume on a host: a new folder first, then the link in one step, then the old ones go."""

import errno
import os
import shutil

from ..base import manifest
from . import driver_volume

NEW, OLD = ".new", ".old"


def make(layout: driver_volume.Layout, root: str = driver_volume.ROOT, noted: str = manifest.PATH) -> None:
    """Bring the volume to ``layout``; noted in the manifest before. Raises OSError and ManifestError."""
    manifest.note("folders", {root: {}}, noted)
    os.makedirs(root, mode=0o755, exist_ok=True)
    fresh = os.path.join(root, NEW)
    clear(root, [NEW, OLD])
    for folder in ("", "bin", "lib64"):
        os.mkdir(os.path.join(fresh, folder), 0o755)
    for name, origin in layout.files.items():
        put(origin, os.path.join(fresh, name))
    for name, target in layout.links.items():
        os.symlink(target, os.path.join(fresh, name))
    place = os.path.join(root, layout.version)
    if os.path.isdir(place):
        os.rename(place, os.path.join(root, OLD))
    os.rename(fresh, place)
    link = os.path.join(root, driver_volume.LINK)
    os.symlink(layout.version, link + NEW)
    os.rename(link + NEW, link)
    clear(root, [name for name in os.listdir(root) if name not in (layout.version, driver_volume.LINK)])


def put(origin: str, place: str) -> None:
    """Link a file of the driver into the volume; copy it where the volume lies on another file system."""
    try:
        os.link(origin, place)
    except OSError as error:
        # EPERM: file systems without hard links. Size, time and mode of a copy are those of the file.
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copy2(origin, place)


def clear(root: str, names: "list[str]") -> None:
    """Remove entries of the volume that are there: folders, and what a killed run left."""
    for name in names:
        path = os.path.join(root, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
