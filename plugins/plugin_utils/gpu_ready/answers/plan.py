"""What a task with gpu_node_plan answers: the control node computes it from the facts of the host."""

from typing import Dict, List, NamedTuple, Optional

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
    choice: Dict[str, Dict[str, object]]
    refusals: List[Refusal]
    warnings: List[Notice]
    steps: List[PlannedStep]
    digest: Word


class NodePlanAnswer(NamedTuple):
    """``todo``: parameters by the id of the step. ``verification``: parameters of the step of gpu_verify."""

    plan: PlanEntry
    todo: Dict[str, Dict[str, object]]
    verification: Optional[Dict[str, object]]
    row: Dict[str, Optional[str]]
    lines: List[str]
    upgrade: UpgradeStatus
    refusal: Message
    lease: Word
