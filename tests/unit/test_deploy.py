"""The files of deploy/ name what exists: playbooks, requirements, units, variables."""

import re
from configparser import RawConfigParser
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
AWX, PULL = ROOT / "deploy/awx", ROOT / "deploy/pull"


def test_every_job_template_runs_an_existing_playbook() -> None:
    templates = yaml.safe_load((AWX / "templates.yml").read_text())["gpu_awx_templates"]
    assert [template["name"] for template in templates] == [
        "provision",
        "audit",
        "upgrade drivers",
        "roll back drivers",
    ]
    for template in templates:
        assert (ROOT / template["playbook"]).is_file(), template["playbook"]
    # Canaries and budget of a rollout count for the whole fleet.
    assert {template["slices"] for template in templates if "drivers" in template["name"]} == {1}


def test_variables_of_the_templates_are_variables_of_the_roles() -> None:
    text = (ROOT / "docs/variables.md").read_text() + "".join(
        path.read_text() for path in ROOT.glob("roles/*/defaults/main.yml")
    )
    for template in yaml.safe_load((AWX / "templates.yml").read_text())["gpu_awx_templates"]:
        for name in template.get("variables") or {}:
            assert name in text, name


def test_the_survey_asks_for_all_required_variables() -> None:
    asked = set(re.findall(r"\b(gpu_awx_\w+)", (AWX / "job_templates.yml").read_text())) - {"gpu_awx_templates"}
    assert set(yaml.safe_load((AWX / "site.yml.example").read_text())) == asked


def test_the_execution_environment_has_the_requirements_of_this_project() -> None:
    definition = yaml.safe_load((AWX / "execution-environment.yml").read_text())
    assert definition["version"] == 3
    requirements = (AWX / definition["dependencies"]["python"]).resolve()
    assert requirements == ROOT / "requirements/runtime.txt"
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
