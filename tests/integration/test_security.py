"""Hostile settings change nothing, and what a run installs belongs to root, whatever umask a site gives its logins."""

import json

import pytest

from tests.integration.fleet import Fleet

pytestmark = pytest.mark.lab

HOST = "safe"
ROLES = "- {name: Engine alone, hosts: all, gather_facts: false, become: true, roles: [gpu_ready.nodes.docker_engine, gpu_ready.nodes.nvidia_container_runtime]}\n"
PROXY = "http://me:hunter2@proxy.site:3128"
SETTINGS = {
    "nvidia_driver_source": "runfile",
    "nvidia_driver_branch": "580",
    "docker_engine_daemon_options": {"proxies": {"http-proxy": PROXY}},
}
"""The plan needs to know a driver to judge the runtime by; none is installed here."""
PRIVATE = ("/daemon.json", "/manifest.json", "/lease.json", "-restart.json", "-pending.json")
HOSTILE = {
    "nvidia_driver_version": "580.1; touch /x",
    "nvidia_driver_runfile": "-e $(touch /x)",
    "cuda_toolkit_versions": ["12.9\ntouch /x"],
    "cuda_toolkit_default": "../../x",
    "cudnn_version": "`touch /x`",
    "docker_engine_version": "$(touch /x)",
    "gpu_verify_image": "--volume=/:/host",
    "gpu_verify_devices": "0;touch /x",
    "gpu_ready_mirror": "https://admin:hunter2@mirror.site",
    "gpu_ready_mirror_keys": {"cuda-debian13": "'; touch /x; '"},
}
CHANGED = "find / -xdev -newer /root/before {} -not -path '/proc/*' -not -path '/sys/*' -not -path '/run/*' -not -path '/dev/*' -not -path '/tmp/*'"
"""What came or changed since the mark; lab hosts keep their docker on another file system."""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("security")
    fleet.up()
    fleet.ssh(
        HOST,
        "grep -q 'umask=0077' /etc/pam.d/sshd || echo 'session required pam_umask.so umask=0077' >>/etc/pam.d/sshd",
    )
    return fleet


def test_hostile_settings_are_refused_all_at_once_and_nothing_is_run(fleet: Fleet) -> None:
    look = "ls -la --full-time /var/lib/gpu-ready /etc/apt/sources.list.d /usr/local /var/lib/dpkg/status 2>&1 || true"
    before = fleet.ssh(HOST, look)
    run = fleet.play(extra=HOSTILE)
    output = run.failures(HOST)
    assert run.rc != 0
    assert [name for name in HOSTILE if name + " is " not in output] == []
    assert run.changed(HOST) == []
    assert "hunter2" not in run.screen
    assert fleet.ssh(HOST, "ls -d /x 2>/dev/null || true") == ""
    assert fleet.ssh(HOST, look) == before


def test_installed_files_belong_to_root_and_secrets_are_readable_by_root_alone(
    fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    playbook = tmp_path_factory.mktemp("site") / "engine.yml"
    playbook.write_text(ROLES)
    assert fleet.ssh(HOST, "touch /root/before; sleep 1; umask").strip() == "0077"
    done = fleet.play("--diff", playbook=str(playbook), extra=SETTINGS)
    assert done.rc == 0, done.failures(HOST)
    assert "hunter2" not in done.screen
    assert not done.changed(HOST) or "***@proxy.site" in done.screen
    assert json.loads(fleet.ssh(HOST, "cat /etc/docker/daemon.json"))["proxies"]["http-proxy"] == PROXY
    ours = "/etc/apt/keyrings /etc/apt/sources.list.d /etc/docker /var/lib/gpu-ready /etc/profile.d"
    listed = fleet.ssh(HOST, f"find {ours} -not -type l -printf '%m %u:%g %p\\n'").splitlines()
    assert len(listed) > 5
    for line in listed:
        mode, owner, path = line.split(" ", 2)
        assert owner == "root:root", line
        private = path.endswith(PRIVATE) or "/backup" in path
        assert int(mode, 8) & (0o077 if private else 0o022) == 0, line
        assert private or int(mode, 8) & 0o044 == 0o044, line
    writable = CHANGED.format("-perm /022 -not -type l -not -perm -1000 -printf '%m %p\\n'")
    found = fleet.ssh(HOST, writable + " || true").splitlines()
    assert [line for line in found if "/var/lib/docker" not in line and "/var/log" not in line] == []
