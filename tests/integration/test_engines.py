"""podman and containerd instead of docker: real engines of Debian, started through their own command lines.

`make test` takes the newer host through two modes; `make campaign` also the older one, refusals, running containers and containerd 2.
"""

import json
import re
from typing import Any

import pytest

from tests.grid import CAMPAIGN
from tests.integration.fleet import DRIVER_ALONE, Fleet, hosts_of, lab

pytestmark = pytest.mark.lab

HOSTS = hosts_of("engines")
OLD, NEW = "eng-12", "eng-13"  # podman 4.3 and containerd 1.6; podman 5.4 and containerd 1.7
MAIN = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-gpu-ready.toml"
PREPARE = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends install podman crun containerd runc
mkdir -p /etc/containers
printf '[storage]\\ndriver = "vfs"\\nrunroot = "/run/containers/storage"\\ngraphroot = "/var/lib/containers/storage"\\n' \
  >/etc/containers/storage.conf  # the lab's kernel lets no container make overlays
systemctl start containerd
"""
UPDATE = """
set -e; cd /root
archive=$(sed -n 's/^URIs: //p' /etc/apt/sources.list.d/debian.sources | head -1)
echo "deb [trusted=yes] $archive sid main" >/etc/apt/sources.list.d/sid.list
apt-get -qq -o Acquire::Check-Valid-Until=false update && apt-get -qq download containerd; rm /etc/apt/sources.list.d/sid.list
DEBIAN_FRONTEND=noninteractive dpkg --force-confold -i containerd_*.deb; containerd --version
"""
CTR = "ctr --namespace gpu-ready"
SMI = "nvidia-smi --query-gpu=uuid --format=csv,noheader"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("engines")
    fleet.up()
    for host in HOSTS:
        fleet.ssh(host, DRIVER_ALONE + PREPARE)
    return fleet


@pytest.fixture(scope="module")
def ready(fleet: Fleet) -> Fleet:
    """Both hosts provisioned, with the texts of config.toml as they were in ``before``."""
    if any("nvidia" in fleet.ssh(host, f"cat {MAIN}") for host in HOSTS):  # an interrupted run of these tests left it
        assert fleet.play(playbook="playbooks/uninstall.yml").rc == 0
    before = {host: fleet.ssh(host, f"cat {MAIN}") for host in HOSTS}
    checked = fleet.play("--check") if CAMPAIGN else None
    assert {host: fleet.ssh(host, f"cat {MAIN}") for host in HOSTS} == before
    run = fleet.play(holds=["nvidia_container_runtime.containerd", "gpu_verify.verify"])
    assert run.rc == 0, run.screen[-3000:]
    for host in HOSTS:
        assert checked is None or checked.steps(host) == run.steps(host)
        # The toolkit's own service may have written the specification before that step.
        optional = {"nvidia_container_runtime.cdi_spec"}
        assert {*run.changed_steps(host)} - optional == {*run.steps(host)} - optional
        after = fleet.ssh(host, f"cat {MAIN}")
        assert after.startswith(before[host]) and "runtimes.nvidia" in after
    return fleet


def dump(fleet: Fleet, host: str) -> str:
    return fleet.ssh(host, "containerd config dump")


def uuids(fleet: Fleet, host: str, command: str = SMI) -> list[str]:
    """Return the UUIDs that a command prints on a host."""
    return re.findall(r"^GPU-[0-9a-f-]{36}\r?$", fleet.ssh(host, command), re.MULTILINE)


def image(fleet: Fleet, host: str) -> str:
    """Return the name of the image that the verification left in both engines."""
    (name,) = fleet.ssh(host, f"{CTR} images list --quiet").split()
    return name


def containerd(fleet: Fleet, host: str, arguments: str) -> list[str]:
    """Return the UUIDs that a container of containerd prints."""
    return uuids(fleet, host, f"{CTR} run --rm {arguments} {image(fleet, host)} test-$RANDOM {SMI}")


def podman(fleet: Fleet, host: str, arguments: str) -> list[str]:
    """Return the UUIDs that a container of podman prints."""
    return uuids(fleet, host, f"podman run --rm --network none {arguments} {image(fleet, host)} {SMI}")


def record(fleet: Fleet, host: str) -> dict[str, Any]:
    return dict(json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/verified.json")))


@pytest.mark.parametrize("host", HOSTS)
def test_docker_is_not_installed_with_source_none(ready: Fleet, host: str) -> None:
    assert "absent" in ready.ssh(host, "which dockerd || echo absent; ls /etc/docker 2>/dev/null || true")
    checks = record(ready, host)["checks"]
    assert checks["gpus_in_podman_container"] == checks["gpus_in_containerd_container"] == "ok"
    assert not [name for name in checks if "docker" in name or name == "gpus_in_container"]


@pytest.mark.parametrize("host", HOSTS)
def test_podman_passes_gpus_by_name(ready: Fleet, host: str) -> None:
    present = uuids(ready, host)
    assert podman(ready, host, "--device nvidia.com/gpu=all") == present
    assert podman(ready, host, "--device nvidia.com/gpu=0") == present[:1]
    assert podman(ready, host, f"--device nvidia.com/gpu={present[1]}") == present[1:2]


@pytest.mark.parametrize("host", HOSTS)
def test_containerd_has_the_runtime_and_keeps_its_settings(ready: Fleet, host: str) -> None:
    output = dump(ready, host)
    assert 'BinaryName = "/usr/bin/nvidia-container-runtime"' in output and 'bin_dir = "/usr/lib/cni"' in output
    assert ".runtimes.nvidia]" in output and ".runtimes.runc]" in output and 'default_runtime_name = "runc"' in output
    present = uuids(ready, host)
    runtime = "--runc-binary /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES="
    assert containerd(ready, host, runtime + "all") == present
    assert containerd(ready, host, runtime + present[1]) == present[1:2]
    assert "cri" in ready.ssh(host, "ctr plugins list | grep 'grpc.v1.*cri .*ok'")


def test_a_second_run_changes_nothing_with_one_call(ready: Fleet) -> None:
    second = ready.play()
    assert second.rc == 0
    for host in HOSTS:
        assert second.steps(host) == [] and second.changed(host) == [] and second.calls[host] == 1


@pytest.mark.long
def test_an_invalid_toml_file_is_refused_with_its_place_and_stays(ready: Fleet) -> None:
    ready.ssh(OLD, f"cp {MAIN} /root/kept && echo 'broken = [1, 2' >>{MAIN}")
    broken = ready.ssh(OLD, f"cat {MAIN}")
    refused = ready.play("--limit", OLD)
    assert refused.rc != 0 and re.search(
        r"config.toml is not valid TOML \(line \d+, column \d+: ", refused.failures(OLD)
    )
    assert ready.ssh(OLD, f"cat {MAIN}") == broken
    ready.ssh(OLD, f"cat /root/kept >{MAIN}")


@pytest.mark.long
def test_an_engine_without_cdi_is_refused_in_a_mode_that_needs_it(ready: Fleet) -> None:
    refused = ready.play("--limit", OLD, extra={"nvidia_container_runtime_mode": "cdi"})
    assert refused.rc != 0 and refused.changed(OLD) == []
    assert "containerd 1.6.20 has no CDI" in refused.failures(OLD) and "toolkit" in refused.failures(OLD)


@pytest.mark.long
def test_a_restart_of_containerd_leaves_running_containers_alone(ready: Fleet) -> None:
    runtime = "--runc-binary /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=all"
    ready.ssh(NEW, f"{CTR} run --detach {runtime} {image(ready, NEW)} stays sleep infinity </dev/null >/dev/null 2>&1")
    pid = ready.ssh(NEW, f"{CTR} tasks list | awk '/stays/ {{print $2}}'")
    run = ready.play("--limit", NEW, extra={"nvidia_container_runtime_default": True})
    assert run.rc == 0, run.failures(NEW)
    assert run.steps(NEW) == ["nvidia_container_runtime.containerd", "gpu_verify.verify"] == run.changed_steps(NEW)
    assert "leaves running containers alone" in json.dumps(run.plan(NEW))
    assert 'default_runtime_name = "nvidia"' in dump(ready, NEW)
    assert pid and ready.ssh(NEW, f"{CTR} tasks list | awk '/stays/ {{print $2}}'") == pid
    refused = ready.play("--limit", NEW, extra={"nvidia_container_runtime_mode": "cdi"})
    assert refused.rc != 0 and "gpu-ready/stays" in refused.failures(NEW)
    ready.ssh(NEW, f"{CTR} tasks rm --force stays && {CTR} containers rm stays")


def test_another_mode_cleans_up_after_the_first(ready: Fleet) -> None:
    run = ready.play(
        "--limit",
        NEW,
        extra={"nvidia_container_runtime_mode": "cdi"},
        holds=["nvidia_container_runtime.cleanup", "nvidia_container_runtime.cdi_spec"],
    )
    assert run.rc == 0, run.failures(NEW)
    steps = [f"nvidia_container_runtime.{name}" for name in ("cleanup", "cdi_spec", "containerd")] + [
        "gpu_verify.verify"
    ]
    assert run.steps(NEW) == steps == run.changed_steps(NEW)
    output = dump(ready, NEW)
    assert "enable_cdi = true" in output and ".runtimes.nvidia]" not in output and 'bin_dir = "/usr/lib/cni"' in output
    checks = record(ready, NEW)["checks"]
    assert checks["gpus_in_podman_container"] == checks["gpus_in_containerd_container"] == "ok"
    assert podman(ready, NEW, "--device nvidia.com/gpu=1") == uuids(ready, NEW)[1:2]
    assert "/etc/cdi/gpu-ready.json" in ready.ssh(NEW, "ls /etc/cdi/* /var/run/cdi/*", check=False)


@pytest.mark.long
def test_a_second_run_in_the_other_mode_changes_nothing(ready: Fleet) -> None:
    second = ready.play("--limit", NEW, extra={"nvidia_container_runtime_mode": "cdi"})
    assert second.rc == 0 and second.changed(NEW) == [] and second.calls[NEW] == 1


def test_device_nodes_exist_after_a_reboot(ready: Fleet) -> None:
    lab("power-cycle", NEW)
    assert "SUCCESS" in ready.ssh(NEW, "systemctl show --property ExecMainStatus,Result gpu-ready-nodes | tr a-z A-Z")
    assert podman(ready, NEW, "--device nvidia.com/gpu=all") == uuids(ready, NEW)


@pytest.mark.long
def test_containerd_2_gets_a_file_of_its_own(ready: Fleet) -> None:
    updated = ready.ssh(NEW, UPDATE, check=False)
    if not re.search(r"containerd.* v?2\.\d", updated):
        pytest.skip("Debian offers no containerd 2 that runs here")
    same = ready.play("--limit", NEW, extra={"nvidia_container_runtime_mode": "cdi"})
    assert same.rc == 0 and "nvidia_container_runtime.containerd" not in same.steps(NEW)  # 2.0 and newer have CDI on
    present = uuids(ready, NEW)
    assert containerd(ready, NEW, "--device nvidia.com/gpu=all") == present
    assert containerd(ready, NEW, f"--device nvidia.com/gpu=0 --device nvidia.com/gpu={present[2]}") == [
        present[0],
        present[2],
    ]
    settings = {"nvidia_container_runtime_default": True}
    run = ready.play("--limit", NEW, extra=settings)
    assert run.rc == 0, run.failures(NEW)
    drop_in = ready.ssh(NEW, f"cat {DROP_IN}")
    assert 'default_runtime_name = "nvidia"' in drop_in and "runtimes.nvidia.options]" in drop_in
    assert f'imports = ["{DROP_IN}"]' in ready.ssh(NEW, f"cat {MAIN}")
    output = dump(ready, NEW)
    assert "default_runtime_name = 'nvidia'" in output and "runtimes.runc]" in output and "/usr/lib/cni" in output
    second = ready.play("--limit", NEW, extra=settings)
    assert second.rc == 0 and second.changed(NEW) == [] and second.calls[NEW] == 1


def test_uninstall_reverts_everything(ready: Fleet) -> None:
    pristine = "dpkg-deb --fsys-tarfile $(ls -t /root/x/*.deb | head -1) | tar -xO ./etc/containerd/config.toml"
    ready.ssh(HOSTS[0], "mkdir -p /root/x && cd /root/x && apt-get -qq download containerd")
    back = ready.play(playbook="playbooks/uninstall.yml")
    assert back.rc == 0, back.screen[-3000:]
    assert ready.ssh(HOSTS[0], f"cat {MAIN}") == ready.ssh(HOSTS[0], pristine)
    for host in HOSTS:
        assert "nvidia" not in dump(ready, host) and "99-gpu-ready" not in ready.ssh(host, "find /etc")
        assert ready.ssh(host, f"{CTR} images list --quiet").split() == []
        assert "gpu-ready" not in ready.ssh(host, "podman image ls; ctr namespaces list")
        assert "gpu-ready-nodes" not in ready.ssh(host, "ls -R /etc/systemd/system")
        assert ready.ssh(host, "systemctl is-active containerd").strip() == "active"
