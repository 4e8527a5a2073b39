# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The table of all steps, and the walk over one part of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..plan.changes import set_to
from . import containers, cuda, driver, monitoring, verification
from .effects import Declared, Effects
from .model import Answer, Caller, Execution, Parameters, StepFailed, fail

WRONG = (
    "an answer of this host has not the form that its module gives ({!r}), and nothing of it was used. Remedy: find out"
    " what changes the host's Python or its output, repair or reinstall the host, then run this again"
)

STEPS: dict[str, Declared] = {
    **driver.STEPS,
    **cuda.STEPS,
    **containers.STEPS,
    **verification.STEPS,
    **monitoring.STEPS,
}
"""What carries out a step, and what that changes, by its id."""
PARTS = tuple(dict.fromkeys(step.partition(".")[0] for step in STEPS))
"""The roles that have steps."""

EFFECTS: dict[str, Effects] = {
    "gpu_plan.repair_packages": lambda step, before: [set_to("packages.broken", [])],
    **{name: step.changes for name, step in STEPS.items()},
}
"""What each step of a plan changes; the repair is part of the begin of a run (turn/begin.py)."""


def steps_of(name: str, todo: Mapping[str, Parameters]) -> list[str]:
    """Return the steps of a part in the order of the plan."""
    return [step for step in todo if step.partition(".")[0] == name]


def package_transactions(name: str, todo: Mapping[str, Parameters]) -> list[Answer]:
    """Return the package transactions of a part, as its steps make them and in their order: options of gpu_packages."""
    return [one for step in steps_of(name, todo) for one in STEPS[step].transactions(todo[step])]


def execute(
    name: str,
    todo: Mapping[str, Parameters],
    modules: Caller,
    begins: Callable[[str], None],
    drained: bool = False,
) -> Execution:
    """Carry out the steps of a part in the order of the plan; return what came of it.

    ``begins`` is called with each step. Raises StepFailed at the first failure, with the id of its step in the result.
    """
    part = Execution(modules, drained)
    for step in steps_of(name, todo):
        begins(step)
        try:
            STEPS[step].run(todo[step], part)
        except StepFailed as error:
            raise StepFailed({**error.result, "step": step}) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StepFailed({**fail(WRONG.format(error)).result, "step": step}) from error
    return part
