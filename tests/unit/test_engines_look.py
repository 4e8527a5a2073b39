"""How podman and containerd are observed: versions, files with their imports, what is ours, what a restart would end."""

import json
from typing import Any

import pytest
from gpu_ready.base import manifest
from gpu_ready.base.host import Result
from gpu_ready.containers import cdi
from gpu_ready.containers.containerd import config as containerd_config
from gpu_ready.facts import engines

from tests.unit.recorded import RecordedHost
from tests.unit.test_toml import DEBIAN

UNIT = "/lib/systemd/system/containerd.service"
PROGRAMS = {"/usr/bin/containerd": "", "/usr/bin/podman": ""}
SOCKET = containerd_config.SOCKET


def host(files: Any = None, **more: Any) -> RecordedHost:
    unit = "[Service]\nExecStart=/usr/bin/containerd\nKillMode=process\n"
    return RecordedHost({UNIT: unit, containerd_config.MAIN: DEBIAN, SOCKET: "", **PROGRAMS, **(files or {})}, **more)


def look(there: RecordedHost, packages: Any = None) -> Any:
    return engines.look(there, {"containerd": "1.7.24~ds1", "podman": "5.4.2+ds1"} if packages is None else packages)


def test_a_host_without_other_engines() -> None:
    found = look(RecordedHost(), {})["engines"]
    assert not found["podman"]["installed"] and not found["containerd"]["installed"] and found["nodes"] == {}


def test_packages_tell_the_versions_and_no_program_is_started() -> None:
    there = host()
    found = look(there)["engines"]
    assert found["podman"] == {"installed": True, "version": [5, 4, 2]}
    assert found["containerd"]["version"] == [1, 7, 24] and found["containerd"]["active"]
    assert there.asked == []


def test_a_program_of_no_package_tells_its_version() -> None:
    programs = {
        ("/usr/bin/containerd", "--version"): Result(
            0, "containerd github.com/containerd/containerd/v2 v2.1.4 75cb\n", ""
        ),
        ("/usr/bin/podman", "--version"): Result(0, "podman version 4.9.4-rhel\n", ""),
    }
    found = look(host(programs=programs), {})["engines"]
    assert (found["containerd"]["version"], found["podman"]["version"]) == ([2, 1, 4], [4, 9, 4])


def test_imports_are_followed_in_order_and_once() -> None:
    files = {
        containerd_config.MAIN: 'version = 2\nimports = ["conf.d/*.toml", "/opt/last.toml", "/absent.toml"]\n',
        "/etc/containerd/conf.d/b.toml": "version = 2\n",
        "/etc/containerd/conf.d/a.toml": 'imports = ["../config.toml", "deeper/x.toml"]\n',
        "/etc/containerd/conf.d/deeper/x.toml": "",
        "/etc/containerd/conf.d/readme": "",
        "/opt/last.toml": b"\xff",
    }
    found = look(host(files))["engines"]["containerd"]["files"]
    names = ["config.toml", "a.toml", "b.toml", "last.toml", "x.toml"]
    assert [path.rpartition("/")[2] for path, _ in found] == names
    assert found[3][1] == "\udcff"
    shown = engines.public(look(host(files))["engines"])
    assert "imports" not in json.dumps(shown) and shown["containerd"]["files"][0] == containerd_config.MAIN


def test_another_config_of_the_unit() -> None:
    drop_in = {
        "/etc/systemd/system/containerd.service.d/x.conf": "[Service]\nExecStart=\nExecStart=/x --config /srv/c.toml\n"
    }
    found = look(host({**drop_in, "/srv/c.toml": "version = 3\n"}))["engines"]["containerd"]
    assert found["files"] == [["/srv/c.toml", "version = 3\n"]]


@pytest.mark.parametrize(("mark", "socket", "pending"), [(5.0, 4.0, True), (4.0, 5.0, False), (None, 5.0, False)])
def test_a_restart_that_is_still_due(mark: "float | None", socket: float, pending: bool) -> None:
    times = {engines.PENDING: mark or 0.0, SOCKET: socket}
    files = {engines.PENDING: "{}\n"} if mark else {}
    assert look(host(files, times=times))["engines"]["containerd"]["pending"] is pending


def test_gpu_containers_by_their_bundles() -> None:
    bundle = engines.TASKS + "/k8s.io/%s/config.json"
    tasks = {bundle % "gpu": '"/dev/nvidia0"', bundle % "env": '"NVIDIA_VISIBLE_DEVICES=all"', bundle % "none": "{}"}
    tasks[bundle % "void"] = '"NVIDIA_VISIBLE_DEVICES=void"'
    tasks[engines.TASKS + "/moby/docker/config.json"] = '"/dev/nvidia0"'
    found = look(host(tasks))["engines"]["containerd"]
    assert found["keeps_containers"] and found["gpu_containers"] == ["k8s.io/env", "k8s.io/gpu"]
    found = look(host({**tasks, UNIT: "[Service]\nExecStart=/usr/bin/containerd\n"}))["engines"]["containerd"]
    assert not found["keeps_containers"]


@pytest.mark.parametrize(
    "text", ["{", json.dumps({"containerd": {containerd_config.MAIN: {"record": [[["a", "b"], None]]}}})]
)
def test_what_the_manifest_lists(text: str) -> None:
    found = look(host({manifest.PATH: text}))["engines"]["containerd"]["record"]
    assert found == ([] if text == "{" else [[("a", "b"), None]])


def test_k3s_and_our_units() -> None:
    found = look(host({cdi.NODES[0]: "x"}, folders=["/var/lib/rancher/rke2/agent"]))["engines"]
    assert found["containerd"]["rancher"] == "/var/lib/rancher/rke2/agent" and found["nodes"] == {cdi.NODES[0]: "x"}
