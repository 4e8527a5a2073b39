"""One host through any engines and modes: each run does what it planned, the next finds nothing, nothing is left behind."""

import copy
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import manifest_notes, records
from plugins.module_utils.gpu_ready.containers import cdi, docker, driver_volume
from plugins.module_utils.gpu_ready.containers.containerd import config as containerd_config
from plugins.module_utils.gpu_ready.containers.containerd import toml
from plugins.module_utils.gpu_ready.containers.containerd.config import ConfigFile
from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.facts.model import (
    ContainerdFacts,
    DaemonJsonFacts,
    DockerFacts,
    EngineFacts,
    Facts,
    PodmanFacts,
)
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.containers import migration, runtime_cleanup
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.plans import todo
from tests.unit.test_toml import DEBIAN

ENGINES = ("docker", "podman", "containerd")
SETS = [list(names) for size in (1, 2, 3) for names in itertools.combinations(ENGINES, size)]
WAYS = ("toolkit", "default", "cdi", "native")
VERSIONS = ("20.10.24", "26.1.5", "28.2.0", None)
OTHERS = json.dumps({"log-driver": "journald", "features": {"buildkit": True}, "runtimes": {"crun": {"path": "crun"}}})


Json = dict[str, Any]
"""Facts as JSON, which the simulated steps change; the planner gets them as records."""


def bare(version: "str | None", podman: "list[int]", containerd: "list[int]") -> Json:
    """Return a host with a driver and three engines (``version`` None: without docker), as it was before gpu-ready."""
    found = hosts.with_driver(hosts.bare(hosts.T4), "580.95.05", "open", "cuda_repo", [])
    found = found._replace(
        engines=EngineFacts(
            podman=PodmanFacts(True, podman),
            containerd=ContainerdFacts(
                True, containerd, active=True, files=[ConfigFile(containerd_config.MAIN, DEBIAN)]
            ),
        )
    )
    if version:
        info = docker.EngineInfo(version, ["runc"], "runc", False, (), 0)
        configuration = DaemonJsonFacts(exists=True, text=OTHERS)
        engine = DockerFacts(True, version=version, active=True, enabled=True, info=info, daemon_json=configuration)
        found = found._replace(docker=engine)
    host: Json = records.to_json(found)
    if version:
        restart(host)
    return host


def legacy(host: Json, product: str) -> Json:
    """The host with one of NVIDIA's abandoned products, as its packages leave it."""
    found = copy.deepcopy(host)
    found["packages"]["installed"][product] = "2.13.0-1"
    if product == migration.DOCKER1:
        found["runtime"]["legacy"]["plugin"] = "/usr/bin/nvidia-docker-plugin"
        return found
    install(found, {}, None)
    found["runtime"]["manifest"]["packages"] = []
    found["docker"]["daemon_json"]["text"] = json.dumps({"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}})
    restart(found)
    return found


def migrate(host: Json, params: Any, decided: Any) -> None:
    for name in params["packages"]:
        host["packages"]["installed"].pop(name)
    host["runtime"]["legacy"] = {"plugin": None, "volumes": [], "containers": []}


def decide(host: Json, names: "list[str]", way: str) -> Any:
    given_settings = {
        "nvidia_container_runtime_engines": names,
        "nvidia_container_runtime_mode": "toolkit" if way == "default" else way,
        "nvidia_container_runtime_default": way == "default",
        "nvidia_container_runtime_migrate": True,
    } | {"nvidia_driver_source": "none", "cuda_toolkit_source": "none", "cudnn_source": "none"}
    return compose.plan(
        records.from_json(Facts, copy.deepcopy(host)), variables.parse_settings(given_settings).settings
    )


def restart(host: Json) -> None:
    """Let docker read its configuration second, and find the hook."""
    value = daemon_json.parse(host["docker"]["daemon_json"]["text"]).value
    by_default = docker.capabilities(host["docker"]["version"]).cdi == "default"
    host["docker"]["info"].update(
        runtimes=["runc", *value.get("runtimes", {})],
        default_runtime=value.get("default-runtime", "runc"),
        cdi_dirs=["/etc/cdi"] if by_default or value.get("features", {}).get("cdi") else [],
    )
    host["runtime"]["hook_known"] = True if host["runtime"]["toolkit"] else None


def engine(host: Json, params: Any, decided: Any) -> None:
    hosts.STEPS["docker_engine.install"](host, params, decided)
    restart(host)


def install(host: Json, params: Any, decided: Any) -> None:
    host["packages"]["installed"].update(dict.fromkeys(runtime_cleanup.TOOLKIT_PACKAGES, "1.20.0-1"))
    host["runtime"]["manifest"]["packages"] = sorted(runtime_cleanup.TOOLKIT_PACKAGES)
    host["runtime"].update(toolkit=True, hook_known=False, refresh=True, programs={"nvidia-ctk": "/usr/bin/nvidia-ctk"})
    if not [spec for spec in host["runtime"]["specs"] if spec["path"] == cdi.REFRESHED]:  # by nvidia-cdi-refresh
        flagged = host["runtime"]["refresh_old"] is not None
        host["runtime"]["specs"].append(spec(cdi.REFRESHED, "0.5.0" if flagged else "0.7.0"))


def spec(path: str, version: str) -> Json:
    return {"path": path, "ours": path == cdi.NATIVE, "devices": ["0", "all"], "stale": None, "format": version}


def note(host: Json, section: str, path: str) -> None:
    host["runtime"]["manifest"][section] = sorted({*host["runtime"]["manifest"][section], path})


def write(host: Json, files: "list[dict[str, str]]") -> None:
    hosts._runtime_files(host, {"files": files})
    for file in files:
        note(host, "files", file["path"])


def specification(host: Json, params: Any, decided: Any) -> None:
    write(host, params["files"])
    native = params["generator"] == "native"
    path = params["path"]
    if not native and params.get("unrefreshed") and not host["runtime"]["refresh"]:
        path = params["unrefreshed"]
    kept = [one for one in host["runtime"]["specs"] if one["path"] not in (path, *params["remove"])]
    new = spec(path, "0.5.0" if native or params["feature_flags"] else "0.7.0")
    host["runtime"]["specs"] = [*kept, new]
    note(host, "files", path)


def volume(host: Json, params: Any, decided: Any) -> None:
    write(host, params["files"])
    host["runtime"]["volume"] = {"exists": True, "version": "580.95.05", "stale": None}
    note(host, "directories", driver_volume.ROOT)


def cleanup(host: Json, params: Any, decided: Any) -> None:
    for name in params["packages"]:
        del host["packages"]["installed"][name]
    removed = {*params["paths"], *params["remains"]}
    facts = records.from_json(Facts, host)
    host.update(records.to_json(runtime_cleanup.facts_after(facts, removed, bool(params["packages"]))))
    for section in ("files", "directories", "packages"):
        recorded = host["runtime"]["manifest"][section]
        host["runtime"]["manifest"][section] = [one for one in recorded if one not in {*removed, *params["packages"]}]


def configure(host: Json, params: Any, decided: Any) -> None:
    found, given = host["docker"]["daemon_json"], params["daemon_json"]
    change = daemon_json.merge(found["text"], given["set"], given["unset"])
    found.update(text=change.after, exists=True)
    known = host["runtime"]["manifest"]["keys"]
    for name, state in change.record.items():
        back = manifest_notes.keys_restored_by(known, name, state)
        for one in back:
            del known[one]
        if not back:
            known.setdefault(name, state).update({key: state[key] for key in ("after",) if key in state})
    if params["activation"] != "none":
        restart(host)


ACTIONS = {
    "migrate": migrate,
    "install": install,
    "cdi_spec": specification,
    "volume": volume,
    "cleanup": cleanup,
    "configure": configure,
}


def carry_out(host: Json, decided: Any, steps: "int | None" = None) -> Any:
    after = copy.deepcopy(host)
    for step in decided.steps[:steps]:
        act = ACTIONS.get(step.action) if step.role == "nvidia_container_runtime" else None
        if step.id == "docker_engine.install":
            act = engine
        (act or hosts.STEPS[step.id])(after, copy.deepcopy(todo(step)), decided)
    return after


def traces(host: Json) -> Any:
    """Return what gpu-ready added to the host."""
    part, files = host["runtime"], host["engines"]["containerd"]["files"]
    texts = {file["path"]: toml.parse(file["text"]).value for file in files if file["text"] is not None}
    ours = {name: key for name, key in part["manifest"]["keys"].items()}
    return {
        "packages": [name for name in runtime_cleanup.TOOLKIT_PACKAGES if name in host["packages"]["installed"]],
        "specs": sorted(one["path"] for one in part["specs"]),
        "files": [part["volume"], part["helper"], part["boot_nodes"], part["refresh_old"], host["engines"]["nodes"]],
        "daemon.json": [daemon_json.parse(host["docker"]["daemon_json"]["text"]).value, ours],
        "containerd": texts,
    }


def check(version: Any, podman: Any, containerd: Any, requests: "list[Any]", kill: int = 99) -> None:
    clean = bare(version, podman, containerd)
    host = clean
    for names, way in requests:
        decided = decide(host, names, way)
        alone = decide(clean, names, way)
        assert [one.code for one in decided.refusals] == [one.code for one in alone.refusals], decided.refusals
        if decided.refusals:
            continue
        whole = carry_out(host, decided)
        second = decide(whole, names, way)
        assert (second.refusals, [(one.id, one.why) for one in second.steps]) == ([], [])
        killed = carry_out(host, decided, kill % max(len(decided.steps), 1))
        rest = decide(killed, names, way)
        assert rest.refusals == []
        assert traces(carry_out(killed, rest)) == traces(whole)
        assert traces(whole) == traces(carry_out(clean, alone))
        host = whole


REQUESTS = st.tuples(st.sampled_from(SETS), st.sampled_from(WAYS))


@given(
    st.sampled_from(VERSIONS), st.sampled_from([[4, 3, 1], [5, 4, 2]]), st.sampled_from([[1, 7, 15], [1, 7, 24], [2, 1, 9]]),
    st.lists(REQUESTS, min_size=2, max_size=3), st.integers(0, 6),
)  # fmt: skip
def test_any_order_ends_where_its_last_request_alone_would_also_after_a_kill(
    version: Any, podman: Any, containerd: Any, requests: Any, kill: int
) -> None:
    check(version, podman, containerd, requests, kill)


@pytest.mark.parametrize("product", [migration.DOCKER1, migration.DOCKER2])
@pytest.mark.parametrize("version", ["20.10.24", "26.1.5", "28.2.0"])
@pytest.mark.parametrize("names", [names for names in SETS if "docker" in names], ids=",".join)
def test_an_abandoned_product_is_replaced_also_after_a_kill(product: str, version: str, names: "list[str]") -> None:
    for way in WAYS:
        host = legacy(bare(version, [5, 4, 2], [1, 7, 24]), product)
        decided = decide(host, names, way)
        if decided.refusals:
            # gpu-ready did not install the toolkit of nvidia-docker2, and its service's specification neither.
            assert {one.code for one in decided.refusals} <= {"engine_without_cdi", "cdi_spec_conflict"}
            assert way in ("cdi", "native")
            continue
        whole = carry_out(host, decided)
        assert product not in whole["packages"]["installed"]
        second = decide(whole, names, way)
        assert (second.refusals, [(one.id, one.why) for one in second.steps]) == ([], []), way
        for steps in range(len(decided.steps)):
            killed = carry_out(host, decided, steps)
            rest = decide(killed, names, way)
            assert rest.refusals == [], (way, steps)
            ends = [traces(carry_out(killed, rest)), traces(whole)]
            if way in ("cdi", "native"):
                # Once its package is removed, the runtime nvidia counts as that of the toolkit, which stays.
                ends = [{name: one[name] for name in one if name != "daemon.json"} for one in ends]
            assert ends[0] == ends[1], (way, steps)
