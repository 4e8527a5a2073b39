"""How facts of podman and containerd are collected: versions, files with their imports, what is ours, what a restart would end."""

import json
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.containers import cdi
from plugins.module_utils.gpu_ready.containers.containerd import config as containerd_config
from plugins.module_utils.gpu_ready.containers.containerd.config import ConfigFile
from plugins.module_utils.gpu_ready.facts import engines, public
from plugins.module_utils.gpu_ready.facts.model import EngineFacts, PodmanFacts
from tests.unit.recorded import RecordedHost
from tests.unit.test_toml import DEBIAN

UNIT = "/lib/systemd/system/containerd.service"
PROGRAMS = {"/usr/bin/containerd": "", "/usr/bin/podman": ""}
SOCKET = containerd_config.SOCKET


def host(files: Any = None, **more: Any) -> RecordedHost:
    unit = "[Service]\nExecStart=/usr/bin/containerd\nKillMode=process\n"
    return RecordedHost({UNIT: unit, containerd_config.MAIN: DEBIAN, SOCKET: "", **PROGRAMS, **(files or {})}, **more)


def collect(recorded: RecordedHost, packages: Any = None) -> EngineFacts:
    return engines.collect(
        recorded, {"containerd": "1.7.24~ds1", "podman": "5.4.2+ds1"} if packages is None else packages
    )


def test_a_host_without_other_engines() -> None:
    found = collect(RecordedHost(), {})
    assert found == EngineFacts()


@pytest.mark.parametrize("text", ["[]", '{"containerd": []}', '{"containerd": {', "null", '{"containerd": {"a": 1}}'])
def test_a_damaged_manifest_is_not_taken_for_an_unchanged_host(text: str) -> None:
    with pytest.raises(manifest.ManifestError, match="Restore it, or move it away"):
        collect(host({manifest.PATH: text}))


def test_packages_have_the_versions_and_no_program_is_started() -> None:
    recorded = host()
    found = collect(recorded)
    assert found.podman == PodmanFacts(True, [5, 4, 2])
    assert found.containerd.version == [1, 7, 24] and found.containerd.active
    assert recorded.asked == []


def test_a_program_of_no_package_is_asked_for_its_version() -> None:
    programs = {
        ("/usr/bin/containerd", "--version"): Result(
            0, "containerd github.com/containerd/containerd/v2 v2.1.4 75cb\n", ""
        ),
        ("/usr/bin/podman", "--version"): Result(0, "podman version 4.9.4-rhel\n", ""),
    }
    found = collect(host(programs=programs), {})
    assert (found.containerd.version, found.podman.version) == ([2, 1, 4], [4, 9, 4])


def test_imports_are_followed_in_order_and_once() -> None:
    files = {
        containerd_config.MAIN: 'version = 2\nimports = ["conf.d/*.toml", "/opt/last.toml", "/absent.toml"]\n',
        "/etc/containerd/conf.d/b.toml": "version = 2\n",
        "/etc/containerd/conf.d/a.toml": 'imports = ["../config.toml", "deeper/x.toml"]\n',
        "/etc/containerd/conf.d/deeper/x.toml": "",
        "/etc/containerd/conf.d/readme": "",
        "/opt/last.toml": b"\xff",
    }
    found = collect(host(files)).containerd.files
    names = ["config.toml", "a.toml", "b.toml", "last.toml", "x.toml"]
    assert [file.path.rpartition("/")[2] for file in found] == names
    assert found[3].text == "\udcff"
    shown = public.engines_json(collect(host(files)))
    assert "imports" not in json.dumps(shown) and containerd_config.MAIN in json.dumps(shown)


def test_another_config_of_the_unit() -> None:
    drop_in = {
        "/etc/systemd/system/containerd.service.d/x.conf": "[Service]\nExecStart=\nExecStart=/x --config /srv/c.toml\n"
    }
    found = collect(host({**drop_in, "/srv/c.toml": "version = 3\n"})).containerd
    assert found.files == [ConfigFile("/srv/c.toml", "version = 3\n")]


@pytest.mark.parametrize(("mark", "socket", "pending"), [(5.0, 4.0, True), (4.0, 5.0, False), (None, 5.0, False)])
def test_a_restart_that_is_still_due(mark: "float | None", socket: float, pending: bool) -> None:
    times = {engines.PENDING: mark or 0.0, SOCKET: socket}
    files = {engines.PENDING: "{}\n"} if mark else {}
    assert collect(host(files, times=times)).containerd.pending is pending


def test_whether_a_restart_keeps_containers() -> None:
    assert collect(host({})).containerd.keeps_containers
    unit = {UNIT: "[Service]\nExecStart=/usr/bin/containerd\n"}
    assert not collect(host(unit)).containerd.keeps_containers


def test_what_the_manifest_lists() -> None:
    text = json.dumps({"containerd": {containerd_config.MAIN: {"record": [[["a", "b"], None]]}}})
    assert collect(host({manifest.PATH: text})).containerd.record == [(("a", "b"), None)]


def test_k3s_and_own_units() -> None:
    found = collect(host({cdi.NODES[0]: "x"}, directories=["/var/lib/rancher/rke2/agent"]))
    assert found.containerd.rancher == "/var/lib/rancher/rke2/agent" and found.nodes == {cdi.NODES[0]: "x"}
