"""What is decided for podman and containerd, alone and beside docker, and when nothing is to be done."""

import copy
from typing import Any

import pytest
from gpu_ready.containers import cdi
from gpu_ready.containers.containerd import config as containerd_config
from gpu_ready.lifecycle import variables
from gpu_ready.plan import compose
from gpu_ready.plan.containers import cdi_versions, engines, runtime

from tests.unit import hosts
from tests.unit.test_toml import DEBIAN

SPEC = {"path": cdi.REFRESHED, "ours": False, "devices": ["0", "all"], "stale": None}
MINE = dict(SPEC, path=cdi.NATIVE, ours=True)
KUBERNETES = ["podman", "containerd"]


def observed(podman: Any = (5, 4, 2), containerd: Any = (1, 7, 24), toolkit: bool = True, **more: Any) -> Any:
    """Return a host with a toolkit, podman and containerd (None: without it)."""
    host = hosts.bare(hosts.T4)
    host["engines"]["podman"] = {"installed": podman is not None, "version": list(podman or [])}
    if containerd:
        files = [[containerd_config.MAIN, DEBIAN]]
        host["engines"]["containerd"].update(installed=True, version=list(containerd), active=True, files=files)
    host["runtime"]["toolkit"] = toolkit
    if toolkit:
        host["runtime"].update(refresh=True, specs=[SPEC])
        host["runtime"]["programs"].update(
            {"nvidia-ctk": "/usr/bin/nvidia-ctk", "nvidia-container-runtime": "/usr/bin/nvidia-container-runtime"}
        )
    host["engines"]["containerd"].update(more)
    return host


def decide(host: Any, names: "list[str]", mode: str = "toolkit", satisfied: bool = True, **more: Any) -> Any:
    wanted = {"nvidia_container_runtime_engines": names, "nvidia_container_runtime_mode": mode, **more}
    return engines.decide(host, wanted, {"driver": {"satisfied": satisfied}})


def ids(decision: Any) -> "list[str]":
    return [step.id.partition(".")[2] for step in decision.steps]


@pytest.mark.parametrize("names", [[], ["docker"]])
def test_docker_alone_is_none_of_this_room(names: "list[str]") -> None:
    assert decide(observed(None, None), names) == ({}, [], [], [])


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
    decision = decide(observed(toolkit=toolkit), names, mode)
    assert decision.refusals == []
    assert ids(decision) == steps
    assert decision.choice == {"mode": mode, "names": [name for name in ("docker", *KUBERNETES) if name in names]}


def test_docker_with_cdi_and_podman_share_one_specification() -> None:
    host = observed(toolkit=False)
    host["docker"].update(installed=True, active=True, version="28.2.0", info={"cdi_dirs": ["/etc/cdi"]})
    assert ids(decide(host, ["docker", "podman"], "native")) == []
    host["docker"]["version"] = "20.10.24"  # has no CDI, and gets a driver volume instead
    assert ids(decide(host, ["docker", "podman"], "native")) == ["cdi_spec"]


def test_the_toolkit_that_comes_with_this_plan_writes_the_specification() -> None:
    (step,) = [step for step in decide(observed(toolkit=False), ["podman"]).steps if step.id.endswith("cdi_spec")]
    assert (step.params["generator"], step.params["path"], step.params["files"]) == ("nvidia-ctk", cdi.REFRESHED, [])
    assert step.params["unrefreshed"] == cdi.GENERATED  # a toolkit before 1.18 keeps nothing fresh


def test_our_specification_brings_units_that_make_the_device_nodes() -> None:
    host = observed(toolkit=False)
    (step,) = decide(host, ["podman"], "native").steps
    assert step.params["path"] == cdi.NATIVE and [file["path"] for file in step.params["files"]] == sorted(cdi.NODES)
    host["runtime"]["specs"] = [MINE]
    assert "after a reboot" in decide(host, ["podman"], "native").steps[0].why
    host["engines"]["nodes"] = cdi.nodes_unit(1)
    assert decide(host, ["podman"], "native").steps == []
    assert ids(decide(host, ["podman"], "native", satisfied=False)) == ["cdi_spec"]


def test_containerd_is_told_once_and_restarted_only_then() -> None:
    host = observed()
    (step,) = decide(host, ["containerd"]).steps
    assert step.disruption == "containerd_restart" and "leaves running containers alone" in step.why
    assert step.params == {"mode": "toolkit", "default": False, "state": "restarted"}
    (edit,) = step.diff
    host["engines"]["containerd"]["files"] = [[edit["path"], edit["after"]]]
    assert decide(host, ["containerd"]).steps == []
    host["engines"]["containerd"]["pending"] = True
    assert "interrupted run" in decide(host, ["containerd"]).steps[0].why
    host["engines"]["containerd"].update(pending=False, active=False)
    (step,) = decide(host, ["containerd"]).steps
    assert (step.params["state"], step.disruption) == ("started", "none")


def test_a_restart_that_would_end_gpu_containers_needs_leave() -> None:
    host = observed(keeps_containers=False, gpu_containers=["k8s.io/abc"])
    (refusal,) = decide(host, ["containerd"]).refusals
    assert refusal.code == "gpu_containers_running" and "k8s.io/abc" in refusal.message
    assert decide(host, ["containerd"]).steps == []
    assert ids(decide(host, ["containerd"], docker_engine_restart_ok=True)) == ["containerd"]


@pytest.mark.parametrize(
    ("host", "names", "mode", "more", "codes"),
    [
        (observed(podman=None), ["podman"], "cdi", {}, ["podman_missing"]),
        (observed(podman=(4, 0, 3)), ["podman"], "toolkit", {}, ["engine_without_cdi"]),
        (observed(podman=(3, 4, 4)), ["podman"], "cdi", {}, ["engine_without_cdi"]),
        (observed(podman=(4, 1, 0)), ["podman"], "cdi", {}, []),
        (observed(podman=()), ["podman"], "cdi", {}, []),
        (observed(containerd=None), ["containerd"], "cdi", {}, ["containerd_missing"]),
        (observed(podman=None, containerd=None), KUBERNETES, "cdi", {}, ["podman_missing", "containerd_missing"]),
        (observed(containerd=(1, 6, 20)), ["containerd"], "cdi", {}, ["engine_without_cdi"]),
        (observed(containerd=(1, 6, 20)), ["containerd"], "toolkit", {}, []),
        (observed(rancher="/var/lib/rancher/k3s/agent"), ["containerd"], "toolkit", {}, ["containerd_of_rancher"]),
        (observed(), ["containerd"], "cdi", {"nvidia_container_runtime_default": True}, ["default_runtime_impossible"]),
        (observed(files=[[containerd_config.MAIN, "version = 2\nx"]]), ["containerd"], "toolkit", {},
         ["containerd_config_invalid"]),
    ],
)  # fmt: skip
def test_refusals(host: Any, names: "list[str]", mode: str, more: Any, codes: "list[str]") -> None:
    decision = decide(host, names, mode, **more)
    assert [refusal.code for refusal in decision.refusals] == codes
    assert not any(refusal.remedy.endswith(".") for refusal in decision.refusals)
    assert not codes or decision.steps == []


def test_a_host_of_kubernetes_gets_nothing_of_docker() -> None:
    wanted = variables.parse_settings({"nvidia_container_runtime_engines": KUBERNETES}).settings._asdict()
    decided = compose.plan(observed(toolkit=False), wanted)
    assert decided.refusals == []
    assert not [step.id for step in decided.steps if step.id.startswith("docker_engine.")]
    steps = [step.id for step in decided.steps if step.id.startswith("nvidia_container_runtime.")]
    assert [step.partition(".")[2] for step in steps] == ["repository", "install", "cdi_spec", "containerd"]
    (proof,) = [step for step in decided.steps if step.id == "gpu_verify.verify"]
    assert proof.params["expect"]["engines"] == {"mode": "toolkit", "names": KUBERNETES}
    host = copy.deepcopy(observed())
    host["runtime"]["specs"][0]["stale"] = "it serves driver 550"
    assert ids(decide(host, ["podman"])) == ["cdi_spec"]


@pytest.mark.parametrize("mode", ["toolkit", "cdi", "native"])
@pytest.mark.parametrize("engine", [(1, 7, 24), (2, 1, 9)])
@pytest.mark.parametrize("before", ["toolkit", "native"])
def test_a_host_that_got_its_steps_gets_no_more_of_them(mode: str, engine: Any, before: str) -> None:
    host = observed(toolkit=False, containerd=engine)
    for wish in (before, mode):
        wanted = variables.parse_settings(
            {"nvidia_container_runtime_engines": KUBERNETES, "nvidia_container_runtime_mode": wish}
        ).settings._asdict()
        decided = compose.plan(host, wanted)
        assert decided.refusals == []
        host = hosts.carried_out(host, decided)
        if wish == "toolkit":
            host["packages"]["installed"]["nvidia-container-toolkit"] = "1.20.0-1"
            host["runtime"]["noted"].update(packages=["nvidia-container-toolkit"], files=[cdi.REFRESHED])
        assert [step.id for step in compose.plan(host, wanted).steps] == []


NEW = {"format": "0.7.0"}


@pytest.mark.parametrize(
    ("names", "mode", "podman", "containerd", "old"),
    [
        (["podman"], "toolkit", (4, 9, 3), (1, 7, 24), "podman 4.9.3"),
        (["podman"], "cdi", (5, 0, 3), (1, 7, 24), "podman 5.0.3"),
        (["podman"], "cdi", (5, 1, 0), (1, 7, 24), None),
        (["podman"], "cdi", (), (1, 7, 24), None),  # it does not tell
        (["containerd"], "cdi", (4, 9, 3), (1, 7, 15), "containerd 1.7.15"),
        (["containerd"], "cdi", (4, 9, 3), (1, 7, 16), None),
        (["containerd"], "toolkit", (4, 9, 3), (1, 7, 15), None),  # reads no specification
    ],
)
def test_old_engines_get_a_specification_that_they_read(
    names: "list[str]", mode: str, podman: Any, containerd: Any, old: "str | None"
) -> None:
    host = observed(podman, containerd)
    host["runtime"]["specs"] = [SPEC | NEW]
    steps = [step for step in decide(host, names, mode).steps if step.id.endswith("cdi_spec")]
    assert len(steps) == bool(old)
    if old:
        (step,) = steps
        assert step.why == f"{cdi.REFRESHED} asks for CDI 0.7.0, which {old} does not read"
        assert step.params["feature_flags"] == ["no-additional-gids-for-device-nodes"]
        assert [file["path"] for file in step.params["files"]] == [cdi.REFRESH_OLD]
        host["runtime"].update(specs=[SPEC | {"format": "0.5.0"}], refresh_old=cdi.REFRESH_OLD_TEXT)
        assert not [step for step in decide(host, names, mode).steps if step.id.endswith("cdi_spec")]
        host["runtime"]["refresh_old"] = None
        (step,) = [step for step in decide(host, names, mode).steps if step.id.endswith("cdi_spec")]
        assert "nvidia-cdi-refresh may write" in step.why


def test_docker_with_cdi_before_26_1_is_old_too() -> None:
    for version, old in (("25.0.3", True), ("26.0.2", True), ("26.1.5+dfsg1", False), ("29.0.1", False)):
        host = observed()
        host["docker"].update(installed=True, active=True, version=version, info={"cdi_dirs": ["/etc/cdi"]})
        wanted = {"nvidia_container_runtime_mode": "cdi"}
        assert bool(cdi_versions.too_old(host, wanted)) == old
        assert cdi_versions.too_old(host, {}) is None


def test_the_file_for_old_engines_goes_when_no_engine_is_old_any_more() -> None:
    host = observed((5, 4, 2))
    host["runtime"]["refresh_old"] = cdi.REFRESH_OLD_TEXT
    assert runtime.leave(host, {"nvidia_container_runtime_engines": ["podman"]}).steps == []  # not ours
    host["runtime"]["noted"]["files"] = [cdi.REFRESH_OLD]
    (step,) = runtime.leave(host, {"nvidia_container_runtime_engines": ["podman"]}).steps
    assert step.params["paths"] == [cdi.REFRESH_OLD]
    host["engines"]["podman"]["version"] = [4, 9, 3]
    assert runtime.leave(host, {"nvidia_container_runtime_engines": ["podman"]}).steps == []


def test_a_specification_of_others_that_an_old_engine_cannot_read_is_named_with_the_reason() -> None:
    host = observed((4, 9, 3), toolkit=False)
    host["runtime"]["specs"] = [dict(SPEC, path="/etc/cdi/site.yaml", **NEW)]
    (refusal,) = decide(host, ["podman"], "cdi").refusals
    assert refusal.code == "cdi_spec_conflict"
    assert "/etc/cdi/site.yaml" in refusal.message and "CDI 0.7.0, which podman 4.9.3 does not read" in refusal.message
