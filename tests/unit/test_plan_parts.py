"""A role in a playbook of a site plans its own part: by its own variables, with the other parts as they are."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.settings import DEFAULTS
from plugins.plugin_utils.gpu_ready.plan import compose, parts
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import H100, P40, bare, carried_out, having

DISTROS = [
    name for name in catalog.distros() if compose.plan(bare(H100, distro=name), variables.parse_settings({})[0]).steps
]


def plan_part(facts: Facts, part: str, *, check: bool = False, **given: Any) -> compose.Plan:
    reading = variables.parse_settings(parts.own_variables(given, part))
    assert not reading.errors
    return compose.plan(facts, reading.settings, part=part, check=check)


def after(*names: str) -> Facts:
    """A host on which these roles were executed."""
    host = bare(H100)
    for part in names:
        host = carried_out(host, plan_part(host, part))
    return host


def steps(decided: compose.Plan) -> set[str]:
    return {step.role for step in decided.steps}


def test_the_profile_for_containers_leaves_cuda_and_cudnn_out_whatever_their_sources_are() -> None:
    def planned(**given: Any) -> set[str]:
        return steps(compose.plan(bare(H100, distro="el9"), variables.parse_settings(given).settings))

    assert planned(gpu_ready_profile="full") == planned() and {"cuda_toolkit", "cudnn"} <= planned()
    without = planned() - {"cuda_toolkit", "cudnn"}
    # Roles' defaults are variables too by the time of a second plan in one play.
    explicit = {"cuda_toolkit_source": "repo", "cudnn_source": "archive", "cuda_toolkit_versions": ["12.9"]}
    assert planned(gpu_ready_profile="containers") == planned(gpu_ready_profile="containers", **explicit) == without


def test_a_role_that_a_playbook_names_is_set_up_with_any_profile() -> None:
    assert "cuda_toolkit" in steps(plan_part(after(parts.DRIVER), parts.CUDA, gpu_ready_profile="containers"))


@pytest.mark.parametrize("distro", DISTROS)
def test_one_role_after_the_other_ends_where_nothing_is_left_to_do(distro: str) -> None:
    host = bare(H100, distro=distro)
    for part, known in parts.PARTS.items():
        decided = plan_part(host, part)
        assert decided.refusals == [] and steps(decided) <= {"gpu_plan", *known.roles}, part
        host = carried_out(host, decided)
        if part != parts.VERIFY:  # the recorded host keeps no verification of a part
            second = plan_part(host, part)
            assert second.steps == [] and second.summary == f"{part}: as configured, nothing to do", part
    assert plan_part(bare(H100, distro=distro), parts.DRIVER).steps


def test_a_part_is_planned_as_in_the_plan_of_the_whole_host() -> None:
    host = bare(H100)
    whole = compose.plan(host, variables.parse_settings({}).settings)
    decided = plan_part(host, parts.DRIVER)
    assert decided.steps == [step for step in whole.steps if step.role in ("kernel_headers", "nvidia_driver")]
    assert plan_part(host, parts.HEADERS).steps == [step for step in whole.steps if step.role == "kernel_headers"]


def test_the_driver_of_a_site_is_no_matter_of_docker() -> None:
    decided = plan_part(bare(P40), parts.DOCKER, nvidia_driver_branch="595", nvidia_driver_version="not a version")
    assert (decided.refusals, steps(decided)) == ([], {"docker_engine"})
    assert compose.plan(bare(P40), variables.parse_settings({"nvidia_driver_branch": "595"}).settings).refusals


def test_the_variables_of_a_part_and_the_common_ones_count() -> None:
    given = {"docker_engine_source": "distro", "gpu_ready_disrupt": ["reboot"], "cudnn_version": "nonsense"}
    assert parts.own_variables(given, parts.DOCKER) == {
        "docker_engine_source": "distro",
        "gpu_ready_disrupt": ["reboot"],
        "nvidia_driver_source": "none",
        "cuda_toolkit_source": "none",
        "cudnn_source": "none",
    }
    assert parts.own_variables(given, "") == given
    decided = plan_part(bare(H100), parts.DOCKER, docker_engine_daemon_options={"mtu": 1400})
    assert "docker_engine.configure" in {step.id for step in decided.steps}


def test_every_variable_of_the_plan_is_read_by_a_part() -> None:
    read = parts.COMMON + tuple(beginning for part in parts.PARTS.values() for beginning in part.reads)
    assert [name for name in DEFAULTS if not name.startswith(read)] == []


@pytest.mark.parametrize(
    ("part", "host", "role"),
    [
        (parts.RUNTIME, after(parts.DRIVER), parts.DOCKER),
        (parts.VERIFY, after(parts.DRIVER), parts.DOCKER),
        (parts.RUNTIME, after(parts.DOCKER), parts.DRIVER),
        (parts.CUDA, bare(H100), parts.DRIVER),
        (parts.CUDNN, bare(H100), parts.DRIVER),
        (parts.MONITORING, bare(H100), parts.DRIVER),
    ],
)
def test_a_role_that_needs_another_one_names_it(part: str, host: Facts, role: str) -> None:
    decided = plan_part(host, part)
    (remedy,) = [one.remedy for one in decided.refusals if one.code == "part_missing"]
    assert remedy == f"run the role {role} before the role {part}"
    assert decided.steps == []
    checked = plan_part(host, part, check=True)
    assert checked.refusals == [] and remedy in [one.remedy for one in checked.warnings]


@pytest.mark.parametrize("part", [parts.CUDA, parts.CUDNN, parts.RUNTIME])
def test_a_part_fits_the_driver_of_the_host_or_else_the_one_that_is_named(part: str) -> None:
    named: dict[str, Any] = {"nvidia_driver_source": "runfile", "nvidia_driver_branch": "580"}
    toolkit = having(bare(H100), cuda=after(parts.DRIVER, parts.CUDA).cuda) if part == parts.CUDNN else bare(H100)
    decided = plan_part(after(parts.DOCKER) if part == parts.RUNTIME else toolkit, part, **named)
    assert (decided.refusals, steps(decided)) == ([], {part})
    present = after(parts.DRIVER, *{parts.CUDNN: [parts.CUDA], parts.RUNTIME: [parts.DOCKER]}.get(part, []))
    assert plan_part(present, part, **named).steps == plan_part(present, part).steps != []


def test_only_the_verification_and_the_monitoring_have_steps_that_belong_to_no_planner_before() -> None:
    host = after(parts.DRIVER, parts.DOCKER)
    assert steps(plan_part(host, parts.MONITORING, gpu_monitoring=["textfile"])) == {"gpu_monitoring"}
    assert steps(plan_part(host, parts.VERIFY)) == {"gpu_verify"}
    assert steps(plan_part(host, parts.RUNTIME)) == {"nvidia_container_runtime"}


def test_a_host_that_no_part_supports_is_refused_whichever_it_is() -> None:
    arm = having(bare(H100), base={"arch": "aarch64"})
    for part in parts.PARTS:
        assert [one.code for one in plan_part(arm, part).refusals] == ["machine_unsupported"], part


def test_a_host_without_gpu_is_left_alone_by_every_part() -> None:
    for part in parts.PARTS:
        assert plan_part(bare(), part).summary == "no NVIDIA GPU: left alone"
