"""The taint that keeps pods without GPUs away from a node.

All taints of a node are one list. Whoever applies that list server-side owns all of it, including other people's
taints (atomic lists in kubernetes.io/docs/reference/using-api/server-side-apply). So the list is read, and written back
with gpu-ready's taint for exactly the version of the node that was read. An annotation marks the taint as gpu-ready's.
The same taint set by somebody else is used as it is, and never removed.
"""

import json
from typing import Dict, List, NamedTuple, Optional

from ..base.errors import GpuReadyError
from .kubectl import CONFLICT, TRIES, Kubectl, Value, failure
from .objects import MANAGER, Change, describe

ANNOTATION = "gpu-ready/taint"
"""On a node that has a taint of gpu-ready; its value is the effect."""
KEY = "nvidia.com/gpu"
"""As the key of the resource: so the admission plugin ExtendedResourceToleration adds the toleration to pods with GPUs
(kubernetes.io/docs/reference/access-authn-authz/admission-controllers)."""
VALUE = "present"
NONE = "none"
EFFECTS = [NONE, "NoSchedule", "PreferNoSchedule"]
"""What a node may have. NoExecute would end the pods that run there."""


class Taints(NamedTuple):
    """All taints of a node. ``own``: the effect of gpu-ready's, "" where it has none."""

    taints: List[Value]
    own: str

    @classmethod
    def read(cls, node: Value) -> "Taints":
        """Return the taints of a node as the API server has them."""
        own = (node.get("metadata", {}).get("annotations") or {}).get(ANNOTATION, "")
        return cls(list(node.get("spec", {}).get("taints") or []), str(own))

    def change(self, effect: str) -> "Taints":
        """Return the taints with that one of gpu-ready, or with none."""
        others = [one for one in self.taints if one != {"key": KEY, "value": VALUE, "effect": self.own}]
        if effect == self.own and len(others) < len(self.taints):
            return self
        if effect == NONE or [one for one in others if (one.get("key"), one.get("effect")) == (KEY, effect)]:
            return Taints(others, "")
        return Taints(others + [{"key": KEY, "value": VALUE, "effect": effect}], effect)

    def patch(self) -> Value:
        """Return a merge patch that gives a node these taints."""
        return {"metadata": {"annotations": {ANNOTATION: self.own or None}}, "spec": {"taints": self.taints or None}}


def apply(kubectl: Kubectl, effects: Dict[str, str], check: bool) -> List[Change]:
    """Give nodes their taint, or remove it; ``effects``: one of EFFECTS by the name of the node."""
    unknown = sorted(set(effects.values()) - set(EFFECTS))
    if unknown:
        raise GpuReadyError("gpu_kubernetes_taint: %s is not one of %s." % (unknown[0], ", ".join(EFFECTS)))
    changes = []
    for node in kubectl.get("nodes"):
        effect = effects.get(node["metadata"]["name"])
        change = apply_to(kubectl, node, effect, check) if effect else None
        changes += [change] if change else []
    return changes


def apply_to(kubectl: Kubectl, node: Value, effect: str, check: bool) -> Optional[Change]:
    """Return the change of one node; None if it has what it should have. GpuReadyError if it cannot be written."""
    name = node["metadata"]["name"]
    for _ in range(TRIES):
        before = Taints.read(node)
        after = before.change(effect)
        if after == before:
            return None
        if check or write(kubectl, node, after):
            return Change("Taints of %s" % describe(dict(node, kind="Node")), before.patch(), after.patch())
        found = kubectl.get("node", name)
        if not found:
            return None
        node = found[0]
    raise GpuReadyError("the node %s changed during each of %d tries to write its taints. Run again." % (name, TRIES))


def write(kubectl: Kubectl, node: Value, after: Taints) -> bool:
    """Write the taints of a node; False if it changed since it was read."""
    patch = after.patch()
    patch["metadata"]["resourceVersion"] = node["metadata"].get("resourceVersion", "")
    words = ["patch", "node", node["metadata"]["name"], "--type=merge", "--field-manager=" + MANAGER]
    answer = kubectl.run(words + ["--patch=" + json.dumps(patch, sort_keys=True), "--request-timeout=30s"])
    if answer.rc != 0 and not CONFLICT.search(answer.err):
        raise failure(words, answer)
    return answer.rc == 0
