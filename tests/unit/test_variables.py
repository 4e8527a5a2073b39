"""A public variable is declared once, in catalog/variables; everything else that names it is generated."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.plugin_utils.gpu_ready.bootstrap import choose as bootstrap
from plugins.plugin_utils.gpu_ready.catalog import settings
from plugins.plugin_utils.gpu_ready.settings import variables
from tools import compile_variables
from tools.variables import DeclarationError, all_variables, load_tasks, parse_declaration

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "catalog/variables", "catalog/distros", "library/gpu_node_plan.py", "library/gpu_python.py", "roles",
    "docs/variables.md", "catalog/foreign_variables.yml", "plugins",
)  # fmt: skip
NEW = """
  nvidia_driver_colour:
    role: nvidia_driver
    setting: state
    type: str
    default: green
    choices: {green: like the logo, red: like an error}
    description: Colour of the driver.
"""


def load(path: Path) -> Any:
    return yaml_load(path.read_text(encoding="utf-8"))


def test_every_generated_file_is_current() -> None:
    stale = [path for path, text in compile_variables.outputs().items() if path.read_text(encoding="utf-8") != text]
    assert stale == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in COPIED:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    return tmp_path


def test_a_new_variable_takes_one_edit(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["compile_variables.py"])
    assert compile_variables.main(copy) == 0
    before = {path: path.read_text(encoding="utf-8") for path in compile_variables.outputs(copy)}
    with (copy / "catalog/variables/driver.yml").open("a", encoding="utf-8") as file:
        file.write(NEW)

    monkeypatch.setattr("sys.argv", ["compile_variables.py", "--check"])
    assert compile_variables.main(copy) == 1
    monkeypatch.setattr("sys.argv", ["compile_variables.py"])
    assert compile_variables.main(copy) == 0

    changed = {str(path.relative_to(copy)) for path, text in before.items() if path.read_text("utf-8") != text}
    assert changed == {
        "docs/variables.md",
        "library/gpu_node_plan.py",
        "plugins/plugin_utils/gpu_ready/catalog/settings.py",
        "plugins/plugin_utils/variables/names.json",
        "roles/nvidia_driver/README.md",
        "roles/nvidia_driver/defaults/main.yml",
        "roles/nvidia_driver/meta/argument_specs.yml",
    }
    assert load(copy / "roles/nvidia_driver/defaults/main.yml")["nvidia_driver_colour"] == "green"
    specs = load(copy / "roles/nvidia_driver/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert specs["nvidia_driver_colour"] == {
        "type": "str",
        "default": "green",
        "choices": ["green", "red"],
        "description": ["Colour of the driver.", "V(green) - like the logo.", "V(red) - like an error."],
    }
    assert (
        "nvidia_driver_colour"
        in json.loads((copy / "plugins/plugin_utils/variables/names.json").read_text())["settings"]
    )
    scope: dict[str, Any] = {"__name__": "settings"}
    exec((copy / "plugins/plugin_utils/gpu_ready/catalog/settings.py").read_text(encoding="utf-8"), scope)
    assert scope["Settings"].__annotations__["nvidia_driver_colour"] is str
    assert scope["DEFAULTS"]["nvidia_driver_colour"] == "green"
    assert scope["RULES"]["nvidia_driver_colour"] == ["str", ["green", "red"], "", "", "text"]
    page = (copy / "docs/variables.md").read_text(encoding="utf-8")
    assert '| <a id="nvidia_driver_colour"></a>`nvidia_driver_colour` | str | `green` | `green`, `red` |' in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "string"}, "type string is unknown"),
        ({"check": "url"}, "check url is unknown"),
        ({"setting": "yes"}, "setting yes is unknown"),
        ({"overridable": True}, "overridable without setting"),
        ({"elements": "str"}, "elements belongs to the type list"),
        ({"pattern": "a+"}, "pattern and must_be belong together"),
        ({"choices": ["b"]}, "default 'a' is none of its choices"),
        ({"range": [1, 2]}, "range belongs to the type int"),
        ({"type": "int", "default": 1}, "range belongs to the type int"),
        ({"type": "int", "default": 3, "range": [1, 2]}, "default 3 is not in its range"),
        ({"choices": {True: "yes"}}, "Quote it"),
        ({"choices_from": "repositories"}, "repositories is unknown"),
        ({"description": "No full stop"}, "full stop"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_declaration_is_reported(change: dict[str, Any], message: str) -> None:
    entry = {"role": "cudnn", "type": "str", "default": "a", "description": "A text."}
    with pytest.raises(DeclarationError, match=f"cudnn_x: .*{message}"):
        parse_declaration("cudnn_x", entry | change, [])


def test_values_are_written_as_yaml_reads_them() -> None:
    for value in (
        True,
        0,
        -1,
        "",
        "580",
        "true",
        "none",
        "12.9.1",
        "a: b",
        "a, b",
        "{{ x }}",
        [1, "10%"],
        {"1.2": ["a"]},
    ):
        assert yaml_load(f"key: {compile_variables.flow(value)}") == {"key": value}
        assert yaml_load(f"[{compile_variables.flow(value)}]") == [value]


def test_no_playbook_repeats_a_default_with_another_value() -> None:
    declared = {variable.name: variable.default for variable in all_variables(load_tasks())}
    pattern = re.compile(
        r"\b(\w+) \| default\(('[^']*'|-?\d+|true|false|\[\]|\{\})\)|'(\w+)'\) \| map\('default', ([^)]*)\)"
    )
    found = 0
    for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/*/*.yml")]:
        for match in pattern.finditer(path.read_text(encoding="utf-8")):
            name, literal = (match[1], match[2]) if match[1] else (match[3], match[4])
            if name in declared:
                found += 1
                assert yaml_load(literal) == declared[name], (path, match[0])
    assert found >= 4


@pytest.mark.host_io
def test_ansible_doc_shows_defaults_and_choices() -> None:
    command = [str(Path(sys.executable).parent / "ansible-doc"), "--json"]
    roles = sorted({variable.role for variable in all_variables(load_tasks())})
    shown = subprocess.run(
        [*command, "-t", "role", "-r", "roles", *roles], cwd=ROOT, capture_output=True, text=True, check=True
    )
    documented = json.loads(shown.stdout)
    for variable in all_variables(load_tasks()):
        option = documented[variable.role]["entry_points"]["main"]["options"][variable.name]
        assert option["default"] == variable.default
        assert variable.type == "list" or option.get("choices", []) == list(variable.choices)
    shown = subprocess.run(
        [*command, "-t", "module", "-M", "library", "gpu_node_plan"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    options = json.loads(shown.stdout)["gpu_node_plan"]["doc"]["options"]
    for name in ("overrides", "drains", "part", "release"):  # no variables: the roles pass them
        del options[name]
    assert {name: option["default"] for name, option in options.items()} == settings.DEFAULTS


def test_python_is_installed_with_the_variables_that_its_tasks_pass() -> None:
    assert compile_variables.BOOTSTRAP == bootstrap.VARIABLES


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_readme_lists_every_choice_with_the_default_first(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = 0
    for variable in all_variables(load_tasks()):
        row = re.search(rf"^\| [^|]*`{variable.name}`[^|]* \| (.*) \|$", text, re.MULTILINE)
        if row and variable.choices:
            found += 1
            values = [value for value in re.findall(r"`\[?(\w+)\]?`", row[1]) if value in variable.choices]
            assert set(values) == set(variable.choices), variable.name
            default = variable.default if variable.type == "list" else [variable.default]
            assert values[: len(default[:1])] == default[:1], variable.name
    assert found >= 2


def test_the_ten_variables_that_matter_first_exist_and_their_values_are_accepted() -> None:
    assert len(compile_variables.FIRST) == 10
    values = {name: value for name, (_, value) in compile_variables.FIRST.items()}
    assert variables.parse_settings(values).errors == []
    page = (ROOT / "docs/variables.md").read_text(encoding="utf-8")
    assert all(f'<a id="{name}"></a>' in page for name in values)
