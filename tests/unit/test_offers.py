"""Services beside an adopted driver are planned only where a source of the host offers them in its version."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts, ImexFacts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.plan.driver import offers
from plugins.plugin_utils.gpu_ready.plan.model import DriverChoice
from tests.unit import past_hosts
from tests.unit.goldens import decide
from tests.unit.hosts import having
from tests.unit.plans import settings

NAME = "nvidia-persistenced"
VERSION = "580.95.05"
KEYRING = "deb https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/ /\n"
SITE = "deb http://mirror.example/site gpu main\n"
SECTION = "[%s]\nbaseurl=%s\nenabled=%d\n"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64"


def adopted(past: str, **driver: Any) -> Facts:
    return having(complete.collect_facts(past_hosts.recorded(past_hosts.PASTS[past])), driver=driver)


def offered(facts: Facts, satisfied: bool = True) -> bool:
    choice = DriverChoice("cuda_repo", "dkms", 580, "open", None, "compute", [], [], satisfied=satisfied)
    return offers.is_offered(facts, settings(), choice, catalog.distro(facts.base.distro or ""), NAME)


@pytest.mark.parametrize(
    ("companions", "repository", "sources", "expected"),
    [
        ({NAME: ["580.95.05-1"]}, "", SITE, True),
        ({NAME: ["3:580.95.05-0ubuntu1"]}, "", SITE, True),
        ({NAME: ["580.105.08-1"]}, "", SITE, False),
        ({NAME: ["580.105.08-1"]}, "", KEYRING, False),
        ({NAME: ["580.105.08-1", "580.95.05-1"]}, "", SITE, True),
        ({NAME: []}, "", SITE, False),
        # Lists that were never read name nothing, and the repository is configured.
        ({NAME: []}, "", KEYRING, True),
        # The lists name the driver, and not its service.
        ({NAME: []}, "file:/var/local", KEYRING, False),
        # Nobody asked.
        ({}, "", SITE, True),
        ({}, "", "", True),
    ],
)
def test_what_apt_offers(companions: dict[str, list[str]], repository: str, sources: str, expected: bool) -> None:
    facts = adopted("cuda-repository-removed", companions=companions, repository=repository)
    files = {"/etc/apt/sources.list": sources} if sources else {}
    assert offered(facts._replace(apt=facts.apt._replace(sources=files))) is expected


@pytest.mark.parametrize(
    ("section", "repository", "expected"),
    [
        (("cuda-rhel9-x86_64", CUDA, 1), CUDA, True),
        (("other-name", CUDA, 1), "cuda-rhel9-x86_64", True),
        (("cuda-rhel9-x86_64", CUDA, 0), CUDA, False),
        (("site", "http://mirror.example/gpu", 1), "http://mirror.example/gpu", True),
        (("site", "http://mirror.example/gpu", 1), "site", True),
        (("site", "http://mirror.example/gpu", 0), "site", False),
        (("baseos", "http://mirror.example/os", 1), "cuda-rhel9-x86_64", False),
        (("baseos", "http://mirror.example/os", 1), "", True),
    ],
)
def test_the_repository_of_rpms_is_still_enabled(
    section: tuple[str, str, int], repository: str, expected: bool
) -> None:
    facts = adopted("cuda-repository-removed-el9", repository=repository)
    sources = {"/etc/yum.repos.d/x.repo": SECTION % section}
    assert offered(facts._replace(yum=facts.yum._replace(sources=sources))) is expected


def test_the_source_of_a_driver_that_is_installed_is_added_with_it() -> None:
    assert offered(adopted("cuda-repository-removed"), satisfied=False)


def test_what_is_installed_needs_no_source() -> None:
    facts = adopted("cuda-repository-removed")
    installed = {**facts.packages.installed, NAME: VERSION + "-1"}
    assert offered(facts._replace(packages=facts.packages._replace(installed=installed)))
    installed[NAME] = "580.1-1"
    assert not offered(facts._replace(packages=facts.packages._replace(installed=installed)))


@pytest.mark.parametrize(
    "past", ["cuda-repository-removed", "cuda-repository-removed-el9", "local-repository-without-persistenced"]
)
def test_the_rest_is_planned_without_the_persistence_daemon(past: str) -> None:
    plan = decide(adopted(past))
    actions = [step.id for step in plan.steps]
    assert not plan.refusals and "nvidia_driver.persistenced" not in actions
    assert {"docker_engine.install", "nvidia_container_runtime.install", "gpu_verify.verify"} <= {*actions}
    (notice,) = [one for one in plan.warnings if one.code == "companion_not_offered"]
    assert f"offers {NAME} {VERSION}" in notice.message and "nvidia_driver_persistence to false" in notice.remedy
    silent = decide(adopted(past), nvidia_driver_persistence=False)
    assert "companion_not_offered" not in [one.code for one in silent.warnings]


def test_imex_of_a_node_in_a_domain_is_left_out_with_a_warning() -> None:
    plan = decide(adopted("cuda-repository-removed", imex=ImexFacts(member=True)))
    assert "nvidia_driver.imex" not in [step.id for step in plan.steps] and not plan.refusals
    found = {one.message: one.remedy for one in plan.warnings if one.code == "companion_not_offered"}
    (message,) = [one for one in found if "nvidia-imex" in one]
    assert VERSION in message and "persistence" not in found[message]


def test_a_host_with_nvswitches_is_refused_before_any_change() -> None:
    facts = adopted("cuda-repository-removed-nvswitch")
    (refusal,) = decide(facts).refusals
    assert refusal.code == "fabricmanager_not_offered" and f"nvidia-fabricmanager {VERSION}" in refusal.message
    # The remedy works as typed.
    plan = decide(facts, nvidia_driver_version="580.105.08")
    assert not plan.refusals and "nvidia_driver.fabricmanager" in [step.id for step in plan.steps]
    complete = having(facts, driver={"companions": {"nvidia-fabricmanager": [VERSION + "-1"]}})
    assert not decide(complete).refusals
