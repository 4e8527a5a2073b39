"""Services that a live reload of the kernel module stopped, recorded until they run again."""

from typing import List

from ..base import manifest
from ..base.host import Host
from ..base.json_file import read_text_mark

STOPPED = manifest.DIRECTORY + "/services-stopped.json"
"""Remains after a killed run or a module that did not load."""
REMEDY = "Start the services that the driver needs (systemctl list-unit-files '*nvidia*' 'dcgm*')"


def read_stopped(host: Host, path: str = STOPPED) -> List[str]:
    """Return services that a live reload stopped and has not started again, in the order in which they were stopped."""
    return read_text_mark(host, path, REMEDY)
