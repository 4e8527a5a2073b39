"""What runs on a host: processes that hold a GPU, containers by how they reach one, Slurm jobs; nothing is started."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import FOREIGN_LIMIT, Host
from plugins.module_utils.gpu_ready.containers import docker
from plugins.module_utils.gpu_ready.driver import gpu_services, persistence_state
from plugins.module_utils.gpu_ready.facts import docker as docker_facts
from plugins.module_utils.gpu_ready.facts import work
from plugins.module_utils.gpu_ready.facts.model import ContainerFacts, GpuProcess, WorkFacts
from tests.unit.recorded import RecordedHost

SOCKET = "/run/docker.sock"
INFO = {"ServerVersion": "26.1.5", "DefaultRuntime": "runc", "ContainersRunning": 1}
DOCKERD = {SOCKET: "", "/run/docker.pid": "712", "/proc/712/comm": "dockerd\n"}
CONTAINER = "c0ffee" + "0" * 58
GPU = {"HostConfig": {"DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}]}}


class Docker(RecordedHost):
    """A host with a docker engine that lists containers as its API documents it, and records the requests."""

    def __init__(self, running: dict[str, Any], files: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__({**DOCKERD, **(files or {})}, **more)
        self.running = running
        self.requests: list[str] = []

    def http_unix(self, path: str, url: str, timeout: float = 5.0) -> str | None:
        self.requests.append(url)
        if url == "/info":
            return json.dumps(INFO)
        if url == "/containers/json":
            rows = [{"Id": name, "Names": ["/" + name], **self.running[name].get("row", {})} for name in self.running]
            return json.dumps(rows)
        answer = self.running.get(url.split("/")[2])
        return json.dumps(answer) if answer is not None and "row" not in answer else None


def collect(host: RecordedHost) -> WorkFacts:
    return work.collect(host, docker_facts.collect_engine(host))


@pytest.mark.parametrize(
    ("container", "access"),
    [
        (GPU, "GPU"),
        ({"HostConfig": {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]}}, "GPU"),
        ({"HostConfig": {"DeviceRequests": [{"DeviceIDs": ["management.nvidia.com/gpu=all"]}]}}, "GPU"),
        ({"HostConfig": {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["vendor.com/nic=0"]}]}}, ""),
        *[
            ({"HostConfig": {"Runtime": name}, "Config": {"Env": ["NVIDIA_VISIBLE_DEVICES=all"]}}, access)
            for name, access in [("nvidia", "GPU"), ("nvidia-cdi", "GPU"), ("nvidia-legacy", "GPU"), ("runc", "")]
        ],
        ({"HostConfig": {"Runtime": "nvidia"}, "Config": {"Env": ["NVIDIA_VISIBLE_DEVICES=void"]}}, ""),
        ({"HostConfig": {"Devices": [{"PathOnHost": "/dev/nvidia0"}]}}, "GPU"),
        ({"HostConfig": {"Privileged": True}}, "privileged"),
        ({"HostConfig": {"Binds": ["/dev:/dev"]}}, "/dev"),
        ({"Mounts": [{"Type": "bind", "Source": "/dev", "Destination": "/host/dev"}]}, "/dev"),
        ({"HostConfig": {"Binds": ["/dev/nvidia0:/dev/nvidia0:ro"]}}, "GPU"),
        ({"HostConfig": {"Binds": ["/srv:/dev", "/developers:/x"]}}, ""),
        ({}, ""),
    ],
)
def test_how_a_container_reaches_a_gpu(container: dict[str, Any], access: str) -> None:
    assert docker.gpu_access(container) == access


def test_running_containers_are_listed_without_a_limit() -> None:
    """With a limit docker counts the newest containers, also those that have exited (API 1.57, ContainerList)."""
    host = Docker({"train": GPU | {"Name": "/train"}, "web": {"Name": "/web"}})
    found = collect(host)
    assert found.containers == [
        ContainerFacts("docker", "train", "train", "GPU"),
        ContainerFacts("docker", "web", "web"),
    ]
    assert "/containers/json" in host.requests and not [url for url in host.requests if "limit" in url]


def test_a_docker_that_does_not_run_is_not_asked() -> None:
    """Systemd would start it for a request to its socket (docker.socket)."""
    host = Docker({"train": GPU})
    host.files["/proc/712/comm"] = "bash\n"
    engine = docker_facts.collect_engine(host)
    docker_facts.collect_runtime(host, engine)
    assert (work.collect(host, engine), engine.active, host.requests) == (WorkFacts(), False, [])
    del host.files["/run/docker.pid"]
    assert not docker_facts.collect_engine(host).active and host.requests == []


def test_more_containers_than_are_described_are_counted() -> None:
    found = collect(Docker({f"c{number:03}": {} for number in range(300)}))
    assert (len(found.containers), found.unlisted) == (work.MOST_CONTAINERS, 44)


def test_a_container_that_docker_does_not_describe_may_reach_a_gpu() -> None:
    (found,) = collect(Docker({"silent": {"row": {}}})).containers
    assert found == ContainerFacts("docker", "silent", "silent", "not described by docker")


def test_containers_that_docker_does_not_list_are_counted_as_it_says() -> None:
    host = Docker({})
    answer = host.http_unix
    host.http_unix = lambda path, url, timeout=5.0: answer(path, url) if url == "/info" else None  # type: ignore[method-assign]
    assert collect(host) == WorkFacts(unlisted=1)


def test_a_container_of_a_pod_has_the_name_of_the_pod() -> None:
    labels = {"Labels": {"io.kubernetes.pod.namespace": "ml", "io.kubernetes.pod.name": "train-0"}}
    (found,) = collect(Docker({"a": {"row": labels}})).containers
    assert (found.name, found.pod) == ("ml/train-0", True)


BUNDLE = "/run/containerd/io.containerd.runtime.v2.task/%s/config.json"
PRIVILEGED = {"linux": {"resources": {"devices": [{"allow": True, "access": "rwm"}]}}}
DEFAULT = {
    "linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 1}]}}
}


@pytest.mark.parametrize(
    ("spec", "access"),
    [
        ({"linux": {"devices": [{"path": "/dev/nvidia0"}]}}, "GPU"),
        ({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}, "GPU"),
        ({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}, ""),
        (PRIVILEGED, "privileged"),
        (DEFAULT, ""),
        ({"mounts": [{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}]}, ""),
        ({"mounts": [{"destination": "/host/dev", "type": "bind", "source": "/dev"}]}, "/dev"),
    ],
)
def test_containers_of_containerd_by_their_bundles(spec: dict[str, Any], access: str) -> None:
    files = {BUNDLE % "default/job": json.dumps(spec), BUNDLE % "moby/docker": json.dumps(PRIVILEGED)}
    (found,) = collect(RecordedHost(files)).containers
    assert found == ContainerFacts("containerd", "job", "default/job", access)


def test_pods_of_containerd_and_of_k3s() -> None:
    pod = {"io.kubernetes.cri.sandbox-namespace": "ml", "io.kubernetes.cri.sandbox-name": "train-0"}
    text = json.dumps({"annotations": pod, "linux": {"devices": [{"path": "/dev/nvidia0"}]}})
    files = {BUNDLE % "k8s.io/ab": text, (BUNDLE % "k8s.io/cd").replace("/run/", "/run/k3s/"): text}
    found = collect(RecordedHost(files)).containers
    assert found == [
        ContainerFacts(name, one, "ml/train-0", "GPU", True) for name, one in (("containerd", "ab"), ("k3s", "cd"))
    ]


def status(user: int) -> str:
    return f"Name:\tx\nUmask:\t0022\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t0\t0\t0\t0\n"


class Owned(RecordedHost):
    """A host whose files below /run/user/N and /home are their users'."""

    def owner(self, path: str) -> int | None:
        found = re.match(r"/(?:run/user|home)/(\d+)/", path)
        return int(found.group(1)) if found else super().owner(path)


def monitor(user: int, bundle: str, *words: str) -> dict[str, str]:
    """Return the files of a conmon with these arguments."""
    argv = [
        "/usr/bin/conmon",
        "--api-version",
        "1",
        "-c",
        CONTAINER,
        "-u",
        CONTAINER,
        "-r",
        "/usr/bin/crun",
        "-b",
        bundle,
    ]
    pod = {"io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.name": "dns"}
    spec = {"linux": {"devices": [{"path": "/dev/nvidia0"}]}, "annotations": pod if "pod" in words else {}}
    return {
        "/proc/9/comm": "conmon\n",
        "/proc/9/status": status(user),
        "/proc/9/cmdline": "\0".join([*argv, "-n", "train"]) + "\0",
        bundle + "/config.json": json.dumps(spec),
    }


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            monitor(0, f"/var/lib/containers/storage/overlay-containers/{CONTAINER}/userdata"),
            [ContainerFacts("podman", CONTAINER, "train", "GPU")],
        ),
        (
            monitor(0, "/run/containers/userdata", "pod"),
            [ContainerFacts("podman", CONTAINER, "kube-system/dns", "GPU", True)],
        ),
        (
            monitor(1000, "/run/user/1000/containers/userdata", "pod"),
            [ContainerFacts("podman", "1000:" + CONTAINER, "train (rootless, of user 1000)", "GPU")],
        ),
        (monitor(1000, "/run/user/1001/containers/userdata"), []),
        (monitor(1000, "/var/lib/containers/userdata"), []),
        ({**monitor(0, "/run/containers/userdata"), "/proc/9/status": ""}, []),  # it has ended
    ],
)
def test_containers_of_podman_by_their_monitor(files: dict[str, str], expected: list[ContainerFacts]) -> None:
    assert collect(Owned(files)).containers == expected


def test_a_rootless_container_takes_no_place_of_another_one() -> None:
    """Its user chooses its id: processes of a container of docker with this id stay there."""
    host = in_use(f"0::/system.slice/docker-{CONTAINER}.scope\n")
    host.files.update(monitor(1000, "/run/user/1000/containers/userdata"))
    host.owner = lambda path: 1000  # type: ignore[method-assign]
    found = collect(host)
    assert [one.container for one in found.processes] == ["trainer"]
    assert [one.name for one in found.containers] == ["trainer", "train (rootless, of user 1000)"]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[]", "{", '{"linux": 3}', '{"linux": {"resources": {"devices": [3]}}}', '{"mounts": [1]}']
)
def test_a_bundle_of_another_form_is_not_readable(text: str) -> None:
    """Any user can start a program called conmon, whose arguments name any file."""
    files = monitor(1000, "/home/1000/u") | {"/home/1000/u/config.json": text}
    (found,) = collect(Owned(files)).containers
    assert found.gpu == "not readable"


def test_a_file_that_a_user_chose_neither_blocks_nor_floods(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", FOREIGN_LIMIT + 1)
    (tmp_path / "small").write_text("{}")
    read = {path.name: Host().read_foreign(str(path)) for path in tmp_path.iterdir()}
    assert read == {"pipe": None, "zeros": None, "large": None, "small": "{}"}
    assert Host().read_foreign(str(tmp_path)) is None and Host().read_foreign(str(tmp_path / "absent")) is None


def test_slurm_jobs_by_the_titles_of_their_steps() -> None:
    titles = {1: "slurmstepd: [614.0]", 2: "slurmstepd: [614.extern]", 3: "slurmstepd: [77.batch]"}
    titles[4] = "/usr/sbin/slurmstepd\0infinity"
    titles[5] = "slurmstepd: [4711.batch]"  # a user's process with this name
    files = {f"/proc/{pid}/cmdline": title + "\0" for pid, title in titles.items()}
    files |= {f"/proc/{pid}/comm": "slurmstepd\n" for pid in titles}
    files |= {f"/proc/{pid}/status": status(1000 if pid == 5 else 0) for pid in titles}
    assert collect(RecordedHost(files)).jobs == ["77", "614"]


# ---- processes -----------------------------------------------------------------------------------------------------


def in_use(cgroup: str, name: str = "python3") -> Docker:
    files = {
        "/sys/module/nvidia/refcnt": "1\n",
        "/proc/4711/comm": name + "\n",
        "/proc/4711/cmdline": "python3\0train.py\0--epochs\0" + "9\0",
        "/proc/4711/cgroup": cgroup,
        "/proc/1/comm": "systemd\n",
    }
    links = {"/proc/4711/fd/3": "/dev/nvidia0", "/proc/1/fd/0": "/dev/null"}
    return Docker({CONTAINER: {"row": {"Names": ["/trainer"]}}}, files, links=links)


@pytest.mark.parametrize(
    ("cgroup", "container", "job"),
    [
        ("0::/user.slice/user-0.slice\n", None, None),
        (f"0::/system.slice/docker-{CONTAINER}.scope\n", "trainer", None),
        (f"12:devices:/docker/{CONTAINER}\n1:name=systemd:/docker/{CONTAINER}\n", "trainer", None),
        (f"0::/machine.slice/libpod-{'a' * 64}.scope/container\n", "a" * 12, None),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{'b' * 64}.scope\n", "b" * 12, None),
        (f"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-{CONTAINER}.scope\n", "(rootless)", None),
        (f"4:devices:/\n1:name=systemd:/user.slice/user@1000.service/docker/{CONTAINER}\n", "(rootless)", None),
        (f"0::/system.slice/docker-{'c' * 64}.scope/docker/{CONTAINER}\n", "c" * 12, None),
        (f"0::/system.slice/docker-{CONTAINER}.scope/user.slice/user@0.service/x.scope\n", "trainer", None),
        ("0::/system.slice/slurmstepd.scope/job_614/step_0/user/task_0\n", None, "614"),
        ("5:devices:/slurm/uid_1000/job_77/step_batch\n", None, "77"),
        ("0::/user.slice/user-1000.slice/user@1000.service/job_77/step_batch\n", None, None),
    ],
)
def test_a_process_has_its_command_container_and_job(cgroup: str, container: str | None, job: str | None) -> None:
    found = collect(in_use(cgroup)).processes
    assert found == [GpuProcess(4711, "python3", container, "python3 train.py --epochs 9", job=job)]


def test_a_user_who_names_a_cgroup_like_a_container_does_not_make_it_hold_a_gpu() -> None:
    host = in_use(f"0::/user.slice/user-1000.slice/user@1000.service/docker-{CONTAINER}.scope\n")
    host.running[CONTAINER] = {"Name": "/trainer"}
    assert [one.gpu for one in collect(host).containers] == [""]


def test_a_container_whose_process_holds_a_gpu_has_one() -> None:
    host = in_use(f"0::/system.slice/docker-{CONTAINER}.scope\n")
    host.running[CONTAINER] = {"Name": "/trainer"}
    assert [one.gpu for one in collect(host).containers] == ["GPU"]


SERVICE = "0::/system.slice/nvidia-persistenced.service\n"
LOGIN = "0::/user.slice/user-1000.slice/session-3.scope\n"


@pytest.mark.parametrize(
    ("cgroup", "user", "program", "service"),
    [
        (SERVICE, 0, "/usr/bin/nvidia-persistenced", True),
        (SERVICE, 113, "", True),  # its user; a program that cannot be read
        ("0::/system.slice/dcgm-exporter.service/x\n", 998, "/opt/dcgm-exporter", True),
        ("0::/gpu.slice/nvidia-dcgm.service\n", 0, "", True),  # Slice= of an administrator
        ("4:devices:/\n1:name=systemd:/system.slice/nvidia-fabricmanager.service\n0::/\n", 0, "", True),
        ("0::/system.slice/gpu-ready-monitoring.service\n", 0, "/usr/bin/python3.11", True),
        ("0::/\n", 0, "/usr/bin/nvidia-persistenced", True),  # started without systemd
        ("0::/\n", 0, "/usr/bin/nv-hostengine (deleted)", True),  # its package was replaced
        (LOGIN, 1000, "/tmp/nvidia-persistenced", False),
        (LOGIN, 1000, "/usr/bin/nvidia-persistenced", False),  # with any code, by LD_PRELOAD
        (LOGIN, 0, "/home/1000/nvidia-persistenced", False),
        (LOGIN, 0, "/usr/bin/python3", False),
        ("0::/system.slice/cron.service\n", 1000, "/usr/bin/python3", False),
        ("4:devices:/system.slice/nvidia-persistenced.service\n1:name=systemd:/\n", 1000, "", False),
        ("0::/system.slice/notebook.service/nvidia-persistenced.service\n", 1000, "", False),
        ("0::/system.slice/notebook.service/a.slice/nvidia-persistenced.service\n", 1000, "", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/nvidia-persistenced.service\n", 1000, "", False),
        ("0::/user.slice/user-1000.slice/nvidia-persistenced.service\n", 1000, "", False),
        ("0::/machine.slice/nvidia-persistenced.service\n", 1000, "", False),
    ],
)
def test_a_service_of_the_driver_is_known_by_its_unit_or_its_program(
    cgroup: str, user: int, program: str, service: bool
) -> None:
    files = {"/proc/4711/cgroup": cgroup, "/proc/4711/status": status(user), program: ""}
    host = Owned(files, links={"/proc/4711/exe": program} if program else {})
    host.owner = lambda path: Owned.owner(host, host.readlink(path) or path)  # type: ignore[method-assign]
    assert gpu_services.is_gpu_service(host, 4711, cgroup) is service


def test_a_persistence_daemon_without_systemd_is_known_by_its_pid_file() -> None:
    """It has changed its user by then; only root can make the directory of the file."""
    program = "/usr/bin/nvidia-persistenced"
    files = {"/proc/4711/status": status(113), program: "", persistence_state.PID: "4711\n"}
    host = RecordedHost(files, links={"/proc/4711/exe": program})
    assert gpu_services.is_gpu_service(host, 4711, "0::/\n")
    assert not gpu_services.is_gpu_service(host, 471, "0::/\n")
    host.files[persistence_state.PID] = "12\n"
    assert not gpu_services.is_gpu_service(host, 4711, "0::/\n")


def test_work_that_has_the_name_of_a_service_is_work() -> None:
    (found,) = collect(in_use(LOGIN, "nvidia-persiste")).processes
    assert (found.name, found.service) == ("nvidia-persiste", False)
    (found,) = collect(in_use(SERVICE, "nvidia-persiste")).processes
    assert found.service


NAMED = """
import ctypes, os, sys
os.setgroups([])
os.setresuid(65534, 0, 0)  # as of a setuid program
ctypes.CDLL(None).prctl(15, sys.argv[1].encode())  # PR_SET_NAME
print("named", flush=True)
sys.stdin.read()
"""


@pytest.mark.host_io
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize("name", ["nvidia-persiste", "slurmstepd", "conmon", "node_exporter", "prometheus-node"])
def test_a_process_of_another_user_is_nothing_by_its_name(tmp_path: Path, name: str) -> None:
    argv = [sys.executable, "-c", NAMED, name, "-c", CONTAINER, "-b", str(tmp_path), "-n", "x"]
    (tmp_path / "config.json").write_text("{}")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "named\n"
        host, pid = Host(), process.pid
        assert (host.read(f"/proc/{pid}/comm"), host.owner(f"/proc/{pid}")) == (name + "\n", 0)
        daemons = work.find_daemons(host)
        assert pid not in [*daemons.steps, *daemons.exporters]
        assert (pid in daemons.monitors, work.monitored_containers(host, [pid])) == (name == "conmon", [])
        assert not gpu_services.is_gpu_service(host, pid, host.read(f"/proc/{pid}/cgroup") or "")
        process.communicate("\n", timeout=60)


def test_commands_keep_their_secrets() -> None:
    host = in_use("")
    words = [
        "serve",
        "--hf-token=hf_1",
        "--db-password",
        "pw",
        "--url",
        "https://me:pw@x/y",
        "--secret",
        "--port",
        "80",
    ]
    host.files["/proc/4711/cmdline"] = "\0".join(words)
    (found,) = collect(host).processes
    assert found.command == "serve --hf-token=*** --db-password *** --url https://***@x/y --secret --port 80"


def test_names_of_other_people_are_cut_and_cleaned() -> None:
    host = in_use("", "x\x1b[2J\u202ey")
    assert [one.name for one in collect(host).processes] == ["x?[2J?y"]
    assert work.clean("n" * 100) == "n" * (work.LONGEST_NAME - 3) + "..."


def test_the_open_files_are_searched_where_the_kernel_counts_no_users_of_modules() -> None:
    """Seen in a microVM with an H200, whose kernel is built without CONFIG_MODULE_UNLOAD."""
    host = in_use("")
    del host.files["/sys/module/nvidia/refcnt"]
    host.files["/sys/module/nvidia/version"] = "580.159.04\n"
    assert [one.pid for one in collect(host).processes] == [4711]


def test_an_idle_driver_costs_no_search_of_open_files() -> None:
    host = in_use("")
    host.files["/sys/module/nvidia/refcnt"] = "0\n"
    asked: list[str] = []
    listdir = host.listdir
    host.listdir = lambda path: asked.append(path) or listdir(path)  # type: ignore[func-returns-value,method-assign]
    assert collect(host).processes == [] and not [path for path in asked if path.endswith("/fd")]
