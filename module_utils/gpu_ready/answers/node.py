"""What the modules that collect facts answer."""

from typing import Dict, NamedTuple

from ..base.records import Word


class CollectedFacts(NamedTuple):
    """What gpu_node_plan collects: facts.model.Facts as JSON, the mark of the lease, the host's clock."""

    facts: Dict[str, object]
    lease: Word
    time: int
    changed: bool = False


class GpuNodeFacts(NamedTuple):
    gpu_node: Dict[str, object]


class NodeFactsAnswer(NamedTuple):
    ansible_facts: GpuNodeFacts
    changed: bool = False
