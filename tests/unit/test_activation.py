"""How a driver is activated: loaded, by a live reload, or by a reboot."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import (
    ContainerFacts,
    Facts,
    FunctionFacts,
    GpuProcess,
    ModuleFacts,
    WorkFacts,
)
from plugins.plugin_utils.gpu_ready.catalog.settings import DEFAULTS, Settings
from plugins.plugin_utils.gpu_ready.plan.driver import activation
from plugins.plugin_utils.gpu_ready.plan.driver.model import ActivateParams
from plugins.plugin_utils.gpu_ready.plan.model import Choices, DriverChoice
from tests.unit.hosts import P40, bare, having, with_driver

CHOSEN = DriverChoice(
    source="distro",
    kind="dkms",
    branch=535,
    version=None,
    flavour="proprietary",
    profile="compute",
    packages=[],
    modules=["nvidia", "nvidia-uvm"],
    satisfied=True,
)


def host(loaded: str | None, disk: str = "535.261.03") -> Facts:
    facts = with_driver(bare(P40), disk, "proprietary", "distro", [], loaded=False)
    return having(facts, driver={"loaded": ModuleFacts(loaded, "proprietary") if loaded else None})


def decide(facts: Facts, mode: str = "auto", **chosen: Any) -> Any:
    settings = Settings(**{**DEFAULTS, "gpu_ready_activation": mode})
    return activation.plan_activation(facts, settings, Choices(driver=CHOSEN._replace(**chosen)))


@pytest.mark.parametrize(
    ("loaded", "mode", "satisfied", "action", "disruption"),
    [
        (None, "auto", True, "load", "none"),
        (None, "auto", False, "load", "none"),
        (None, "reload", True, "load", "none"),
        (None, "reboot", True, "load", "none"),
        ("535.261.03", "auto", True, None, None),
        ("535.104.05", "auto", True, "reload", "driver_reload"),
        ("535.261.03", "auto", False, "reload", "driver_reload"),
        ("535.104.05", "reload", True, "reload", "driver_reload"),
        ("535.104.05", "reboot", True, "reboot", "reboot"),
        ("535.104.05", "none", True, None, None),
    ],
)
def test_the_least_disruptive_action_is_chosen(
    loaded: str | None, mode: str, satisfied: bool, action: Any, disruption: Any
) -> None:
    steps = decide(host(loaded), mode, satisfied=satisfied).steps
    assert [(step.params.action, step.disruption) for step in steps] == ([(action, disruption)] if action else [])


def test_none_leaves_it_to_the_operator_with_a_warning() -> None:
    (warning,) = decide(host("535.104.05"), "none").warnings
    assert "535.104.05" in warning.message


@pytest.mark.parametrize("name", ["nouveau", "nova_core"])
def test_the_kernels_own_driver_on_the_gpu_needs_a_reboot(name: str) -> None:
    facts = host(None)
    facts = having(facts, base={"nouveau": {"name": name, "bound": ["0000:3b:00.0"]}})
    (step,) = decide(facts).steps
    assert step.params.action == "reboot"
    assert name in step.why


def test_a_program_on_the_gpu_makes_auto_reboot_and_is_named() -> None:
    facts = host("535.104.05")
    facts = having(
        facts,
        work={"processes": [{"pid": 7, "name": "nvidia-persiste", "service": True}, {"pid": 42, "name": "python3"}]},
    )
    (step,) = decide(facts).steps
    assert step.params.action == "reboot"
    assert "held by PID 42 (python3)" in step.why
    assert "persiste" not in step.why
    assert decide(facts, "reload").steps[0].params.action == "reload"


def test_the_service_that_is_stopped_anyway_needs_no_reboot() -> None:
    facts = host("535.104.05")
    facts = having(facts, work={"processes": [{"pid": 7, "name": "nvidia-persiste", "service": True}]})
    assert decide(facts).steps[0].params.action == "reload"


def test_the_same_program_in_a_container_is_not_stopped() -> None:
    facts = host("535.104.05")
    facts = having(facts, work={"processes": [{"pid": 7, "name": "dcgm-exporter", "container": "a" * 12}]})
    (step,) = decide(facts).steps
    assert step.params.action == "reboot" and "7 (dcgm-exporter)" in step.why


def test_the_driver_of_source_none_is_not_reloaded() -> None:
    assert decide(host("535.104.05"), source="none").steps == []


def test_services_that_an_interrupted_reload_left_stopped_are_started() -> None:
    facts = host("535.261.03")
    facts = having(facts, driver={"stopped": ["dcgm-exporter.service"]})
    (step,) = decide(facts).steps
    assert step.params.action == "load" and step.disruption == "none" and "dcgm-exporter.service" in step.why


def test_a_service_that_is_upgraded_after_the_reload_is_started_then() -> None:
    facts = host("535.104.05")
    facts = having(facts, base={"nvswitches": [FunctionFacts("0000:c1:00.0", "22a3", None)]})
    chosen: dict[str, Any] = {"source": "cuda_repo", "satisfied": False}
    assert decide(facts, **chosen).steps[0].params.later[0] == "nvidia-fabricmanager.service"


POD = ContainerFacts("containerd", "1", "kube-system/nvidia-device-plugin-x", "GPU", True)
OF_POD = GpuProcess(7, "nvidia-device-p", POD.name)
OTHER = GpuProcess(8, "python3")


@pytest.mark.parametrize(
    ("drains", "processes", "kubelet", "action", "restarted"),
    [
        (["kubernetes", "daemon_sets"], [OF_POD], "kubelet", "reload", "kubelet"),
        (["kubernetes", "daemon_sets"], [OF_POD], "k3s-agent", "reload", "k3s-agent"),
        (["none", "daemon_sets"], [OF_POD], "kubelet", "reload", "kubelet"),  # the rollback of a failed upgrade
        (["kubernetes", "daemon_sets"], [OF_POD, OTHER], "kubelet", "reboot", ""),
        (["kubernetes", "daemon_sets"], [], "kubelet", "reload", "kubelet"),  # a container that starts after the plan
        (["kubernetes", "daemon_sets"], [OF_POD], "", "reboot", ""),  # nobody would start it again
        (["kubernetes"], [OF_POD], "kubelet", "reboot", ""),
        ([], [OF_POD], "kubelet", "reboot", ""),
    ],
)
def test_pods_of_daemon_sets_are_restarted_instead_of_the_host(
    drains: list[str], processes: list[GpuProcess], kubelet: str, action: str, restarted: str
) -> None:
    facts = having(host("535.104.05"), engines={"kubernetes": {"kind": "kubeadm", "unit": kubelet}})
    facts = facts._replace(work=WorkFacts(processes, [POD]))
    settings = Settings(**{**DEFAULTS, "gpu_ready_activation": "auto"})
    (step,) = activation.plan_activation(facts, settings, Choices(driver=CHOSEN), drains).steps
    assert isinstance(step.params, ActivateParams)
    assert (step.params.action, step.params.kubelet) == (action, restarted)
    assert ("are restarted: PID 7" in step.why) == bool(restarted and processes)


def test_a_module_of_the_other_flavour_is_replaced_by_the_one_on_disk() -> None:
    facts = having(host("535.261.03"), driver={"loaded": ModuleFacts("535.261.03", "open")})
    (step,) = decide(facts).steps
    assert step.params.action == "reload" and step.why.startswith(
        "the loaded module is open, the installed one proprietary"
    )
    unknown = having(host("535.261.03"), driver={"loaded": ModuleFacts("535.261.03", None)})
    assert decide(unknown).steps == []


def test_a_module_that_is_loaded_and_on_disk_as_requested_stays() -> None:
    """Other packages of the driver are missing, and none of them touches the module."""
    assert decide(host("535.261.03"), satisfied=False, version="535.261.03").steps == []
    assert decide(host("535.261.03", "535.104.05"), satisfied=False, version="535.261.03").steps != []
