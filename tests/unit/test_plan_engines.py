"""The plan for podman and containerd, alone and beside docker, and when there is nothing to do."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.containers import cdi
from plugins.module_utils.gpu_ready.containers.containerd import config as containerd_config
from plugins.module_utils.gpu_ready.containers.containerd.config import ConfigFile
from plugins.module_utils.gpu_ready.facts.model import CdiSpecFacts
from plugins.module_utils.gpu_ready.verify.expectation import EnginesChoice
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.containers import cdi_versions, engines, runtime
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.hosts import having
from tests.unit.plans import driver_choice, settings, todo
from tests.unit.test_toml import DEBIAN

SPEC = CdiSpecFacts(cdi.REFRESHED, devices=["0", "all"])
MINE = SPEC._replace(path=cdi.NATIVE, ours=True)
NEW = SPEC._replace(format="0.7.0")
KUBERNETES = ["podman", "containerd"]


def with_engines(podman: Any = (5, 4, 2), containerd: Any = (1, 7, 24), toolkit: bool = True, **more: Any) -> Any:
    """A host with a toolkit, podman and containerd (None: without it)."""
    host = hosts.bare(hosts.T4)
    host = having(host, engines={"podman": {"installed": podman is not None, "version": list(podman or [])}})
    if containerd:
        files = [ConfigFile(containerd_config.MAIN, DEBIAN)]
        host = having(
            host, engines={"containerd": dict(installed=True, version=list(containerd), active=True, files=files)}
        )
    host = having(host, runtime={"toolkit": toolkit})
    if toolkit:
        names = ("nvidia-ctk", "nvidia-container-runtime")
        programs = {name: "/usr/bin/" + name for name in names}
        host = having(host, runtime={"refresh": True, "specs": [SPEC], "programs": programs})
    return having(host, engines={"containerd": more})


def decide(host: Any, names: "list[str]", mode: str = "toolkit", satisfied: bool = True, **more: Any) -> Any:
    given = settings(nvidia_container_runtime_engines=names, nvidia_container_runtime_mode=mode, **more)
    return engines.plan_engines(host, given, driver_choice(satisfied=satisfied))


def ids(decision: Any) -> "list[str]":
    return [step.id.partition(".")[2] for step in decision.steps]


@pytest.mark.parametrize(
    ("mode", "ctk", "specs", "refused"),
    [
        ("toolkit", True, [], False),
        ("cdi", True, [], False),
        ("cdi", False, [], True),
        ("cdi", False, [SPEC], False),
        ("native", True, [], True),
        ("native", False, [SPEC], True),
    ],
    ids=str,
)
@pytest.mark.parametrize("names", [["docker"], ["podman"], ["docker", "podman"]])
def test_instances_of_mig_need_nvidias_toolkit(
    names: "list[str]", mode: str, ctk: bool, specs: "list[CdiSpecFacts]", refused: bool
) -> None:
    """Our own specification and volume have whole GPUs only: no container could compute."""
    programs = {"nvidia-ctk": "/usr/bin/nvidia-ctk" if ctk else None}
    host = having(with_engines(), driver={"mig_instances": ["gpu0/gi1", "gpu0/gi2"]})
    host = having(host, runtime={"programs": programs, "specs": specs})
    given = settings(nvidia_container_runtime_engines=names, nvidia_container_runtime_mode=mode)
    choices = driver_choice(satisfied=True)
    decisions = [runtime.plan_runtime(host, given, choices), engines.plan_engines(host, given, choices)]
    found = [one for decision in decisions for one in decision.refusals if one.code == "mig_impossible"]
    assert len(found) == refused
    for refusal in found:
        assert "2 MIG instances" in refusal.message and "set nvidia_container_runtime_mode to toolkit" in refusal.remedy


@pytest.mark.parametrize("names", [[], ["docker"]])
def test_docker_alone_needs_nothing_of_this_planner(names: "list[str]") -> None:
    decision = decide(with_engines(None, None), names)
    assert (decision.choice, decision.steps, decision.refusals, decision.warnings) == (None, [], [], [])


@pytest.mark.parametrize(
    ("names", "mode", "toolkit", "steps"),
    [
        (["podman"], "toolkit", True, []),
        (["podman"], "toolkit", False, ["repository", "install", "cdi_spec"]),
        (["podman"], "native", False, ["cdi_spec"]),
        (["podman"], "cdi", True, []),
        (["containerd"], "toolkit", False, ["repository", "install", "containerd"]),
        (["containerd"], "cdi", True, ["containerd"]),
        (["containerd"], "native", False, ["cdi_spec", "containerd"]),
        (KUBERNETES, "toolkit", False, ["repository", "install", "cdi_spec", "containerd"]),
        (["docker", *KUBERNETES], "toolkit", False, ["cdi_spec", "containerd"]),
        (["docker", *KUBERNETES], "cdi", False, ["containerd"]),
    ],
)
def test_the_steps_by_engines_and_mode(names: "list[str]", mode: str, toolkit: bool, steps: "list[str]") -> None:
    decision = decide(with_engines(toolkit=toolkit), names, mode)
    assert decision.refusals == []
    assert ids(decision) == steps
    assert decision.choice == EnginesChoice(mode, [name for name in ("docker", *KUBERNETES) if name in names])


def test_docker_with_cdi_and_podman_share_one_specification() -> None:
    host = with_engines(toolkit=False)
    host = having(host, docker={"installed": True, "active": True, "version": "28.2.0"})
    assert ids(decide(host, ["docker", "podman"], "native")) == []
    host = having(host, docker={"version": "20.10.24"})  # has no CDI, and gets a driver volume instead
    assert ids(decide(host, ["docker", "podman"], "native")) == ["cdi_spec"]


def test_the_toolkit_of_this_plan_writes_the_specification() -> None:
    (step,) = [step for step in decide(with_engines(toolkit=False), ["podman"]).steps if step.id.endswith("cdi_spec")]
    assert (todo(step)["generator"], todo(step)["path"], todo(step)["files"]) == ("nvidia-ctk", cdi.REFRESHED, [])
    assert todo(step)["unrefreshed"] == cdi.GENERATED  # a toolkit before 1.18 does not refresh it


def test_our_specification_adds_units_that_create_the_device_nodes() -> None:
    host = with_engines(toolkit=False)
    (step,) = decide(host, ["podman"], "native").steps
    assert todo(step)["path"] == cdi.NATIVE and [file["path"] for file in todo(step)["files"]] == sorted(cdi.NODES)
    host = having(host, runtime={"specs": [MINE]})
    assert "after a reboot" in decide(host, ["podman"], "native").steps[0].why
    host = having(host, engines={"nodes": cdi.format_nodes_unit(1)})
    assert decide(host, ["podman"], "native").steps == []
    assert ids(decide(host, ["podman"], "native", satisfied=False)) == ["cdi_spec"]


def test_containerd_is_configured_once_and_restarted_only_then() -> None:
    host = with_engines()
    (step,) = decide(host, ["containerd"]).steps
    assert step.disruption == "containerd_restart" and "leaves running containers alone" in step.why
    assert todo(step) == {"mode": "toolkit", "default": False, "state": "restarted"}
    (edit,) = step.diff
    host = having(host, engines={"containerd": {"files": [ConfigFile(edit.path, edit.after)]}})
    assert decide(host, ["containerd"]).steps == []
    host = having(host, engines={"containerd": {"pending": True}})
    assert "interrupted run" in decide(host, ["containerd"]).steps[0].why
    host = having(host, engines={"containerd": dict(pending=False, active=False)})
    (step,) = decide(host, ["containerd"]).steps
    assert (todo(step)["state"], step.disruption) == ("started", "none")


@pytest.mark.parametrize(
    ("host", "names", "mode", "more", "codes"),
    [
        (with_engines(podman=None), ["podman"], "cdi", {}, ["podman_missing"]),
        (with_engines(podman=(4, 0, 3)), ["podman"], "toolkit", {}, ["engine_without_cdi"]),
        (with_engines(podman=(3, 4, 4)), ["podman"], "cdi", {}, ["engine_without_cdi"]),
        (with_engines(podman=(4, 1, 0)), ["podman"], "cdi", {}, []),
        (with_engines(podman=()), ["podman"], "cdi", {}, []),
        (with_engines(containerd=None), ["containerd"], "cdi", {}, ["containerd_missing"]),
        (with_engines(podman=None, containerd=None), KUBERNETES, "cdi", {}, ["podman_missing", "containerd_missing"]),
        (with_engines(containerd=(1, 6, 20)), ["containerd"], "cdi", {}, ["engine_without_cdi"]),
        (with_engines(containerd=(1, 6, 20)), ["containerd"], "toolkit", {}, []),
        (with_engines(rancher="/var/lib/rancher/k3s/agent"), ["containerd"], "toolkit", {}, ["containerd_of_rancher"]),
        (with_engines(), ["containerd"], "cdi", {"nvidia_container_runtime_default": True}, ["default_runtime_impossible"]),
        (with_engines(files=[ConfigFile(containerd_config.MAIN, "version = 2\nx")]), ["containerd"], "toolkit", {},
         ["containerd_config_invalid"]),
    ],
)  # fmt: skip
def test_refusals(host: Any, names: "list[str]", mode: str, more: Any, codes: "list[str]") -> None:
    decision = decide(host, names, mode, **more)
    assert [refusal.code for refusal in decision.refusals] == codes
    assert not any(refusal.remedy.endswith(".") for refusal in decision.refusals)
    assert not codes or decision.steps == []


def test_nothing_of_docker_is_planned_for_a_kubernetes_host() -> None:
    given_settings = variables.parse_settings({"nvidia_container_runtime_engines": KUBERNETES}).settings
    decided = compose.plan(with_engines(toolkit=False), given_settings)
    assert decided.refusals == []
    assert not [step.id for step in decided.steps if step.id.startswith("docker_engine.")]
    steps = [step.id for step in decided.steps if step.id.startswith("nvidia_container_runtime.")]
    assert [step.partition(".")[2] for step in steps] == ["repository", "install", "cdi_spec", "containerd"]
    (step,) = [step for step in decided.steps if step.id == "gpu_verify.verify"]
    assert todo(step)["expect"]["engines"] == {"mode": "toolkit", "names": KUBERNETES}
    host = having(with_engines(), runtime={"specs": [SPEC._replace(stale="it serves driver 550")]})
    assert ids(decide(host, ["podman"])) == ["cdi_spec"]


@pytest.mark.parametrize(
    ("names", "mode", "podman", "containerd", "old"),
    [
        (["podman"], "toolkit", (4, 9, 3), (1, 7, 24), "podman 4.9.3"),
        (["podman"], "cdi", (5, 0, 3), (1, 7, 24), "podman 5.0.3"),
        (["podman"], "cdi", (5, 1, 0), (1, 7, 24), None),
        (["podman"], "cdi", (), (1, 7, 24), None),  # unknown
        (["containerd"], "cdi", (4, 9, 3), (1, 7, 15), "containerd 1.7.15"),
        (["containerd"], "cdi", (4, 9, 3), (1, 7, 16), None),
        (["containerd"], "toolkit", (4, 9, 3), (1, 7, 15), None),  # does not read specifications
    ],
)
def test_old_engines_have_a_specification_that_they_can_read(
    names: "list[str]", mode: str, podman: Any, containerd: Any, old: "str | None"
) -> None:
    host = with_engines(podman, containerd)
    host = having(host, runtime={"specs": [NEW]})
    steps = [step for step in decide(host, names, mode).steps if step.id.endswith("cdi_spec")]
    assert len(steps) == bool(old)
    if old:
        (step,) = steps
        assert step.why == f"{cdi.REFRESHED} asks for CDI 0.7.0, which {old} does not read"
        assert todo(step)["feature_flags"] == ["no-additional-gids-for-device-nodes"]
        assert [file["path"] for file in todo(step)["files"]] == [cdi.REFRESH_OLD]
        host = having(host, runtime=dict(specs=[SPEC._replace(format="0.5.0")], refresh_old=cdi.REFRESH_OLD_TEXT))
        assert not [step for step in decide(host, names, mode).steps if step.id.endswith("cdi_spec")]
        host = having(host, runtime={"refresh_old": None})
        (step,) = [step for step in decide(host, names, mode).steps if step.id.endswith("cdi_spec")]
        assert "nvidia-cdi-refresh may write" in step.why


def test_docker_with_cdi_before_26_1_is_old_too() -> None:
    for version, old in (("25.0.3", True), ("26.0.2", True), ("26.1.5+dfsg1", False), ("29.0.1", False)):
        host = with_engines()
        host = having(host, docker={"installed": True, "active": True, "version": version})
        assert bool(cdi_versions.too_old(host, settings(nvidia_container_runtime_mode="cdi"))) == old
        assert cdi_versions.too_old(host, settings()) is None


def test_the_file_for_old_engines_is_removed_when_no_engine_is_old_any_more() -> None:
    host = with_engines((5, 4, 2))
    host = having(host, runtime={"refresh_old": cdi.REFRESH_OLD_TEXT})
    assert (
        runtime.cleanup(host, settings(nvidia_container_runtime_engines=["podman"])).steps == []
    )  # not owned by gpu-ready
    host = having(host, runtime={"manifest": {"files": [cdi.REFRESH_OLD]}})
    (step,) = runtime.cleanup(host, settings(nvidia_container_runtime_engines=["podman"])).steps
    assert todo(step)["paths"] == [cdi.REFRESH_OLD]
    host = having(host, engines={"podman": {"version": [4, 9, 3]}})
    assert runtime.cleanup(host, settings(nvidia_container_runtime_engines=["podman"])).steps == []


def test_a_specification_of_others_that_an_old_engine_cannot_read_is_named_with_the_reason() -> None:
    host = with_engines((4, 9, 3), toolkit=False)
    host = having(host, runtime={"specs": [NEW._replace(path="/etc/cdi/site.yaml")]})
    (refusal,) = decide(host, ["podman"], "cdi").refusals
    assert refusal.code == "cdi_spec_conflict"
    assert "/etc/cdi/site.yaml" in refusal.message and "CDI 0.7.0, which podman 4.9.3 does not read" in refusal.message


@pytest.mark.parametrize(
    ("names", "mode", "default", "warned"),
    [
        (["containerd"], "toolkit", True, True),
        (["docker", "containerd"], "toolkit", True, True),
        (["containerd"], "toolkit", False, False),
        (["containerd"], "cdi", False, False),
        (["docker"], "toolkit", True, False),
    ],
)
def test_a_default_runtime_that_shows_all_gpus_to_every_pod_is_a_warning(
    names: "list[str]", mode: str, default: bool, warned: bool
) -> None:
    decision = decide(with_engines(), names, mode, nvidia_container_runtime_default=default)
    assert [one.code for one in decision.warnings] == ["default_runtime_exposes_gpus"] * warned
