"""The packages of module_utils/gpu_ready import in one direction; docs/dev/architecture.md describes them."""

import ast
import functools
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "module_utils/gpu_ready"
ORDER = (
    "monitor",
    "base",
    "catalog",
    "hardware",
    "system",
    "diagnostics",
    "packaging",
    "driver",
    "cuda",
    "containers",
    "report",
    "upgrade",
    "facts",
    "verify",
    "completion",
    "plan",
    "cluster",
    "drain",
    "lifecycle",
    "explain",
    "answers",
)
"""A package imports itself and those before it."""

FILES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")


@functools.cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.ClassDef]:
    """The imports and the classes of a file."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


def imports(path: Path) -> set[tuple[str, ...]]:
    """The names that a file imports from gpu_ready by relative imports, each as its path below gpu_ready."""
    parents = path.relative_to(ROOT).parts[:-1]
    found: set[tuple[str, ...]] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = list(parents[: len(parents) - node.level + 1]) + (node.module.split(".") if node.module else [])
            found |= {(*start, alias.name) for alias in node.names}
    return found


def imported_packages(path: Path) -> set[str]:
    """Top-level packages below gpu_ready that a file imports by relative imports."""
    return {name[0] for name in imports(path)}


def test_every_package_has_its_position() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_imports_only_those_before_it(path: Path) -> None:
    position = ORDER.index(path.relative_to(ROOT).parts[0])
    assert not {name for name in imported_packages(path) if ORDER.index(name) > position}


OF_PLANNERS = (*sorted((ROOT / "plan").rglob("*.py")), ROOT / "facts/affected.py")
FACTS_OF_PLANNERS = {"model", "affected", "blocked_module"}
"""The modules of facts/ that collect nothing."""


@pytest.mark.parametrize("path", OF_PLANNERS, ids=lambda path: path.stem)
def test_planners_do_no_io(path: Path) -> None:
    text = path.read_text()
    assert {name[1] for name in imports(path) if name[0] == "facts"} <= FACTS_OF_PLANNERS
    assert not any(name in text for name in ("base.host", "base.manifest", "import host", "import manifest"))


@pytest.mark.parametrize("path", sorted(ROOT.rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_every_init_file_is_empty(path: Path) -> None:
    assert path.read_bytes() == b""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_code_imports_only_the_standard_library_and_itself(path: Path) -> None:
    for node in nodes(path):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if path.parent.name == "base" and path.name in ("module.py", "download.py"):  # AnsibleModule and open_url
            names = [name for name in names if name != "ansible.module_utils"]
        if path.parent.name == "explain":  # in functions that only the control node calls
            known = ("argcomplete", "ansible", "jinja2", "markupsafe", "yaml")
            names = [name for name in names if name.partition(".")[0] not in known]
        assert all(name.split(".")[0] in sys.stdlib_module_names for name in names), (path.name, names)


def test_no_two_classes_have_the_same_name() -> None:
    found = [node.name for path in FILES for node in nodes(path) if isinstance(node, ast.ClassDef)]
    assert sorted({name for name in found if found.count(name) > 1}) == []
