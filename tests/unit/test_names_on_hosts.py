"""What runs on hosts names no branch, distribution, repository or package of the catalog."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog import data
from plugins.plugin_utils.gpu_ready.catalog import model as catalog

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted((ROOT / "module_utils/gpu_ready").rglob("*.py")), *sorted((ROOT / "library").glob("*.py"))]
UNITS = {"nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced", "nvlsm"}
"""Units of systemd that have the name of a package."""
PROGRAMS = {"nvidia-smi", "nvidia-modprobe"}
"""Programs of the driver that have the name of a package."""
PARTS = ("packages", "packages_of", "fabricmanager", "subnet_manager", "imex", "persistenced")
"""Fields of a driver source with names of packages."""


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)
    elif isinstance(value, str):
        yield from value.split()


def names_of_the_catalog() -> set[str]:
    found = {*catalog.distros(), *data.REPOSITORIES, *(str(branch.number) for branch in catalog.branches())}
    for distro in data.DISTROS.values():
        sources = distro["driver_sources"].values()
        for source in [*sources, *(source.get("precompiled", {}) for source in sources)]:
            found |= {
                name for part in PARTS for name in texts(source.get(part)) if re.fullmatch(r"[a-z0-9][\w.{}+-]+", name)
            }
    return found


def constants(path: Path) -> set[str]:
    """The texts of a file that are no documentation."""
    tree = ast.parse(path.read_text())
    written = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in written
    }


def test_the_names_are_those_of_the_catalog() -> None:
    assert {"debian12", "580", "container-toolkit"} <= names_of_the_catalog()
    assert len(names_of_the_catalog()) > 80


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_that_runs_on_hosts_has_a_name_of_the_catalog(path: Path) -> None:
    assert constants(path) & names_of_the_catalog() <= UNITS | PROGRAMS
