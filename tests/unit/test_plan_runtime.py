"""What is decided about the container runtime: each mode with each engine, and every state a killed run leaves."""

from typing import Any

import pytest
from gpu_ready import cdi, driver_volume
from gpu_ready.plan import runtime

from tests.unit.test_plan_docker import engine, host

NVIDIA = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
OURS = ("mode", "default", "engines", "migrate")
KNOWN = {"runtimes": {"runc": {}, "nvidia": {}}}


def toolkit(installed: bool = True, hook_known: "bool | None" = True, **more: Any) -> dict[str, Any]:
    return {
        "toolkit": installed, "hook_known": hook_known if installed else None, "refresh": False, "specs": [],
        "programs": {"nvidia-ctk": "/usr/bin/nvidia-ctk" if installed else None}, "driver_files": "580.95.05",
        "boot_nodes": cdi.boot_nodes(1), "helper": driver_volume.HELPER_TEXT,
        "volume": {"exists": False, "version": None, "stale": None}, "noted": noted(),
        "legacy": {"plugin": None, "volumes": [], "containers": []}, **more,
    }  # fmt: skip


def noted(**more: Any) -> dict[str, Any]:
    """What the manifest lists as ours."""
    return {"files": [], "folders": [], "packages": [], "keys": {}, **more}


def spec(path: str = "/etc/cdi/gpu-ready.json", stale: "str | None" = None) -> dict[str, Any]:
    return {"path": path, "ours": path.endswith("gpu-ready.json"), "devices": ["0", "all"], "stale": stale}


def decide(docker_part: dict[str, Any], runtime_part: dict[str, Any], driver_satisfied: bool = True, **w: Any) -> Any:
    wanted = {"nvidia_container_runtime_" + name if name in OURS else name: w[name] for name in w}
    return runtime.decide(host(docker_part, runtime_part), wanted, {"driver": {"satisfied": driver_satisfied}})


def ids(decision: Any) -> list[str]:
    return [step.id.partition(".")[2] for step in decision.steps]


def test_a_bare_host_gets_repository_toolkit_and_one_restart() -> None:
    decision = decide(engine("20.10.24+dfsg1"), toolkit(False))
    assert ids(decision) == ["repository", "install", "configure"]
    assert decision.steps[-1].disruption == "docker_restart"
    assert decision.steps[-1].diff["before"] is None
    assert '"nvidia"' in decision.steps[-1].diff["after"]


def test_a_converged_host_gets_nothing() -> None:
    decision = decide(engine(text=NVIDIA, info=KNOWN), toolkit())
    assert decision == (decision.choice, [], [], [])
    assert decision.choice["args"] == ["--gpus", "all"]


def test_without_docker_among_the_engines_nothing_of_docker_is_touched() -> None:
    assert decide(engine(None), toolkit(False), engines=["podman"]) == ({}, [], [], [])


@pytest.mark.parametrize(
    ("text", "info", "hook_known", "activation"),
    [
        ("{}", KNOWN, True, "reload"),  # only the file lacks it
        (NVIDIA, {}, True, "reload"),  # killed between file and reload
        (NVIDIA, KNOWN, False, "restart"),  # killed between toolkit and restart
        (NVIDIA, KNOWN, None, None),  # nothing known about the start of dockerd
    ],
)
def test_what_a_killed_run_left_is_repaired(text: str, info: Any, hook_known: Any, activation: "str | None") -> None:
    decision = decide(engine(text=text, info=info), toolkit(hook_known=hook_known))
    assert [step.params["activation"] for step in decision.steps] == ([activation] if activation else [])


def test_the_default_runtime_is_set_only_when_asked_for() -> None:
    other = '{"default-runtime": "crun", ' + NVIDIA[1:]
    assert ids(decide(engine(text=other, info=KNOWN), toolkit())) == []
    (step,) = decide(engine(text=other, info=KNOWN), toolkit(), default=True).steps
    assert step.params["activation"] == "reload"
    assert '"default-runtime": "nvidia"' in step.diff["after"]


CDI_ARGS = ["--device", "nvidia.com/gpu=all"]


@pytest.mark.parametrize(
    ("mode", "version", "codes", "steps", "args"),
    [
        ("cdi", "20.10.24+dfsg1", ["engine_without_cdi"], [], CDI_ARGS),
        ("cdi", "24.0.9", ["engine_without_cdi"], [], CDI_ARGS),
        ("cdi", "26.1.5", [], ["cdi_spec", "configure"], CDI_ARGS),
        ("cdi", "28.2.0", [], ["cdi_spec"], CDI_ARGS),
        ("native", "20.10.24+dfsg1", [], ["volume"], []),
        ("native", "24.0.9", [], ["volume"], []),
        ("native", "26.1.5", [], ["cdi_spec", "configure"], CDI_ARGS),
        ("native", "28.2.0", [], ["cdi_spec"], CDI_ARGS),
    ],
)
def test_each_way_by_engine(mode: str, version: str, codes: list[str], steps: list[str], args: list[str]) -> None:
    decision = decide(engine(version), toolkit(False), mode=mode)
    assert [refusal.code for refusal in decision.refusals] == codes
    assert ids(decision) == steps
    assert decision.choice["args"] == args
    assert decision.choice.get("helper") == (None if args else "/usr/local/bin/gpu-docker-args")


def test_cdi_keeps_other_features_and_restarts() -> None:
    decision = decide(engine(text='{"features": {"x": true}}'), toolkit(False, specs=[spec()]), mode="native")
    (step,) = decision.steps
    assert step.diff["after"] == '{"features": {"x": true, "cdi": true}}'
    assert step.disruption == "docker_restart"


@pytest.mark.parametrize(
    ("mode", "installed", "specs", "satisfied", "expected"),
    [
        ("native", False, [spec()], True, None),
        ("native", False, [spec(stale="old")], True, ("/etc/cdi/gpu-ready.json", "native")),
        ("native", False, [spec()], False, ("/etc/cdi/gpu-ready.json", "native")),
        ("native", True, [], True, ("/etc/cdi/gpu-ready.json", "native")),
        ("cdi", False, [], True, ("/etc/cdi/gpu-ready.json", "native")),
        ("cdi", True, [], True, ("/etc/cdi/nvidia.yaml", "nvidia-ctk")),
        ("cdi", True, [spec("/var/run/cdi/nvidia.yaml")], True, None),
        ("cdi", True, [spec("/var/run/cdi/nvidia.yaml", "old")], True, ("/var/run/cdi/nvidia.yaml", "nvidia-ctk")),
    ],
)
def test_the_specification(mode: str, installed: bool, specs: Any, satisfied: bool, expected: Any) -> None:
    decision = decide(engine("29.0.1"), toolkit(installed, specs=specs), satisfied, mode=mode)
    found = [(step.params["path"], step.params["generator"]) for step in decision.steps]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("mode", ["native", "cdi"])
@pytest.mark.parametrize("text", [None, cdi.boot_nodes(2)])
def test_the_device_nodes_of_our_specification_come_before_docker(mode: str, text: "str | None") -> None:
    (step,) = decide(engine("29.0.1"), toolkit(False, specs=[spec()], boot_nodes=text), mode=mode).steps
    assert "after a reboot" in step.why
    file, *helper = step.params["files"]
    assert [one["mode"] for one in helper] == (["0755"] if mode == "native" else [])
    assert file["path"] == "/etc/systemd/system/docker.service.d/gpu-ready-nodes.conf"
    assert "nvidia-modprobe -c=255 -c=0\n" in file["content"] and "nvidia-modprobe -u -c=0\n" in file["content"]


def test_a_specification_of_others_needs_no_device_nodes_of_ours() -> None:
    there = toolkit(False, specs=[spec("/etc/cdi/nvidia.yaml")], boot_nodes=None)
    assert decide(engine("29.0.1"), there, mode="cdi").steps == []


def test_a_second_specification_of_the_same_devices_is_refused() -> None:
    decision = decide(engine("29.0.1"), toolkit(specs=[spec("/etc/cdi/nvidia.yaml")]), mode="native")
    assert [refusal.code for refusal in decision.refusals] == ["cdi_spec_conflict"]


def test_contradictions_are_refused() -> None:
    (refusal,) = decide(engine(), toolkit(), mode="cdi", default=True).refusals
    assert refusal.code == "default_runtime_impossible"
    options = {"default-runtime": "runc"}
    (refusal,) = decide(engine(), toolkit(), default=True, docker_engine_daemon_options=options).refusals
    assert refusal.code == "daemon_options_contradict"
    assert "default-runtime" in refusal.message


def test_an_invalid_daemon_json_is_refused_once_and_only_when_our_keys_must_be_in_it() -> None:
    broken = engine("29.0.1", error={"problem": "comment (# ...)", "line": 2, "column": 3})
    assert [refusal.code for refusal in decide(broken, toolkit()).refusals] == ["daemon_json_invalid"]
    assert decide(broken, toolkit(False, specs=[spec()]), mode="native").refusals == []
    assert decide(broken, toolkit(), docker_engine_daemon_options={"mtu": 1}).refusals == []


def test_a_flag_that_names_our_runtime_is_refused() -> None:
    flag = {"key": "runtimes", "flag": "--add-runtime", "value": "nvidia=/x", "file": "/etc/systemd/system/docker.service.d/a.conf"}  # fmt: skip
    (refusal,) = decide(engine(flags=[flag]), toolkit()).refusals
    assert refusal.code == "daemon_json_flag_conflict"
    assert "runtimes.nvidia" in refusal.message


@pytest.mark.parametrize(
    ("distro", "codes", "steps"),
    [("debian12", [], ["volume"]), ("debian13", [], ["cdi_spec", "configure"])],
)
def test_an_engine_that_is_still_to_come_is_judged_by_what_the_release_carries(
    distro: str, codes: list[str], steps: list[str]
) -> None:
    observed = host(engine(None), toolkit(False))
    observed["base"]["distro"] = distro
    decision = runtime.decide(observed, {"nvidia_container_runtime_mode": "native"}, {"driver": {"satisfied": False}})
    assert [refusal.code for refusal in decision.refusals] == codes
    assert ids(decision) == steps
