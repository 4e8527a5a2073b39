"""Functions and records of facts, plan, verify and upgrade name their types: JSON is read and made at the edges."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    *(f"module_utils/gpu_ready/{name}" for name in ("facts", "verify", "upgrade")),
    *(f"plugins/plugin_utils/gpu_ready/{name}" for name in ("plan", "rollout")),
)
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def public_annotations(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The annotations of public functions and methods and of the fields of public classes, with their name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            arguments = node.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            found = [argument.annotation for argument in given if argument] + [node.returns]
            yield from ((node.name, annotation) for annotation in found if annotation)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from ((node.name, field.annotation) for field in node.body if isinstance(field, ast.AnnAssign))


def names_any(annotation: ast.expr) -> bool:
    """True also for annotations in quotes."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_public_annotation_is_any(path: Path) -> None:
    found = sorted(
        {name for name, annotation in public_annotations(ast.parse(path.read_text())) if names_any(annotation)}
    )
    assert not found


def test_any_is_found_wherever_it_hides() -> None:
    text = "def f(a: Dict[str, Any]) -> 'tuple[str, Any]': ...\nclass C(NamedTuple):\n    x: List[Any]\n    y: int\n"
    assert [name for name, annotation in public_annotations(ast.parse(text)) if names_any(annotation)] == [
        "f",
        "f",
        "C",
    ]
