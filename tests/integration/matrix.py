"""The phases of test_distributions.py, from the fleet's file.

Data only, without the lab: a unit test reads it too.
"""

from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
FLEET_FILE = ROOT / "lab/fleets/matrix.yml"

CATALOG_KEYS = {"rocky8": "el8", "rocky9": "el9", "rocky10": "el10"}
"""Distributions of the catalog by those of the lab, where the names differ."""


class Case(NamedTuple):
    """A lab host with its two sources, and the versions of the first."""

    host: str
    distribution: str
    source: str
    older: str
    newer: str
    other: str | None
    flavours: tuple[str, ...]


def cases() -> list[Case]:
    """Return the hosts of the fleet as cases."""
    data: dict[str, Any] = yaml_load(FLEET_FILE.read_text(encoding="utf-8"))
    found = []
    for name, host in data["hosts"].items():
        variables = {**data["vars"], **(host.get("vars") or {})}
        lab = host["distribution"]
        found.append(
            Case(
                name,
                CATALOG_KEYS.get(lab, lab),
                variables["nvidia_driver_source"],
                variables["nvidia_driver_version"],
                variables["matrix_newer"],
                variables["matrix_other"] or None,
                tuple(variables["matrix_flavours"]),
            )
        )
    return found


def installed() -> set[tuple[str, str]]:
    """Return the distributions and sources that test_distributions.py installs."""
    found = {(case.distribution, case.source) for case in cases()}
    return found | {(case.distribution, case.other) for case in cases() if case.other}
