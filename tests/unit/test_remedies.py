"""A remedy that names a value of a variable is one that the planner accepts for this host."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.driver import choose as driver
from plugins.plugin_utils.gpu_ready.plan.model import Choices, Decision, DriverChoice, Notice, Refusal, VariableChange
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import past_hosts
from tests.unit.hosts import B200, H100, K80, P40, SECURE, T4, V100, bare, carried_out, having

OF_REQUEST = {
    "branch_above_ceiling", "branch_below_minimum", "branch_impossible", "branch_not_carried",
    "flavour_impossible", "kernel_above_branch", "kernel_below_branch", "gpu_unknown", "kernel_modules_impossible", "kernel_unfit",
    "source_impossible",
}  # fmt: skip
"""Refusals of what is requested of the driver: after a remedy there is none of them."""
OLD_UNKNOWN = "1dff"
HOSTS = [
    pytest.param(devices, distro, changes, id="-".join([distro, *devices, *changes]))
    for distro in catalog.distros()
    for devices, changes in (
        ([T4], {}),
        ([V100], {}),
        ([K80], {}),
        ([B200], {}),
        ([V100, H100], {}),
        ([P40, B200], {}),
        ([OLD_UNKNOWN], {}),
        ([H100], {"nvswitches": 4}),
        ([T4], {"secure_boot": SECURE}),
        ([T4], {"kernel": {"running": "5.15.0-312.187.5.3.el9uek.x86_64", "installed": []}}),
    )
]
REQUESTS: list[dict[str, Any]] = [
    *({"nvidia_driver_branch": branch} for branch in ("999", "390", "470", "535", "570", "620")),
    *({"nvidia_driver_source": source} for source in ("distro", "cuda_repo", "elrepo", "runfile")),
    {"nvidia_driver_flavour": "open"},
    {"nvidia_driver_flavour": "proprietary"},
    {"nvidia_driver_kernel_modules": "precompiled"},
    {"nvidia_driver_version": "535.1.1", "nvidia_driver_kernel_modules": "precompiled"},
    {"nvidia_driver_version": "999.1.1"},
    {"nvidia_driver_source": "elrepo", "nvidia_driver_branch": "535"},
    {"nvidia_driver_source": "distro", "nvidia_driver_branch": "620", "nvidia_driver_flavour": "proprietary"},
    {"nvidia_driver_source": "elrepo", "nvidia_driver_kernel_modules": "dkms"},
    {"nvidia_driver_branch": "470", "nvidia_driver_flavour": "open"},
    {"nvidia_driver_runfile": "/srv/NVIDIA-Linux-x86_64-999.1.1.run"},
    {
        "nvidia_driver_source": "cuda_repo", "nvidia_driver_branch": "625", "nvidia_driver_version": "625.1",
        "nvidia_driver_flavour": "proprietary", "nvidia_driver_kernel_modules": "dkms",
        "nvidia_driver_packages": ["a=625.1-1"],
    },
]  # fmt: skip


def plan(facts: Facts, given: dict[str, Any]) -> Decision[DriverChoice]:
    reading = variables.parse_settings(given)
    assert not reading.refusals, reading.refusals
    return driver.plan_driver(facts, reading.settings, Choices())


def followed(refusal: Refusal | Notice, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the variables after the remedy, once for each combination of the values that it names."""
    change = refusal.change or VariableChange({})
    for values in itertools.product(*change.values.values()):
        kept = {name: value for name, value in given.items() if name not in change.without}
        yield {**kept, **dict(zip(change.values, values, strict=True))}


@pytest.mark.parametrize(("devices", "distro", "changes"), HOSTS)
def test_no_remedy_leads_to_another_refusal_of_the_request(
    devices: list[str], distro: str, changes: dict[str, Any]
) -> None:
    switches = changes.get("nvswitches", 0)
    facts = bare(
        *devices, distro=distro, nvswitches=switches, **{k: v for k, v in changes.items() if k != "nvswitches"}
    )
    for given in REQUESTS:
        for refusal in plan(facts, given).refusals:
            if refusal.code not in OF_REQUEST:
                continue
            attempts = list(followed(refusal, given))
            assert refusal.remedy
            for changed in attempts:
                if changed.get("nvidia_driver_source") == "none" or changed == given:
                    continue
                after = [one for one in plan(facts, changed).refusals if one.code in OF_REQUEST]
                assert not after, (given, refusal, changed, after)


def remedy(facts: Facts, **given: Any) -> str:
    (refusal,) = plan(facts, given).refusals
    return refusal.remedy


def test_the_branches_of_a_remedy_are_those_that_a_source_of_the_host_has() -> None:
    text = remedy(bare(T4, distro="debian13"), nvidia_driver_branch="470")
    assert text.startswith("set nvidia_driver_branch to 550, 580, 590, 595, 610")


def test_the_sources_of_a_remedy_have_the_fabric_manager() -> None:
    host = bare(H100, distro="debian13", nvswitches=4)
    assert remedy(host, nvidia_driver_branch="570").startswith("set nvidia_driver_branch to 580, 590, 595, 610")
    assert remedy(host, nvidia_driver_source="runfile") == "set nvidia_driver_source to auto or cuda_repo"


def test_a_version_is_left_out_with_its_branch() -> None:
    text = remedy(bare(P40, distro="debian12"), nvidia_driver_version="615.1.1")
    assert "nvidia_driver_branch to " in text and text.endswith(", and leave nvidia_driver_version out")


def test_where_nothing_fits_no_value_is_named() -> None:
    host = having(
        bare(K80, distro="debian13"), base={"nvswitches": [{"address": "0", "device": "22a3", "driver": None}]}
    )
    for refusal in plan(host, {"nvidia_driver_branch": "580"}).refusals:
        assert "set nvidia_driver_branch" not in refusal.remedy


# ---- all variables ---------------------------------------------------------------------------------------------------

WIDE: list[dict[str, Any]] = [
    {},
    *REQUESTS,
    {"nvidia_driver_source": "none"},
    *({"cuda_toolkit_versions": versions} for versions in (["11.0"], ["12.9", "13.0"], ["13.0", "13.1"], ["10.2"], ["99.9"])),
    {"cuda_toolkit_versions": ["13.4", "99.9"], "cuda_toolkit_source": "runfile"},
    {"cuda_toolkit_versions": ["12.9.7"], "cuda_toolkit_source": "runfile", "cuda_toolkit_default": "12.9"},
    {"cuda_toolkit_versions": ["13.0"], "nvidia_driver_branch": "570", "nvidia_driver_source": "runfile"},
    *({"cudnn_version": version, "cudnn_source": source} for version in ("7.6.5", "8.9.6", "9.28.1", "99.1.0.7")
      for source in ("archive", "package")),
    {"cudnn_source": "package", "cuda_toolkit_versions": ["12.9", "13.0"]},
    {"nvidia_container_runtime_mode": "native", "docker_engine_source": "docker_ce"},
    {"nvidia_container_runtime_mode": "cdi", "nvidia_container_runtime_default": True,
     "nvidia_container_runtime_engines": ["docker", "containerd"]},
]  # fmt: skip
ROUNDS = 4


@pytest.mark.parametrize(("devices", "distro", "changes"), HOSTS)
def test_remedies_that_are_variables_end_in_a_plan_or_where_no_variable_helps(
    devices: list[str], distro: str, changes: dict[str, Any]
) -> None:
    switches = changes.get("nvswitches", 0)
    others = {name: value for name, value in changes.items() if name != "nvswitches"}
    facts = bare(*devices, distro=distro, nvswitches=switches, **others)
    for first in WIDE:
        given, path = first, list[Refusal]()
        for _ in range(ROUNDS + 1):
            reading = variables.parse_settings(given)
            assert not reading.refusals, (first, path, reading.refusals)
            found = compose.plan(facts, reading.settings).refusals
            codes = [one.code for one in found]
            assert len(set(codes)) == len(codes), (first, path, codes)
            changing = [one for one in found if one.change]
            if not changing:
                break
            path.append(changing[0])
            given = next(followed(changing[0], given))
        else:
            raise AssertionError(f"{first}: {path}")


# ---- notices ---------------------------------------------------------------------------------------------------------

TRAINING = {"engine": "docker", "id": "a", "name": "train", "gpu": "GPU"}
WEB = {"engine": "docker", "id": "b", "name": "web"}


def ready(distro: str = "debian12", **more: str) -> Facts:
    """A host that site.yml has set up; ``more``: versions of further packages."""
    facts = bare(T4, distro=distro)
    facts = carried_out(facts, warnings_of(facts, {}))
    return having(facts, packages={"installed": {**facts.packages.installed, **more}})


def warnings_of(facts: Facts, given: dict[str, Any]) -> compose.Plan:
    reading = variables.parse_settings(given)
    assert not reading.refusals, (given, reading.refusals)
    return compose.plan(facts, reading.settings)


NEWEST = catalog.toolkits()[-1].version
NOTICED: list[tuple[str, Facts, dict[str, Any]]] = [
    ("treat_as_ignored", bare(T4, distro="ubuntu2404"), {"gpu_ready_treat_as": "el9"}),
    ("cuda_none_fits", bare(P40, distro="debian13"), {"nvidia_driver_branch": "580"}),
    ("metrics_not_read", bare(T4, distro="el9"), {"gpu_monitoring": ["textfile"]}),
    (
        "metrics_not_read", bare(T4, distro="el9"),
        {"gpu_monitoring": ["textfile"], "gpu_monitoring_node_exporter": "install", "gpu_monitoring_directory": "/b"},
    ),
    ("docker_from_elsewhere", ready(), {"docker_engine_source": "docker_ce"}),
    ("docker_restart_later", having(ready(), runtime={"toolkit": False, "hook_known": False}, work={"containers": [WEB]}), {}),
    ("legacy_nvidia_docker", ready(**{"nvidia-docker2": "2.13.0-1"}), {}),
    ("known_vulnerabilities", ready(**{"nvidia-container-toolkit": "1.17.4-1"}), {}),
    (
        "persistence_off",
        having(ready("ubuntu2404"), driver={"persistence": {"off": True}}, work={"containers": [TRAINING]}), {},
    ),
    ("not_activated", having(ready(), driver={"loaded": None}), {"gpu_ready_activation": "none"}),
    ("cudnn_foreign", having(ready(), cudnn={NEWEST: {"version": "8.9.7"}}), {}),
]  # fmt: skip
"""A notice whose remedy is variables, a host that has it, and variables."""
RUN = having(ready("ubuntu2404"), packages={"installed": {
    **{name: version for name, version in ready("ubuntu2404").packages.installed.items() if not name.startswith("linux-headers-")},
    "linux-image-generic": "6.8.0-88.88",
}})  # fmt: skip


def noticed() -> list[tuple[Facts, dict[str, Any]]]:
    past = [complete.collect_facts(past_hosts.recorded(one)) for one in past_hosts.PASTS.values()]
    given: list[dict[str, Any]] = [
        {},
        {"docker_engine_source": "docker_ce"},
        {"nvidia_container_runtime_mode": "toolkit"},
    ]
    return [(facts, given) for _, facts, given in NOTICED] + [(facts, one) for facts in past for one in given]


def test_each_of_these_notices_has_its_remedy_as_variables() -> None:
    for code, facts, given in NOTICED:
        assert [one for one in warnings_of(facts, given).warnings if one.code == code and one.change], (code, given)


def test_with_the_variables_of_a_notice_there_is_no_such_notice() -> None:
    """Nor a refusal that further variables would lead away from."""
    seen = set()
    for facts, given in noticed():
        before = warnings_of(facts, given)
        for notice in before.warnings:
            assert notice.run in notice.remedy
            if notice.change is None:
                continue
            seen.add(notice.code)
            assert notice.remedy.startswith(notice.change.text)
            for changed in followed(notice, given):
                after = warnings_of(facts, changed)
                assert notice.message not in [one.message for one in after.warnings], (notice, given)
                new = [one for one in after.refusals if one.code not in [old.code for old in before.refusals]]
                assert not [one for one in new if one.change], (notice, given, new)
    assert len(seen) > 3, seen


def test_a_remedy_that_is_a_command_has_it_as_such() -> None:
    (notice,) = [one for one in warnings_of(RUN, {}).warnings if one.code == "next_kernel_uncovered"]
    assert notice.run == "apt-get install linux-headers-generic" and notice.run in notice.remedy


def test_the_text_of_a_remedy_says_its_change() -> None:
    change = VariableChange(
        {"nvidia_driver_branch": ["580", "595"], "cuda_toolkit_versions": [["12.9"]]}, ["nvidia_driver_version"]
    )
    assert change.text == (
        'set nvidia_driver_branch to 580 or 595 and cuda_toolkit_versions to ["12.9"], and leave nvidia_driver_version out'
    )
    assert VariableChange({"nvidia_driver_replace_foreign": [True]}).text == "set nvidia_driver_replace_foreign to true"
    assert (
        VariableChange({}, ["gpu_ready_treat_as"], "for this host").text == "leave gpu_ready_treat_as out for this host"
    )
