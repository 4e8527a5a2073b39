"""The program that writes metrics: cgroups of every engine, hostile names, the kernel's log, and a real NVML interface."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.check import node, nvlink, nvml, worker
from plugins.module_utils.gpu_ready.monitor import containers, kernel_log, metrics, textfile
from plugins.module_utils.gpu_ready.monitor.containers import CgroupPlace, Names
from plugins.module_utils.gpu_ready.system import monitoring_files
from tests.unit import real_programs

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "module_utils/gpu_ready"
MOCK = ROOT / "lab/gpu_ready_lab/data/nvml"
A, B = "a1" * 32, "b2" * 32
UID = "8f0c6c1e-4f5b-4d6a-9b57-0d1a5f5e7a10"
BROKEN = UID.replace("-", "_")
HASH = "0123456789abcdef" * 2
UUID = "GPU-11111111-2222-3333-4444-555555555555"


# ---- cgroups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("0::/system.slice/ssh.service", CgroupPlace()),
        ("0::/", CgroupPlace()),
        ("", CgroupPlace()),
        (f"0::/system.slice/docker-{A}.scope", CgroupPlace("docker", A)),
        (f"11:devices:/docker/{A}\n1:name=systemd:/docker/{A}\n0::/", CgroupPlace("docker", A)),
        (f"0::/../../docker-{A}.scope", CgroupPlace("docker", A)),
        (f"0::/machine.slice/libpod-{A}.scope/container", CgroupPlace("podman", A)),
        (f"4:memory:/libpod_parent/libpod-{A}", CgroupPlace("podman", A)),
        (f"0::/machine.slice/libpod-conmon-{A}.scope", CgroupPlace()),
        (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{A}.scope", CgroupPlace("rootless", A)),
        (f"0::/default/{A}", CgroupPlace("", A)),
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{BROKEN}.slice/cri-containerd-{A}.scope",
            CgroupPlace("containerd", A, pod_uid=UID),
        ),
        (f"0::/kubepods.slice/kubepods-pod{BROKEN}.slice/crio-{A}.scope", CgroupPlace("cri-o", A, pod_uid=UID)),
        (f"8:memory:/kubepods/besteffort/pod{UID}/{A}", CgroupPlace("", A, pod_uid=UID)),
        (f"8:memory:/kubepods/pod{HASH}/{A}", CgroupPlace("", A, pod_uid=HASH)),
        (f"0::/docker/{B}/kubelet.slice/kubelet-kubepods.slice/kubepods-pod{BROKEN}.slice/cri-containerd-{A}.scope",
         CgroupPlace("containerd", A, (B,), UID)),
        (f"0::/docker/{B}/docker/{A}", CgroupPlace("docker", A, (B,))),
        (f"0::/system.slice/evil-{A}", CgroupPlace("", A)),
        (f"0::/system.slice/{A}{A}", CgroupPlace()),
        (f"garbage\n::\n0::/docker/{A}", CgroupPlace("docker", A)),
    ],
)  # fmt: skip
def test_the_place_of_a_process(cgroup: str, expected: CgroupPlace) -> None:
    assert containers.place_of(cgroup) == expected


@given(st.text(max_size=300))
def test_any_text_is_some_place(text: str) -> None:
    assert isinstance(containers.place_of(text), CgroupPlace)


# ---- names ----------------------------------------------------------------------------------------------------------


class Docker(threading.Thread):
    """Answers on a UNIX socket as the engine does to HTTP 1.0."""

    def __init__(self, path: Path, body: bytes, status: bytes = b"200 OK") -> None:
        super().__init__(daemon=True)
        self.answer = b"HTTP/1.0 " + status + b"\r\nContent-Type: application/json\r\n\r\n" + body
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        self.questions: list[bytes] = []
        self.start()

    def run(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            with connection:
                self.questions.append(connection.recv(4096))
                connection.sendall(self.answer)


def directory(tmp_path: Path) -> containers.Directory:
    return containers.Directory(
        str(tmp_path / "docker.sock"),
        str(tmp_path / "docker.pid"),
        str(tmp_path / "containers.json"),
        str(tmp_path / "pods"),
        str(tmp_path / "containers"),
    )


@pytest.mark.host_io
def test_names_come_from_docker_podman_and_the_logs_of_pods(tmp_path: Path) -> None:
    rows = [{"Id": A, "Names": ["/web/alias", "/train"], "Image": "pytorch:2"}, {"Id": B}]
    (tmp_path / "docker.pid").write_text("1\n")
    Docker(tmp_path / "docker.sock", json.dumps(rows).encode())
    metadata = json.dumps({"image-name": "quay.io/cuda"})
    (tmp_path / "containers.json").write_text(json.dumps([{"id": B, "names": ["infer"], "metadata": metadata}]))
    (tmp_path / "pods" / f"ml_job-1_{UID}").mkdir(parents=True)
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / f"job-1_ml_main-{A}.log").symlink_to("/nowhere")
    docker, podman = CgroupPlace("docker", A), CgroupPlace("podman", B)
    pod, unknown = CgroupPlace("containerd", A, pod_uid=UID), CgroupPlace("cri-o", B, pod_uid=UID)
    names = directory(tmp_path).names([docker, podman, pod, unknown, CgroupPlace()])
    assert names == {
        docker: Names("train", "pytorch:2", engine="docker"),
        podman: Names("infer", "quay.io/cuda", engine="podman"),
        pod: Names("main", "", "job-1", "ml"),
        unknown: Names("", "", "job-1", "ml"),
    }


@pytest.mark.host_io
def test_docker_is_asked_only_where_it_runs_and_may_know_the_container(tmp_path: Path) -> None:
    engine = Docker(tmp_path / "docker.sock", b"[]")
    known = directory(tmp_path)
    known.names([CgroupPlace("docker", A)])
    assert engine.questions == []  # no pid file: a connection would start it
    (tmp_path / "docker.pid").write_text("1\n")
    known.names([CgroupPlace("containerd", A, pod_uid=UID), CgroupPlace("rootless", A), CgroupPlace()])
    assert engine.questions == []
    known.names([CgroupPlace("docker", A)])
    assert engine.questions == [b"GET /containers/json HTTP/1.0\r\nHost: localhost\r\n\r\n"]


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("status", "body"),
    [(b"500 Internal", b"[]"), (b"200 OK", b"{"), (b"200 OK", b"[1, null]"), (b"200 OK", b'[{"Id": 1, "Names": [7]}]')],
)
def test_another_answer_of_docker_leaves_the_container_without_a_name(
    tmp_path: Path, status: bytes, body: bytes
) -> None:
    (tmp_path / "docker.pid").write_text("1\n")
    Docker(tmp_path / "docker.sock", body, status)
    assert directory(tmp_path).names([CgroupPlace("docker", A)]) == {}


# ---- the text -------------------------------------------------------------------------------------------------------

HOSTILE = (
    'a"} 1\ngpu_ready_verified 1\n# HELP x',
    "back\\slash\\",
    "\x1b[31mred\x00\r\u2028",
    "\udce9 not UTF-8",
    "é" * 400,
)


def sample(name: str = "train", **more: Any) -> metrics.Sample:
    gpu: dict[str, Any] = {
        key: None
        for key in (*{**nvml.NUMBERS, **nvml.MORE_NUMBERS}, "remapped", "mig", "recovery_action", "clock_reasons")
    }
    gpu |= {"index": 0, "error": 0, "uuid": UUID, "name": "Tesla T4", "pci": "0000:3b:00.0"}
    gpu |= {"memory_total": 16 << 30, "memory_used": 1 << 30, "gpu_percent": 50, "memory_percent": 7}
    gpu |= {"ecc_corrected": 0, "ecc_uncorrected": 0, "processes": [[7, 1 << 20]], "utilization": [[7, 25]]}
    gpu |= {"links": [], "link_errors": {}, "fabric": None}
    gpu |= more
    place = CgroupPlace("docker", A)
    state = node.Node(True, 1, 1, "580.1", {"gpus": False}, {"driver": False}, 580, False)
    answer = {"driver": "580.1", "gpus": [gpu]}
    xids = kernel_log.Xids({"Xid 79 0000:3b:00.0": 2}, {"Xid 79 0000:3b:00.0": 86400})
    return metrics.Sample(1.0, 0.1, answer, xids, {7: place}, {place: Names(name, name)}, state)


def families(text: str) -> dict[str, str]:
    """The lines of a file by what is before their value."""
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("old", [False, True])
def test_a_hostile_name_stays_inside_its_label(name: str, old: bool) -> None:
    honest, hostile = metrics.build(sample(), old), metrics.build(sample(name), old)
    hostile.encode("utf-8")
    assert len(hostile.splitlines()) == len(hostile.split("\n")) - 1 == len(honest.splitlines())
    assert [line.split("{")[0].split(" ")[0] for line in hostile.splitlines()] == [
        line.split("{")[0].split(" ")[0] for line in honest.splitlines()
    ]
    assert max(map(len, hostile.splitlines())) < 2500


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
@pytest.mark.parametrize("name", ["train", *HOSTILE])
def test_promtool_accepts_the_file(name: str) -> None:
    text = metrics.build(sample(name), True).encode()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60)
    problems = [line for line in done.stdout.decode().splitlines() + done.stderr.decode().splitlines() if line]
    # Its naming rules are for new names; those of the kubelet's metrics are older.
    assert [line for line in problems if not line.startswith("container_accelerator_")] == []


def test_the_values_of_a_container() -> None:
    found = families(metrics.build(sample(), True))
    labels = f'gpu="0",uuid="{UUID}",engine="docker",id="{A}",container="train",image="train"'
    assert found[f"gpu_ready_container_memory_used_bytes{{{labels}}}"] == "1048576"
    assert found[f"gpu_ready_container_duty_cycle_ratio{{{labels}}}"] == "0.25"
    old = f'make="nvidia",model="Tesla T4",acc_id="{UUID}",container="train",id="{A}",image="train",name="train"'
    assert found[f"container_accelerator_memory_total_bytes{{{old}}}"] == str(16 << 30)
    assert found[f"container_accelerator_duty_cycle{{{old}}}"] == "25"
    assert found['gpu_ready_xid_total{pci="0000:3b:00.0",xid="79"}'] == "2"
    assert found['gpu_ready_xid_last_timestamp_seconds{pci="0000:3b:00.0",xid="79"}'] == "86400"


def test_a_value_that_the_gpu_does_not_have_is_left_out() -> None:
    text = metrics.build(sample(mig=1, memory_used=None, utilization=[]))
    assert "gpu_ready_gpu_memory_used_bytes" not in text
    assert "duty_cycle" not in text  # no samples of processes in MIG mode: unknown, not 0
    assert "gpu_ready_container_memory_used_bytes" in text


def test_a_lost_gpu_and_a_driver_without_an_answer_are_reported() -> None:
    lost = sample()._replace(nvml={"driver": "580.1", "gpus": [{"index": 3, "error": 15, "error_text": "GPU is lost"}]})
    assert 'gpu_ready_gpu_error{gpu="3",code="15",text="GPU is lost"} 1' in metrics.build(lost)
    silent = sample()._replace(nvml={"error": 'no "answer"', "code": 0})
    found = families(metrics.build(silent))
    assert found["gpu_ready_nvml_up"] == "0"
    assert found['gpu_ready_nvml_error{code="0",text="no \\"answer\\""}'] == "1"


SLICE = "0::/user.slice/user-1000.slice/user@1000.service"
SAME_ID = [
    (f"{SLICE}/libpod-{A}.scope/libpod-{B}.scope", f"{SLICE}/libpod-{B}.scope"),
    (f"0::/docker/{A}/docker/{B}", f"0::/docker/{B}"),
    (f"0::/system.slice/docker-{B}.scope", f"{SLICE}/docker-{B}.scope"),
    (f"0::/kubepods/pod{UID}/{B}", f"0::/default/{B}"),
]


@pytest.mark.parametrize("cgroups", SAME_ID)
@pytest.mark.parametrize("names", [{}, {"container": "é" * 300 + "x", "image": "y\x07"}])
def test_no_series_is_twice_in_the_file(cgroups: tuple[str, str], names: dict[str, str]) -> None:
    """Users choose cgroups, and so the containers around one; what no label shows is summed."""
    places = {pid: containers.place_of(text) for pid, text in enumerate(cgroups, 1)}
    assert places[1] != places[2] and places[1].id == places[2].id == B
    found = {place: Names(**names) for place in places.values()} if names else {}
    two = sample(processes=[[1, 100], [2, 10]], utilization=[[1, 70], [2, 60]])._replace(places=places, names=found)
    lines = [line for line in metrics.build(two, True).splitlines() if not line.startswith("#")]
    series = [line.rpartition(" ")[0] for line in lines]
    assert sorted(series) == sorted(set(series))
    by_family: dict[str, float] = {}
    for line in lines:
        name = line.partition("{")[0]
        by_family[name] = by_family.get(name, 0) + float(line.rpartition(" ")[2])
    assert by_family["gpu_ready_container_memory_used_bytes"] == 110
    assert by_family["gpu_ready_container_processes"] == 2
    assert by_family["container_accelerator_memory_used_bytes"] == 110
    assert by_family["container_accelerator_memory_total_bytes"] == 16 << 30
    assert by_family["container_accelerator_duty_cycle"] == 100  # of 70 and 60


def test_containers_beyond_the_limit_are_counted() -> None:
    many = {pid: CgroupPlace("docker", f"{pid:064x}") for pid in range(1, metrics.MOST_CONTAINERS + 4)}
    one = sample(processes=[[pid, 1] for pid in many])._replace(places=many, names={})
    found = families(metrics.build(one))
    assert found["gpu_ready_containers_left_out"] == "3"
    assert sum(name.startswith("gpu_ready_container_memory_used_bytes") for name in found) == metrics.MOST_CONTAINERS


def test_the_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "gpu_ready.prom"
    textfile.write(str(path), "a 1\n")
    textfile.write(str(path), "a 2\n")
    assert path.read_text() == "a 2\n" and path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["gpu_ready.prom"]
    with pytest.raises(UnicodeEncodeError):
        textfile.write(str(path), "a 3\n\udce9")
    assert path.read_text() == "a 2\n" and len(list(tmp_path.iterdir())) == 1


# ---- the kernel's log -----------------------------------------------------------------------------------------------


def records(tmp_path: Path, *messages: str, first: int = 100) -> kernel_log.KernelLog:
    """A log whose records come one by one, as from /dev/kmsg, then none."""
    log = kernel_log.KernelLog(str(tmp_path / "none"), str(tmp_path / "state"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for number, message in enumerate(messages, first):
        theirs.send(f"3,{number},5000,-;{message}\n SUBSYSTEM=pci\n".encode())
    ours.setblocking(False)
    log.handle = ours.detach()
    return log


@pytest.mark.host_io
def test_xids_are_counted_once_also_after_a_restart(tmp_path: Path) -> None:
    lines = [
        "NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (0000:3b:00): 79, pid=12",
        "NVRM: Xid (PCI:0000:5e:00 GPU-I:05): 94, pid=9",
        "nvidia-nvswitch0: SXid (PCI:0000:a1:00.0): 12028, Non-fatal, Link 32",
        "usb 1-1: new device Xids",
    ]
    expected = {"Xid 79 0000:3b:00.0": 2, "Xid 94 0000:5e:00.0": 1, "SXid 12028 0000:a1:00.0": 1}
    log = records(tmp_path, *lines)
    log.read()
    assert log.xids.counts == expected
    restarted = records(tmp_path, *lines, "NVRM: Xid (PCI:0000:5e:00): 94, pid=9")
    restarted.read()
    assert restarted.xids.counts == expected | {"Xid 94 0000:5e:00.0": 2}


@pytest.mark.host_io
@pytest.mark.parametrize(
    "state", ["", "[]", '{"next": "x"}', '{"next": 1, "counts": 3}', '{"next": 1, "counts": {"Xid 31 x": 1}}', "\x00"]
)
def test_a_damaged_state_starts_from_nothing(tmp_path: Path, state: str) -> None:
    (tmp_path / "state").write_text(state)
    log = records(tmp_path, "NVRM: Xid (PCI:0000:3b:00): 31, pid=1", first=0)
    log.read()
    assert log.xids.counts == {"Xid 31 0000:3b:00.0": 1}


@pytest.mark.host_io
def test_a_log_that_could_not_be_read_is_opened_again(tmp_path: Path) -> None:
    log = kernel_log.KernelLog(str(tmp_path / "kmsg"), str(tmp_path / "state"))
    log.read()
    assert not log.available
    os.mkfifo(tmp_path / "kmsg")
    log.read()
    with (tmp_path / "kmsg").open("wb") as writer:
        writer.write(b"3,7,5000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n")
    log.read()
    assert log.xids.counts == {"Xid 79 0000:3b:00.0": 1}


@pytest.mark.host_io
def test_the_time_of_an_xid_is_that_of_its_record_for_old_ones_and_of_its_reading_for_new_ones(tmp_path: Path) -> None:
    """The kernel's stamps deviate in a long uptime, so they serve only for what was logged before the service began."""
    log, key = records(tmp_path, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1"), "Xid 79 0000:3b:00.0"
    log.read()
    booted = time.time() - time.monotonic()
    assert log.xids.times == {key: pytest.approx(booted, abs=2)}
    later = records(tmp_path, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1", first=101)
    assert later.xids.times == log.xids.times
    later.read()
    assert later.xids.counts == {key: 2} and later.xids.times == {key: pytest.approx(time.time(), abs=2)}


# ---- what gpu-ready knows -------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "var/lib/gpu-ready/verified.json": json.dumps(
            {"ok": True, "boot_id": "b", "driver": "535.1.2", "gpus": [UUID], "addresses": ["0000:3b:00.0"],
             "time": "2026-08-01T00:00:10Z"}
        ),
        "sys/module/nvidia/version": "535.1.2\n",
        "proc/sys/kernel/random/boot_id": "b\n",
        "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.1.2": "",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_verified_node(root: Path) -> None:
    known = node.read_node({"535": "2026-06"}, [UUID], False, str(root), now=1785542400.0)  # 2026-08-01
    assert known == node.Node(
        True, 1785542410, 1, "535.1.2", {"driver": False, "userspace": False, "gpus": False},
        {"distribution": False, "driver": False}, 535, True,
    )  # fmt: skip
    assert node.read_node({"535": "2026-08"}, None, False, str(root), now=1785542400.0).ended is False


@pytest.mark.parametrize(
    ("file", "text", "part"),
    [
        ("sys/module/nvidia/version", "535.9.9", "driver"),
        ("usr/lib64/libnvidia-ml.so.535.9.9", "", "userspace"),
        ("proc/sys/kernel/random/boot_id", "later", ""),
        ("var/lib/gpu-ready/verified.json", "[", ""),
    ],
)
def test_what_differs_from_the_verification(root: Path, file: str, text: str, part: str) -> None:
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    (root / file).write_text(text)
    known = node.read_node({}, [UUID], False, str(root))
    assert not known.verified and (known.drift.get(part) is True) == bool(part)


def test_a_missing_gpu_is_drift_and_a_mark_a_reboot(root: Path) -> None:
    (root / "run").mkdir()
    (root / "run/reboot-required").write_text("")
    known = node.read_node({}, [], True, str(root))
    assert known.drift["gpus"] and not known.verified and known.reboot == {"distribution": True, "driver": False}


@pytest.mark.parametrize(
    ("text", "more", "edited"),
    [
        ("ours\n", {}, False),
        ("theirs\n", {}, True),
        (None, {}, True),
        ("theirs\n", {"components": ["contrib"]}, False),
        (None, {"written": [None]}, False),
        ("theirs\n", {"written": [None]}, True),
        ("theirs\n", {"written": []}, False),
    ],
)
def test_a_file_that_somebody_edited_is_drift_but_does_not_undo_the_verification(
    root: Path, text: str | None, more: dict[str, Any], edited: bool
) -> None:
    digest = hashlib.sha256(b"ours\n").hexdigest()
    entry = {"before": None, "mode": None, "written": [["0" * 64, 420, 0], [digest, 420, 0]]} | more
    (root / "var/lib/gpu-ready/manifest.json").write_text(json.dumps({"files": {"/etc/ours.conf": entry}}))
    if text is not None:
        (root / "etc").mkdir()
        (root / "etc/ours.conf").write_text(text)
    known = node.read_node({}, [UUID], False, str(root))
    assert known.verified and known.drift["files"] is edited


# ---- NVML, in processes and cgroups of this machine -----------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's NVML, compiled."""
    real_programs.need_on_path("cc", "gcc")
    compiler = shutil.which("cc") or "cc"
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    argv = [
        compiler,
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-Wno-override-init",
        "-o",
        str(path),
        str(MOCK / "nvml_mock.c"),
        "-ldl",
    ]
    subprocess.run(argv, check=True, timeout=120)
    return path


def configured(tmp_path: Path, processes: str = "", more: str = "") -> Path:
    path = tmp_path / "nvml.conf"
    path.write_text(
        "require_dev = 0\ndriver_version = 580.95.05\n"
        + more
        + "\n[gpu]\nname = Tesla T4\necc = 1\nmemory_mib = 15360\n"
        f"[gpu 0]\nuuid = {UUID}\nbus_id = 00000000:3B:00.0\nclock_sm = 1590\npower_mw = 27310\nthrottle = 0x24\n"
        f"remapped_uncorrected = 2\nremap_pending = 1\nrecovery_action = 1\nutil_gpu = 61\nprocesses = {processes}\n"
        "[gpu 1]\nuuid = GPU-2\nbus_id = 00000000:5E:00.0\nmig = 1\n"
    )
    return path


@pytest.fixture
def cgroups() -> Iterator[Any]:
    """Makes cgroups of this machine and starts processes in them; removes both."""
    base = next(
        (one for one in (Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")) if os.access(one, os.W_OK)), None
    )
    mounts = Path("/proc/mounts").read_text()
    if (
        base is None
        or os.geteuid()
        or not any(f" {base} " in line and "cgroup" in line for line in mounts.splitlines())
    ):
        pytest.skip("cgroups of this machine are not writable")
    made: list[Path] = []
    started: list[subprocess.Popen[bytes]] = []

    def start(path: str) -> int:
        group = base / path.lstrip("/")
        missing = [one for one in (group, *group.parents) if not one.exists()]
        try:
            group.mkdir(parents=True, exist_ok=True)
            made.extend(missing)
            started.append(subprocess.Popen(["sleep", "600"]))
            (group / "cgroup.procs").write_text(str(started[-1].pid))
        except OSError as error:
            pytest.skip(f"no process can be put into a cgroup here: {error}")
        return started[-1].pid

    yield start
    for one in started:
        one.kill()
        one.wait(timeout=120)
    end = time.monotonic() + 10
    for group in sorted(made, key=lambda one: -len(one.parts)):
        while group.exists() and time.monotonic() < end:  # the kernel empties it a moment later
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.05)


PYTHONS = sorted({sys.executable, *map(str, Path.home().glob(".pyenv/versions/3.6.*/bin/python3.6"))})


def run_program(python: str, tmp_path: Path, library: Path, conf: Path, *words: str) -> "subprocess.Popen[str]":
    """The program as its unit starts it."""
    package = tmp_path / "gpu_ready_node"
    if not package.exists():
        package.mkdir()
        (package / "__init__.py").write_text("")
        for subject in monitoring_files.SUBJECTS:
            (package / subject).symlink_to(SOURCES / subject)
    settings = tmp_path / "monitoring.json"
    values = {
        "file": str(tmp_path / "gpu_ready.prom"),
        "interval": 1,
        "old_names": False,
        "branch_ends": {"580": "2028-06"},
    }
    settings.write_text(json.dumps(values))
    argv = [python, "-E", "-s", "-B", "-m", "gpu_ready_node.monitor.service", str(settings), *words]
    environment = {"LD_LIBRARY_PATH": str(library.parent), "NVML_MOCK_CONF": str(conf), "PATH": os.environ["PATH"]}
    return subprocess.Popen(
        argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: Path(path).name)
def test_containers_and_pods_share_a_gpu(python: str, tmp_path: Path, library: Path, cgroups: Any) -> None:
    docker, pod = cgroups(f"docker/{A}"), cgroups(f"kubepods/burstable/pod{UID}/{B}")
    twin, host = cgroups(f"docker/{A}"), os.getpid()
    conf = configured(tmp_path, f"{docker}:512:40 {twin}:256:30 {pod}:1024:20 {host}:7:0")
    out, err = run_program(python, tmp_path, library, conf, "--print").communicate(timeout=300)
    assert err == ""
    found = families(out)
    gpu = f'gpu="0",uuid="{UUID}"'
    assert found["gpu_ready_nvml_up"] == "1"
    assert found[f'gpu_ready_gpu_info{{{gpu},pci="0000:3b:00.0",name="Tesla T4",driver="580.95.05"}}'] == "1"
    of_docker, of_pod = f'{gpu},engine="docker",id="{A}"', f'{gpu},engine="unknown",id="{B}",pod_uid="{UID}"'
    assert found[f"gpu_ready_container_memory_used_bytes{{{of_docker}}}"] == str(768 << 20)
    assert found[f"gpu_ready_container_duty_cycle_ratio{{{of_docker}}}"] == "0.7"
    assert found[f"gpu_ready_container_processes{{{of_docker}}}"] == "2"
    assert found[f"gpu_ready_container_memory_used_bytes{{{of_pod}}}"] == str(1 << 30)
    assert found[f"gpu_ready_container_duty_cycle_ratio{{{of_pod}}}"] == "0.2"
    assert found[f'gpu_ready_container_memory_used_bytes{{{gpu},engine="host"}}'] == str(7 << 20)
    assert found[f"gpu_ready_gpu_power_watts{{{gpu}}}"] == "27.31"
    assert found[f'gpu_ready_gpu_clock_hertz{{{gpu},clock="sm"}}'] == "1590000000"
    assert found[f'gpu_ready_gpu_clock_event{{{gpu},reason="sw_thermal"}}'] == "1"
    assert found[f'gpu_ready_gpu_clock_event{{{gpu},reason="hw_thermal"}}'] == "0"
    assert found[f'gpu_ready_gpu_remapped_rows{{{gpu},cause="uncorrected"}}'] == "2"
    assert found[f"gpu_ready_gpu_row_remap_pending{{{gpu}}}"] == "1"
    assert found[f"gpu_ready_gpu_recovery_action{{{gpu}}}"] == "1"
    assert found['gpu_ready_gpu_mig_mode{gpu="1",uuid="GPU-2"}'] == "1"
    subprocess.run(["promtool", "check", "metrics"], input=out, text=True, check=True, timeout=60)


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("more", "code"), [("init_error = 18", "18"), ("init_error = 9", "9"), ("init_error = 999", "999")]
)
def test_a_driver_that_refuses_is_a_value_and_no_failure(tmp_path: Path, library: Path, more: str, code: str) -> None:
    out, err = run_program(sys.executable, tmp_path, library, configured(tmp_path, "", more), "--print").communicate(
        timeout=300
    )
    assert err == "" and families(out)["gpu_ready_nvml_up"] == "0" and f'gpu_ready_nvml_error{{code="{code}"' in out


@pytest.mark.host_io
def test_a_host_without_the_library_is_reported(tmp_path: Path) -> None:
    answer = worker.Worker(str(tmp_path / "libnvidia-ml.so.1")).sample()
    assert answer["code"] == 0 and answer["error"].startswith("no NVML: ")


@pytest.mark.host_io
def test_a_driver_that_hangs_is_asked_no_more_until_it_answers(tmp_path: Path) -> None:
    source, path = tmp_path / "hang.c", tmp_path / "libhang.so"
    source.write_text("#include <unistd.h>\nint nvmlInit_v2(void) { for (;;) pause(); }\n")
    real_programs.need_on_path("cc", "gcc")
    compiler = shutil.which("cc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), str(source)], check=True, timeout=60)
    start = time.monotonic()
    asked = worker.Worker(str(path), limit=0.5)
    assert asked.sample()["error"] == worker.TIMED_OUT % 0.5
    assert asked.stuck is None and time.monotonic() - start < 50  # it could be ended


@pytest.mark.host_io
@pytest.mark.parametrize(("driver", "version", "size"), [
    ("580.95.05", "_v3", 24), ("535.54.03", "_v3", 32), ("535.104.05", "_v3", 24), ("535.54.03", "_v2", 24),
    ("450.1", "", 16), ("garbage", "_v3", 24),
])  # fmt: skip
def test_the_size_of_a_process_record(driver: str, version: str, size: int) -> None:
    assert nvml.record_size(driver, version) == size


@pytest.mark.host_io
def test_the_service_costs_less_than_a_percent_of_a_core(tmp_path: Path, library: Path) -> None:
    """At one sample a second; the default is one in 30."""
    if not os.access("/run", os.W_OK):
        pytest.skip("the service writes its process id below /run")
    run = Path("/run/gpu-ready-monitoring")
    if run.exists():
        pytest.skip("the service runs on this machine")
    run.mkdir()
    try:
        process = run_program(sys.executable, tmp_path, library, configured(tmp_path, f"{os.getpid()}:5:5"))
        file = tmp_path / "gpu_ready.prom"
        end = time.monotonic() + 120
        while not file.exists() and time.monotonic() < end:
            time.sleep(0.1)
        stamp = file.stat().st_mtime_ns
        used = cpu_seconds(process.pid)
        time.sleep(6)
        spent = cpu_seconds(process.pid) - used
        end = time.monotonic() + 120
        while file.stat().st_mtime_ns <= stamp:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert Path(f"/proc/{process.pid}/comm").read_text() == "gpu-ready-monit\n"
        assert (run / "pid").read_text() == f"{process.pid}\n"
        process.terminate()
        process.communicate(timeout=120)
        assert spent / 6 / 30 < 0.01
    finally:
        shutil.rmtree(run)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and of its children that ended (proc(5): utime to cstime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


HOPPER = "architecture = 9\nnvlinks = 18\nnvlink_version = 4\nnvswitch_links = 18\n"
PROBLEMS = [*nvlink.PROBLEMS, "incorrect_configuration"]


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("conf", "links", "errors", "fabric", "problems"),
    [
        ("", {}, {}, {}, set()),
        ("architecture = 9\n", {}, {}, {}, set()),  # a PCI Express card: its fabric state is "not supported"
        (HOPPER, (18, 0), {"replay": 0, "recovery": 0, "crc": 0}, {"state": 1}, set()),
        (
            HOPPER + "nvlinks_down = 0x30000\nnvlink_crc = 5000000000\nfabric_state = 3\nfabric_mask = 0x22a9\n",
            (16, 2), {"replay": 0, "recovery": 0, "crc": 5000000000}, {"state": 3, "status": 0},
            {"degraded_bandwidth", "incorrect_configuration"},
        ),
        (
            HOPPER + "architecture = 10\nnvlink_version = 5\nnvlink_receive = 7\nfabric_state = 3\nfabric_status = 999\n",
            (18, 0), {"receive": 7, "integrity": 0, "recovery": 0}, {"state": 3, "status": 999}, set(),
        ),
    ],
    ids=["turing", "pcie", "not started", "hopper", "blackwell"],
)  # fmt: skip
def test_nvlink_and_its_fabric(
    tmp_path: Path, library: Path, conf: str, links: Any, errors: dict[str, int], fabric: Any, problems: set[str]
) -> None:
    path = tmp_path / "nvml.conf"
    path.write_text(f"require_dev = 0\ndriver_version = 580.95.05\n[gpu 0]\nname = H100\nuuid = {UUID}\n{conf}")
    out, err = run_program(sys.executable, tmp_path, library, path, "--print").communicate(timeout=300)
    one = f'gpu="0",uuid="{UUID}"'
    expected = {f'nvlinks{{{one},state="{name}"}}': n for name, n in zip(("active", "inactive"), links, strict=False)}
    expected |= {f'nvlink_errors_total{{{one},type="{kind}"}}': n for kind, n in errors.items()}
    expected |= {f"fabric_{name}{{{one}}}": n for name, n in fabric.items()}
    expected |= {f'fabric_problem{{{one},problem="{name}"}}': name in problems for name in PROBLEMS if fabric}
    found = {
        name: value
        for name, value in families(out).items()
        if name.startswith("gpu_ready_gpu_") and ("nvlink" in name or "fabric" in name)
    }
    assert (found, err) == ({f"gpu_ready_gpu_{name}": str(int(value)) for name, value in expected.items()}, "")
