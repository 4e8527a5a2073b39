"""Refusal of a host whose modprobe does not load NVIDIA's module: now, or when the host boots."""

from .....module_utils.gpu_ready.facts.blocked_module import blocked_text, remedy
from .....module_utils.gpu_ready.facts.model import Facts
from ..model import Refusal


def blocked_refusals(facts: Facts) -> list[Refusal]:
    blocked = facts.driver.blocked
    if blocked is None:
        return []
    return [Refusal("module_blocked", blocked_text(blocked), "%s, then run this again" % remedy(blocked.lines))]
