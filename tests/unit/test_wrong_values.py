"""Wrong values of every public variable are refused before anything is changed, with what to write instead."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.action import gpu_host_module as answers

from plugins.module_utils.gpu_ready.base.nearest import nearest
from plugins.plugin_utils.gpu_ready.catalog import settings as declared
from plugins.plugin_utils.gpu_ready.catalog.option_names import DOCKER_OPTIONS, MODULE_PARAMETERS
from plugins.plugin_utils.gpu_ready.plan import compose, nested_options
from plugins.plugin_utils.gpu_ready.plan.model import Refusal
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import H100, T4, bare
from tests.unit.lying_host import calls, make_liar, run_playbook
from tools.variables import Declaration, all_variables, load_tasks

DECLARED = {one.name: one for one in all_variables(load_tasks())}
NAMES = importlib.import_module("ansible_collections.gpu_ready.nodes.plugins.plugin_utils.variables.names").NAMES
NO_TEXT: list[Any] = [{"a": 1}, [["a"]], "one\nline more"]
NO_REMEDY = "correct the variable and run this again"


def misspell(word: str) -> str:
    """Return a word with its middle letters in the wrong order, or one letter more."""
    middle = len(word) // 2
    swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    return swapped if len(word) > 3 and swapped != word else word + "x"


def generated(one: Declaration) -> list[Any]:
    """Return wrong values of a variable: of another type, out of its range or pattern, no choice of it."""
    choice = next((choice for choice in one.choices if choice), "")
    if one.type == "int":
        return ["5 minutes", one.range[0] - 1, one.range[1] + 1, 1.5, [1], {"a": 1}, True]
    if one.type == "bool":
        return ["maybe", 2, [True], {"a": 1}]
    if one.type == "dict":
        return ["text", ["a"], 5, True]
    if one.type == "list":
        words = ["nonsense", misspell(choice)] if choice else ["!?"] if one.pattern else ["one\nline more"]
        return [*([word] for word in words), {"a": 1}, [["a"]]]
    if one.type in ("raw", "devices"):
        return [{"a": 1}, [["a"]], [{"a": 1}], *(["!?"] if one.pattern else [])]
    return [*NO_TEXT, *(["nonsense", misspell(choice)] if choice else ["!?"] if one.pattern else [])]


CASES = [
    pytest.param(one, value, id=f"{one.name}-{number}")
    for one in DECLARED.values()
    for number, value in enumerate(generated(one))
]


def refusals(name: str, value: Any) -> list[Refusal]:
    """Return what the control node says about a value before it asks a host."""
    if DECLARED[name].setting:
        return variables.parse_settings({name: value}).refusals
    return variables.wrong_values({one: row[1:] for one, row in NAMES.rules.items()}, {name: value})


@pytest.mark.parametrize(("one", "value"), CASES)
def test_a_wrong_value_of_any_variable_is_refused_with_a_right_one(one: Declaration, value: Any) -> None:
    (refusal,) = refusals(one.name, value)
    assert refusal.message.startswith(f"{one.name} is ")
    assert refusal.remedy and refusal.remedy != NO_REMEDY
    assert "\n" not in refusal.message + refusal.remedy


@pytest.mark.parametrize("one", DECLARED.values(), ids=DECLARED)
def test_defaults_and_examples_are_right(one: Declaration) -> None:
    for value in (one.default, one.example, *(choice for choice in one.choices if one.type == "str")):
        if value is not None and "{{" not in str(value):
            assert refusals(one.name, value) == []


@pytest.mark.parametrize("one", [one for one in DECLARED.values() if one.choices], ids=lambda one: one.name)
def test_a_misspelt_choice_is_recognized(one: Declaration) -> None:
    for choice in filter(None, one.choices):
        value = [misspell(choice)] if one.type == "list" else misspell(choice)
        (refusal,) = refusals(one.name, value)
        if len(choice) > 3 and nearest(misspell(choice), one.choices, 0.7) == choice:
            assert f"(did you mean {choice}?)" in refusal.message and refusal.remedy == f"write {choice} in its place"


@pytest.mark.parametrize(
    ("name", "value", "guess"),
    [
        ("nvidia_driver_flavour", "propietary", "proprietary"),
        ("nvidia_container_runtime_mode", "CDI", "cdi"),
        ("gpu_ready_disrupt", ["docker-restart"], "docker_restart"),
        ("nvidia_driver_source", "cuda-repo", "cuda_repo"),
        ("gpu_ready_treat_as", "ubuntu24.04", "ubuntu2404"),
        ("docker_engine_daemon_options", {"live-restor": True}, "live-restore"),
        ("docker_engine_daemon_options", {"live_restore": True}, "live-restore"),
        ("docker_engine_daemon_options", {"Registry-Mirrors": []}, "registry-mirrors"),
        ("nvidia_driver_module_parameters", {"NVreg_EnableMsi": 1}, "EnableMSI"),
        ("nvidia_driver_module_parameters", {"RestrictProfilingToAdminUser": 0}, "RestrictProfilingToAdminUsers"),
        ("gpu_audit_format", "jsn", "json"),
    ],
)
def test_the_nearest_name_is_proposed(name: str, value: Any, guess: str) -> None:
    (refusal,) = refusals(name, value)
    assert refusal.message.endswith(f"(did you mean {guess}?)") and refusal.remedy == f"write {guess} in its place"


@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("gpu_verify_timeout", "5 minutes", ["'5 minutes'", "a number of seconds from 1 to 86400", "timeout: 300"]),
        ("gpu_verify_timeout", -5, ["-5", "from 1 to 86400"]),
        ("gpu_audit_format", "xlsx", ["'xlsx'", "table, diff, json, csv"]),
        ("docker_engine_daemon_options", {"runtimes": "nvidia"}, ["runtimes: 'nvidia'", "a mapping"]),
        ("docker_engine_daemon_options", {"live-restore": "true"}, ["true or false, without quotes"]),
        ("docker_engine_daemon_options", {"log-opts": {"max-file": 3}}, ["with numbers in quotes"]),
        ("docker_engine_log_options", {"max-file": [3]}, ["max-file: [3]", "text, a number"]),
        ("gpu_upgrade_batches", ["10 %"], ["numbers of hosts or percentages", '[1, "10%", "25%"']),
        ("gpu_upgrade_drain", "dokcer", ["'dokcer'", "none, docker, slurm, kubernetes"]),
        ("gpu_ready_batch", "half", ["'half'", "numbers of hosts or percentages"]),
        ("nvidia_driver_branch", "latest", ["'latest'", "a branch such as 580", 'nvidia_driver_branch: "580"']),
    ],
)
def test_values_that_were_accepted_are_refused(name: str, value: Any, parts: list[str]) -> None:
    (refusal,) = refusals(name, value)
    assert all(part in f"{refusal.message}. Remedy: {refusal.remedy}." for part in parts), refusal


@pytest.mark.parametrize(("name", "kind"), DOCKER_OPTIONS.items(), ids=DOCKER_OPTIONS)
def test_every_option_of_docker_has_a_type(name: str, kind: str) -> None:
    right = {
        "bool": True, "int": 5, "str": "a", "size": "64M", "list": ["a"], "dict": {"a": {}}, "texts": {"a": "b"}
    }  # fmt: skip
    for other, value in right.items():
        found = refusals("docker_engine_daemon_options", {name: value})
        assert bool(found) is not nested_options.TYPES[kind](value), (other, found)
    assert not refusals("docker_engine_daemon_options", {name: right[kind]})


@pytest.mark.parametrize("names", [DOCKER_OPTIONS, MODULE_PARAMETERS], ids=["docker", "module"])
def test_known_names_are_no_misspellings_of_each_other(names: dict[str, str]) -> None:
    assert not nested_options.misspelt("x", names, names)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"docker_engine_daemon_options": {"quantum-mode": True}}, "option_unknown", "quantum-mode"),
        ({"nvidia_driver_module_parameters": {"NVreg_Foo": 1}}, "parameter_unknown", "NVreg_Foo"),
    ],
)
def test_other_unknown_names_are_planned_with_a_warning(given: dict[str, Any], code: str, words: str) -> None:
    reading = variables.parse_settings(given)
    decided = compose.plan(bare(T4), reading.settings)
    assert not reading.refusals and not decided.refusals
    (warning,) = [one for one in decided.warnings if one.code == code]
    assert words in warning.message


@pytest.mark.parametrize(
    ("devices", "code"),
    [
        ([0, 42], "verify_devices_absent"),
        ("8", "verify_devices_absent"),
        ("0 8", "verify_devices_absent"),
        ([0, 7], None),
        ("all", None),
        (["GPU-8f2a6d62-1111"], None),
    ],
)
def test_the_gpus_of_the_verification_are_those_of_the_host(devices: Any, code: str | None) -> None:
    settings = variables.parse_settings({"gpu_verify_devices": devices}).settings
    found = compose.plan(bare(*[H100] * 8), settings).refusals
    assert [one.code for one in found] == ([code] if code else [])
    assert not found or "GPUs 0 to 7" in found[0].message


def test_versions_that_the_catalog_does_not_know_are_no_wrong_values() -> None:
    given = {"nvidia_driver_version": "580.1.1", "docker_engine_version": "99.9", "cuda_toolkit_versions": ["99.9"]}
    assert not variables.parse_settings(given).refusals
    assert not variables.parse_settings({"nvidia_driver_branch": "999"}).refusals


def test_a_name_that_is_no_variable_is_recognized() -> None:
    (refusal,) = variables.parse_settings({"nvidia_driver_brnach": "580"}).refusals
    assert refusal.remedy == "use nvidia_driver_branch"


# ---- at every entry ---------------------------------------------------------------------------------------------------


def test_every_variable_is_judged_at_an_entry() -> None:
    """Those of the planner with its plan; those of the others by the module with which their playbook begins."""
    judged = set().union(*answers.JUDGED.values())
    assert {one.role for one in DECLARED.values() if not one.setting} <= judged
    assert set(NAMES.rules) | set(declared.RULES) == set(DECLARED)


ENTRIES = [
    ("site.yml", "gpu_verify_timeout", "5 minutes"),
    ("site.yml", "gpu_report_keep", -1),
    ("site.yml", "docker_engine_daemon_options", {"live-restor": True}),
    ("playbooks/audit.yml", "gpu_audit_format", "xlsx"),
    ("playbooks/capture.yml", "gpu_capture_directory", ["captures"]),
    ("playbooks/audit.yml", "nvidia_driver_flavour", "propietary"),
    ("playbooks/upgrade_drivers.yml", "gpu_upgrade_soak", "a minute"),
    ("playbooks/rollback_drivers.yml", "gpu_drain_docker_grace", "long"),
    ("playbooks/uninstall.yml", "gpu_ready_uninstall", "maybe"),
    ("playbooks/uninstall.yml", "gpu_ready_disrupt", ["docker-restart"]),
    ("playbooks/undrain.yml", "gpu_upgrade_drain_timeout", 0),
    ("playbooks/kubernetes.yml", "gpu_kubernetes_replicas", 0),
]


@pytest.mark.host_io
@pytest.mark.parametrize(("playbook", "name", "value"), ENTRIES)
def test_no_host_is_asked_anything_with_a_wrong_value_of_its_group(
    tmp_path: Path, playbook: str, name: str, value: Any
) -> None:
    host = make_liar(tmp_path, "one", {})
    groups = {"nodes": {"hosts": {"one": {}}, "vars": {name: value, "gpu_report_directory": str(tmp_path / "reports")}}}
    done = run_playbook(tmp_path, playbook, {"one": host}, groups=groups, ANSIBLE_STDOUT_CALLBACK="default")
    shown = done.stdout + done.stderr
    assert done.returncode == 2, shown
    assert name in shown and "Remedy: " in shown, shown
    assert calls(tmp_path, "one") == [], shown


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("playbook", "given"),
    [
        ("site.yml", "gpu_ready_batch=half"),
        ("playbooks/audit.yml", "gpu_audit_format=xlsx"),
        ("playbooks/upgrade_drivers.yml", "gpu_upgrade_max_failures=few"),
        ("playbooks/uninstall.yml", "gpu_report_formats=xlsx"),
    ],
)
def test_a_wrong_value_of_the_whole_run_is_one_message(tmp_path: Path, playbook: str, given: str) -> None:
    host = make_liar(tmp_path, "one", {})
    done = run_playbook(tmp_path, playbook, {"one": host}, "-e", given)
    name, _, value = given.partition("=")
    assert done.returncode in (1, 4), done.stdout + done.stderr
    assert f"{name} is '{value}', but must be" in done.stderr or f"{name} is ['{value}']" in done.stderr, done.stderr
    assert done.stderr.count("Remedy: ") == 1 and calls(tmp_path, "one") == []
