"""What tasks with gpu_node_facts and gpu_capture answer."""

from typing import Dict, NamedTuple


class CaptureAnswer(NamedTuple):
    """``path``: of the file on the control node, "" under --check."""

    path: str
    changed: bool = False


class GpuNodeFacts(NamedTuple):
    gpu_node: Dict[str, object]


class NodeFactsAnswer(NamedTuple):
    ansible_facts: GpuNodeFacts
    changed: bool = False
