"""Docker's own engine on packages of both kinds: pinned, in place of another engine, upgraded and downgraded, configured, removed.

The tests are one story, in this order: each begins with what the one before left on the two hosts.

`make test` replaces the conflicting engine of one host and uninstalls; `make campaign` also upgrades and downgrades on both.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.fleet import Fleet, Run, hosts_of

pytestmark = pytest.mark.lab

DEB, RPM = "en-debian12", "en-rocky9"
HOSTS = hosts_of("engine")
OLD, NEW = "20.10.24", "26.1.5"
MINE = '{"labels": ["rack=7"],   "exec-opts": ["isolation=process"]}\n'
"""docker's configuration as an administrator left it; uninstall restores this text."""
PURGE = "apt-get -qq -y purge docker.io docker-ce containerd.io >/dev/null 2>&1; rm -rf /etc/docker"
BEFORE = """
systemctl unmask docker.service docker.socket >/dev/null 2>&1
rm -rf /var/lib/gpu-ready  # now everything here belongs to somebody else
for file in /etc/apt/sources.list.d/gpu-ready-* /etc/apt/preferences.d/gpu-ready-*; do
  test ! -e $file || mv $file $(echo $file | sed s/gpu-ready-/site-/)
done
export DEBIAN_FRONTEND=noninteractive
command -v dockerd >/dev/null || { apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends install docker.io >/dev/null; }
docker volume create keep >/dev/null && echo treasure >/var/lib/docker/volumes/keep/_data/file
mkdir -p /etc/docker && printf '%s' '{mine}' >/etc/docker/daemon.json && systemctl restart docker
"""
PACKAGES = {
    DEB: r"dpkg-query -W -f '${db:Status-Want} ${Package} ${Version}\n' 'docker*' 'containerd*' runc 2>/dev/null | grep -v unknown",
    RPM: "rpm -qa 'docker*' 'containerd*'; grep -h docker /etc/dnf/plugins/versionlock.list",
}
ENGINE = "docker version --format '{{.Server.Version}} {{.Client.Version}}'; docker info --format '{{.LoggingDriver}} {{.CgroupDriver}}'"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("engine")
    fleet.up()
    if "docker-ce" in str([state(fleet, host) for host in HOSTS]):  # an interrupted run of these tests left it
        fleet.play(
            playbook="playbooks/uninstall.yml", extra={"gpu_ready_disrupt": ["docker_restart", "containerd_restart"]}
        )
        fleet.ssh(DEB, PURGE, check=False)
    fleet.ssh(DEB, BEFORE.replace("{mine}", MINE))
    return fleet


def play(fleet: Fleet, *arguments: str, holds: Sequence[str] = (), **extra: Any) -> Run:
    """Run site.yml with Docker's packages and these variables; a mapping of hosts gives each its own value."""
    values = {"docker_engine_source": "docker_ce", "nvidia_container_toolkit_version": extra.pop("toolkit", "")}
    for name, value in extra.items():
        by_host = isinstance(value, dict) and set(value) >= set(HOSTS)
        values[f"docker_engine_{name}"] = f"{{{{ {value}[inventory_hostname] }}}}" if by_host else value
    return fleet.play(*arguments, extra=values, holds=holds)


def install(run: Run, host: str) -> dict[str, Any]:
    """The planned step that installs or replaces the engine."""
    (step,) = [step for step in run.plan(host)["steps"] if step["id"] == "docker_engine.install"]
    return dict(step)


def state(fleet: Fleet, host: str) -> list[str]:
    """Return the packages of docker with their versions and holds, sorted."""
    return sorted(fleet.ssh(host, PACKAGES[host], check=False).splitlines())


def engine(fleet: Fleet, host: str) -> list[str]:
    """What the running engine reports: its version, the client's, log driver, cgroup driver."""
    return fleet.ssh(host, ENGINE).split()


def refusal_codes(run: Run, host: str) -> list[str]:
    """Return the codes of a host's refusals."""
    return [refusal["code"] for refusal in run.plan(host)["refusals"]]


def test_packages_that_conflict_are_named_and_nothing_is_changed(fleet: Fleet) -> None:
    before = state(fleet, DEB)
    run = play(fleet, "--limit", DEB, version=OLD)
    assert run.rc != 0
    assert refusal_codes(run, DEB) == ["docker_conflicting_packages"]
    for words in (
        "containerd, docker.io, runc are installed and exclude docker-ce",
        "docker_engine_replace_conflicting: true",
    ):
        assert words in " ".join(run.failures(DEB).split())
    assert state(fleet, DEB) == before
    assert fleet.ssh(DEB, "cat /etc/docker/daemon.json") == MINE


OPTIONS: dict[str, Any] = {
    "log_driver": "json-file",
    "log_options": {"max-size": "7m", "max-file": 3},
    "cgroup_driver": "systemd",
}


@pytest.mark.long
def test_a_check_shows_the_steps_and_changes_nothing(fleet: Fleet) -> None:
    before = [state(fleet, host) for host in HOSTS]
    run = play(fleet, "--check", version=OLD, replace_conflicting=True, **OPTIONS)
    assert [state(fleet, host) for host in HOSTS] == before
    assert install(run, DEB)["disruption"] == "docker_restart"
    if RPM in HOSTS:
        assert install(run, RPM)["disruption"] == "none"
        assert "docker_engine.configure" in run.steps(RPM)
    assert any(warning["code"] == "docker_replaced" for warning in run.plan(DEB)["warnings"])


def test_with_permission_another_engine_is_replaced_and_its_volumes_stay(fleet: Fleet) -> None:
    run = play(fleet, version=OLD, replace_conflicting=True, **OPTIONS, holds=["docker_engine.configure"])
    for host in HOSTS:
        assert run.recap(host)["failed"] == 0, run.failures(host)
        assert run.steps(host) == run.changed_steps(host)
        version, client, *drivers = engine(fleet, host)
        assert version.startswith(OLD) and client.startswith(OLD)
        assert drivers == ["json-file", "systemd"]
    kept = [line for line in state(fleet, DEB) if line.startswith(("hold", "install"))]
    assert [line.split()[:2] for line in kept] == [
        ["hold", "docker-ce"], ["hold", "docker-ce-cli"], ["install", "containerd.io"],
    ]  # fmt: skip
    if RPM in HOSTS:
        assert f"docker-ce-3:{OLD}-3.el9.*" in state(fleet, RPM)
    assert fleet.ssh(DEB, "cat /var/lib/docker/volumes/keep/_data/file; docker volume ls -q").split() == [
        "treasure",
        "keep",
    ]
    text = fleet.ssh(DEB, "cat /etc/docker/daemon.json")
    assert json.loads(text)["labels"] == ["rack=7"]
    assert json.loads(text)["exec-opts"] == ["isolation=process", "native.cgroupdriver=systemd"]
    assert json.loads(text)["log-opts"] == {"max-size": "7m", "max-file": "3"}


def test_a_second_run_has_nothing_to_do_and_asks_once(fleet: Fleet) -> None:
    run = play(fleet, version=OLD, **OPTIONS)
    for host in HOSTS:
        assert (run.steps(host), run.recap(host)["changed"], run.calls[host]) == ([], 0, 1)


TOOLKIT = {
    DEB: r"dpkg-query -W -f '${Version}\n' 'nvidia-container-toolkit*' 'libnvidia-container*'",
    RPM: "rpm -qa --queryformat '%{VERSION}-%{RELEASE}\n' 'nvidia-container-toolkit*' 'libnvidia-container*'",
}


def test_the_container_toolkit_gets_the_requested_version(fleet: Fleet) -> None:
    steps = ["nvidia_container_runtime.install", "gpu_verify.verify"]
    before = {host: fleet.ssh(host, "systemctl show docker -p MainPID") for host in HOSTS}
    # The hook is newer than dockerd after the first, which has given a container its GPUs and so needs no restart.
    for requested, version in (("1.19", "1.19.1"), ("1.20.0", "1.20.0")):
        run = play(fleet, toolkit=requested, version=OLD, **OPTIONS)
        for host in HOSTS:
            assert run.recap(host)["failed"] == 0, run.failures(host)
            assert run.changed_steps(host) == steps
            assert {one.partition("-")[0] for one in fleet.ssh(host, TOOLKIT[host]).split()} == {version}
            assert fleet.ssh(host, "systemctl show docker -p MainPID") == before[host]
    again = play(fleet, toolkit="1.20.0", version=OLD, **OPTIONS)
    assert [again.steps(host) for host in HOSTS] == [[]] * len(HOSTS)


@pytest.mark.long
def test_an_upgrade_that_would_stop_gpu_containers_needs_permission(fleet: Fleet) -> None:
    image = fleet.ssh(DEB, "docker images -q gpu-ready/verify | head -1").strip()
    fleet.ssh(DEB, f"docker run -d --rm --name training --gpus all --network none {image} sleep infinity")
    run = play(fleet, version="26.1", **OPTIONS)
    assert refusal_codes(run, DEB) == ["host_in_use"]
    assert "docker-ce is 5:20.10.24" in run.failures(DEB) and "training" in run.failures(DEB)
    assert engine(fleet, DEB)[0].startswith(OLD)
    assert "training" in fleet.ssh(DEB, "docker ps --format '{{.Names}}'")
    if RPM in HOSTS:
        assert install(run, RPM)["disruption"] == "docker_restart"
        assert run.recap(RPM)["failed"] == 0, run.failures(RPM)
        assert [version.split("+")[0] for version in engine(fleet, RPM)[:2]] == [NEW, NEW]


@pytest.mark.long
def test_an_upgrade_with_permission_and_a_downgrade(fleet: Fleet) -> None:
    versions = {DEB: "26.1", RPM: OLD}
    run = play(fleet, version=versions, restart_ok=True, **OPTIONS)
    for host in HOSTS:
        version = NEW if host == DEB else OLD
        assert run.recap(host)["failed"] == 0, run.failures(host)
        assert run.steps(host) == run.changed_steps(host) == ["docker_engine.install", "gpu_verify.verify"]
        assert [one.split("+")[0] for one in engine(fleet, host)] == [version, version, "json-file", "systemd"]
    assert fleet.ssh(DEB, "docker ps -q; apt-mark showhold | grep docker").split() == ["docker-ce", "docker-ce-cli"]


@pytest.mark.long
def test_options_also_set_by_a_flag_of_the_unit_are_refused_and_a_removed_pin_is_released(fleet: Fleet) -> None:
    drop_in = "/etc/systemd/system/docker.service.d/site.conf"
    fleet.ssh(RPM, f"mkdir -p $(dirname {drop_in}); printf '[Service]\nExecStart=\nExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock --log-driver=json-file\n' >{drop_in}")  # fmt: skip
    run = play(fleet, version={DEB: OLD, RPM: ""}, **OPTIONS)
    assert refusal_codes(run, RPM) == ["daemon_json_flag_conflict"]
    assert f"--log-driver in {drop_in}" in run.failures(RPM)
    assert run.recap(DEB)["failed"] == 0, run.failures(DEB)
    assert [one.split("+")[0] for one in engine(fleet, DEB)[:2]] == [OLD, OLD]
    fleet.ssh(RPM, f"rm {drop_in}")
    run = play(fleet, "--limit", RPM, **OPTIONS)
    assert install(run, RPM)["disruption"] == "none"
    assert engine(fleet, RPM)[0].startswith(OLD)
    assert "versionlock" not in str(state(fleet, RPM)) and not [one for one in state(fleet, RPM) if one.endswith("*")]


def test_uninstall_removes_the_engine_and_keeps_volumes_and_other_configuration(fleet: Fleet) -> None:
    run = fleet.play(
        playbook="playbooks/uninstall.yml", extra={"gpu_ready_disrupt": ["docker_restart", "containerd_restart"]}
    )
    for host in HOSTS:
        assert run.recap(host)["failed"] == 0, run.failures(host)
    assert [line for line in state(fleet, DEB) if line.split()[1].startswith(("docker-ce", "containerd.io"))] == []
    assert RPM not in HOSTS or state(fleet, RPM) == []
    assert fleet.ssh(DEB, "cat /etc/docker/daemon.json") == MINE
    assert fleet.ssh(DEB, "cat /var/lib/docker/volumes/keep/_data/file").strip() == "treasure"
    for host in HOSTS:
        assert (
            fleet.ssh(
                host,
                "ls -d /var/lib/gpu-ready /etc/apt/sources.list.d/gpu-ready* /etc/yum.repos.d/gpu-ready*",
                check=False,
            )
            == ""
        )
