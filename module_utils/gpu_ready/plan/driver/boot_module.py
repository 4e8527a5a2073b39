"""Refusal of a host whose modprobe does not load NVIDIA's module: now, or when the host boots."""

from typing import List

from ...facts.model import BlockedModule, Facts
from ...system.modprobe_files import COMMAND_LINE, ModprobeLine
from ..model import Refusal

SHOWN = 4
OF_PACKAGES = ("/usr/", "/lib/")


def blocked_refusals(facts: Facts) -> List[Refusal]:
    blocked = facts.driver.blocked
    if blocked is None:
        return []
    return [Refusal("module_blocked", blocked_text(blocked), "%s, then run this again" % remedy(blocked.lines))]


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
    packaged = [path for path in places if path.startswith(OF_PACKAGES)]
    parts = []
    if places != {COMMAND_LINE}:
        parts.append(
            "remove the lines (`prime-select on-demand` or `envycontrol -s hybrid`, if that program wrote them)"
        )
    if packaged:
        parts.append("or replace a package's file by a copy without them in /etc/modprobe.d")
    if COMMAND_LINE in places:
        parts.append("take the parameter off the kernel's command line (grubby, or /etc/default/grub) and reboot")
    return ", ".join(parts)
