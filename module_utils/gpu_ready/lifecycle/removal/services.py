"""Restores the state of services that gpu-ready enabled or started."""

import functools
from typing import List

from ...base.disruptions import DOCKER_RESTART
from ...containers import engine as engines
from ...facts import affected
from .context import Action, Removal

DOCKER_UNITS = ("docker", "docker.service")


def find_services(removal: Removal) -> List[Action]:
    """Restore the state of recorded services, before their packages are removed, which may leave the links of units."""
    found = []
    for unit, entry in sorted(removal.recorded.get("services", {}).items()):
        verbs = ["enable" if entry.get("enabled") else "disable", "start" if entry.get("active") else "stop"]
        if unit in DOCKER_UNITS and verbs[1] == "stop" and removal.engine.active:
            work = affected.containers_of_engines(removal.work, engines.DOCKER)
            removal.refuse_work(DOCKER_RESTART, "docker, which gpu-ready started, would stop, and with it %s", work)
        found.append(
            Action("%s and %s %s" % (verbs[0], verbs[1], unit), functools.partial(switch_service, removal, unit, verbs))
        )
    return found


def switch_service(removal: Removal, unit: str, verbs: List[str]) -> None:
    """Switch a unit that still exists."""
    if removal.host.run(["systemctl", "cat", unit]).rc == 0:
        for verb in verbs:
            removal.run(["systemctl", verb, unit])
