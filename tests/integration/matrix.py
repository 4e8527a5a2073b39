"""The phases of test_distributions.py: the cells of docs/dev/distributions.md that are run, from the fleet's file.

Data only, without the lab: tools/distribution_table.py and a unit test read it too.
"""

from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
FLEET_FILE = ROOT / "lab/fleets/matrix.yml"
RECORD = ROOT / "tests/integration/matrix.json"
"""What was run, with its date: written by the test, kept in the repository."""

CATALOG_KEYS = {"rocky8": "el8", "rocky9": "el9", "rocky10": "el10"}
"""Distributions of the catalog by those of the lab, where the names differ."""

PLAN, INSTALL, SECOND, UPGRADE, DOWNGRADE = "plan", "install", "second run unchanged", "upgrade", "downgrade"
FLAVOUR, REMOVE, CONFLICT = "flavour change", "remove", "conflict refused"
COLUMNS = (PLAN, INSTALL, SECOND, UPGRADE, DOWNGRADE, FLAVOUR, REMOVE, CONFLICT)

FULL = (PLAN, INSTALL, SECOND, UPGRADE, DOWNGRADE, FLAVOUR, CONFLICT, REMOVE)
"""The phases of the first source of a host."""
SHORT = (PLAN, INSTALL, SECOND, CONFLICT, REMOVE)
"""The phases of the other source, after the first was removed."""


class Cell(NamedTuple):
    """One cell of the table."""

    distribution: str
    source: str
    column: str


class Case(NamedTuple):
    """A lab host with its two sources, and the versions of the first."""

    host: str
    distribution: str
    source: str
    older: str
    newer: str
    other: str | None
    flavours: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The phases of the first source; its own refusal needs the driver of another source."""
        out = {CONFLICT} if not self.other else set()
        out |= {FLAVOUR} if len(self.flavours) == 1 else set()
        return tuple(column for column in FULL if column not in out)


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


def claimed() -> dict[Cell, str]:
    """Return the cells that test_distributions.py runs, each with its host."""
    found = {}
    for case in cases():
        for column in case.columns:
            found[Cell(case.distribution, case.source, column)] = case.host
        for column in SHORT if case.other else ():
            found[Cell(case.distribution, str(case.other), column)] = case.host
    return found
