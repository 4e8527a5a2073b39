"""The plan for the container runtime: each mode with each engine, and every state that a killed run leaves."""

import json
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.containers import cdi, driver_volume
from plugins.module_utils.gpu_ready.facts.model import (
    CdiSpecFacts,
    ContainerFacts,
    DockerFacts,
    ManifestFacts,
    RuntimeFacts,
    VerifiedFacts,
)
from plugins.plugin_utils.gpu_ready.plan.containers import daemon_json_keys, runtime
from tests.unit import goldens, hosts
from tests.unit.hosts import having
from tests.unit.plans import driver_choice, settings, todo
from tests.unit.test_plan_docker import engine, host

NVIDIA = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'
OURS = ("mode", "default", "engines", "migrate")
KNOWN = {"runtimes": ["runc", "nvidia"]}


def toolkit(installed: bool = True, hook_known: "bool | None" = True, **more: Any) -> RuntimeFacts:
    part = RuntimeFacts(
        toolkit=installed,
        hook_known=hook_known if installed else None,
        programs={"nvidia-ctk": "/usr/bin/nvidia-ctk" if installed else None},
        driver_files="580.95.05",
        boot_nodes=cdi.format_boot_nodes(1),
        helper=driver_volume.HELPER_TEXT,
    )
    return having(part, **more)


def manifest_facts(**more: Any) -> ManifestFacts:
    """What the manifest lists."""
    return ManifestFacts(**more)


def spec(path: str = "/etc/cdi/gpu-ready.json", stale: "str | None" = None) -> CdiSpecFacts:
    return CdiSpecFacts(path, path.endswith("gpu-ready.json"), ["0", "all"], stale=stale)


def decide(engine_part: DockerFacts, runtime_part: RuntimeFacts, driver_satisfied: bool = True, **w: Any) -> Any:
    given = {"nvidia_container_runtime_" + name if name in OURS else name: w[name] for name in w}
    return runtime.plan_runtime(
        host(engine_part, runtime_part), settings(**given), driver_choice(satisfied=driver_satisfied)
    )


def ids(decision: Any) -> list[str]:
    return [step.id.partition(".")[2] for step in decision.steps]


def test_plan_of_a_bare_host_is_repository_toolkit_and_one_restart() -> None:
    decision = decide(engine("20.10.24+dfsg1"), toolkit(False))
    assert ids(decision) == ["repository", "install", "configure"]
    assert decision.steps[-1].disruption == "docker_restart"
    assert decision.steps[-1].diff[0].before is None
    assert '"nvidia"' in decision.steps[-1].diff[0].after


WEB = ContainerFacts("docker", "c1", "web")


@pytest.mark.parametrize(
    ("containers", "given_settings", "info", "activation"),
    [
        ([], {}, {}, "restart"),
        ([WEB], {}, {}, "reload"),
        ([WEB], {"gpu_ready_disrupt": ["docker_restart"]}, {}, "restart"),
        ([WEB], {}, {"live_restore": True}, "restart"),
    ],
)
def test_the_first_installation_does_not_stop_containers(
    containers: list[ContainerFacts], given_settings: dict[str, Any], info: Any, activation: str
) -> None:
    """--runtime=nvidia needs a reload only; the hook that --gpus needs is found at the next start of dockerd."""
    facts = having(host(engine("28.5.1", info=info), toolkit(False)), work={"containers": containers})
    decision = runtime.plan_runtime(facts, settings(**given_settings), driver_choice(satisfied=True))
    assert todo(decision.steps[-1])["activation"] == activation
    waits = activation == "reload"
    assert [one.code for one in decision.warnings] == (["docker_restart_later"] if waits else [])
    assert decision.choice and decision.choice.args == (runtime.WITHOUT_HOOK if waits else ["--gpus", "all"])
    # The next run has nothing to do; without the containers it restarts docker.
    after = having(
        facts, docker={"daemon_json": {"exists": True, "text": NVIDIA}, "info": {"runtimes": ["nvidia", "runc"]}}
    )
    after = after._replace(runtime=toolkit(hook_known=not waits))
    assert runtime.plan_runtime(after, settings(**given_settings), driver_choice(satisfied=True)).steps == []
    idle = runtime.plan_runtime(
        having(after, work={"containers": []}), settings(**given_settings), driver_choice(satisfied=True)
    )
    assert [todo(step)["activation"] for step in idle.steps] == (["restart"] if waits else [])


def test_nothing_is_planned_for_a_converged_host() -> None:
    decision = decide(engine(text=NVIDIA, info=KNOWN), toolkit())
    assert (decision.steps, decision.refusals, decision.warnings) == ([], [], [])
    assert decision.choice.args == ["--gpus", "all"]


def test_nothing_of_docker_is_changed_without_docker_among_the_engines() -> None:
    decision = decide(engine(None), toolkit(False), engines=["podman"])
    assert (decision.choice, decision.steps, decision.refusals, decision.warnings) == (None, [], [], [])


@pytest.mark.parametrize(
    ("text", "info", "hook_known", "activation"),
    [
        ("{}", KNOWN, True, "reload"),  # missing in the file only
        (NVIDIA, {}, True, "reload"),  # killed between file and reload
        (NVIDIA, KNOWN, False, "restart"),  # killed between toolkit and restart
        (NVIDIA, KNOWN, None, None),  # nothing known about the start of dockerd
    ],
)
def test_leftovers_of_a_killed_run_are_repaired(
    text: str, info: Any, hook_known: Any, activation: "str | None"
) -> None:
    decision = decide(engine(text=text, info=info), toolkit(hook_known=hook_known))
    assert [todo(step)["activation"] for step in decision.steps] == ([activation] if activation else [])


@pytest.mark.parametrize(("worked", "containers"), [(7.5, []), (7.5, [WEB]), (7.0, []), (7.0, [WEB]), (None, [])])
def test_a_replaced_hook_is_no_reason_to_start_the_docker_again_that_has_used_one(
    worked: "float | None", containers: list[ContainerFacts]
) -> None:
    """Any upgrade of the toolkit makes the hook newer than dockerd, which looks for its path with each container."""
    facts = host(engine(text=NVIDIA, info=KNOWN), toolkit(hook_known=False))
    facts = having(facts, docker={"started": 7.5}, work={"containers": containers})
    facts = facts._replace(verified=VerifiedFacts(True, gpus_option_with=worked))
    decision = runtime.plan_runtime(facts, settings(), driver_choice(satisfied=True))
    known = worked == 7.5
    assert ids(decision) == ([] if known or containers else ["configure"])
    assert [one.code for one in decision.warnings] == (["docker_restart_later"] if containers and not known else [])
    args = runtime.WITHOUT_HOOK if containers and not known else ["--gpus", "all"]
    assert decision.choice and decision.choice.args == args


def test_another_version_of_the_toolkit_restarts_docker_neither_now_nor_in_the_next_run() -> None:
    bare = hosts.bare(hosts.T4)
    ready = hosts.carried_out(bare, goldens.decide(bare))
    asked = {"nvidia_container_toolkit_version": "1.19.1"}
    ready = having(ready, packages={"installed": {**ready.packages.installed, "nvidia-container-toolkit": "1.20.0-1"}})
    changed = goldens.decide(ready, **asked)
    assert [(step.id, step.disruption) for step in changed.steps] == [
        ("nvidia_container_runtime.install", "none"), ("gpu_verify.verify", "none"),
    ]  # fmt: skip
    after = hosts.carried_out(ready, changed)
    assert after.runtime.hook_known is False and goldens.decide(after, **asked).converged


def test_the_default_runtime_is_set_only_on_request() -> None:
    other = '{"default-runtime": "crun", ' + NVIDIA[1:]
    assert ids(decide(engine(text=other, info=KNOWN), toolkit())) == []
    (step,) = decide(engine(text=other, info=KNOWN), toolkit(), default=True).steps
    assert todo(step)["activation"] == "reload"
    assert '"default-runtime": "nvidia"' in step.diff[0].after
    assert "daemon.json gets default-runtime" in step.why


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
def test_modes_by_engine(mode: str, version: str, codes: list[str], steps: list[str], args: list[str]) -> None:
    decision = decide(engine(version), toolkit(False), mode=mode)
    assert [refusal.code for refusal in decision.refusals] == codes
    assert ids(decision) == steps
    assert decision.choice.args == args
    assert decision.choice.helper == (None if args else "/usr/local/bin/gpu-docker-args")


@pytest.mark.parametrize(
    ("version", "specs", "satisfied", "refresh", "warned"),
    [
        ("29.2.0", [spec("/etc/cdi/nvidia.yaml", "old")], True, False, ["/etc/cdi/nvidia.yaml"]),
        ("29.2.0", [spec("/etc/cdi/nvidia.yaml")], False, False, ["/etc/cdi/nvidia.yaml"]),
        ("29.2.0", [spec("/etc/cdi/nvidia.yaml")], True, False, []),
        ("29.2.0", [spec("/var/run/cdi/nvidia.yaml", "old")], True, True, []),
        ("29.2.0", [spec("/var/run/cdi/nvidia.yaml", "old")], True, False, ["/var/run/cdi/nvidia.yaml"]),
        ("29.1.5", [spec("/etc/cdi/nvidia.yaml", "old")], True, False, []),
        ("28.5.2", [spec("/etc/cdi/nvidia.yaml", "old")], True, False, []),
    ],
)
def test_an_outdated_specification_that_gpus_would_take_is_a_warning(
    version: str, specs: Any, satisfied: bool, refresh: bool, warned: list[str]
) -> None:
    host = engine(version, text=NVIDIA, info=KNOWN)
    decision = decide(host, toolkit(specs=specs, refresh=refresh), satisfied)
    assert decision.refusals == []
    notices = [notice for notice in decision.warnings if notice.code == "cdi_spec_outdated"]
    assert [notice.message.split()[0] for notice in notices] == warned
    assert all("nvidia-ctk cdi generate" in notice.remedy and version in notice.message for notice in notices)


def test_cdi_keeps_other_features_and_restarts() -> None:
    decision = decide(engine(text='{"features": {"x": true}}'), toolkit(False, specs=[spec()]), mode="native")
    (step,) = decision.steps
    assert step.diff[0].after == '{"features": {"x": true, "cdi": true}}'
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
    found = [(todo(step)["path"], todo(step)["generator"]) for step in decision.steps]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize("mode", ["native", "cdi"])
@pytest.mark.parametrize("text", [None, cdi.format_boot_nodes(2)])
def test_the_device_nodes_of_the_own_specification_precede_docker(mode: str, text: "str | None") -> None:
    (step,) = decide(engine("29.0.1"), toolkit(False, specs=[spec()], boot_nodes=text), mode=mode).steps
    assert "after a reboot" in step.why
    file, *helper = todo(step)["files"]
    assert [one["mode"] for one in helper] == (["0755"] if mode == "native" else [])
    assert file["path"] == "/etc/systemd/system/docker.service.d/gpu-ready-nodes.conf"
    assert "nvidia-modprobe -c=255 -c=0\n" in file["content"] and "nvidia-modprobe -u -c=0\n" in file["content"]


def test_a_foreign_specification_needs_no_device_nodes() -> None:
    part = toolkit(False, specs=[spec("/etc/cdi/nvidia.yaml")], boot_nodes=None)
    assert decide(engine("29.0.1"), part, mode="cdi").steps == []


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


def test_an_invalid_daemon_json_is_refused_once_and_only_if_keys_must_be_set() -> None:
    broken = engine("29.0.1", error={"problem": "comment (# ...)", "line": 2, "column": 3})
    assert [refusal.code for refusal in decide(broken, toolkit()).refusals] == ["daemon_json_invalid"]
    assert decide(broken, toolkit(False, specs=[spec()]), mode="native").refusals == []
    assert decide(broken, toolkit(), docker_engine_daemon_options={"mtu": 1}).refusals == []


def test_a_flag_with_the_same_runtime_is_refused() -> None:
    flag = {"key": "runtimes", "flag": "--add-runtime", "value": "nvidia=/x", "file": "/etc/systemd/system/docker.service.d/a.conf"}  # fmt: skip
    (refusal,) = decide(engine(flags=[flag]), toolkit()).refusals
    assert refusal.code == "daemon_json_flag_conflict"
    assert "runtimes.nvidia" in refusal.message


@pytest.mark.parametrize(
    ("distro", "codes", "steps"),
    [("debian12", [], ["volume"]), ("debian13", [], ["cdi_spec", "configure"])],
)
def test_a_planned_engine_is_judged_by_the_version_of_the_release(
    distro: str, codes: list[str], steps: list[str]
) -> None:
    facts = host(engine(None), toolkit(False))
    facts = having(facts, base={"distro": distro})
    decision = runtime.plan_runtime(facts, settings(nvidia_container_runtime_mode="native"), driver_choice())
    assert [refusal.code for refusal in decision.refusals] == codes
    assert ids(decision) == steps


# --- another mode: what of the earlier one is removed ---------------------------------------------------------------------

TOOLKIT_KEY = {"/runtimes/nvidia": {"after": {"path": "nvidia-container-runtime"}, "made": ["/runtimes"]}}
CDI_KEY = {"/features/cdi": {"after": True, "made": ["/features"]}}
PACKAGES = ["libnvidia-container1", "nvidia-container-toolkit", "nvidia-container-toolkit-base"]
VOLUME = {"exists": True, "version": "580.95.05", "stale": None}


def at(engine_part: DockerFacts, runtime_part: RuntimeFacts, packages: "list[str] | None" = None) -> Any:
    return host(engine_part, runtime_part, installed=dict.fromkeys(packages or [], "1.20.0-1"))


def switched(facts: Any, mode: str, **given_settings: Any) -> Any:
    return runtime.plan_runtime(
        facts, settings(nvidia_container_runtime_mode=mode, **given_settings), driver_choice(satisfied=True)
    )


def by_toolkit(version: str = "26.1.5", ours: bool = True, text: str = NVIDIA, **more: Any) -> Any:
    """A host in mode toolkit; ``ours``: gpu-ready installed it."""
    ours_by_manifest = (
        manifest_facts(packages=PACKAGES, keys={**TOOLKIT_KEY, **more.pop("keys", {})}) if ours else manifest_facts()
    )
    info = {"runtimes": ["runc", "nvidia"], **more.pop("info", {})}
    return at(engine(version, text=text, info=info, **more), toolkit(manifest=ours_by_manifest, boot_nodes=None, helper=None), PACKAGES)  # fmt: skip


@pytest.mark.parametrize(
    ("version", "mode", "steps", "after"),
    [
        ("20.10.24", "native", ["cleanup", "volume", "configure"], "{}"),
        ("26.1.5", "native", ["cleanup", "cdi_spec", "configure"], '{"features": {"cdi": true}}'),
        ("26.1.5", "cdi", ["cleanup", "cdi_spec", "configure"], '{"features": {"cdi": true}}'),
        ("29.0.1", "cdi", ["cleanup", "cdi_spec", "configure"], "{}"),
    ],
)
def test_our_toolkit_is_removed_with_its_keys(version: str, mode: str, steps: list[str], after: str) -> None:
    decision = switched(by_toolkit(version), mode)
    assert (ids(decision), decision.refusals) == (steps, [])
    cleanup, configure = decision.steps[0], decision.steps[-1]
    assert sorted(todo(cleanup)["packages"]) == PACKAGES
    assert todo(configure)["daemon_json"]["unset"] == ["runtimes"]
    assert todo(configure)["activation"] == "restart"  # on SIGHUP docker keeps what the file no longer has
    assert json.loads(configure.diff[0].after) == json.loads(after)


def test_a_foreign_toolkit_stays_with_its_keys() -> None:
    decision = switched(by_toolkit("20.10.24", ours=False), "native")
    assert ids(decision) == ["volume"]
    (step,) = switched(by_toolkit("29.0.1", ours=False), "cdi").steps
    assert todo(step)["generator"] == "nvidia-ctk"


def test_keys_that_others_changed_or_need_stay() -> None:
    theirs = '{"runtimes": {"nvidia": {"path": "/opt/other-runtime"}}}'
    assert ids(switched(by_toolkit("20.10.24", text=theirs), "native")) == ["cleanup", "volume"]
    options = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}
    decision = switched(by_toolkit("20.10.24"), "native", docker_engine_daemon_options=options)
    assert ids(decision) == ["cleanup", "volume"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [({"/default-runtime": {"after": "nvidia"}}, None), ({"/default-runtime": {"after": "nvidia", "before": "crun"}}, "crun")],
)  # fmt: skip
def test_the_default_runtime_is_restored(key: dict[str, Any], expected: "str | None") -> None:
    text = NVIDIA[:-1] + ', "default-runtime": "nvidia"}'
    facts = by_toolkit("26.1.5", text=text, keys=key, info={"default_runtime": "nvidia"})
    (step,) = switched(facts, "toolkit").steps
    assert json.loads(step.diff[0].after).get("default-runtime") == expected
    assert todo(step)["activation"] == ("restart" if expected is None else "reload")


@pytest.mark.parametrize(
    ("info", "mode", "activation"),
    [
        ({"default_runtime": "nvidia"}, "toolkit", "restart"),  # killed between file and restart: default reverted
        ({}, "toolkit", None),
        ({}, "native", "restart"),  # the runtime reverted
        ({"runtimes": ["runc"]}, "native", None),
    ],
)
def test_settings_that_docker_still_uses_after_a_kill_are_dropped(
    info: Any, mode: str, activation: "str | None"
) -> None:
    text = NVIDIA if mode == "toolkit" else "{}"
    known = {"runtimes": ["runc", "nvidia"], **info}
    volume: dict[str, Any] = {"volume": VOLUME, "manifest": manifest_facts(directories=["/usr/local/nvidia-driver"])}
    part = toolkit() if mode == "toolkit" else toolkit(False, **volume)
    decision = switched(at(engine("20.10.24", text=text, info=known), part), mode)
    assert [todo(step)["activation"] for step in decision.steps] == ([activation] if activation else [])


@pytest.mark.parametrize(
    ("text", "options"),
    [('{"default-runtime": "nvidia"}', {}), ("{}", {"default-runtime": "nvidia"})],
)
def test_a_foreign_default_runtime_keeps_its_program(text: str, options: dict[str, Any]) -> None:
    decision = decide(engine("20.10.24", text=text), toolkit(False), mode="native", docker_engine_daemon_options=options)  # fmt: skip
    assert [refusal.code for refusal in decision.refusals] == ["default_runtime_impossible"]
    theirs = decide(engine("20.10.24", text=text), toolkit(), mode="native", docker_engine_daemon_options=options)
    assert theirs.refusals == []


NATIVE_FILES = ["/etc/cdi/gpu-ready.json", cdi.BOOT_NODES, driver_volume.HELPER]


@pytest.mark.parametrize(
    ("version", "mode", "removed", "steps"),
    [
        ("26.1.5", "toolkit", NATIVE_FILES, ["cleanup", "repository", "install", "configure"]),
        ("26.1.5", "cdi", [driver_volume.HELPER], ["cleanup"]),
        ("26.1.5", "native", [], []),
        # docker was replaced by an older one: the specification is of no use to it.
        ("20.10.24", "native", ["/etc/cdi/gpu-ready.json"], ["cleanup", "volume"]),
    ],
)
def test_files_of_a_native_host(version: str, mode: str, removed: list[str], steps: list[str]) -> None:
    part = toolkit(False, specs=[spec()], manifest=manifest_facts(files=[*NATIVE_FILES, "/etc/other"], keys=CDI_KEY))
    text = '{"features": {"cdi": true}}'
    decision = switched(at(engine(version, text=text, info={"cdi_dirs": ["/etc/cdi"]}), part), mode)
    assert [name for name in ids(decision) if version != "20.10.24" or name != "configure"] == steps
    assert [todo(step)["paths"] for step in decision.steps if step.action == "cleanup"] == ([sorted(removed)] if removed else [])  # fmt: skip
    if mode == "toolkit":
        assert json.loads(decision.steps[-1].diff[0].after) == {"runtimes": {"nvidia": daemon_json_keys.RUNTIME}}


@pytest.mark.parametrize(("names", "removed"), [(["docker"], True), (["docker", "containerd"], True), (["docker", "podman"], False)])  # fmt: skip
def test_a_specification_that_another_engine_needs_stays(names: list[str], removed: bool) -> None:
    part = toolkit(
        specs=[spec("/etc/cdi/nvidia.yaml")], manifest=manifest_facts(files=["/etc/cdi/nvidia.yaml"]), helper=None
    )
    facts = at(engine("29.0.1", text=NVIDIA, info=KNOWN), part)
    assert ids(switched(facts, "toolkit", nvidia_container_runtime_engines=names)) == ["cleanup"] * removed


def test_what_the_service_of_a_removed_toolkit_wrote_is_removed_with_it() -> None:
    facts = by_toolkit("29.0.1")
    facts = having(facts, runtime=dict(refresh=True, specs=[spec("/var/run/cdi/nvidia.yaml")]))
    decision = switched(facts, "native")
    assert (ids(decision), decision.refusals) == (["cleanup", "cdi_spec", "configure"], [])
    assert todo(decision.steps[0])["remains"] == ["/var/run/cdi/nvidia.yaml"]
    # A service that does not write it, and a file that is not there: nothing stays behind.
    left: dict[str, Any]
    for left in ({"refresh": False}, {"specs": []}):
        assert todo(switched(having(facts, runtime=left), "native").steps[0])["remains"] == []


def test_two_specifications_of_the_same_devices_are_refused() -> None:
    two = [spec("/etc/cdi/nvidia.yaml"), spec("/var/run/cdi/nvidia.yaml")]
    (refusal,) = decide(engine("29.0.1"), toolkit(specs=two), mode="cdi").refusals
    assert refusal.code == "cdi_spec_conflict"


def test_foreign_files_with_the_same_names_stay() -> None:
    part = toolkit(specs=[spec("/etc/cdi/nvidia.yaml")], manifest=manifest_facts())
    assert ids(switched(at(engine("29.0.1", text=NVIDIA, info=KNOWN), part), "toolkit")) == []


# --- the driver volume -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("volume", "satisfied", "more", "why"),
    [
        ({"exists": False, "version": None, "stale": None}, True, {}, "stable path"),
        (VOLUME, True, {}, None),
        (dict(VOLUME, stale="lib64/libcuda.so.1 is not in it"), True, {}, "out of date: lib64/libcuda.so.1"),
        (VOLUME, False, {}, "the driver that is replaced"),
        (VOLUME, True, {"boot_nodes": None}, "after a reboot"),
        (VOLUME, True, {"helper": "#!/bin/sh\n"}, "gpu-docker-args, which prints"),
    ],
)
def test_the_volume(volume: dict[str, Any], satisfied: bool, more: dict[str, Any], why: "str | None") -> None:
    part = toolkit(False, volume=volume, manifest=manifest_facts(directories=["/usr/local/nvidia-driver"]), **more)
    decision = decide(engine("20.10.24"), part, satisfied, mode="native")
    assert ids(decision) == (["volume"] if why else [])
    assert all(why in step.why for step in decision.steps if why)


def test_a_directory_of_others_is_not_our_volume() -> None:
    (refusal,) = decide(engine("20.10.24"), toolkit(False, volume=VOLUME), mode="native").refusals
    assert refusal.code == "driver_volume_conflict"


# --- nvidia-docker2 and nvidia-docker 1.0 ------------------------------------------------------------------------

PLUGIN = {"plugin": "/usr/bin/nvidia-docker-plugin", "volumes": ["nvidia_driver_384.111"], "containers": []}


@pytest.mark.parametrize(
    ("packages", "legacy", "given_settings", "code"),
    [
        (["nvidia-docker2"], PLUGIN, {}, "legacy_nvidia_docker"),
        (["nvidia-docker"], PLUGIN, {}, "legacy_nvidia_docker"),
        ([], PLUGIN, {"nvidia_container_runtime_migrate": True}, "legacy_nvidia_docker"),
        (["nvidia-docker"], {**PLUGIN, "containers": ["old"]}, {"nvidia_container_runtime_migrate": True}, "legacy_volume_in_use"),
    ],
)  # fmt: skip
def test_an_abandoned_product_is_refused(packages: list[str], legacy: Any, given_settings: Any, code: str) -> None:
    part = toolkit(legacy={"plugin": None, "volumes": [], "containers": [], **legacy})
    decision = switched(at(engine(text=NVIDIA, info=KNOWN), part, packages), "toolkit", **given_settings)
    assert [refusal.code for refusal in decision.refusals] == [code]
    assert decision.steps == []


@pytest.mark.parametrize(
    ("packages", "services", "left", "warnings"),
    [
        (["nvidia-docker"], ["nvidia-docker"], True, []),
        (["nvidia-docker2"], [], False, ["legacy_conffile"]),
        (["nvidia-docker", "nvidia-docker2"], ["nvidia-docker"], True, ["legacy_conffile"]),
    ],
)
def test_only_the_service_of_nvidia_docker_1_is_stopped(
    packages: list[str], services: list[str], left: bool, warnings: list[str]
) -> None:
    legacy: Any = PLUGIN if "nvidia-docker" in packages else {"plugin": None, "volumes": [], "containers": []}
    part = toolkit(legacy=legacy)
    decision = switched(
        at(engine(text=NVIDIA, info=KNOWN), part, packages), "toolkit", nvidia_container_runtime_migrate=True
    )
    params = todo(decision.steps[0])
    assert (params["packages"], params["services"], bool(params["left"])) == (packages, services, left)
    assert [warning.code for warning in decision.warnings if warning.code == "legacy_conffile"] == warnings


@pytest.mark.parametrize("path", ["nvidia-container-runtime", "/usr/bin/nvidia-container-runtime"])
def test_nvidia_docker2_stays_beside_the_current_toolkit(path: str) -> None:
    """Its package has written the runtime into daemon.json, and depends on the toolkit."""
    text = json.dumps({"runtimes": {"nvidia": {"path": path, "runtimeArgs": []}}})
    decision = switched(at(engine(text=text, info=KNOWN), toolkit(), ["nvidia-docker2"]), "toolkit")
    assert (decision.refusals, decision.steps) == ([], [])
    assert [warning.code for warning in decision.warnings] == ["legacy_nvidia_docker"]


@pytest.mark.parametrize(
    ("mode", "steps", "after"),
    [("toolkit", ["migrate"], None), ("cdi", ["migrate", "cdi_spec", "configure"], {"mtu": 1})],
)
def test_nvidia_docker2_is_migrated(mode: str, steps: list[str], after: Any) -> None:
    own = {"mtu": 1, "runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}}}
    engine_part = engine("29.0.1", text=json.dumps(own), info=KNOWN)
    facts = at(engine_part, toolkit(), ["nvidia-docker2", "nvidia-container-toolkit"])
    facts = having(facts, apt={"sources": {"/etc/apt/sources.list": ""}})
    decision = switched(facts, mode, nvidia_container_runtime_migrate=True)
    assert (ids(decision), decision.refusals) == (steps, [])
    assert todo(decision.steps[0])["packages"] == ["nvidia-docker2"]
    assert todo(decision.steps[0])["keep"] == ["nvidia-container-toolkit"]
    if after is not None:
        assert json.loads(decision.steps[-1].diff[0].after) == {"mtu": 1}
