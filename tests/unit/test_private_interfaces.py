"""The names of ansible-core that its documentation does not promise, and that plugins use nevertheless."""

import ast
from pathlib import Path

import pytest
from ansible.module_utils import json_utils
from ansible.plugins.action import ActionBase

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTED = {"_display", "_play_context", "_task", "_templar", "_get_diff", "_get_item_label", "_handle_warnings"}
DOCUMENTED |= {"_host", "_result", "_asdict", "_fields", "_field_defaults", "_replace"}
"""Attributes and methods of plugins and results (ansible.com, Developing plugins; plugins/callback/__init__.py), and of
NamedTuple."""
PRIVATE = {
    "plugins/action/gpu_host_module.py": {
        "_discovered_interpreter",
        "_discovered_interpreter_key",
        "_execute_module",
        "_filter_non_json_lines",
        "_parse_returned_data",
    },
    "plugins/plugin_utils/module_calls.py": {"_connection", "_loader", "_shared_loader_obj"},
}


def underscored(tree: ast.AST) -> set[str]:
    """Return the names with one leading underscore that a file uses, imports, or defines as methods."""
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    found |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    found |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize(
    "path",
    [
        path
        for kind in ("action", "callback", "lookup", "plugin_utils")
        for path in sorted((ROOT / "plugins" / kind).glob("*.py"))
    ],
)
def test_a_plugin_uses_no_other_private_name(path: Path) -> None:
    used = underscored(ast.parse(path.read_text(encoding="utf-8"))) - DOCUMENTED
    assert used == PRIVATE.get(str(path.relative_to(ROOT)), set())


def test_ansible_core_has_these_names() -> None:
    assert callable(ActionBase._execute_module)
    assert callable(ActionBase._parse_returned_data)
    assert callable(json_utils._filter_non_json_lines)
