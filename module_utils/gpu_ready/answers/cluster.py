"""What the modules of Kubernetes answer."""

from typing import Dict, List, NamedTuple, Optional

from ..base.records import Word


class KubernetesLabelsAnswer(NamedTuple):
    labels: Dict[str, str]
    gpus: List[str]
    changed: bool = False


class KubernetesObjectsAnswer(NamedTuple):
    changed: bool = False
    objects: List[str] = []
    kept_for: List[str] = []
    diff: List[Dict[str, str]] = []


class KubernetesOperatorAnswer(NamedTuple):
    changed: bool = False
    server: str = ""
    refused: Dict[str, str] = {}


class VerifiedNode(NamedTuple):
    state: Word
    message: str


class KubernetesVerifyAnswer(NamedTuple):
    """All but ``changed`` is None after the removal of the test pods."""

    changed: bool = False
    nodes: Optional[Dict[str, VerifiedNode]] = None
    done: Optional[bool] = None
    waiting: Optional[str] = None
    deadline: Optional[float] = None
    remaining_s: Optional[int] = None
