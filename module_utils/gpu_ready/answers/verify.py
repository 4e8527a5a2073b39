"""What a host answers to gpu_verify and gpu_verified."""

from typing import Dict, NamedTuple


class CollectedVerification(NamedTuple):
    """facts.model.Facts and verify.collect.CollectedEvidence as JSON."""

    facts: Dict[str, object]
    evidence: Dict[str, object]
    changed: bool = False


class VerifiedAnswer(NamedTuple):
    changed: bool = False
