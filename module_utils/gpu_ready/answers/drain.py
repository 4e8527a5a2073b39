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


class DrainKubernetesAnswer(NamedTuple):
    changed: bool = False
    owned: Optional[bool] = None
    kept: Optional[str] = None
    done: Optional[bool] = None
    waiting: Optional[str] = None
    deadline: Optional[float] = None
    remaining_s: Optional[int] = None


class DrainSlurmAnswer(NamedTuple):
    changed: bool = False
    owned: Optional[bool] = None
    kept: Optional[str] = None
    done: Optional[bool] = None
    waiting: Optional[str] = None
    deadline: Optional[float] = None
    remaining_s: Optional[int] = None
