"""A remedy that names a value of a variable is one that the planner accepts for this host."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.driver import choose as driver
from plugins.plugin_utils.gpu_ready.plan.model import Choices, Decision, DriverChoice, Refusal, VariableChange
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import B200, H100, K80, P40, SECURE, T4, V100, bare, having

OF_REQUEST = {
    "branch_above_ceiling", "branch_above_kernel", "branch_below_minimum", "branch_impossible", "branch_not_carried",
    "flavour_impossible", "kernel_above_branch", "gpu_unknown", "kernel_modules_impossible", "kernel_unfit",
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


def followed(refusal: Refusal, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
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


def test_the_text_of_a_remedy_says_its_change() -> None:
    change = VariableChange(
        {"nvidia_driver_branch": ["580", "595"], "cuda_toolkit_versions": [["12.9"]]}, ["nvidia_driver_version"]
    )
    assert change.text == (
        'set nvidia_driver_branch to 580 or 595 and cuda_toolkit_versions to ["12.9"], and leave nvidia_driver_version out'
    )
    assert VariableChange({"nvidia_driver_replace_foreign": [True]}).text == "set nvidia_driver_replace_foreign to true"
