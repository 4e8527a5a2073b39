"""What the modules of the drain answer. A field that only some actions have is None after the others."""

from typing import Dict, List, NamedTuple, Optional


class DrainDockerAnswer(NamedTuple):
    changed: bool = False
    containers: List[str] = []
    done: Optional[bool] = None
    waiting: Optional[str] = None
    deadline: Optional[float] = None
    remaining_s: Optional[int] = None


class DrainJournalAnswer(NamedTuple):
    journal: Dict[str, Dict[str, object]]
    description: List[str]
    changed: bool = False


class NodeDrainAnswer(NamedTuple):
    """Both schedulers drain a node by the same actions (drain/hook.py)."""

    changed: bool = False
    owned: Optional[bool] = None
    kept: Optional[str] = None
    done: Optional[bool] = None
    waiting: Optional[str] = None
    deadline: Optional[float] = None
    remaining_s: Optional[int] = None


DrainKubernetesAnswer = DrainSlurmAnswer = NodeDrainAnswer
