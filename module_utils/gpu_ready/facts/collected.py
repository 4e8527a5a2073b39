"""What a host answers to the modules that collect facts: gpu_node_facts, gpu_node_plan, gpu_audit, gpu_capture."""

import time
from typing import Dict, NamedTuple

from ..base import records
from ..base.host import Host
from ..base.lease_mark import mark
from ..base.records import Word
from . import collect, model
from .probes import Probes


class CollectedFacts(NamedTuple):
    """facts.model.Facts as JSON, the mark of the lease, the host's clock in seconds since 1970."""

    facts: Dict[str, object]
    lease: Word
    time: int
    changed: bool = False


class CollectedCapture(NamedTuple):
    """What gpu_capture collects: the facts, and base.recording.RawAnswers as JSON, both without secrets."""

    facts: Dict[str, object]
    raw: Dict[str, object]
    changed: bool = False


def collect_answer(host: Host, probes: Dict[str, object]) -> CollectedFacts:
    """Return the facts of a host. Raises RecordError for probes of another form."""
    lease = mark(host)  # before the facts: what another run changes from now on counts as changed
    facts = model.to_json(collect.collect(host, records.from_json(Probes, probes)))
    return CollectedFacts(facts, lease, int(time.time()))
