"""Restores the state of services that stay on the host."""

import functools
from typing import List

from .context import Action, Removal


def find_services(removal: Removal) -> List[Action]:
    """Restore the state of services that stay on the host."""
    found = []
    for unit, entry in sorted(removal.recorded.get("services", {}).items()):
        verbs = ["enable" if entry.get("enabled") else "disable", "start" if entry.get("active") else "stop"]
        found.append(
            Action("%s and %s %s" % (verbs[0], verbs[1], unit), functools.partial(switch_service, removal, unit, verbs))
        )
    return found


def switch_service(removal: Removal, unit: str, verbs: List[str]) -> None:
    """Switch a unit that still exists."""
    if removal.host.run(["systemctl", "cat", unit]).rc == 0:
        for verb in verbs:
            removal.run(["systemctl", verb, unit])
