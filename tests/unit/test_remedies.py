"""A remedy that names a value of a variable is one that the planner accepts for this host."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.driver import choose as driver
from plugins.plugin_utils.gpu_ready.plan.model import Choices, Decision, DriverChoice, Refusal
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import B200, H100, K80, P40, SECURE, T4, V100, bare, having

OF_REQUEST = {
    "branch_above_ceiling", "branch_above_kernel", "branch_below_minimum", "branch_impossible", "branch_not_carried",
    "branch_unknown", "flavour_impossible", "gpu_unknown", "kernel_modules_impossible", "kernel_unfit",
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
VALUES = r"(nvidia_driver_\w+) to ((?!and\b)\w+(?:(?:, (?!and\b)| or )\w+)*)"
ELSE = r"[,;] or (?:set|build|boot|take|enrol|choose).*"


def plan(facts: Facts, given: dict[str, Any]) -> Decision[DriverChoice]:
    reading = variables.parse_settings(given)
    assert not reading.refusals, reading.refusals
    return driver.plan_driver(facts, reading.settings, Choices())


def followed(refusal: Refusal, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the variables after the remedy, once for each combination of the values that it names."""
    text = re.sub(ELSE, "", re.sub(r" for (?:Kepler|Maxwell, Pascal and Volta)", "", refusal.remedy))
    clauses = {name: re.split(", | or ", values) for name, values in re.findall(VALUES, text)}
    left_out = re.findall(r"nvidia_driver_\w+", (re.findall("leave (.*) out", text) or [""])[0])
    for values in itertools.product(*clauses.values()):
        kept = {name: value for name, value in given.items() if name not in left_out}
        yield {**kept, **dict(zip(clauses, values, strict=True))}


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
    text = remedy(bare(T4, distro="debian13"), nvidia_driver_branch="999")
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


# ---- CUDA ------------------------------------------------------------------------------------------------------------

OF_TOOLKITS = {"cuda_above_driver", "cuda_drops_gpu", "cuda_unknown", "source_impossible"}
TOOLKITS = [("V100", V100), ("T4", T4)]


@pytest.mark.parametrize("distro", catalog.distros())
@pytest.mark.parametrize("device", [device for _, device in TOOLKITS], ids=[name for name, _ in TOOLKITS])
def test_no_remedy_for_a_toolkit_leads_to_another_refusal_of_toolkits(device: str, distro: str) -> None:
    facts = bare(device, distro=distro)
    for version, source, branch in itertools.product(
        ("11.0", "12.9", "13.4", "99.9"), ("repo", "runfile"), ("", "580")
    ):
        given = {"cuda_toolkit_versions": [version], "cuda_toolkit_source": source, "nvidia_driver_branch": branch}
        decided = compose.plan(facts, variables.parse_settings(given).settings)
        if decided.choices.driver is None:
            continue
        for refusal in [one for one in decided.refusals if one.code in OF_TOOLKITS]:
            lists = re.findall(
                r"(?:use one of|choose from): ([\d., ]+)|cuda_toolkit_versions to ([\d.]+)", refusal.remedy
            )
            proposed: list[dict[str, Any]] = [
                {**given, "cuda_toolkit_versions": [one]} for pair in lists for one in "".join(pair).split(", ")
            ]
            if "cuda_toolkit_source to runfile" in refusal.remedy:
                proposed.append({**given, "cuda_toolkit_source": "runfile"})
            branches = re.search(r"nvidia_driver_branch to (\d+(?:(?:, | or )\d+)*)", refusal.remedy)
            proposed += [
                {**given, "nvidia_driver_branch": one}
                for one in re.split(", | or ", branches[1] if branches else "")
                if one
            ]
            assert proposed or "none" in refusal.remedy
            for changed in proposed:
                after = compose.plan(facts, variables.parse_settings(changed).settings).refusals
                assert not {one.code for one in after} & OF_TOOLKITS, (given, refusal, changed, after)
