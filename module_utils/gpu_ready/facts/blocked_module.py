"""Messages about lines that keep NVIDIA's module from being loaded."""

from typing import List

from ..system.modprobe_files import COMMAND_LINE, ModprobeLine
from .model import BlockedModule

SHOWN = 4
OF_PACKAGES = ("/usr/", "/lib/")


def blocked_text(blocked: BlockedModule) -> str:
    """Return the lines with their places, and what they cause."""
    shown = [where(line) for line in blocked.lines[:SHOWN]]
    more = len(blocked.lines) - len(shown)
    lines = ", ".join(shown) + (" and %d more" % more if more else "")
    if not blocked.now:
        return "%s: the driver is not loaded when this host boots, and containers have no GPU then" % lines
    if not blocked.at_boot:
        return "%s: modprobe does not load the driver by its name, as programs that need it ask for it" % lines
    return "%s: modprobe does not load the driver, neither now nor when this host boots" % lines


def where(line: ModprobeLine) -> str:
    if line.path == COMMAND_LINE:
        return "%s on the kernel's command line" % line.text
    return "%s:%d `%s`" % (line.path, line.number, line.text)


def remedy(lines: List[ModprobeLine]) -> str:
    """Return what to do about each kind of place."""
    places = {line.path for line in lines}
    parts = []
    if places != {COMMAND_LINE}:
        what = ("the line", "it") if len(lines) == 1 else ("the lines", "them")
        programs = "`prime-select on-demand` or `envycontrol -s hybrid`"
        parts.append("remove %s (%s, if that program wrote %s)" % (what[0], programs, what[1]))
    if any(path.startswith(OF_PACKAGES) for path in places):
        parts.append("or replace a package's file by one of its name in /etc/modprobe.d")
    if COMMAND_LINE in places:
        parts.append("take the parameter off the kernel's command line (grubby, or /etc/default/grub) and reboot")
    return ", ".join(parts)
