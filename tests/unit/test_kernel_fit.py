"""Kernels that no module of a driver fits are refused before anything is installed: PREEMPT_RT, and others by source."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts, ModuleFacts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit.hosts import T4, bare, having, installed
from tests.unit.plans import settings, todo

REALTIME = [
    ("debian12", "6.1.0-50-rt-amd64"),
    ("debian13", "6.12.48+deb13-rt-amd64"),
    ("ubuntu2204", "5.15.0-1090-realtime"),
    ("ubuntu2404", "6.8.1-1015-realtime"),
    ("el8", "4.18.0-553.rt7.342.el8_10.x86_64"),
    ("el8", "4.18.0-553.rt7.342.el8_10.x86_64+debug"),
    ("el9", "5.14.0-687.5.1.el9_8.x86_64+rt"),
    ("el10", "6.12.0-124.8.1.el10_1.x86_64+rt-debug"),
    ("centos7", "3.10.0-1160.rt56.1131.el7.x86_64"),
]
OTHERS = [
    ("debian12", "6.1.0-50-amd64"),
    ("debian12", "6.1.0-50-cloud-amd64"),
    ("debian13", "6.12.48+deb13-amd64"),
    ("debian13", "6.14.11-4-pve"),
    ("ubuntu2404", "6.8.0-88-lowlatency"),
    ("ubuntu2404", "6.14.0-1010-azure"),
    ("el9", "5.14.0-687.5.1.el9_8.x86_64+debug"),
    ("el9", "5.15.0-312.187.5.3.el9uek.x86_64"),
    ("el9", "6.12.60-1.el9.elrepo.x86_64"),
    ("el8", "4.18.0-553.144.1.el8_10.x86_64"),
]


def running(facts: Facts, kernel: str, *others: str) -> Facts:
    return having(facts, base={"kernel": {"running": kernel, "installed": [kernel, *others], "next_boot": kernel}})


def codes(facts: Facts, **given: Any) -> list[str]:
    return [refusal.code for refusal in compose.plan(facts, settings(**given)).refusals]


@pytest.mark.parametrize(("distro", "kernel"), REALTIME)
@pytest.mark.parametrize("source", ["auto", "runfile"])
def test_a_realtime_kernel_is_refused_by_its_name(distro: str, kernel: str, source: str) -> None:
    decided = compose.plan(running(bare(T4, distro=distro), kernel), settings(nvidia_driver_source=source))
    (refusal,) = [one for one in decided.refusals if one.code == "kernel_realtime"]
    assert kernel in refusal.message and "PREEMPT_RT" in refusal.message
    assert "install and boot a kernel without it" in refusal.remedy
    assert not decided.steps


@pytest.mark.parametrize(("distro", "kernel"), OTHERS)
def test_other_kernels_are_no_realtime_kernels(distro: str, kernel: str) -> None:
    assert not catalog.is_realtime(kernel)
    assert codes(running(bare(T4, distro=distro), kernel)) == []


def test_the_remedy_names_kernels_that_are_installed() -> None:
    facts = running(bare(T4, distro="debian12"), "6.1.0-50-rt-amd64", "6.1.0-50-amd64", "6.1.0-49-rt-amd64")
    (refusal,) = compose.plan(facts, settings()).refusals
    assert refusal.remedy.startswith("boot 6.1.0-50-amd64, or")
    assert codes(running(facts, "6.1.0-50-amd64")) == []


def test_precompiled_modules_are_none_for_a_realtime_kernel() -> None:
    facts = running(bare(T4, distro="ubuntu2404"), "6.8.1-1015-realtime")
    assert codes(facts, nvidia_driver_kernel_modules="precompiled") == ["kernel_realtime"]


def test_a_driver_that_somebody_built_for_a_realtime_kernel_is_adopted() -> None:
    facts = running(installed("debian12", T4, "cuda_repo", "580.178.04", "open"), "6.1.0-50-rt-amd64")
    facts = having(facts, driver={"on_disk": ModuleFacts("580.178.04", "open", "/lib/modules/x/nvidia.ko")})
    assert codes(facts) == []
    assert codes(facts, nvidia_driver_branch="595") == ["kernel_realtime"]


def test_no_headers_are_installed_of_a_realtime_kernel_that_boots_next() -> None:
    facts = bare(T4, distro="el9")
    kernel = {"next_boot": "5.14.0-687.5.1.el9_8.x86_64+rt", "headers": {}}
    (step,) = [
        one
        for one in compose.plan(having(facts, base={"kernel": kernel}), settings()).steps
        if one.id == "kernel_headers.install"
    ]
    assert "rt" not in str(todo(step)["packages"]).replace("x86_64", "")


def test_no_module_is_built_for_a_realtime_kernel_that_boots_next() -> None:
    facts = installed("debian12", T4, "cuda_repo", "580.178.04", "open")
    built = [{"name": "nvidia", "version": "580.178.04", "kernels": [facts.base.kernel.running]}]
    for kernel, steps in (("6.1.0-51-amd64", True), ("6.1.0-51-rt-amd64", False)):
        then = having(facts, driver={"dkms": built, "kernel_without_module": kernel})
        decided = compose.plan(then, settings())
        assert ("nvidia_driver.next_kernel" in [step.id for step in decided.steps]) is steps
        warned = [one for one in decided.warnings if one.code == "next_kernel_without_module"]
        assert bool(warned) is not steps
        assert all("PREEMPT_RT" in one.message and kernel in one.message for one in warned)


@pytest.mark.parametrize(
    ("distro", "kernel", "given", "warned"),
    [
        ("debian13", "7.3.4+deb13-amd64", {}, True),
        ("debian13", "7.1.9+deb13-amd64", {}, False),
        ("debian13", "7.1.9+deb13-amd64", {"nvidia_driver_branch": "620"}, True),
        ("debian13", "7.0.9+deb13-amd64", {"nvidia_driver_branch": "620"}, False),
        ("debian13", "7.3.4+deb13-amd64", {"nvidia_driver_source": "runfile"}, True),
        ("ubuntu2610", "7.3.0-10-generic", {}, False),  # the archive patches its drivers
        ("debian13", "unknown", {}, False),
    ],
)
def test_a_kernel_that_no_source_names_is_warned_of(
    distro: str, kernel: str, given: dict[str, Any], warned: bool
) -> None:
    decided = compose.plan(running(bare(T4, distro=distro), kernel), settings(**given))
    assert not decided.refusals and decided.steps
    found = [one for one in decided.warnings if one.code == "kernel_unverified"]
    assert [kernel in one.message for one in found] == [True] * warned


@pytest.mark.parametrize(
    ("distro", "kernel", "code"),
    [
        ("el8", "4.18.0-553.144.1.el8_10.x86_64", None),
        ("el8", "4.18.0-80.el8.x86_64", None),
        ("el9", "5.14.0-687.5.1.el9_8.x86_64", None),
        ("el9", "5.14.0-570.12.1.0.1.el9_6.x86_64", None),
        ("el10", "6.12.0-124.8.1.el10_1.x86_64", None),
        ("el8", "5.4.17-2136.340.4.el8uek.x86_64", "kernel_unfit"),
        ("el9", "5.15.0-312.187.5.3.el9uek.x86_64", "kernel_unfit"),
        ("el9", "5.14.0-645.el9.x86_64", "kernel_unfit"),
        ("el9", "6.12.60-1.el9.elrepo.x86_64", "kernel_unfit"),
        ("el9", "5.14.0-687.5.1.el9_8.x86_64+debug", "kernel_unfit"),
        ("el10", "6.12.0-160.el10.x86_64", "kernel_unfit"),
        ("el9", "5.14.0-687.5.1.el9_8.x86_64+rt", "kernel_realtime"),
        ("el8", "4.18.0-553.rt7.342.el8_10.x86_64", "kernel_realtime"),
    ],
)
def test_modules_for_the_kernel_abi_are_only_for_kernels_that_have_it(
    distro: str, kernel: str, code: str | None
) -> None:
    facts = running(bare(T4, distro=distro), kernel)
    assert codes(facts, nvidia_driver_source="elrepo") == ([code] if code else [])
    named = {"nvidia_driver_branch": "580", "nvidia_driver_version": "580.1", "nvidia_driver_flavour": "proprietary"}
    exact = {"nvidia_driver_kernel_modules": "precompiled", "nvidia_driver_packages": ["kmod-nvidia-580xx=580.1-1"]}
    assert codes(facts, nvidia_driver_source="elrepo", **named, **exact) == ([code] if code else [])
    if code == "kernel_unfit":
        assert codes(facts) == []
