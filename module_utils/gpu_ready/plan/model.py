"""The words of a decision: steps to take, refusals and warnings. Every room of ``plan/`` answers with a Decision."""

from typing import Any, Dict, List, NamedTuple, Optional

NONE = "none"
CONTAINERD_RESTART = "containerd_restart"
DOCKER_RELOAD = "docker_reload"
DOCKER_RESTART = "docker_restart"
DRIVER_RELOAD = "driver_reload"
REBOOT = "reboot"
DISRUPTIONS = (NONE, CONTAINERD_RESTART, DOCKER_RELOAD, DOCKER_RESTART, DRIVER_RELOAD, REBOOT)
"""What a step does to work that runs on the host, least first."""


class Step(NamedTuple):
    """One thing to do: ``id`` is ``<role>.<action>``, ``why`` one sentence, ``params`` what the role acts on."""

    id: str
    why: str
    disruption: str = NONE
    params: Dict[str, Any] = {}
    diff: Optional[Dict[str, Any]] = None

    @property
    def role(self) -> str:
        """Return the role that takes this step."""
        return self.id.partition(".")[0]

    @property
    def action(self) -> str:
        """Return the task file of that role."""
        return self.id.partition(".")[2]


class Refusal(NamedTuple):
    """Why nothing may be done: the thing and its cause in one sentence, and the way out in another."""

    code: str
    message: str
    remedy: str


class Notice(NamedTuple):
    """What the operator should know although it stops nothing."""

    code: str
    message: str
    remedy: str


class Decision(NamedTuple):
    """What one room decided: its ``choice`` for later rooms, and what follows from it."""

    choice: Dict[str, Any] = {}
    steps: List[Step] = []
    refusals: List[Refusal] = []
    warnings: List[Notice] = []


def worst(steps: List[Step]) -> str:
    """Return the greatest disruption among steps."""
    return max((step.disruption for step in steps), key=DISRUPTIONS.index, default=NONE)
