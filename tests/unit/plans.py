"""Input and output of planners in tests: settings, earlier choices, the parameters of a step as passed to the roles."""

import json
from typing import Any

from plugins.module_utils.gpu_ready.base import records
from plugins.plugin_utils.gpu_ready.catalog.settings import DEFAULTS, Settings
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.model import Choices, DriverChoice, Step


def settings(**given: Any) -> Settings:
    """The settings of an operator who sets these variables."""
    return Settings(**{**DEFAULTS, **given})


def driver_choice(
    branch: int | None = 580, version: str | None = None, source: str = "distro", satisfied: bool = False
) -> Choices:
    """What is chosen before the planners of CUDA and containers run."""
    return Choices(
        driver=DriverChoice(
            source=source,
            kind="dkms",
            branch=branch,
            flavour="open",
            version=version,
            profile="compute",
            packages=[],
            modules=[],
            satisfied=satisfied,
        )
    )


def todo(step: Step) -> dict[str, Any]:
    """The parameters of a step as passed to the roles."""
    return dict(records.to_json(step.params))


def all_todo(decided: compose.Plan) -> dict[str, dict[str, Any]]:
    """The parameters of all steps of a plan, by step, as passed to the roles: as JSON."""
    found: dict[str, dict[str, Any]] = json.loads(json.dumps(compose.todo_json(decided)))
    return found


def chosen_driver(decided: compose.Plan) -> DriverChoice:
    assert decided.choices.driver
    return decided.choices.driver
