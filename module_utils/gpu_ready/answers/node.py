"""What gpu_node_facts answers."""

from typing import Dict, NamedTuple


class CollectedCapture(NamedTuple):
    """What gpu_capture collects: facts.model.Facts as JSON, and base.recording.RawAnswers, both without secrets."""

    facts: Dict[str, object]
    raw: Dict[str, object]
    changed: bool = False


class CaptureAnswer(NamedTuple):
    """``path``: of the file on the control node, "" under --check."""

    path: str
    changed: bool = False


class GpuNodeFacts(NamedTuple):
    gpu_node: Dict[str, object]


class NodeFactsAnswer(NamedTuple):
    ansible_facts: GpuNodeFacts
    changed: bool = False
