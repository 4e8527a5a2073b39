"""docker: flags from units, capabilities by version, and the facts that are collected without starting a program."""

import json

import pytest

from plugins.module_utils.gpu_ready.base import manifest as manifest_file
from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.containers import docker
from plugins.module_utils.gpu_ready.facts import docker as docker_facts
from plugins.module_utils.gpu_ready.facts.model import DaemonJsonFault, DockerFacts, RuntimeFacts
from tests.unit.recorded import RecordedHost

DEBIAN = """[Unit]
Description=Docker Application Container Engine
[Service]
Type=notify
EnvironmentFile=-/etc/default/docker
ExecStart=/usr/sbin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock $DOCKER_OPTS
ExecReload=/bin/kill -s HUP $MAINPID
[Install]
ExecStart=/not/a/service
"""


def flags(*texts: str, **files: str) -> list[tuple[str, "str | None", str]]:
    named = [(f"/unit{index}", text) for index, text in enumerate(texts)]
    service = docker.parse_service(named, lambda path: files.get(path.rsplit("/", 1)[-1]))
    return [(flag.key, flag.value, flag.file) for flag in service.flags]


@pytest.mark.parametrize(
    ("version", "cdi", "validate", "gpus_by_cdi"),
    [
        ("20.10.24+dfsg1", "none", False, False),
        ("23.0.6", "none", True, False),
        ("24.0.9", "none", True, False),
        ("25.0.0", "feature", True, False),
        ("26.1.5+dfsg1", "feature", True, False),
        ("28.1.1", "feature", True, False),
        ("28.2.0-rc.1", "default", True, False),
        ("28.10.0", "default", True, False),
        ("29.1.5", "default", True, False),
        ("29.2.0", "default", True, True),
        ("29.7.2", "default", True, True),
        ("1.13.1", "none", False, False),
        (None, "default", True, True),
    ],
)
def test_capabilities(version: "str | None", cdi: str, validate: bool, gpus_by_cdi: bool) -> None:
    assert docker.capabilities(version) == (cdi, validate, gpus_by_cdi)


def test_flags_of_debians_unit_and_its_environment_file() -> None:
    options = 'DOCKER_OPTS="--default-runtime runc \\\n --log-driver=journald -D"\n# DOCKER_OPTS=no\n'
    assert flags(DEBIAN, docker=options) == [
        ("hosts", "fd://", "/unit0"),
        ("containerd", "/run/containerd/containerd.sock", "/unit0"),
        ("default-runtime", "runc", "/etc/default/docker"),
        ("log-driver", "journald", "/etc/default/docker"),
        ("debug", None, "/etc/default/docker"),
    ]


def test_a_drop_in_resets_and_continues_lines() -> None:
    drop_in = """[Service]
ExecStart=
ExecStart=-/usr/bin/dockerd \\
    --live-restore \\
    # a remark between
    --add-runtime nvidia=/usr/bin/nvidia-container-runtime \\
    "--label=a b" --config-file ${CONF} -s overlay2
Environment="CONF=/etc/other.json" X=1
"""
    found = docker.parse_service([("/unit", DEBIAN), ("/drop", drop_in)])
    assert [(flag.key, flag.value) for flag in found.flags] == [
        ("live-restore", None),
        ("runtimes", "nvidia=/usr/bin/nvidia-container-runtime"),
        ("labels", "a b"),
        ("config-file", "/etc/other.json"),
        ("storage-driver", "overlay2"),
    ]
    assert found.config == "/etc/other.json"


def test_runtimes_conflict_only_by_name() -> None:
    service = docker.parse_service(
        [("/u", "[Service]\nExecStart=dockerd --add-runtime kata=/k --default-runtime=kata\n")]
    )
    assert docker.conflicts(service.flags, {"runtimes": {"nvidia": {}}, "mtu": 1}) == []
    assert docker.conflicts(service.flags, {"runtimes": {"kata": {}}, "default-runtime": "nvidia"}) == [
        ("runtimes.kata", "--add-runtime", "/u"),
        ("default-runtime", "--default-runtime", "/u"),
    ]


def engine(hook_time: float = 10.0, marker: "float | None" = None) -> RecordedHost:
    info = {"ServerVersion": "26.1.5+dfsg1", "Runtimes": {"runc": {"path": "runc"}}, "DefaultRuntime": "runc",
            "LiveRestoreEnabled": False, "CDISpecDirs": ["/etc/cdi"], "ContainersRunning": 1}  # fmt: skip
    files = {
        "/usr/sbin/dockerd": "", "/run/docker.sock": "", "/run/docker.pid": "712", "/proc/712/comm": "dockerd\n",
        "/usr/lib/systemd/system/docker.service": DEBIAN, "/etc/docker/daemon.json": "{\n", "/etc/default/docker": "",
        "/var/lib/dpkg/info/docker.io.list": "", "/usr/bin/nvidia-container-runtime": "",
        "/usr/bin/nvidia-container-runtime-hook": "",
    }  # fmt: skip
    times = {"/run/docker.pid": 100.0, "/usr/bin/nvidia-container-runtime-hook": hook_time}
    if marker is not None:
        files[docker_facts.PENDING] = "{}"
        times[docker_facts.PENDING] = marker
    sockets = {
        ("/run/docker.sock", "/info"): json.dumps(info),
    }
    return RecordedHost(files=files, sockets=sockets, times=times)


def test_no_program_is_started_where_the_engine_answers() -> None:
    host = engine()
    found, runtime = docker_facts.collect(host)
    assert host.asked == []
    assert (found.version, found.package, found.active) == ("26.1.5+dfsg1", "docker.io", True)
    assert found.daemon_json.error == DaemonJsonFault("expecting property name enclosed in double quotes", 2, 1)
    assert runtime.toolkit is True
    json.dumps(records.to_json((found, runtime)))


def test_a_bare_host_is_a_normal_state() -> None:
    found, runtime = docker_facts.collect(RecordedHost())
    assert found == DockerFacts()
    assert runtime == RuntimeFacts(programs=dict.fromkeys(runtime.programs))


@pytest.mark.parametrize(("hook_time", "known"), [(10.0, True), (101.0, False)])
def test_a_hook_installed_after_the_start_of_dockerd_is_unknown_to_it(hook_time: float, known: bool) -> None:
    assert docker_facts.collect(engine(hook_time))[1].hook_known is known


@pytest.mark.parametrize(("marker", "pending"), [(None, False), (99.0, False), (101.0, True)])
def test_an_outstanding_restart_of_a_killed_run_is_found(marker: "float | None", pending: bool) -> None:
    assert docker_facts.collect_engine(engine(marker=marker)).restart_pending is pending


@pytest.mark.parametrize(("program_time", "outdated"), [(99.0, False), (101.0, True)])
def test_a_daemon_whose_program_was_replaced_is_outdated(program_time: float, outdated: bool) -> None:
    host = engine()
    host.times["/usr/sbin/dockerd"] = program_time
    assert docker_facts.collect_engine(host).outdated is outdated


@pytest.mark.parametrize(
    ("manifest", "held"),
    [(None, []), ('{"holds": {"docker-ce": {}, "cuda": {}}}', ["cuda", "docker-ce"])],
)
def test_own_holds_are_read_from_the_manifest(manifest: "str | None", held: list[str]) -> None:
    host = engine()
    if manifest is not None:
        host.files["/var/lib/gpu-ready/manifest.json"] = manifest
    assert docker_facts.collect_engine(host).held_by_us == held


def test_a_damaged_manifest_does_not_mean_that_nothing_was_changed() -> None:
    host = engine()
    host.files["/var/lib/gpu-ready/manifest.json"] = "{damaged"
    with pytest.raises(manifest_file.ManifestError, match="Restore it, or move it away"):
        docker_facts.collect_engine(host)


def test_docker_of_a_snap_is_found() -> None:
    host = RecordedHost(files={"/snap/docker/x1/bin/dockerd": ""}, links={"/snap/docker/current": "x1"})
    found = docker_facts.collect_engine(host)
    assert (found.installed, found.snap) == (False, "/snap/docker/current")
    assert docker_facts.collect_engine(RecordedHost()).snap is None
