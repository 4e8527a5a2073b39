"""Services that a live reload of the kernel module stopped, recorded until they run again."""

from typing import List

from ..base import manifest
from ..base.host import Host
from ..base.json_file import delete_file, read_text_mark, write_json_file

STOPPED = manifest.DIRECTORY + "/services-stopped.json"
"""Remains after a killed run or a module that did not load."""
REMEDY = "Start the services that the driver needs (systemctl list-unit-files '*nvidia*' 'dcgm*')"


def read_stopped(host: Host, path: str = STOPPED) -> List[str]:
    """Services that a live reload stopped and has not started again, in the order in which they were stopped."""
    return read_text_mark(host, path, REMEDY)


def record_stopped(host: Host, units: List[str], path: str = STOPPED) -> List[str]:
    """Record services before they are stopped; returns them with those of an earlier run."""
    before = read_stopped(host, path)
    after = before + [unit for unit in units if unit not in before]
    if after != before:
        write_json_file(path, after)
    return after


def clear_stopped(path: str = STOPPED) -> None:
    delete_file(path)
