"""Every way docker's containers get GPUs, on an engine without CDI (20.10) and one with it (26.1), with changes of the mode.

The tests are one story, in this order: each begins with what the one before left on the two hosts. The campaign adds the driver
volume after a change of the driver, nvidia-docker, an nvidia-ctk of others, and the removal.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.grid import CAMPAIGN
from tests.integration.fleet import Fleet, Run, lab

pytestmark = pytest.mark.lab

OLD_DOCKER, NEW_DOCKER = "rt-debian12", "rt-debian13"
HOSTS = (OLD_DOCKER, NEW_DOCKER)
FOLLOWING = HOSTS if CAMPAIGN else (NEW_DOCKER,)
"""Hosts whose driver others change: their driver volume and specification follow."""
ALL = [0, 1, 2, 3]
BOOT_NODES = "/etc/systemd/system/docker.service.d/gpu-ready-nodes.conf"
VOLUME = "/usr/local/nvidia-driver"
HELPER = "/usr/local/bin/gpu-docker-args"
OURS = (BOOT_NODES, VOLUME, HELPER, "/etc/cdi", "/var/run/cdi", "/usr/bin/nvidia-container-runtime")
TOOLKIT = ("nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container1")
# Prints, for each line of docker's arguments on stdin, what nvidia-smi in that container lists, between two marks.
RUN = """
image=$(docker images -q gpu-ready/verify | head -1)
set -- $(nvidia-smi -L | sed -n 's/.*UUID: \\(.*\\))/\\1/p')
{cases}
"""
CASE = 'echo "<<<"; docker run --rm --network none {arguments} $image {command} 2>&1; echo ">>> $?"'
# As for the volumes of nvidia-docker 1.0: NVIDIA's images name these paths in their environment.
BY_HAND = (
    "--device /dev/nvidiactl --device /dev/nvidia2 -v /usr/local/nvidia-driver/current:/usr/local/nvidia:ro"
    " -e LD_LIBRARY_PATH=/usr/local/nvidia/lib64"
)
DRIVER = (
    "firmware-nvidia-gsp libcuda1 libnvidia-cfg1 libnvidia-ml1 libnvidia-nvvm4 libnvidia-opencl1 libnvidia-ptxjitcompiler1"
    " nvidia-driver-cuda nvidia-kernel-open-dkms nvidia-kernel-support nvidia-modprobe nvidia-persistenced"
)
OTHER_DRIVER = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -y --allow-downgrades --allow-change-held-packages install $(for p in {packages}; do echo $p={version}-1; done) >/dev/null
systemctl stop nvidia-persistenced
for module in nvidia_modeset nvidia_uvm nvidia; do [ ! -e /sys/module/$module ] || rmmod $module; done
modprobe nvidia && nvidia-modprobe -c 0 -u && systemctl start nvidia-persistenced && cat /sys/module/nvidia/version
"""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("runtime")
    fleet.up()
    toolkit = dict.fromkeys(HOSTS, "toolkit")  # as in their states; only the default runtime is to be set
    assert play(fleet, toolkit, "--limit", OLD_DOCKER, nvidia_container_runtime_default=OLD_DOCKER).rc == 0
    return fleet


def play(fleet: Fleet, modes: dict[str, str], *arguments: str, holds: Sequence[str] = (), **extra: Any) -> Run:
    """Run site.yml with a mode for each host; a host's name for a switch means: on this host only."""
    values: dict[str, Any] = {"nvidia_container_runtime_mode": f"{{{{ {modes}[inventory_hostname] }}}}"}
    values["gpu_verify_compute"] = False  # tested elsewhere; these tests are about which GPUs a container sees
    for name, value in extra.items():
        values[name] = f"{{{{ inventory_hostname == '{value}' }}}}" if value in HOSTS else value
    return fleet.play(*arguments, extra=values, holds=holds)


def seen(fleet: Fleet, host: str, *cases: str, command: str = "nvidia-smi -L") -> list[list[int]]:
    """For each way to start a container, which of the host's GPUs its nvidia-smi lists, in that order.

    $1 to $4 in a case are the UUIDs of the host's GPUs.
    """
    answers = started(fleet, host, *cases, command=command)
    uuids = re.findall(r"GPU-[0-9a-f-]+", fleet.ssh(host, "nvidia-smi -L"))
    assert len(uuids) == len(ALL)
    found = []
    for case, (status, output) in zip(cases, answers, strict=True):
        assert status == 0, f"{case}: {output}"
        found.append([uuids.index(uuid) for uuid in re.findall(r"GPU-[0-9a-f-]+", output)])
    return found


def started(fleet: Fleet, host: str, *cases: str, command: str = "nvidia-smi -L") -> list[tuple[int, str]]:
    """Start a container for each of docker's arguments; return its exit status and what it printed."""
    script = RUN.format(cases="\n".join(CASE.format(arguments=case, command=command) for case in cases))
    answers = re.findall(r"^<<<\n(.*?)^>>> (\d+)$", fleet.ssh(host, script), re.MULTILINE | re.DOTALL)
    assert len(answers) == len(cases)
    return [(int(status), output) for output, status in answers]


def daemon_json(fleet: Fleet, host: str) -> Any:
    return json.loads(fleet.ssh(host, "cat /etc/docker/daemon.json"))


def existing_paths(fleet: Fleet, host: str, *paths: str) -> list[str]:
    """Return which of these paths are on a host."""
    return fleet.ssh(host, f"ls -d {' '.join(paths)} 2>/dev/null", check=False).split()


def installed(fleet: Fleet, host: str, *packages: str) -> list[str]:
    """Return which of these packages are installed."""
    lines = fleet.ssh(host, f"dpkg-query -W -f '${{Package}} ${{db:Status-Status}}\\n' {' '.join(packages)} 2>/dev/null", check=False)  # fmt: skip
    return sorted(line.split()[0] for line in lines.splitlines() if line.endswith(" installed"))


def test_toolkit_passes_exactly_the_requested_gpus(fleet: Fleet) -> None:
    ways = {
        "--gpus all": ALL,
        """--gpus '"device=1,2"'""": [1, 2],
        "--gpus device=$4": [3],
        "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all": ALL,
        "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=0,3": [0, 3],
        "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=$2,$3": [1, 2],
        "--gpus 2 -e NVIDIA_DRIVER_CAPABILITIES=utility": [0, 1],
    }
    for host in HOSTS:
        assert dict(zip(ways, seen(fleet, host, *ways), strict=True)) == ways
    assert installed(fleet, OLD_DOCKER, *TOOLKIT) == sorted(TOOLKIT)


def test_driver_capabilities_choose_libraries_and_programs(fleet: Fleet) -> None:
    look = "sh -c 'ls /usr/bin/nvidia-smi /usr/lib/x86_64-linux-gnu/libcuda.so.1 2>/dev/null; true'"
    cases = [f"--gpus all -e NVIDIA_DRIVER_CAPABILITIES={words}" for words in ("utility", "compute", "compute,utility")]
    found = [output.split() for _, output in started(fleet, NEW_DOCKER, *cases, command=look)]
    program, library = "/usr/bin/nvidia-smi", "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    assert found == [[program], [library], [program, library]]


def test_nvidia_as_default_runtime_needs_no_option(fleet: Fleet) -> None:
    assert daemon_json(fleet, OLD_DOCKER)["default-runtime"] == "nvidia"
    assert "default-runtime" not in daemon_json(fleet, NEW_DOCKER)
    assert seen(fleet, OLD_DOCKER, "-e NVIDIA_VISIBLE_DEVICES=2") == [[2]]
    (status, _), (other, _) = started(fleet, OLD_DOCKER, "--runtime=runc", "-e NVIDIA_VISIBLE_DEVICES=none")
    assert status and other
    ((status, output),) = started(fleet, NEW_DOCKER, "-e NVIDIA_VISIBLE_DEVICES=2")
    assert status and "nvidia-smi" in output


def test_cdi_is_refused_on_an_engine_without_it_and_nothing_is_changed(fleet: Fleet) -> None:
    run = play(fleet, dict.fromkeys(HOSTS, "cdi"), "--limit", OLD_DOCKER)
    assert run.rc != 0 and run.changed(OLD_DOCKER) == []
    (refusal,) = run.plan(OLD_DOCKER)["refusals"]
    assert refusal["code"] == "engine_without_cdi" and "native" in refusal["remedy"]


def test_running_gpu_containers_keep_the_toolkit_on_the_host(fleet: Fleet) -> None:
    image = "$(docker images -q gpu-ready/verify | head -1)"
    fleet.ssh(OLD_DOCKER, f"docker run -d --rm --name training --gpus 1 --network none {image} sleep infinity")
    try:
        run = play(fleet, dict.fromkeys(HOSTS, "native"), "--limit", OLD_DOCKER)
        assert run.rc != 0 and run.changed(OLD_DOCKER) == []
        refusals = run.plan(OLD_DOCKER)["refusals"]
        assert {refusal["code"] for refusal in refusals} == {"host_in_use"}
        assert all("training" in refusal["message"] for refusal in refusals)
    finally:
        fleet.ssh(OLD_DOCKER, "docker rm -f training")


@pytest.fixture(scope="module")
def switched(fleet: Fleet) -> Iterator[Run]:
    """From the toolkit to the driver volume on the old engine, to CDI on the new one; the campaign compares it with check mode."""
    other = {"log-opts": {"max-size": "10m"}}
    fleet.ssh(NEW_DOCKER, edit_daemon_json(other))
    modes = {OLD_DOCKER: "native", NEW_DOCKER: "cdi"}
    check = play(fleet, modes, "--check") if CAMPAIGN else None
    run = play(
        fleet,
        modes,
        holds=[
            "nvidia_container_runtime.cleanup",
            "nvidia_container_runtime.volume",
            "nvidia_container_runtime.configure",
        ],
    )
    assert run.rc == 0
    for host in HOSTS:
        assert run.steps(host) == run.changed_steps(host)
        assert check is None or check.steps(host) == run.steps(host)
    assert daemon_json(fleet, OLD_DOCKER) == {}
    assert daemon_json(fleet, NEW_DOCKER) == {**other, "features": {"cdi": True}}
    yield run


def edit_daemon_json(values: dict[str, Any]) -> str:
    """Return a command that adds keys of somebody else to daemon.json."""
    path = "/etc/docker/daemon.json"
    code = f"import json; p = {path!r}; v = json.load(open(p)); v.update({values!r}); json.dump(v, open(p, 'w'))"
    return f"python3 -c {shlex.quote(code)}"


def test_switching_removes_the_toolkit_and_its_keys(fleet: Fleet, switched: Run) -> None:
    step = "nvidia_container_runtime."
    assert switched.steps(OLD_DOCKER)[:3] == [step + "cleanup", step + "volume", step + "configure"]
    assert switched.steps(NEW_DOCKER)[:3] == [step + "cleanup", step + "cdi_spec", step + "configure"]
    assert sorted(existing_paths(fleet, OLD_DOCKER, *OURS)) == sorted((BOOT_NODES, VOLUME, HELPER))
    assert sorted(existing_paths(fleet, NEW_DOCKER, *OURS)) == sorted((BOOT_NODES, "/etc/cdi"))
    for host in HOSTS:
        assert installed(fleet, host, *TOOLKIT) == []
        ((_, output),) = started(fleet, host, "--gpus all")
        assert "could not select device driver" in output
        ((_, output),) = started(fleet, host, "--runtime=nvidia")
        assert "nvidia" in output and "runtime" in output


def test_a_second_run_changes_nothing_with_one_remote_call(fleet: Fleet, switched: Run) -> None:
    run = play(fleet, {OLD_DOCKER: "native", NEW_DOCKER: "cdi"})
    assert run.rc == 0
    assert [(run.steps(host), run.changed(host), run.calls[host]) for host in HOSTS] == [([], [], 1)] * 2


def test_cdi_passes_gpus_by_number_uuid_and_all(fleet: Fleet, switched: Run) -> None:
    ways = {
        "--device nvidia.com/gpu=0": [0],
        "--device nvidia.com/gpu=$3": [2],
        "--device nvidia.com/gpu=1 --device nvidia.com/gpu=3": [1, 3],
        "--device nvidia.com/gpu=all": ALL,
    }
    assert dict(zip(ways, seen(fleet, NEW_DOCKER, *ways), strict=True)) == ways
    ((_, output),) = started(fleet, NEW_DOCKER, "--device nvidia.com/gpu=7")
    assert "nvidia.com/gpu=7" in output


def test_the_helper_prints_docker_arguments_for_an_engine_without_cdi(fleet: Fleet, switched: Run) -> None:
    ways = {
        "$(gpu-docker-args 0,1)": [0, 1],
        "$(gpu-docker-args 3)": [3],
        "$(gpu-docker-args $2 2)": [1, 2],
        "$(gpu-docker-args all)": ALL,
        "$(gpu-docker-args)": ALL,
    }
    assert dict(zip(ways, seen(fleet, OLD_DOCKER, *ways), strict=True)) == ways
    assert seen(fleet, OLD_DOCKER, BY_HAND, command="/usr/local/nvidia/bin/nvidia-smi -L") == [[2]]
    output = fleet.ssh(OLD_DOCKER, "gpu-docker-args 0,9 2>&1; echo status $?")
    assert "this host has no GPU 9" in output and output.endswith("status 1\n")


def versions(fleet: Fleet, host: str) -> set[str]:
    """Return the driver versions that volume and specification of a host name."""
    command = f"ls {VOLUME} 2>/dev/null; readlink {VOLUME}/current; cat /etc/cdi/gpu-ready.json"
    return set(re.findall(r"\b\d{3}\.\d+\.\d+\b", fleet.ssh(host, command, check=False)))


def test_the_next_run_follows_a_driver_changed_by_others(fleet: Fleet, switched: Run) -> None:
    for host in FOLLOWING:
        assert versions(fleet, host) == {"580.178.04"}
        fleet.ssh(host, OTHER_DRIVER.format(packages=DRIVER, version="580.95.05"))
    run = play(fleet, {OLD_DOCKER: "native", NEW_DOCKER: "cdi"}, "--limit", ",".join(FOLLOWING))
    assert run.rc == 0
    steps = {OLD_DOCKER: "nvidia_container_runtime.volume", NEW_DOCKER: "nvidia_container_runtime.cdi_spec"}
    ways = {OLD_DOCKER: "$(gpu-docker-args 1)", NEW_DOCKER: "--device nvidia.com/gpu=1"}
    for host in FOLLOWING:
        assert steps[host] in run.changed_steps(host)
        assert versions(fleet, host) == {"580.95.05"}
        assert seen(fleet, host, ways[host]) == [[1]]


@pytest.mark.long
def test_a_replaced_driver_updates_volume_and_specification(fleet: Fleet, switched: Run) -> None:
    run = play(fleet, dict.fromkeys(HOSTS, "native"), nvidia_driver_version="580.178.04")
    assert run.rc == 0
    for host in HOSTS:
        assert "nvidia_driver.install" in run.changed_steps(host)
        assert versions(fleet, host) == {"580.178.04"}
        assert seen(fleet, host, "$(gpu-docker-args 0,2)") == [[0, 2]]
    assert fleet.ssh(NEW_DOCKER, "gpu-docker-args 0,2").split() == ["--device=nvidia.com/gpu=0", "--device=nvidia.com/gpu=2"]  # fmt: skip


def test_a_container_with_the_volume_restarts_after_a_power_cut(fleet: Fleet, switched: Run) -> None:
    program = "sh -c '/usr/local/nvidia/bin/nvidia-smi -L; echo listed; sleep infinity'"
    image = "$(docker images -q gpu-ready/verify | head -1)"
    fleet.ssh(OLD_DOCKER, f"docker run -d --restart=always --name server --network none {BY_HAND} {image} {program}")
    fleet.wait(OLD_DOCKER, "docker logs server 2>&1 | grep -q listed")
    lab("power-cycle", OLD_DOCKER)
    # Only the drop-in of docker's service has made the device nodes by then.
    fleet.wait(OLD_DOCKER, "[ $(docker logs server 2>&1 | grep -c listed) -ge 2 ]")
    output = fleet.ssh(OLD_DOCKER, "docker logs server; docker rm -f server >/dev/null; nvidia-smi -L")
    before, after, there_now = output.split("listed\n")
    assert re.findall("GPU-[0-9a-f-]+", after) == re.findall("GPU-[0-9a-f-]+", there_now)[2:3]
    assert before == after


@pytest.mark.long
def test_nvidia_docker_is_refused_with_a_remedy_and_nvidia_docker2_stays(fleet: Fleet, switched: Run) -> None:
    keep = "-o Dpkg::Options::=--force-confold"
    fleet.ssh(OLD_DOCKER, "apt-get -qq update && apt-get -qq -y install nvidia-docker >/dev/null")
    fleet.ssh(OLD_DOCKER, "mkdir -p /var/lib/nvidia-docker/volumes/nvidia_driver/580.178.04")
    fleet.wait(OLD_DOCKER, "docker volume ls -q | grep -q nvidia_driver_580.178.04")
    fleet.ssh(NEW_DOCKER, f"apt-get -qq update && apt-get -qq -y {keep} install nvidia-docker2 >/dev/null")
    own = {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}}}
    fleet.ssh(NEW_DOCKER, edit_daemon_json(own) + " && systemctl restart docker")
    run = play(fleet, dict.fromkeys(HOSTS, "toolkit"))
    assert run.rc != 0
    assert run.changed(OLD_DOCKER) == []
    (refusal,) = run.plan(OLD_DOCKER)["refusals"]
    # nvidia-docker2 is part of the current toolkit's world, and stays.
    assert run.recap(NEW_DOCKER)["failed"] == 0
    (warning,) = run.plan(NEW_DOCKER)["warnings"]
    for found in (refusal, warning):
        assert found["code"] == "legacy_nvidia_docker"
        assert "nvidia_container_runtime_migrate: true" in found["remedy"]


@pytest.mark.long
def test_nvidia_docker_is_replaced_on_request(fleet: Fleet, switched: Run) -> None:
    run = play(
        fleet,
        dict.fromkeys(HOSTS, "toolkit"),
        holds=["nvidia_container_runtime.migrate"],
        nvidia_container_runtime_migrate=True,
    )
    assert run.rc == 0
    for host in HOSTS:
        assert run.steps(host)[0] == "nvidia_container_runtime.migrate"
        assert run.steps(host) == run.changed_steps(host)
        assert installed(fleet, host, "nvidia-docker", "nvidia-docker2", "nvidia-container-toolkit") == ["nvidia-container-toolkit"]  # fmt: skip
        assert seen(fleet, host, "--gpus device=1", "--runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=2") == [[1], [2]]
        assert existing_paths(fleet, host, BOOT_NODES, VOLUME, HELPER, "/etc/cdi") == []
    assert fleet.ssh(OLD_DOCKER, "docker volume ls -q; ls /etc/docker/plugins") == ""
    assert existing_paths(fleet, OLD_DOCKER, "/var/lib/nvidia-docker") == []
    assert "features" not in daemon_json(fleet, NEW_DOCKER)
    assert "nvidia-container-toolkit" in fleet.ssh(NEW_DOCKER, "apt-mark showmanual")
    second = play(fleet, dict.fromkeys(HOSTS, "toolkit"))
    assert [(second.steps(host), second.calls[host]) for host in HOSTS] == [([], 1)] * 2


@pytest.mark.long
def test_cdi_is_described_by_an_nvidia_ctk_that_others_installed(fleet: Fleet, switched: Run) -> None:
    spec = "/var/run/cdi/nvidia.yaml"  # where its own service would write it: docker refuses two of the same devices
    modes = {OLD_DOCKER: "native", NEW_DOCKER: "cdi"}
    run = play(fleet, modes)
    assert run.rc == 0
    assert "nvidia_container_runtime.cleanup" not in run.steps(NEW_DOCKER)
    assert installed(fleet, NEW_DOCKER, *TOOLKIT) == sorted(TOOLKIT)
    assert existing_paths(fleet, NEW_DOCKER, spec, "/etc/cdi/gpu-ready.json", "/etc/cdi/nvidia.yaml") == [spec]
    assert seen(fleet, NEW_DOCKER, "--device nvidia.com/gpu=$2", "--device nvidia.com/gpu=all") == [[1], ALL]
    # The driver that it names was removed: repaired by the next run.
    fleet.ssh(NEW_DOCKER, f"sed -i s/580.178.04/580.95.05/ {spec}")
    repaired = play(fleet, modes)
    assert repaired.changed_steps(NEW_DOCKER) == ["nvidia_container_runtime.cdi_spec", "gpu_verify.verify"]
    assert seen(fleet, NEW_DOCKER, "--device nvidia.com/gpu=3") == [[3]]


@pytest.mark.long
def test_uninstall_reverts_every_mode_and_keeps_what_others_installed(fleet: Fleet, switched: Run) -> None:
    assert fleet.play(playbook="playbooks/uninstall.yml").rc == 0
    for host in HOSTS:
        assert (
            existing_paths(fleet, host, BOOT_NODES, VOLUME, HELPER, "/etc/cdi", "/var/run/cdi", "/var/lib/gpu-ready")
            == []
        )
    assert installed(fleet, NEW_DOCKER, *TOOLKIT) == sorted(TOOLKIT)  # installed by nvidia-docker2
