"""Packages import in one direction, and what runs on hosts imports nothing of the control node (architecture.md)."""

import ast
import functools
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOST, CONTROL = ROOT / "module_utils/gpu_ready", ROOT / "plugins/plugin_utils/gpu_ready"
ORDER = {
    HOST: (
        "check",
        "monitor",
        "base",
        "hardware",
        "system",
        "packaging",
        "driver",
        "cuda",
        "containers",
        "upgrade",
        "facts",
        "verify",
        "cluster",
        "drain",
        "lifecycle",
        "answers",
    ),
    CONTROL: (
        "catalog",
        "diagnostics",
        "completion",
        "report",
        "plan",
        "settings",
        "execute",
        "turn",
        "verdict",
        "rollout",
        "bootstrap",
        "explain",
        "vendors",
        "answers",
    ),
}
"""A package imports itself and the packages before it; the control node also imports packages of hosts."""

FILES = sorted(path for root in ORDER for path in root.rglob("*.py") if path.name != "__init__.py")


def root_of(path: Path) -> Path:
    return HOST if path.is_relative_to(HOST) else CONTROL


@functools.cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.ClassDef]:
    """The imports and the classes of a file."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


def imports(path: Path) -> set[tuple[str, ...]]:
    """The names that a file imports by relative imports, each as its path below plugins/ (module_utils, gpu_ready, ...)."""
    side = "module_utils" if root_of(path) == HOST else "plugin_utils"
    parents = (side, "gpu_ready", *path.relative_to(root_of(path)).parts[:-1])
    found: set[tuple[str, ...]] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = list(parents[: len(parents) - node.level + 1]) + (node.module.split(".") if node.module else [])
            found |= {(*start, alias.name) for alias in node.names}
    return found


def imported_packages(path: Path) -> set[str]:
    """The packages beside its own that a file imports."""
    side = "module_utils" if root_of(path) == HOST else "plugin_utils"
    return {name[2] for name in imports(path) if name[:2] == (side, "gpu_ready")}


def test_every_package_has_its_position() -> None:
    for root, order in ORDER.items():
        found = {path.relative_to(root).parts[0] for path in FILES if path.is_relative_to(root)}
        assert found == set(order)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_imports_only_those_before_it(path: Path) -> None:
    order = ORDER[root_of(path)]
    position = order.index(path.relative_to(root_of(path)).parts[0])
    assert not {name for name in imported_packages(path) if order.index(name) > position}


@pytest.mark.parametrize(
    "path", [*FILES, *sorted((ROOT / "library").glob("*.py"))], ids=lambda path: str(path.relative_to(ROOT))
)
def test_what_runs_on_hosts_imports_nothing_of_the_control_node(path: Path) -> None:
    """Ansible sends module_utils with a module, and never plugin_utils."""
    if not path.is_relative_to(CONTROL):
        assert not re.findall(r"(?m)^\s*(?:from|import) \S*plugin_utils", path.read_text())


OF_PLANNERS = (*sorted((CONTROL / "plan").rglob("*.py")), HOST / "facts/affected.py")
FACTS_OF_PLANNERS = {"model", "affected", "blocked_module"}
"""The modules of facts/ that collect nothing."""


@pytest.mark.parametrize("path", OF_PLANNERS, ids=lambda path: path.stem)
def test_planners_do_no_io(path: Path) -> None:
    text = path.read_text()
    assert {
        name[3] for name in imports(path) if name[:3] == ("module_utils", "gpu_ready", "facts")
    } <= FACTS_OF_PLANNERS
    assert not any(name in text for name in ("base.host", "base.manifest", "import host", "import manifest"))


@pytest.mark.parametrize(
    "path", [path for root in ORDER for path in sorted(root.rglob("__init__.py"))], ids=lambda path: path.parent.name
)
def test_every_init_file_is_empty(path: Path) -> None:
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.is_relative_to(HOST)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_shipped_code_imports_only_the_standard_library_and_itself(path: Path) -> None:
    for node in nodes(path):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if path.parent.name == "base" and path.name in ("module.py", "download.py"):  # AnsibleModule and open_url
            names = [name for name in names if name != "ansible.module_utils"]
        assert all(name.split(".")[0] in sys.stdlib_module_names for name in names), (path.name, names)


def test_no_two_classes_have_the_same_name() -> None:
    found = [node.name for path in FILES for node in nodes(path) if isinstance(node, ast.ClassDef)]
    assert sorted({name for name in found if found.count(name) > 1}) == []
