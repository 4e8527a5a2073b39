"""run_module: every module ends with its values or with one message, never with a traceback of a known error."""

import ast
import errno
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible.module_utils import basic

from plugins.module_utils.gpu_ready.base import module as runner
from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError

ROOT = Path(__file__).resolve().parents[2]
RUNNERS = ("run_module", "run_changing_module")


class Ended(Exception):  # noqa: N818 - not an error
    """How the module ended: its method and its values."""


class Module:
    """AnsibleModule, as far as run_module uses it."""

    params: dict[str, Any] = {"name": "x"}
    check_mode = True

    def __init__(self, **options: Any) -> None:
        self.options, self.warnings = options, []  # type: ignore[var-annotated]
        Module.last = self

    last: "Module"

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def exit_json(self, **values: Any) -> None:
        raise Ended("exit_json", values)

    def fail_json(self, **values: Any) -> None:
        raise Ended("fail_json", values)


class Named(NamedTuple):
    changed: bool
    name: str
    before: str | None = None
    warnings: list[str] = []


def ending(monkeypatch: pytest.MonkeyPatch, run: Any, **options: Any) -> tuple[str, dict[str, Any]]:
    monkeypatch.setattr(basic, "AnsibleModule", Module)
    with pytest.raises(Ended) as caught:
        runner.run_module(run, {"name": {}}, Named, **options)
    return caught.value.args[0], caught.value.args[1]


def test_values_end_the_module_and_warnings_are_printed_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(host: Any, params: dict[str, Any], check: bool) -> Named:
        return Named(check, params["name"], warnings=["old"])

    assert ending(monkeypatch, run, required_if=[]) == ("exit_json", {"changed": True, "name": "x"})
    assert Module.last.options == {"argument_spec": {"name": {}}, "supports_check_mode": True, "required_if": []}
    assert Module.last.warnings == [os.uname()[1] + ": old"]


def test_an_own_error_is_one_message_with_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> dict[str, Any]:
        raise GpuReadyError("dkms: no compiler. Install gcc.", changed=True)

    assert ending(monkeypatch, run) == ("fail_json", {"msg": "dkms: no compiler. Install gcc.", "changed": True})


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_an_error_of_the_system_names_file_cause_and_remedy(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def run(*_: Any) -> dict[str, Any]:
        raise OSError(number, os.strerror(number), "/etc/x")

    how, values = ending(monkeypatch, run)
    assert how == "fail_json" and values["msg"].startswith(f"/etc/x: {os.strerror(number)}. ")
    assert values["msg"].endswith("then run again.")


def test_a_defect_stays_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> dict[str, Any]:
        raise KeyError("x")

    monkeypatch.setattr(basic, "AnsibleModule", Module)
    with pytest.raises(KeyError):
        runner.run_module(run, {}, Named)


def test_an_answer_that_is_not_the_record_of_the_module_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basic, "AnsibleModule", Module)
    with pytest.raises(TypeError, match="not a Named"):
        runner.run_module(lambda *_: (True, "x", None, []), {}, Named)


def test_a_value_that_is_none_by_default_is_left_out_unless_it_has_one() -> None:
    assert records.answer_values(Named(True, "x")) == {"changed": True, "name": "x", "warnings": []}
    assert records.answer_values(Named(True, "x", "y"))["before"] == "y"


@pytest.mark.parametrize("path", sorted((ROOT / "library").glob("*.py")), ids=lambda path: path.stem)
def test_the_function_of_a_module_takes_host_parameters_and_check(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id in RUNNERS and isinstance(call.args[0], ast.Name):
            names = [argument.arg for argument in functions[call.args[0].id].args.args]
            assert names == ["host", "params", "check"]
