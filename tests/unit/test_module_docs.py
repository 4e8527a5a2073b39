"""What every module and every role promises about its options, kept equal in all places."""

import ast
import importlib
import types
import typing
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.answers.node import CaptureAnswer, NodeFactsAnswer
from plugins.plugin_utils.gpu_ready.answers.audit import AuditAnswer
from plugins.plugin_utils.gpu_ready.answers.plan import NodePlanAnswer
from plugins.plugin_utils.gpu_ready.answers.verify import VerifyAnswer
from plugins.plugin_utils.gpu_ready.settings import options

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "library").glob("*.py"))
ROLES = sorted(path.parent.parent for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))


def constants(path: Path) -> dict[str, Any]:
    """Return the texts DOCUMENTATION, EXAMPLES and RETURN of a module."""
    tree = ast.parse(path.read_text())
    return {
        target.id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def load(path: Path) -> types.ModuleType:
    return importlib.import_module(f"ansible_collections.gpu_ready.nodes.plugins.modules.{path.stem}")


def argument_spec(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the module's argument spec as its main() hands it to AnsibleModule."""
    import ansible.module_utils.basic

    seen: list[dict[str, Any]] = []

    class Seen(Exception):  # noqa: N818 - not an error
        pass

    def module(*words: Any, **keywords: Any) -> None:
        seen.append(dict(zip(("argument_spec",), words, strict=False)) | keywords)
        raise Seen

    monkeypatch.setattr(ansible.module_utils.basic, "AnsibleModule", module)
    with pytest.raises(Seen):
        load(path).main()
    assert seen[0]["supports_check_mode"] is True
    return dict(seen[0]["argument_spec"])


OF_TASKS: dict[str, dict[str, Any]] = {
    "gpu_node_plan": options.ARGUMENT_SPEC,
    "gpu_node_facts": {"treat_as": {"type": "str"}},
    "gpu_audit": {"settings": {"type": "dict", "default": {}}, "updates": {"type": "bool", "default": False}},
    "gpu_capture": {
        "directory": {"type": "path", "default": "captures"},
        "settings": {"type": "dict", "default": {}},
    },
}
"""Options of tasks whose modules get other ones from their action plugins: what to look for."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_documentation_equals_the_argument_spec(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = constants(path)
    documented = yaml_load(texts["DOCUMENTATION"]).get("options") or {}
    spec = OF_TASKS.get(path.stem) or argument_spec(path, monkeypatch)
    assert set(documented) == set(spec)
    for name, option in spec.items():
        if option.get("type", "str") != "raw":
            assert documented[name].get("type", "str") == option.get("type", "str"), name
        assert option.get("choices") in (None, documented[name].get("choices")), name
        assert option.get("default") in (None, documented[name].get("default")), name
        assert bool(option.get("required")) == bool(documented[name].get("required")), name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_module_has_examples_and_returns(path: Path) -> None:
    texts = constants(path)
    documentation = yaml_load(texts["DOCUMENTATION"])
    assert documentation["module"] == path.stem
    # A comma in a flow mapping ends the text: the rest becomes a key.
    parts = [*documentation["attributes"].values(), *(documentation.get("options") or {}).values()]
    known = {"support", "description", "type", "elements", "default", "choices", "required", "suboptions"}
    assert [sorted(set(part) - known) for part in parts if set(part) - known] == []
    assert any(f"gpu_ready.nodes.{path.stem}" in task for task in yaml_load(texts["EXAMPLES"]))
    yaml_load(texts["RETURN"])


FROM_FACTS = {
    "gpu_node_plan": NodePlanAnswer,
    "gpu_audit": AuditAnswer,
    "gpu_node_facts": NodeFactsAnswer,
    "gpu_capture": CaptureAnswer,
    "gpu_verify": VerifyAnswer,
}
"""Modules whose task answers what the control node makes of what the module answers."""
OF_EVERY_MODULE = {"changed", "diff", "msg", "warnings"}
OF_FAILURES = {"another_run", "last_step_running"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_documented_values_are_those_of_the_record(path: Path) -> None:
    record = FROM_FACTS.get(path.stem) or load(path).ANSWER
    documented = yaml_load(constants(path)["RETURN"]) or {}
    given = {name: json_type(hint) for name, hint in typing.get_type_hints(record).items()}
    assert {name: one["type"] for name, one in documented.items() if name not in OF_EVERY_MODULE | OF_FAILURES} == {
        name: one for name, one in given.items() if name not in OF_EVERY_MODULE
    }


def json_type(hint: Any) -> str:
    """The type of an annotation as the documentation of modules names it."""
    one = next(
        (one for one in typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType)), hint
    )
    one = getattr(one, "__supertype__", one)
    return "dict" if hasattr(one, "_fields") else str((typing.get_origin(one) or one).__name__)


@pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)
def test_argument_specs_equal_the_defaults(role: Path) -> None:
    specs = yaml_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    path = role / "defaults/main.yml"
    defaults = (yaml_load(path.read_text()) or {}) if path.exists() else {}
    declared = {name: option["default"] for name, option in specs["options"].items() if not option.get("required")}
    # A role has defaults of variables with its own prefix. Others are read with `| default`, or by a module that has them.
    assert {name: value for name, value in declared.items() if name.startswith(f"{role.name}_")} == defaults
