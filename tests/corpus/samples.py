"""The samples that tests read: those of this directory, and those of ``../shared`` where it is beside the checkout."""

from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

from tests.shared import SHARED

OWN = Path(__file__).resolve().parent
CORPORA = [directory for directory in (OWN, SHARED / "corpus") if (directory / "index.yaml").exists()]


class Sample(NamedTuple):
    """An output of a program with its status. ``kind``: as in the index; ``expected``: its reading, by a person."""

    path: Path
    kind: str
    expected: dict[str, Any]
    exit: int | None = None
    fault: str | None = None
    """What is wrong in it, where the expected problems do not say it."""

    @property
    def name(self) -> str:
        directory = "shared/" if SHARED in self.path.parents else ""
        return f"{directory}{self.path.parent.name}/{self.path.name}"


SAMPLES = [
    Sample(directory / row["file"], row["kind"], row["expected"], row.get("exit"), row.get("fault"))
    for directory in CORPORA
    for row in yaml_load((directory / "index.yaml").read_text())
]


def of_kind(kind: str) -> list[Sample]:
    return [sample for sample in SAMPLES if sample.kind == kind]
