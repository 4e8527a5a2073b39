"""Hosts of lab/fleets/pasts.yml by what site.yml and uninstall.yml do with them.

Data only, without the lab: a unit test reads it too.
"""

from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
FLEET_FILE = ROOT / "lab/fleets/pasts.yml"

PLAN, RUN, SECOND, HEALTHY = "plan", "run", "second run unchanged", "package manager healthy"
RUNNING, UNINSTALL = "nothing stopped", "uninstall leaves the past"
COLUMNS = (PLAN, RUN, SECOND, HEALTHY, RUNNING, UNINSTALL)
OUTCOMES = ("adopt", "extend", "refuse", "replace")
STEPS = {
    "driver": ("nvidia_driver.repository", "nvidia_driver.install", "nvidia_driver.runfile", "nvidia_driver.remove_packages"),
    "docker": ("docker_engine.repository", "docker_engine.install"),
    "toolkit": (
        "nvidia_container_runtime.repository", "nvidia_container_runtime.install", "nvidia_container_runtime.migrate",
    ),
}  # fmt: skip
"""By what a host keeps: the steps that its plan must not have."""


class Case(NamedTuple):
    """A host with its past, and what is expected of its plan."""

    host: str
    distribution: str
    past: tuple[str, ...]
    outcome: str
    refusal_codes: tuple[str, ...]
    keeps: tuple[str, ...]
    repaired: tuple[str, ...]
    """Begin of the differences that a run makes for good, such as the package that it configured."""
    restarted: tuple[str, ...]
    """Units that a step of the plan starts again, and that disturb no program by it."""
    extra: bool


def cases() -> list[Case]:
    """Return the hosts of the fleet as cases."""
    data: dict[str, Any] = yaml_load(FLEET_FILE.read_text(encoding="utf-8"))
    return [
        Case(
            name,
            host["distribution"],
            tuple(host["past"]),
            host["expect"]["past"],
            tuple(host["expect"].get("refusal_codes", ())),
            tuple(host["expect"].get("keeps", ())),
            tuple(host["expect"].get("repaired", ())),
            tuple(host["expect"].get("restarted", ())),
            host.get("extra", False),
        )
        for name, host in data["hosts"].items()
    ]
