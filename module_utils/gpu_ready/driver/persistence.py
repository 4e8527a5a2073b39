"""Runs the persistence daemon with persistence mode on, also where its unit turns that off (Ubuntu's archive).

A drop-in has the unit's own command with the option reversed, so whatever else the unit says stays. Ubuntu's unit has
StopWhenUnneeded too, because a udev rule starts it with the module (canonical/nvidia-graphics-drivers, pull request
34): started otherwise, it would stop at once.

A restart of the daemon disturbs no program. It only keeps a handle of each GPU open; a GPU with other clients stays
initialized without it (docs.nvidia.com/deploy/driver-persistence, "Persistence Daemon").
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional

from ..base import managed_files, manifest
from ..base.host import Host
from . import service
from .persistence_state import DROP_IN, OFF, read_persistence

GPUS = "/proc/driver/nvidia/gpus"
HEAD = "# Written by gpu-ready: persistence mode is on (nvidia_driver_persistence)\n"
UNREAD = manifest.DIRECTORY + "/units-unread"
"""Exists from the change of the drop-in until systemd has read it: a run may end in between."""
ADMINISTRATORS = ("/etc/", "/run/")
"""Directories of units that are not of packages (systemd.unit(5))."""


class UnitLine(NamedTuple):
    """A setting of a unit, and the file that it is from."""

    path: str
    name: str
    value: str


def parse_unit(text: str) -> List[UnitLine]:
    """Return the settings of a unit and its drop-ins, as `systemctl cat` shows them, without our own drop-in."""
    path, found = "", []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        head = re.match(r"# (/\S+)$", line)
        setting = re.match(r"\s*([A-Za-z]+)\s*=\s*(.*?)\s*$", line)
        if head:
            path = head.group(1)
        elif setting and path != DROP_IN:
            found.append(UnitLine(path, setting.group(1), setting.group(2)))
    return found


def commands(lines: List[UnitLine]) -> List[UnitLine]:
    """Return what the unit starts; an empty value drops what is before it."""
    found: List[UnitLine] = []
    for line in lines:
        if line.name == "ExecStart":
            found = found + [line] if line.value else []
    return found


def drop_in(text: str) -> Optional[str]:
    """Return our drop-in for a unit as `systemctl cat` shows it, None where it needs none or is the administrator's."""
    lines = parse_unit(text)
    started = commands(lines)
    if any(line.path.startswith(ADMINISTRATORS) for line in started) or len(started) != 1:
        return None
    words = started[0].value.split(" ")
    stops = [line.value.lower() for line in lines if line.name == "StopWhenUnneeded"][-1:]
    if OFF not in words and not set(stops) & {"yes", "true", "on", "1"}:
        return None
    command = " ".join("--persistence-mode" if word == OFF else word for word in words)
    return HEAD + "[Unit]\nStopWhenUnneeded=no\n\n[Service]\nExecStart=\nExecStart=%s\n" % command


def run_daemon(host: Host, unit: str, state: str, check: bool = False) -> Dict[str, Any]:
    """Write or delete the drop-in as the unit needs it, then enable and start the daemon, with what it says now.

    ``state``: started, or unchanged for a daemon that the next boot starts. Raises GpuReadyError.
    """
    content = drop_in(host.run(["systemctl", "cat", unit]).out)
    file = managed_files.ManagedFile(DROP_IN, None if content is None else content.encode("utf-8"), 0o644)
    written = managed_files.converge(host, [file], ["systemctl", "daemon-reload"], check, UNREAD)
    known = read_persistence(host)
    released = known.held is not None and known.held < len(host.listdir(GPUS))
    if state == service.STARTED and (written["changed"] or ((known.off or released) and not known.own)):
        state = service.RESTARTED
    started = service.run_service(host, unit, state, check)
    return {"changed": written["changed"] or started["changed"], "diff": written["diff"]}
