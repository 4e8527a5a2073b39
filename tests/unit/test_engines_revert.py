"""The configuration of an engine that leaves nvidia_container_runtime_engines is reverted, before or with what it used."""

import json
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.containers import cdi
from plugins.module_utils.gpu_ready.containers.containerd import config as containerd_config
from plugins.module_utils.gpu_ready.containers.containerd.config import ConfigFile
from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.facts.model import CdiSpecFacts, ContainerFacts
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.hosts import having, with_packages
from tests.unit.plans import todo
from tests.unit.test_toml import DEBIAN

TOOLKIT = ["nvidia-container-toolkit", "nvidia-container-toolkit-base"]
NVIDIA = {"path": "nvidia-container-runtime"}
SPEC = CdiSpecFacts(cdi.REFRESHED, devices=["0", "all"])


def host(version: "str | None" = "28.0.4", text: "str | None" = None, **more: Any) -> Any:
    """Return a host with docker, podman and containerd, on which gpu-ready installed the toolkit."""
    found = hosts.with_driver(hosts.bare(hosts.T4), "580.95.05", "open", "cuda_repo", [])
    if version:
        value = daemon_json.parse(text).value
        info = {
            "runtimes": ["runc", *value.get("runtimes", {})], "default_runtime": value.get("default-runtime", "runc"),
            "cdi_dirs": ["/etc/cdi"], "live_restore": False, "running": 0, "version": version,
        }  # fmt: skip
        found = having(found, docker=dict(installed=True, active=True, version=version, info=info))
        found = having(found, docker={"daemon_json": dict(exists=text is not None, text=text)})
    found = having(found, engines={"podman": {"installed": True, "version": [5, 4, 2]}})
    files = [ConfigFile(containerd_config.MAIN, DEBIAN)]
    found = having(found, engines={"containerd": dict(installed=True, version=[1, 7, 24], active=True, files=files)})
    found = with_packages(found, **dict.fromkeys(TOOLKIT, "1.20.0-1"))
    found = having(found, runtime=dict(toolkit=True, hook_known=True, refresh=True, specs=[SPEC]))
    found = having(found, runtime={"programs": {"nvidia-ctk": "/usr/bin/nvidia-ctk"}})
    found = having(found, runtime={"manifest": dict(packages=TOOLKIT, files=[cdi.REFRESHED])})
    found = having(found, docker=more)
    return found


def decide(facts: Any, names: "list[str]", mode: str = "toolkit", **more: Any) -> Any:
    given_settings = {"nvidia_container_runtime_engines": names, "nvidia_container_runtime_mode": mode}
    given_settings |= {"nvidia_driver_source": "none", "cuda_toolkit_source": "none", "cudnn_source": "none"}
    return compose.plan(facts, variables.parse_settings(given_settings | more).settings)


def runtime(decided: Any) -> "dict[str, Any]":
    """Return the steps of the role by their action."""
    return {step.action: step for step in decided.steps if step.role == "nvidia_container_runtime"}


KEYS = {"/runtimes/nvidia": {"after": NVIDIA, "made": ["/runtimes"]}}
DEFAULT = {**KEYS, "/default-runtime": {"after": "nvidia"}}


@pytest.mark.parametrize("names", [["podman"], ["containerd"], ["podman", "containerd"]])
@pytest.mark.parametrize("mode", ["toolkit", "cdi", "native"])
def test_docker_gives_its_keys_back_and_restarts_when_it_leaves(names: "list[str]", mode: str) -> None:
    text = json.dumps({"log-driver": "journald", "default-runtime": "nvidia", "runtimes": {"nvidia": NVIDIA}})
    facts = host(text=text)
    facts = having(facts, runtime={"manifest": {"keys": DEFAULT}})
    decided = decide(facts, names, mode)
    assert decided.refusals == []
    step = runtime(decided)["configure"]
    assert todo(step)["daemon_json"]["unset"] == ["default-runtime", "runtimes"]
    assert (todo(step)["activation"], step.disruption) == ("restart", "docker_restart")
    assert daemon_json.parse(step.diff[0].after).value == {"log-driver": "journald"}
    assert "docker is no longer among nvidia_container_runtime_engines" in step.why
    assert ("cleanup" in runtime(decided)) == (mode != "toolkit")


def test_keys_of_others_stay_when_docker_leaves() -> None:
    text = json.dumps({"runtimes": {"nvidia": NVIDIA, "crun": {"path": "crun"}}})
    facts = host(text=text)
    assert "configure" not in runtime(decide(facts, ["podman"]))
    facts = having(facts, runtime={"manifest": {"keys": {"/runtimes/nvidia": {"after": {"path": "/opt/other"}}}}})
    assert "configure" not in runtime(decide(facts, ["podman"]))
    facts = having(facts, runtime={"manifest": {"keys": KEYS}})
    assert todo(runtime(decide(facts, ["podman"]))["configure"])["daemon_json"]["unset"] == ["runtimes.nvidia"]


def test_packages_do_not_go_under_a_default_runtime_that_others_set() -> None:
    facts = host(text=json.dumps({"default-runtime": "nvidia", "runtimes": {"nvidia": NVIDIA}}))
    assert [one.code for one in decide(facts, ["podman"], "native").refusals] == ["default_runtime_impossible"]
    assert decide(facts, ["podman"], "toolkit").refusals == []


def test_a_docker_that_does_not_run_gets_its_file_back_and_is_not_started() -> None:
    facts = host(text=json.dumps({"runtimes": {"nvidia": NVIDIA}}), active=False, info=None)
    facts = having(facts, runtime={"manifest": {"keys": KEYS}})
    step = runtime(decide(facts, ["podman"]))["configure"]
    assert (todo(step)["activation"], step.disruption) == ("none", "none")


def test_a_docker_that_still_uses_a_removed_runtime_is_restarted_after_a_kill() -> None:
    facts = host(text="{}")
    facts = having(facts, docker={"info": dict(runtimes=["runc", "nvidia"], default_runtime="nvidia")})
    assert "configure" not in runtime(decide(facts, ["podman"]))  # the program still exists
    facts = having(facts, runtime=dict(toolkit=False, refresh=False, specs=[], programs={"nvidia-ctk": None}))
    facts = having(facts, packages={"installed": {}})
    assert todo(runtime(decide(facts, ["podman"], "native"))["configure"])["activation"] == "restart"


def with_containerd(facts: Any) -> Any:
    """Return the host after containerd was configured for the toolkit's runtime."""
    return hosts.carried_out(facts, decide(facts, ["containerd"]))


@pytest.mark.parametrize("mode", ["toolkit", "cdi", "native"])
@pytest.mark.parametrize("names", [["podman"], ["docker"], ["docker", "podman"]])
@pytest.mark.parametrize("version", [[1, 7, 24], [2, 1, 9]])
def test_containerd_gives_its_keys_back_and_restarts_when_it_leaves(
    mode: str, names: "list[str]", version: "list[int]"
) -> None:
    facts = host()
    facts = having(facts, engines={"containerd": {"version": version}})
    before = facts.engines.containerd.files
    facts = with_containerd(facts)
    assert facts.engines.containerd.files != before
    decided = decide(facts, names, mode)
    assert decided.refusals == []
    step = runtime(decided)["containerd"]
    assert todo(step) == {"mode": "none", "default": False, "state": "restarted"}
    assert "containerd is no longer among nvidia_container_runtime_engines" in step.why
    after = hosts.carried_out(facts, decided)
    assert after.engines.containerd.files == before
    assert [one.action for one in decide(after, names, mode).steps] == []


def test_a_file_of_containerd_that_we_created_is_removed_with_our_keys() -> None:
    facts = host()
    facts = having(facts, engines={"containerd": {"files": [ConfigFile(containerd_config.MAIN, None)]}})
    facts = with_containerd(facts)
    step = runtime(decide(facts, ["docker"]))["containerd"]
    assert [(edit.path, edit.after) for edit in step.diff] == [(containerd_config.MAIN, None)]


def test_a_containerd_that_leaves_and_was_not_restarted_is_restarted() -> None:
    facts = host()
    facts = having(facts, engines={"containerd": {"pending": True}})
    assert todo(runtime(decide(facts, ["docker"]))["containerd"])["state"] == "restarted"
    facts = having(facts, engines={"containerd": dict(active=False)})
    assert "containerd" not in runtime(decide(facts, ["docker"]))  # it starts with the right files one day


def test_podman_that_leaves_takes_its_specification_and_units_along() -> None:
    facts = host()
    facts = having(facts, runtime=dict(toolkit=False, refresh=False, programs={"nvidia-ctk": None}))
    facts = having(facts, runtime={"specs": [SPEC._replace(path=cdi.NATIVE, ours=True)]})
    facts = having(facts, packages={"installed": {}})
    facts = having(facts, engines={"nodes": cdi.format_nodes_unit(1)})
    facts = having(facts, runtime={"manifest": dict(packages=[], files=[cdi.NATIVE, *cdi.NODES])})
    step = runtime(decide(facts, ["docker"]))["cleanup"]
    assert todo(step)["paths"] == sorted([cdi.NATIVE, *cdi.NODES])


NAMES = [["podman"], ["containerd"], ["docker", "podman"], ["docker", "containerd"], ["docker", "podman", "containerd"]]


@pytest.mark.parametrize("names", NAMES, ids=",".join)
@pytest.mark.parametrize("version", ["20.10.24", "24.0.9", "26.1.5", "28.2.0"])
@pytest.mark.parametrize("mode", ["cdi", "native"])
def test_a_specification_that_the_cleanup_removes_is_no_conflict(names: "list[str]", version: str, mode: str) -> None:
    if mode == "cdi" and version < "25" and "docker" in names:
        return
    decided = decide(host(version, text="{}"), names, mode)
    assert decided.refusals == []
    steps = runtime(decided)
    assert todo(steps["cleanup"])["packages"] == TOOLKIT
    assert todo(steps["cdi_spec"])["path"] == cdi.NATIVE


@pytest.mark.parametrize("names", [*NAMES, ["docker"]], ids=",".join)
def test_containers_of_containerd_are_not_left_without_the_runtime_that_ends_them(names: "list[str]") -> None:
    facts = host()
    facts = having(facts, work={"containers": [ContainerFacts("containerd", "abc", "k8s.io/abc", "GPU")]})
    for permitted in ([], ["docker_restart", "containerd_restart"]):
        decided = decide(facts, names, "cdi", gpu_ready_disrupt=permitted)
        assert "host_in_use" in [one.code for one in decided.refusals]
        assert "k8s.io/abc" in decided.refusals[0].message
    assert decide(facts, names, "toolkit").refusals == []


@pytest.mark.parametrize("recorded", [{}, KEYS])
def test_a_file_that_cannot_be_read_is_refused_where_it_has_keys_of_ours(recorded: "dict[str, Any]") -> None:
    facts = having(
        host(), docker={"daemon_json": dict(exists=True, text="{")}, runtime={"manifest": {"keys": recorded}}
    )
    decided = decide(facts, ["podman"])
    assert [one.code for one in decided.refusals] == (["daemon_json_invalid"] if recorded else [])
    assert "configure" not in runtime(decided)


@pytest.mark.parametrize(
    ("mode", "version", "value", "info", "need"),
    [
        ("toolkit", "28.0.4", {"runtimes": {"nvidia": NVIDIA}}, {"runtimes": ["runc"]}, "reload"),
        (
            "toolkit",
            "28.0.4",
            {"runtimes": {"nvidia": NVIDIA}, "default-runtime": "nvidia"},
            {"default_runtime": "runc"},
            "reload",
        ),
        ("toolkit", "28.0.4", {"runtimes": {"nvidia": NVIDIA}, "default-runtime": "nvidia"}, {}, None),
        ("cdi", "26.1.5", {"features": {"cdi": True}}, {"cdi_dirs": []}, "restart"),
        ("cdi", "26.1.5", {"features": {"cdi": True}}, {}, None),
    ],
)
def test_what_daemon_json_says_and_docker_does_not_use_yet_is_applied(
    mode: str, version: str, value: "dict[str, Any]", info: "dict[str, Any]", need: "str | None"
) -> None:
    """A run was killed between the file and the restart."""
    facts = having(host(version, json.dumps(value)), docker={"info": info})
    default = "default-runtime" in value
    found = runtime(decide(facts, ["docker"], mode, nvidia_container_runtime_default=default)).get("configure")
    assert (found and todo(found)["activation"]) == need
