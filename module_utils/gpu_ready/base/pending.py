"""The rebuild that follows a changed file (the initial RAM disk's): marked before the file changes, until it is done.

A run that is killed in between leaves the mark, and the next one does the rebuild although the file is right already.
"""

from typing import List

from . import manifest
from .host import Host
from .json_file import read_text_mark

PATH = manifest.DIRECTORY + "/rebuild-pending"
REMEDY = "Rebuild the initial RAM disk (update-initramfs -u, or dracut --force)"


def read_pending_rebuild(host: Host, path: str = PATH) -> List[str]:
    """Return the program and arguments of the rebuild that is due, [] where none is."""
    return read_text_mark(host, path, REMEDY)
