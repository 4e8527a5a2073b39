"""Input and output of planners in tests: settings, earlier choices, the parameters of a step as passed to the roles."""

from typing import Any

from gpu_ready.base import records
from gpu_ready.catalog.settings import DEFAULTS, Settings
from gpu_ready.plan.model import Choices, DriverChoice, Step


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
