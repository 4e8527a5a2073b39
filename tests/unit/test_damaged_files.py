"""Damaged files, and hostile output of images and services: one message or a default, never another exception."""

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, pending
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.containers import cdi, docker, engine
from plugins.module_utils.gpu_ready.cuda import toolkit
from plugins.module_utils.gpu_ready.cuda.cudnn import model as cudnn
from plugins.module_utils.gpu_ready.cuda.cudnn import redist_manifest
from plugins.module_utils.gpu_ready.drain import journal as drain
from plugins.module_utils.gpu_ready.drain import kubernetes
from plugins.module_utils.gpu_ready.lifecycle import uninstall
from plugins.module_utils.gpu_ready.lifecycle.removal.context import Removal
from plugins.module_utils.gpu_ready.packaging import dpkg_status, rpm
from plugins.module_utils.gpu_ready.upgrade import journal as upgrade
from plugins.module_utils.gpu_ready.verify import compute, nvml, requirement
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.verdict import compute as judged
from plugins.plugin_utils.gpu_ready.verdict import frameworks
from plugins.plugin_utils.gpu_ready.verdict import nvml as nvml_results
from tests.grid import sampled
from tests.unit.plans import settings
from tests.unit.recorded import RecordedHost
from tests.unit.test_facts import DEBIAN, p40

DEEP = b"[" * 100_000
"""json.loads raises RecursionError, which is no ValueError."""
DAMAGES = {
    "empty": b"",
    "zeros": b"\0" * 64,
    "not UTF-8": b"\xff\xfe\xfd{",
    "cut off": b'{"schema": 1, "files": {"/etc/x": {"before": "',
    "null": b"null",
    "list": b'[1, "x", {}, null]',
    "text": b'"x"',
    "number": b"-1e999",
    "not a number": b"NaN",
    "object": b'{"schema": 1, "files": [], "holds": "x", "packages": null, "devices": 3, "cuda": [], "release": {}}',
    "wrong types": b'{"schema": [], "phase": 3, "devices": [1], "kind": 2, "containerEdits": [], "cudnn": {"12.9": 4}}',
    "deep": DEEP,
    "deep object": b'{"a":' * 100_000,
}
STATE = manifest.DIRECTORY + "/"
FILES = [
    manifest.PATH,
    pending.PATH,
    *(STATE + name for name in ("verified.json", "upgrade.json", "services-stopped.json", "docker-restart.json")),
    *(STATE + name for name in ("cuda/12.9.json", "cudnn/12.9.json", "runfile-pending", "packages-pending.json")),
    "/etc/docker/daemon.json",
    "/etc/containerd/config.toml",
    "/etc/cdi/nvidia.json",
    "/etc/cdi/nvidia.yaml",
    cdi.NATIVE,
    "/usr/local/cuda-12.9/version.json",
    "/usr/local/cuda-12.9/version.txt",
    dpkg_status.STATUS,
    "/var/lib/dpkg/updates/0001",
    "/etc/os-release",
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/x.sources",
    "/etc/apt/preferences.d/gpu-ready-x",
    "/boot/grub/grub.cfg",
    "/boot/grub/grubenv",
    "/etc/dkms/framework.conf",
    "/proc/driver/nvidia/version",
    "/sys/module/nvidia/version",
    "/sys/module/nvidia/refcnt",
    "/etc/modprobe.d/x.conf",
    "/etc/nvidia-imex/nodes_config.cfg",
    "/run/nvidia-persistenced/nvidia-persistenced.pid",
    "/var/run/docker.pid",
]
RPM_FILES = [
    rpm.PENDING,
    rpm.DNF_LOCKS,
    rpm.DNF5_LOCKS,
    rpm.YUM_LOCKS,
    rpm.DNF5_MODULES,
    rpm.MODULES + "/nvidia-driver.module",
    "/etc/yum.repos.d/x.repo",
    "/var/lib/dnf/rpmdb_lock.pid",
]
ENGINE = {
    "/usr/bin/dockerd": "ELF",
    "/usr/bin/containerd": "ELF",
    "/usr/bin/nvidia-docker-plugin": "ELF",
    "/var/run/docker.pid": "77\n",
    "/proc/77/cmdline": "/usr/bin/dockerd\0-H\0fd://",
    "/usr/local/cuda-12.9/bin/nvcc": "ELF",
}


def answers(call: Callable[[], object]) -> None:
    """Any value, or the error that becomes a message."""
    try:
        call()
    except GpuReadyError as error:
        assert "\n" not in str(error) and len(str(error)) < 1000, error


@pytest.mark.parametrize(("path", "damage"), sampled(itertools.product(FILES, DAMAGES), 4))
def test_facts_and_plan_of_a_host_with_a_damaged_file(path: str, damage: str) -> None:
    answers(lambda: compose.plan(complete.collect_facts(p40(files={**ENGINE, path: DAMAGES[damage]})), settings()))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["rebuild-pending", "services-stopped.json", "manifest.json", "upgrade.json"])
def test_a_damaged_record_of_unfinished_work_is_refused_and_named(name: str, damage: str) -> None:
    with pytest.raises(GpuReadyError, match=rf"{name}.*(delete|[Mm]ove|Restore|Use the release)"):
        complete.collect_facts(p40(files={**ENGINE, STATE + name: DAMAGES[damage]}))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_of_an_installation_is_that_of_an_interrupted_one(damage: str) -> None:
    header = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 10\n#define CUDNN_PATCHLEVEL 2\n"
    files = {
        **ENGINE,
        "/usr/local/cuda-12.9/version.json": '{"cuda": {"version": "12.9.1"}}',
        "/usr/local/cuda-12.9/include/cudnn_version.h": header,
        STATE + "cuda/12.9.json": DAMAGES[damage],
        STATE + "cudnn/12.9.json": DAMAGES[damage],
    }
    facts = complete.collect_facts(p40(files=files))
    assert [one.cut_off for one in facts.cuda.toolkits] == [True]
    assert facts.cudnn["12.9"].recorded
    assert not facts.cudnn["12.9"].complete


@pytest.mark.parametrize(("path", "damage"), sampled(itertools.product(RPM_FILES, DAMAGES), 4))
def test_facts_and_plan_of_a_host_with_rpms_and_a_damaged_file(path: str, damage: str) -> None:
    system = 'ID="rocky"\nVERSION_ID="9.6"\nID_LIKE="rhel centos fedora"\n'
    rows = "glibc\t(none)\t2.34\t1.el9\tx86_64\n"
    host = p40(
        files={**ENGINE, "/etc/os-release": system, path: DAMAGES[damage]},
        programs={tuple(rpm.QUERY): Result(0, rows, "")},
    )
    answers(lambda: compose.plan(complete.collect_facts(host), settings()))
    if path == rpm.PENDING:
        with pytest.raises(GpuReadyError, match=r"packages-pending\.json.*delete it"):
            complete.collect_facts(host)


class Socket(RecordedHost):
    """A docker that answers every request with the same text, but those that ``given`` has."""

    def __init__(self, answer: str, given: Mapping[str, str], **more: Any) -> None:
        super().__init__(**more)
        self.answer, self.given = answer, given

    def http_unix(self, path: str, url: str, timeout: float = 5.0) -> str | None:
        return next((text for name, text in self.given.items() if url.startswith(name)), self.answer)


INFO = json.dumps({"ServerVersion": "28.0.1", "ContainersRunning": 2, "Runtimes": {"runc": {}}})
ODD = [
    '{"ServerVersion": "28", "ContainersRunning": "x", "Runtimes": 3, "CDISpecDirs": 7}',
    '{"ServerVersion": "28", "ContainersRunning": {}, "CDISpecDirs": "/etc/cdi", "HostConfig": 4, "Volumes": "x"}',
    '{"HostConfig": {"DeviceRequests": [1, {"Driver": 3, "Capabilities": "gpu"}], "Devices": "x", "Runtime": []}, "Mounts": 3}',
    '{"Config": {"Env": [1, null], "Labels": 3}, "HostConfig": {"Binds": [7], "Devices": [1], "DeviceRequests": {}}, "State": 1}',
    '{"Config": 7, "HostConfig": null, "Mounts": [1, {"Source": 3}], "Volumes": [null, 3, {"Name": []}]}',
]


@pytest.mark.parametrize("text", [*(text.decode("utf-8", "replace") for text in DAMAGES.values()), *ODD])
@pytest.mark.parametrize("given", [{}, {"/info": INFO}])
def test_facts_and_plan_of_a_host_whose_docker_answers_something_else(text: str, given: dict[str, str]) -> None:
    files = {**ENGINE, "/etc/os-release": DEBIAN, **{socket: "" for socket in docker.SOCKETS}}
    host = Socket(text, given, files=files)
    answers(lambda: compose.plan(complete.collect_facts(host), settings()))


IMAGE_LINES = [
    '{"gpu": {"index": "x"}, "wrong": 0}',
    '{"gpu": {"index": 0, "mode": "y"}, "wrong": 0}',
    '{"gpu": {"index": 1e999}, "wrong": 0}',
    '{"gpu": {"index": 0}, "wrong": "many"}',
    '{"gpu": {"index": 0}, "wrong": [1]}',
    '{"failed": {"call": [], "code": "x", "name": 3, "text": {}}}',
    '{"gpu": {}, "failed": {"code": 1e999}}',
    '{"count": 1, "cuda": "twelve"}',
    '{"count": 1, "cuda": {"a": 1}}',
    '{"count": 1, "cuda": -1e999}',
    '{"gpus": 1e999, "count": 1e999, "version": 3}',
    "[[1e999, 0, 0, 0, 0]]",
    '[["x", 0, 0, 0, 0]]',
    "[[0]]",
    "[7]",
    '{"devices": [{"name": "all", "containerEdits": 3}], "kind": "nvidia.com/gpu"}',
    '{"devices": [{"name": "all", "containerEdits": {"env": [1], "deviceNodes": [3], "mounts": 7}}], "kind": "k"}',
    '{"devices": [{"name": "all", "containerEdits": {"mounts": [{"hostPath": 3}]}}], "kind": "k", "cdiVersion": []}',
    '{"devices": {"name": 3}, "kind": "k"}',
]
READERS: dict[str, Callable[[str], object]] = {
    "compute": lambda text: compute.parse_result(Result(0, text, "")),
    "compute, failed": lambda text: judged.check(compute.parse_result(Result(1, text, text)), [], []),
    "framework": lambda text: frameworks.parse_result("pytorch", "image", Result(0, text, "")),
    "nvidia-smi": lambda text: nvml_results.from_smi(Result(0, text, "")),
    "nvml": nvml.parse_rows,
    "environment": requirement.parse_environment,
    "info": docker.parse_info,
    "cdi": cdi.parse_spec,
    "ctr": lambda text: engine.ctr_arguments(text, ["all"]),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", [*(text.decode("utf-8", "replace") for text in DAMAGES.values()), *IMAGE_LINES, *ODD])
def test_output_of_images_and_engines(text: str, reader: str) -> None:
    for shown in (text, f"hello\n{text}\n", f'{{"count": 1, "cuda": 12040}}\n{text}'):
        READERS[reader](shown)


@pytest.mark.parametrize("damage", DAMAGES)
def test_records_of_other_modules(damage: str) -> None:
    def host(path: str) -> RecordedHost:
        return RecordedHost(files={path: DAMAGES[damage]})

    answers(lambda: drain.read(host(drain.PATH)))
    answers(lambda: upgrade.read(host(upgrade.PATH)))
    text = DAMAGES[damage].decode("utf-8", "replace")
    answers(lambda: (toolkit.parse_record(text), cudnn.parse_record(text), toolkit.parse_version_json(text)))
    answers(lambda: redist_manifest.parse_manifest(text, "cuda12", "https://x"))
    answers(lambda: (kubernetes.parse_node(text), kubernetes.parse_pods(text)))


ODD_VALUES: tuple[object, ...] = (None, 3, [], "!!", "YQ==")
ENTRIES: list[dict[str, Any]] = [
    {},
    *({"before": value} for value in ODD_VALUES),
    {"manual": 3},
    {"enabled": "x", "active": []},
    {"keyring": 3, "gpgcheck": 4},
    {"version": "9", "files": {"a": 3}},
    {"keys": {"a": 3}},
    *({"record": value} for value in ([], [[[], 1]], [[["a", 3], 1]], [[["a"], 1]])),
    {"components": [1], "codename": "x", "before": "YQ=="},
    {"sections": [1], "before": None},
    {"mode": "x", "before": None, "existed": 3},
]
SYSTEM = {
    "/usr/bin/dpkg": "ELF",
    "/usr/bin/apt-get": "ELF",
    "/etc/x": "a",
    "/etc/apt/sources.list": "deb http://x y main\n",
    "/etc/yum.repos.d/a.repo": "[a]\nenabled=1\n",
}


@pytest.mark.parametrize("section", manifest.SECTIONS)
@pytest.mark.parametrize("key", ["/etc/x", "", "12.9", "driver", "/etc/apt/sources.list", "/etc/yum.repos.d/a.repo"])
def test_uninstall_with_odd_entries_of_the_manifest(section: str, key: str, tmp_path: Path) -> None:
    for entry in ENTRIES:
        (tmp_path / "manifest.json").write_text(json.dumps({section: {key: entry}}))
        host = RecordedHost(files=SYSTEM, directories=[str(tmp_path)])
        answers(lambda host=host: uninstall.find_actions(Removal(host, str(tmp_path))))  # type: ignore[misc]
