"""The complete plan of a host: its order, its golden form, and that an executed plan leaves nothing to do."""

import copy
import json
import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.settings import Settings
from plugins.plugin_utils.gpu_ready.plan import answer as decide_host
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import choices_page, golden_file, goldens
from tests.unit.hosts import A100, B200, H100, P40, T4, V100, bare, carried_out, having, with_driver
from tests.unit.test_plan_driver import DEVICES, REQUESTS

ORDER = [
    "gpu_plan",
    "kernel_headers",
    "nvidia_driver",
    "cuda_toolkit",
    "cudnn",
    "docker_engine",
    "nvidia_container_runtime",
    "gpu_verify",
]


def decide(facts: Facts, **given_: Any) -> compose.Plan:
    reading = variables.parse_settings(given_)
    assert not reading.errors
    return compose.plan(facts, reading.settings)


def test_a_host_without_gpu_is_left_alone() -> None:
    decided = decide(bare())
    assert (decided.gpu_host, decided.steps, decided.summary) == (False, [], "no NVIDIA GPU: left alone")


def test_a_loaded_driver_is_named_where_the_pci_bus_shows_no_gpu() -> None:
    decided = decide(having(bare(), driver={"loaded": {"version": "580.159.04", "flavour": "open"}}))
    expected = "no NVIDIA GPU on the PCI bus, although driver 580.159.04 is loaded: left alone"
    assert (decided.gpu_host, decided.steps, decided.summary) == (False, [], expected)
    assert compose.report_row(bare(), decided).gpus == "none"


def test_a_host_whose_gpus_are_passed_to_guests_is_left_alone() -> None:
    host = bare(P40)
    host = having(host, base={"gpus": [host.base.gpus[0]._replace(driver="vfio-pci")]})
    assert (decide(host).gpu_host, decide(host).steps) == (False, [])


def test_the_golden_plans_are_those_of_the_planner() -> None:
    assert goldens.document() == goldens.PLANS.read_text(encoding="utf-8"), (
        "changed: run `.venv/bin/python -m tests.unit.goldens`, read the diff"
    )


def test_the_page_of_driver_choices_is_current() -> None:
    assert goldens.choices() == choices_page.PAGE.read_text(encoding="utf-8"), (
        "changed: run `.venv/bin/python -m tests.unit.goldens`, read the diff"
    )


@pytest.mark.parametrize("distro", catalog.distros())
def test_the_golden_plans_hold_every_line_of_a_distribution(distro: str) -> None:
    planned = {section.title: list(section.lines) for section in goldens.sections(distro)}
    assert golden_file.rebuilt(goldens.PLANS.read_text(encoding="utf-8"), distro) == planned


def test_the_parameters_of_a_verification_are_known_where_none_is_due() -> None:
    before = bare(T4)
    after = carried_out(before, decide(before))
    unverified = after._replace(verified=None)
    assert decide(after).converged and not decide(unverified).converged
    params = decide_host.answer_json(after, decide(after))["verification"]
    todo = decide_host.answer_json(unverified, decide(unverified))["todo"]
    assert isinstance(todo, dict) and params == todo["gpu_verify.verify"]
    assert decide_host.answer_json(bare(), decide(bare()))["verification"] is None


def test_steps_are_in_the_order_of_the_roles() -> None:
    roles = [step.role for step in decide(bare(P40)).steps]
    assert roles == sorted(roles, key=ORDER.index)
    assert roles[-1] == "gpu_verify"


def test_a_half_configured_package_is_repaired_first() -> None:
    host = bare(P40)
    host = having(host, packages={"broken": ["libcuda1"]})
    first = decide(host).steps[0]
    assert (first.id, "libcuda1" in first.why) == ("gpu_plan.repair_packages", True)


def test_a_package_run_in_progress_is_waited_for_not_repaired() -> None:
    host = having(bare(P40), packages={"in_progress": "process 812 (unattended-upgr)"})
    decided = decide(host)
    assert "gpu_plan.repair_packages" not in [step.id for step in decided.steps]
    (warning,) = [one for one in decided.warnings if one.code == "packages_in_progress"]
    assert "process 812 (unattended-upgr)" in warning.message and "wait for it" in warning.remedy
    done = carried_out(bare(P40), decide(bare(P40)))
    assert decide(having(done, packages={"in_progress": "process 812 (apt)"})).warnings == decide(done).warnings


def test_refusals_of_all_planners_come_at_once_and_nothing_is_done() -> None:
    boot = {"on": True, "key": None, "certificate": "/var/lib/dkms/mok.pub", "enrolled": False}
    decided = decide(bare(P40, secure_boot=boot), docker_engine_source="none")
    assert {"secure_boot_unsigned", "docker_missing"} <= {refusal.code for refusal in decided.refusals}
    assert (decided.steps, compose.todo_json(decided), compose.diff_json(decided)) == ([], {}, [])


@pytest.mark.parametrize("host", [bare(P40, P40), bare(T4), bare(A100), bare(V100, H100), bare(H100, nvswitches=4)])
def test_an_executed_plan_leaves_nothing_to_do(host: Facts) -> None:
    after = carried_out(host, decide(host))
    assert [step.id for step in decide(after).steps] == []
    assert decide(after).converged
    assert compose.report_row(after, decide(after)).verified


@given(DEVICES, REQUESTS)
def test_any_executed_plan_leaves_nothing_to_do(devices: list[str], requested: dict[str, Any]) -> None:
    host = bare(*devices)
    after = carried_out(host, decide(host, **requested))
    second = decide(after, **requested)
    assert [step.id for step in second.steps] == []


def test_a_plan_changes_neither_of_its_inputs() -> None:
    host, settings = bare(P40), variables.parse_settings({}).settings
    before = copy.deepcopy((host, settings))
    compose.plan(host, settings)
    assert (host, settings) == before


def test_after_a_reboot_only_a_verification_is_due() -> None:
    after = carried_out(bare(P40), decide(bare(P40)))
    after = having(after, base={"boot_id": "b9"})
    assert [step.id for step in decide(after).steps] == ["gpu_verify.verify"]


def test_an_old_loaded_module_is_reloaded_and_verified() -> None:
    after = carried_out(bare(P40), decide(bare(P40)))
    after = having(after, driver={"loaded": {"version": "535.1.1", "flavour": "proprietary"}})
    assert [step.id for step in decide(after).steps] == ["nvidia_driver.activate", "gpu_verify.verify"]


def test_the_digest_is_of_the_desired_state_not_of_the_way_to_it() -> None:
    one = decide(bare(P40)).digest
    assert decide(bare(P40), gpu_ready_mirror="http://m", gpu_ready_reboot_ok=True).digest == one
    assert decide(bare(P40), nvidia_driver_source="cuda_repo").digest != one
    settings = variables.parse_settings({}).settings
    record: Any = NamedTuple  # mypy wants to read the fields of the record from the call
    later = record("later", [*Settings.__annotations__.items(), ("later_release_adds_this", str)])
    assert compose.plan(bare(P40), later(*settings, "")).digest == one


def test_the_plan_is_plain_values() -> None:
    decided = decide(bare(B200), nvidia_driver_branch="580")
    json.dumps([compose.plan_json(decided), compose.todo_json(decided), compose.diff_json(decided)])


def test_the_diff_shows_the_steps_and_the_files() -> None:
    shown = compose.diff_json(decide(bare(P40)))
    assert "nvidia_driver.install" in shown[0]["after"]
    assert any("blacklist nouveau" in change["after"] for change in shown[1:])


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"nvidia_driver_flavour": "opn"}, ["nvidia_driver_flavour", "opn", "open"]),
        ({"nvidia_driver_hold": "maybe"}, ["nvidia_driver_hold", "maybe", "true or false"]),
        ({"nvidia_driver_branch": "latest"}, ["nvidia_driver_branch", "latest", "580"]),
        ({"nvidia_driver_branch": "580", "nvidia_driver_version": "595.91.07"}, ["580", "595.91.07"]),
        ({"docker_engine_daemon_options": "a"}, ["docker_engine_daemon_options", "mapping"]),
        ({"gpu_ready_mirror": "mirror.site"}, ["gpu_ready_mirror", "http"]),
        ({"nonsense": 1}, ["nonsense"]),
    ],
)
def test_a_wrong_value_has_a_message(given_: dict[str, Any], words: list[str]) -> None:
    (message,) = variables.parse_settings(given_).errors
    assert all(word in message for word in words)


def test_all_wrong_values_are_reported_at_once() -> None:
    assert len(variables.parse_settings({"nvidia_driver_hold": "x", "nvidia_driver_flavour": "x"}).errors) == 2


def test_values_of_the_command_line_are_converted() -> None:
    settings = variables.parse_settings(
        {"nvidia_driver_hold": "false", "nvidia_driver_branch": 580, "cuda_toolkit_versions": "12.8,12.9"}
    ).settings._asdict()
    assert (settings["nvidia_driver_hold"], settings["nvidia_driver_branch"]) == (False, "580")
    assert settings["cuda_toolkit_versions"] == ["12.8", "12.9"]


def test_the_table_shows_three_places_of_the_driver() -> None:
    host = with_driver(bare(P40, P40), "535.261.03", "proprietary", "distro", [])
    host = having(host, driver={"loaded": {"version": "535.1.1"}})
    shown = compose.report_row(host, decide(host))
    assert (shown.gpus.startswith("2x "), shown.driver_installed, shown.driver_loaded) == (
        True,
        "535.261.03",
        "535.1.1",
    )


def test_the_order_of_the_cards_changes_no_step() -> None:
    devices = [V100, H100, T4]
    steps = []
    for seed in range(4):
        random.Random(seed).shuffle(devices)
        steps.append([step.id for step in decide(bare(*devices)).steps])
    assert all(one == steps[0] for one in steps)


def test_a_fabric_manager_that_does_not_run_is_a_step_again() -> None:
    host = bare(H100, H100, nvswitches=4)
    done = carried_out(host, decide(host))
    assert decide(done).steps == []
    done = having(done, driver={"fabricmanager": False})
    assert [step.id for step in decide(done).steps] == ["nvidia_driver.fabricmanager", "gpu_verify.verify"]
