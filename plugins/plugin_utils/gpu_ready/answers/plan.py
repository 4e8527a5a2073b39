"""What a task with gpu_node_plan answers: the control node computes it from the facts of the host."""

from typing import NamedTuple

from ....module_utils.gpu_ready.base.records import Message, Word
from ..plan.model import Notice, Refusal
from ..plan.upgrade import UpgradeStatus


class PlannedStep(NamedTuple):
    id: Word
    role: Word
    action: Word
    why: str
    disruption: Word
    verify_after: bool


class PlanEntry(NamedTuple):
    """``choice``: the choice of each planner by its name, empty for none."""

    gpu_host: bool
    converged: bool
    summary: str
    choice: dict[str, dict[str, object]]
    refusals: list[Refusal]
    warnings: list[Notice]
    steps: list[PlannedStep]
    digest: Word


class NodePlanAnswer(NamedTuple):
    """``todo``: parameters by the id of the step. ``verification``: parameters of the step of gpu_verify."""

    plan: PlanEntry
    todo: dict[str, dict[str, object]]
    verification: dict[str, object] | None
    row: dict[str, str | None]
    lines: list[str]
    upgrade: UpgradeStatus
    refusal: Message
    lease: Word
