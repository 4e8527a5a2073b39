"""An image's requirements on the driver (NVIDIA_REQUIRE_*), which NVIDIA's hook enforces at the start of a container.

An expression lists alternatives, separated by blanks, of conditions, separated by commas: ``cuda>=12.4 brand=tesla,
driver>=535,driver<536``. A condition on an unknown subject (``brand``, ``arch``) leaves its alternative undecided.
"""

import re
from collections.abc import Mapping

from ....module_utils.gpu_ready.base import versions
from .checks import Check, judge

CONDITION = re.compile(r"^(\w+)(>=|<=|!=|=|>|<)([\w.-]+)$")
HINT = "install a newer driver, use an image of an older CUDA, or set NVIDIA_DISABLE_REQUIRE=1"


def requirements(variables: Mapping[str, str]) -> list[str]:
    """Return expressions that must all be met; old CUDA images state their version only."""
    if variables.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true", "t"):
        return []
    found = [value for name, value in sorted(variables.items()) if name.startswith("NVIDIA_REQUIRE_") and value.strip()]
    if not found and re.match(r"\d+\.\d+", variables.get("CUDA_VERSION", "")) and "NVIDIA_VISIBLE_DEVICES" in variables:
        found = ["cuda>=" + ".".join(variables["CUDA_VERSION"].split(".")[:2])]
    return found


def condition_met(condition: str, known: Mapping[str, str]) -> bool | None:
    """Return None if the subject of the condition is unknown."""
    match = CONDITION.match(condition.strip())
    if match is None or match.group(1) not in known:
        return None
    order = versions.compare(known[match.group(1)], match.group(3))
    return {">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0, "=": order == 0, "!=": order != 0}[
        match.group(2)
    ]


def expression_met(expression: str, known: Mapping[str, str]) -> bool | None:
    """Return True if one alternative is met; None if none is, but one is undecided."""
    answers = []
    for alternative in expression.split():
        parts = [condition_met(condition, known) for condition in alternative.split(",")]
        answers.append(False if False in parts else None if None in parts else True)
    return True if True in answers else None if None in answers else False


def check(variables: Mapping[str, str], driver: str | None, cuda: str | None, mode: str | None) -> list[Check]:
    """Judge the requirements in an image's ``variables``; ``cuda``: version of libcuda, None where it is unknown.

    Only the mode ``toolkit`` enforces them.
    """
    expressions = requirements(variables)
    if not expressions or not driver:
        return []
    known = {"driver": driver}
    if cuda:
        known["cuda"] = cuda
    found = "driver %s%s" % (driver, ", CUDA %s" % cuda if cuda else "")
    unmet = [text for text in expressions if expression_met(text, known) is False]
    if not unmet:
        return [judge("image_requirement", True, " and ".join(expressions), found)]
    if mode != "toolkit":
        found += "; the mode %s does not enforce it, programs of the image may fail" % mode
        return [Check("image_requirement", None, " and ".join(unmet), found)]
    return [judge("image_requirement", False, " and ".join(unmet), found, "the image needs a newer driver", HINT)]
