"""One host through any engines and modes: each run does what it planned, the next finds nothing, nothing is left behind."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from plugins.plugin_utils.gpu_ready.execute.containers import docker_reads
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.changes import apply_changes
from plugins.plugin_utils.gpu_ready.plan.containers import migration
from plugins.plugin_utils.gpu_ready.plan.containers.model import RuntimeInstallParams
from plugins.plugin_utils.gpu_ready.plan.containers.runtime_cleanup import TOOLKIT_PACKAGES
from plugins.plugin_utils.gpu_ready.plan.model import Decision, PackageTarget, Step
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.test_toml import DEBIAN

ENGINES = ("docker", "podman", "containerd")
SETS = [list(names) for size in (1, 2, 3) for names in itertools.combinations(ENGINES, size)]
WAYS = ("toolkit", "default", "cdi", "native")
VERSIONS = ("20.10.24", "26.1.5", "28.2.0", None)
OTHERS = json.dumps({"log-driver": "journald", "features": {"buildkit": True}, "runtimes": {"crun": {"path": "crun"}}})


def bare(version: str | None, podman: list[int], containerd: list[int]) -> Facts:
    """Return a host with a driver and three engines (``version`` None: without docker), as it was before gpu-ready."""
    found = hosts.with_driver(hosts.bare(hosts.T4), "580.95.05", "open", "cuda_repo", [])
    files = [ConfigFile(containerd_config.MAIN, DEBIAN)]
    engines = EngineFacts(PodmanFacts(True, podman), ContainerdFacts(True, containerd, active=True, files=files))
    found = found._replace(engines=engines)
    if version:
        configuration = DaemonJsonFacts(exists=True, text=OTHERS)
        engine = DockerFacts(True, version=version, active=True, enabled=True, daemon_json=configuration)
        found = restarted(found._replace(docker=engine))
    return found


def restarted(facts: Facts) -> Facts:
    return apply_changes(facts, docker_reads(facts.docker, facts.runtime))


def legacy(host: Facts, product: str) -> Facts:
    """The host with one of NVIDIA's abandoned products, as its packages leave it."""
    found = hosts.with_packages(host, **{product: "2.13.0-1"})
    if product == migration.DOCKER1:
        return hosts.having(found, runtime={"legacy": {"plugin": "/usr/bin/nvidia-docker-plugin"}})
    install = Step(
        "nvidia_container_runtime.install", "", params=RuntimeInstallParams([PackageTarget(TOOLKIT_PACKAGES[0])])
    )
    found = hosts.carried_out(found, Decision(None, [install]))
    text = json.dumps({"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}})
    found = hosts.having(found, runtime={"manifest": {"packages": []}}, docker={"daemon_json": {"text": text}})
    return restarted(found)


def decide(host: Facts, names: "list[str]", way: str) -> Any:
    given_settings = {
        "nvidia_container_runtime_engines": names,
        "nvidia_container_runtime_mode": "toolkit" if way == "default" else way,
        "nvidia_container_runtime_default": way == "default",
        "nvidia_container_runtime_migrate": True,
    } | {"nvidia_driver_source": "none", "cuda_toolkit_source": "none", "cudnn_source": "none"}
    return compose.plan(host, variables.parse_settings(given_settings).settings)


def traces(host: Facts) -> Any:
    """Return what gpu-ready added to the host."""
    part, files = host.runtime, host.engines.containerd.files
    return {
        "packages": [name for name in TOOLKIT_PACKAGES if name in host.packages.installed],
        "specs": sorted(one.path for one in part.specs),
        "files": [part.volume, part.helper, part.boot_nodes, part.refresh_old, host.engines.nodes],
        "daemon.json": [daemon_json.parse(host.docker.daemon_json.text).value, part.manifest.keys],
        "containerd": {file.path: toml.parse(file.text).value for file in files if file.text is not None},
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
        whole = hosts.carried_out(host, decided)
        second = decide(whole, names, way)
        assert (second.refusals, [(one.id, one.why) for one in second.steps]) == ([], [])
        killed = hosts.carried_out(host, decided, kill % max(len(decided.steps), 1))
        rest = decide(killed, names, way)
        assert rest.refusals == []
        assert traces(hosts.carried_out(killed, rest)) == traces(whole)
        assert traces(whole) == traces(hosts.carried_out(clean, alone))
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


@pytest.mark.parametrize("version", ["20.10.24", "26.1.5", "29.0.1"])
def test_any_order_of_modes_of_docker(version: str) -> None:
    ways = [way for way in WAYS if way != "cdi" or version != "20.10.24"]
    for kill, order in enumerate(itertools.permutations(ways)):
        check(version, [5, 4, 2], [2, 1, 9], [(["docker"], way) for way in order], kill)


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
        whole = hosts.carried_out(host, decided)
        assert product not in whole.packages.installed
        second = decide(whole, names, way)
        assert (second.refusals, [(one.id, one.why) for one in second.steps]) == ([], []), way
        for steps in range(len(decided.steps)):
            killed = hosts.carried_out(host, decided, steps)
            rest = decide(killed, names, way)
            assert rest.refusals == [], (way, steps)
            ends = [traces(hosts.carried_out(killed, rest)), traces(whole)]
            if way in ("cdi", "native"):
                # Once its package is removed, the runtime nvidia counts as that of the toolkit, which stays.
                ends = [{name: one[name] for name in one if name != "daemon.json"} for one in ends]
            assert ends[0] == ends[1], (way, steps)
