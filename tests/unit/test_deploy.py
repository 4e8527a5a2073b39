"""The files of deploy/ name what exists: playbooks, requirements, units, variables."""

import re
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
AWX, PULL = ROOT / "deploy/awx", ROOT / "deploy/pull"
TEMPLATES: list[dict[str, Any]] = yaml_load((AWX / "templates.yml").read_text())["gpu_awx_templates"]


def test_every_job_template_runs_an_existing_playbook() -> None:
    assert [template["name"] for template in TEMPLATES] == [
        "provision",
        "audit",
        "upgrade drivers",
        "roll back drivers",
    ]
    for template in TEMPLATES:
        assert (ROOT / template["playbook"]).is_file(), template["playbook"]
    # Canaries and budget of a rollout count for the whole fleet.
    assert {template["slices"] for template in TEMPLATES if "drivers" in template["name"]} == {1}


def declared_variables() -> dict[str, Any]:
    """The variables of the catalog by name."""
    files = [yaml_load(path.read_text())["variables"] for path in (ROOT / "catalog/variables").glob("*.yml")]
    return {name: variable for file in files for name, variable in file.items()}


def test_whoever_launches_a_job_sets_the_variables_of_its_survey_only() -> None:
    """ansible_ssh_common_args, or the path of a task file, would start a program on the node of the controller."""
    (play,) = yaml_load((AWX / "job_templates.yml").read_text())
    (made,) = [task["awx.awx.job_template"] for task in play["tasks"] if "awx.awx.job_template" in task]
    asked = {name: value for name, value in made.items() if name.startswith("ask_")}
    assert asked == {"ask_limit_on_launch": True, "ask_variables_on_launch": False}


def test_templates_set_and_ask_for_declared_variables_and_no_paths() -> None:
    declared = declared_variables()
    for template in TEMPLATES:
        assert set(template.get("variables", {})) <= set(declared)
        names = [question["variable"] for question in template.get("survey", [])]
        assert len(set(names)) == len(names)
        assert not {name for name in names if declared[name]["type"] == "path" or "gpu_upgrade_drain" in name}


@pytest.mark.parametrize(
    "question",
    [question for template in TEMPLATES for question in template.get("survey", [])],
    ids=lambda question: question["variable"],
)
def test_a_question_has_the_form_that_the_controller_accepts(question: dict[str, Any]) -> None:
    """By awx/api/views/__init__.py, JobTemplateSurveySpec._validate_spec_data, of AWX 24."""
    assert type(question["required"]) is bool and question["question_name"]
    assert question["type"] in ("text", "multiplechoice", "multiselect")
    assert type(question.get("default", "")) is str
    # An optional text that may be empty would replace the inventory's value by an empty one.
    assert question["type"] != "text" or question["required"] or question["min"] > 0
    variable = declared_variables()[question["variable"]]
    choices = (
        ["false", "true"] if variable["type"] == "bool" else [str(choice) for choice in variable.get("choices", [])]
    )
    assert question.get("choices", []) == choices
    assert question.get("default", "") in ["", *choices] or not choices


def test_the_example_has_all_settings_of_a_site() -> None:
    asked = set(re.findall(r"\b(gpu_awx_\w+)", (AWX / "job_templates.yml").read_text())) - {"gpu_awx_templates"}
    assert set(yaml_load((AWX / "site.yml.example").read_text())) == asked


def test_the_execution_environment_has_the_requirements_of_this_project() -> None:
    definition = yaml_load((AWX / "execution-environment.yml").read_text())
    assert definition["version"] == 3
    requirements = (AWX / definition["dependencies"]["python"]).resolve()
    assert requirements == ROOT / "requirements/runtime.in"
    assert definition["dependencies"]["ansible_core"]["package_pip"] in requirements.read_text()


def test_the_timer_starts_the_service_and_the_service_finds_its_files() -> None:
    timer, service = PULL / "gpu-ready-pull.timer", PULL / "gpu-ready-pull.service"
    assert timer.stem == service.stem  # a timer starts the service of its name
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read_string(service.read_text().replace("\\\n", ""))
    command = parser["Service"]["ExecStart"]
    conf = dict(line.split("=", 1) for line in (PULL / "pull.conf.example").read_text().splitlines() if "=" in line)
    assert set(re.findall(r"\$\{(\w+)\}", command)) == set(conf)
    assert command.endswith(" site.yml")
