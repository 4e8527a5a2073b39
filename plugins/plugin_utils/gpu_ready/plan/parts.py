"""The part of a host that one role sets up in a playbook of a site: its variables, its steps, and what refuses it.

A part is planned with its own variables and the common ones (gpu_ready_*). The other parts count as they are on the
host: their sources are "none", and all of their other variables have the defaults.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from ....module_utils.gpu_ready.facts.model import Facts
from ..catalog.settings import Settings
from .driver.refusals import driver_missing
from .model import Decision, Notice, Refusal

Choice = TypeVar("Choice")

HEADERS = "kernel_headers"
DRIVER = "nvidia_driver"
CUDA = "cuda_toolkit"
CUDNN = "cudnn"
DOCKER = "docker_engine"
RUNTIME = "nvidia_container_runtime"
TOOLKIT = "nvidia_container_toolkit"
VERIFY = "gpu_verify"
MONITORING = "gpu_monitoring"


class RolePart(NamedTuple):
    """``planner``: the role after which its planner is named. ``reads``: beginnings of the names of its variables.

    ``needs``: planners that refuse it too, where what it needs is missing. ``roles``: those that execute its steps.
    """

    planner: str
    reads: tuple[str, ...]
    needs: tuple[str, ...]
    roles: tuple[str, ...]


PARTS: dict[str, RolePart] = {
    HEADERS: RolePart(DRIVER, (DRIVER,), (), (HEADERS,)),
    DRIVER: RolePart(DRIVER, (DRIVER,), (), (HEADERS, DRIVER)),
    CUDA: RolePart(CUDA, (CUDA, DRIVER), (DRIVER,), (CUDA,)),
    CUDNN: RolePart(CUDNN, (CUDNN, DRIVER), (DRIVER,), (CUDNN,)),
    DOCKER: RolePart(DOCKER, (DOCKER,), (), (DOCKER,)),
    RUNTIME: RolePart(RUNTIME, (RUNTIME, TOOLKIT, DRIVER), (DRIVER, DOCKER), (RUNTIME,)),
    VERIFY: RolePart(VERIFY, (VERIFY, RUNTIME, TOOLKIT), (DRIVER, DOCKER), (VERIFY,)),
    MONITORING: RolePart(MONITORING, (MONITORING, "gpu_health_check"), (DRIVER,), (MONITORING,)),
}
"""By the name of the role that a playbook uses. A verification has to know how containers get the GPUs."""
COMMON = ("gpu_ready_",)
"""What every part reads."""
OF_HOSTS = "gpu_ready_profile"
"""What a part does not read: whoever names a role wants it."""
MISSING = {
    "driver_missing": "there is no NVIDIA driver for the running kernel",
    "docker_missing": "docker is not installed",
}
"""Refusals that speak of a source which nobody has set, by their code."""
SOURCES = tuple(name + "_source" for name in (DRIVER, CUDA, CUDNN, DOCKER))


def own_variables(given: Mapping[str, object], part: str) -> dict[str, object]:
    """Return the variables that a part reads, and sources that leave the others alone; all without a part."""
    if not part:
        return dict(given)
    reads = COMMON + PARTS[part].reads
    others = {name: "none" for name in SOURCES if not name.startswith(reads)}
    own = {name: value for name, value in given.items() if name.startswith(reads) and name != OF_HOSTS}
    return dict(own, **others)


def part_settings(settings: Settings, facts: Facts, part: str) -> Settings:
    """Fix the driver that CUDA and the container runtime must match: the installed one, else the one requested."""
    named = settings.nvidia_driver_branch or settings.nvidia_driver_version
    if part not in (CUDA, CUDNN, RUNTIME) or (named and driver_missing(facts)):
        return settings
    return settings._replace(nvidia_driver_source="none")


def own_decision(planner: str, decided: "Decision[Choice]", part: str, check: bool) -> "Decision[Choice]":
    """Return what a planner's decision means for a part: all of it, what is missing for the part, or nothing.

    ``check``: under --check the roles before have installed nothing, so what is missing is a warning.
    """
    if not part:
        return decided
    known = PARTS[part]
    if planner == known.planner:
        steps = [step for step in decided.steps if step.role in known.roles]
        return Decision(decided.choice, steps, decided.refusals, decided.warnings)
    if planner not in known.needs:
        return Decision()
    refusals = [one for one in decided.refusals if one.code not in MISSING]
    missing = [
        ("%s, which %s needs" % (MISSING[one.code], part), "run the role %s before the role %s" % (planner, part))
        for one in decided.refusals
        if one.code in MISSING
    ]
    if check:
        return Decision(None, [], refusals, [Notice("part_missing", *one) for one in missing])
    return Decision(None, [], refusals + [Refusal("part_missing", *one) for one in missing])
