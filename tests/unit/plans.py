"""What tests of planners pass and read: settings, earlier choices, the parameters of a step as the roles get them."""

from typing import Any

from gpu_ready.base import records
from gpu_ready.catalog.settings import DEFAULTS, Settings
from gpu_ready.plan.model import Choices, DriverChoice, Step


def settings(**given: Any) -> Settings:
    """Return the settings of an operator who sets these variables."""
    return Settings(**{**DEFAULTS, **given})


def driver_choice(
    branch: int | None = 580, version: str | None = None, source: str = "distro", satisfied: bool = False
) -> Choices:
    """Return what is chosen before the planners of CUDA and containers run."""
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
    """Return the parameters of a step as the roles get them."""
    return dict(records.to_json(step.params))
