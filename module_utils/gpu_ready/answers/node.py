"""What gpu_node_facts answers."""

from typing import Dict, NamedTuple


class GpuNodeFacts(NamedTuple):
    gpu_node: Dict[str, object]


class NodeFactsAnswer(NamedTuple):
    ansible_facts: GpuNodeFacts
    changed: bool = False
