"""Bad input, broken networks and killed runs: a clear message, nothing lost, and the next run repairs.

The first test takes a bare host through a killed run, its repair and removal, in `make test` without CUDA's packages; it leaves
the host bare for those after it. Further values, faults and moments of a kill are of the campaign.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.grid import CAMPAIGN
from tests.integration.fleet import PLAY_LIMIT, ROOT, Fleet, environment, lab

pytestmark = pytest.mark.lab

HOST = "fault-a"
OTHER = "fault-b"
WAIT = PLAY_LIMIT  # seconds to wait for a moment of a run, which ends within them too
POLL = 20  # seconds of one call
WITHOUT_CUDA = {"cuda_toolkit_source": "none", "cudnn_source": "none"}
INSTALLED = {} if CAMPAIGN else WITHOUT_CUDA
"""What a killed run and the next one install: everything, or only driver and docker."""
NEWER = WITHOUT_CUDA | {"nvidia_driver_version": "595.91.07"}
"""What a host with a driver needs NVIDIA's repository for."""


@pytest.fixture(scope="module")
def faults(lab_machine: None) -> Fleet:
    lab("down", "faults")
    fleet = Fleet("faults")
    fleet.up()
    return fleet


@pytest.fixture
def broken_mirror(faults: Fleet) -> Iterator[Callable[[dict[str, dict[str, Any]]], None]]:
    """Make the vendor mirror answer wrongly until the end of the test."""
    yield faults.set_mirror_rules
    faults.set_mirror_rules(None)


def state(fleet: Fleet, host: str) -> str:
    """What a failed run must not change: packages, gpu-ready's directories, docker's configuration."""
    return fleet.ssh(
        host,
        "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n'; ls -la /etc/apt/sources.list.d /etc/apt/keyrings 2>/dev/null;"
        "cat /etc/docker/daemon.json 2>/dev/null; find /usr/local -newer /etc/hostname -type f | grep -v '^/usr/local/bin/gcc' | sort; true",
    )


def wait_for(fleet: Fleet, host: str, moment: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a shell condition is true on a host while a run is under way.

    The host itself watches for it: it may last for less than a login takes on a busy machine.
    """
    watch = f"timeout {POLL} sh -c {shlex.quote(f'until {moment}; do sleep 0.1; done')} && echo now"
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        assert process.poll() is None, f"the run ended with {process.returncode} before '{moment}'"
        if fleet.ssh(host, watch, check=False).strip() == "now":
            return
    raise AssertionError(f"{host}: '{moment}' did not come within {WAIT} s")


KILL_POINTS = {
    "while dpkg unpacks the driver": "pgrep -x dpkg >/dev/null && test -e /usr/src/nvidia-*/dkms.conf",
    "while docker is installed": "test -e /usr/sbin/dockerd",
    "before dpkg writes its status": "test -e /usr/bin/runc && ls /var/lib/dpkg/updates | grep -q 00",
    "after daemon.json was written": "grep -q nvidia /etc/docker/daemon.json 2>/dev/null",
}


def killed_and_repaired(faults: Fleet, point: str) -> None:
    """Kill a first run at a moment, with a power cut of the host; the next run finishes and the run after it does nothing."""
    process = subprocess.Popen(
        faults.command("--limit", HOST, "-e", json.dumps(INSTALLED)), cwd=ROOT, env=environment(),
        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        wait_for(faults, HOST, KILL_POINTS[point], process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    lab("power-cycle", HOST)
    repaired = faults.play("--limit", HOST, extra=INSTALLED)
    assert repaired.rc == 0, repaired.screen[-3000:]
    second = faults.play("--limit", HOST, extra=INSTALLED)
    assert second.recap(HOST)["changed"] == 0
    assert second.steps(HOST) == []
    assert faults.ssh(HOST, "dpkg --audit") == ""


def test_uninstall_reverts_what_a_killed_run_and_the_next_one_did_and_nothing_else(faults: Fleet) -> None:
    faults.ssh(
        HOST,
        'mkdir -p /etc/docker && printf \'{\\n   "log-driver": "journald"}\' >/etc/docker/daemon.json; apt-get -qq update && apt-get install -y -q tree >/dev/null',
    )
    before = footprint(faults, HOST)
    killed_and_repaired(faults, "before dpkg writes its status")
    faults.ssh(HOST, "apt-get install -y -q jq >/dev/null")
    run = faults.play("--limit", HOST, playbook="playbooks/uninstall.yml")
    assert run.rc == 0
    after = footprint(faults, HOST)
    own = {"jq", "libjq1", "libonig5"}
    assert {line for line in after["packages"] if line.split()[0] not in own} == before["packages"]
    assert after["etc"] == before["etc"]
    assert after["other"] == before["other"]
    second = faults.play("--limit", HOST, playbook="playbooks/uninstall.yml")
    assert second.recap(HOST)["changed"] == 0


def test_a_package_whose_files_dpkg_had_not_marked_as_complete_is_unpacked_again(faults: Fleet) -> None:
    """A run that was killed at that moment; apt alone has dpkg configure such a package, which dpkg refuses."""
    package = "libnetfilter-conntrack3"
    mark = f"/^Package: {package}$/,/^$/s/^Status: .*/Status: install reinstreq unpacked/"
    faults.ssh(OTHER, f"sed -i '{mark}' /var/lib/dpkg/status && dpkg --audit | grep -q {package}")
    run = faults.play("--limit", OTHER, extra=WITHOUT_CUDA)
    assert run.rc == 0, run.screen[-3000:]
    assert "gpu_plan.repair_packages" in run.changed_steps(OTHER)
    assert faults.ssh(OTHER, "dpkg --audit") == ""


def footprint(fleet: Fleet, host: str) -> dict[str, set[str]]:
    """Return packages, files of /etc with checksums, and the files under the directories that the product writes to."""
    quiet = "-path /etc/ld.so.cache -o -path /etc/.updated -o -path '/etc/*~' -o -path /etc/machine-id -o -path /etc/alternatives -o -path '/etc/*-'"
    return {
        "packages": set(fleet.ssh(host, "dpkg-query -W -f '${Package} ${db:Status-Want} ${db:Status-Status}\\n' | grep -v 'not-installed'").splitlines()),
        "etc": set(fleet.ssh(host, f"find /etc \\( {quiet} \\) -prune -o -type f -print0 | xargs -0 sha256sum").splitlines()),
        "other": set(fleet.ssh(host, "find /usr/local /opt /var/lib/gpu-ready /var/lib/dkms /usr/src /lib/modules -type f 2>/dev/null | grep -v -e '^/usr/src/linux' -e modules. || true").splitlines()),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"nvidia_driver_branch": "58"}, ["nvidia_driver_branch", "58", "580"]),
        pytest.param(
            {"nvidia_driver_source": "floppy"}, ["nvidia_driver_source", "floppy", "cuda_repo"], marks=pytest.mark.long
        ),
        pytest.param({"nvidia_driver_hold": "perhaps"}, ["nvidia_driver_hold", "perhaps"], marks=pytest.mark.long),
        pytest.param(
            {"nvidia_driver_flavour": "proprietary", "nvidia_driver_branch": "620"}, ["620"], marks=pytest.mark.long
        ),
        pytest.param({"cuda_toolkit_versions": ["99.9"]}, ["cuda_toolkit_versions", "99.9"], marks=pytest.mark.long),
        pytest.param(
            {"gpu_ready_treat_as": "amiga"}, ["gpu_ready_treat_as", "amiga", "debian12"], marks=pytest.mark.long
        ),
    ],
)
def test_a_wrong_value_is_refused_with_variable_value_and_choices(
    faults: Fleet, variables: dict[str, object], words: list[str]
) -> None:
    run = faults.play("--limit", HOST, extra=variables)
    assert run.rc != 0
    message = run.failures(HOST)
    for word in words:
        assert word in message
    assert run.changed(HOST) == []


@pytest.mark.long
def test_an_unknown_distribution_is_refused_with_the_known_ones(faults: Fleet) -> None:
    faults.ssh(HOST, "cp --remove-destination /etc/os-release /root/os-release; sed -i -e 's/^ID=.*/ID=plan9/' -e '/^ID_LIKE/d' -e '$aID_LIKE=debian' -e 's/^VERSION_ID=.*/VERSION_ID=4/' /root/os-release; mount --bind /root/os-release /etc/os-release")  # fmt: skip
    try:
        run = faults.play("--limit", HOST)
        assert (
            "plan9" in run.failures(HOST)
            and "debian12" in run.failures(HOST)
            and "gpu_ready_treat_as" in run.failures(HOST)
        )
    finally:
        faults.ssh(HOST, "umount /etc/os-release; rm -f /root/os-release")


@pytest.mark.long  # test_simulation.py has one in every run
def test_an_unreachable_host_is_named_and_does_not_stop_the_others(faults: Fleet) -> None:
    faults.ssh(OTHER, "systemctl stop ssh.socket ssh 2>/dev/null; true", check=False)
    lab("kill", OTHER)
    try:
        run = faults.play("--check")
        assert run.rc != 0
        assert OTHER in run.screen and "unreachable" in run.screen.lower()
        assert run.recap(HOST)["failed"] == 0
        assert run.steps(HOST)
    finally:
        faults.up()


def test_an_invalid_daemon_json_is_refused_with_its_line_and_unchanged(faults: Fleet) -> None:
    text = '{\n  "log-driver": "journald",\n  "mtu": 1400,\n}\n'
    faults.ssh(HOST, f"mkdir -p /etc/docker; printf '%s' '{text}' >/etc/docker/daemon.json")
    try:
        run = faults.play("--limit", HOST)
        message = run.failures(HOST)
        assert "/etc/docker/daemon.json" in message and re.search("line [34]", message)  # older Pythons say the next
        assert faults.ssh(HOST, "cat /etc/docker/daemon.json") == text
        assert run.changed(HOST) == []
    finally:
        faults.ssh(HOST, "rm -rf /etc/docker")


@pytest.mark.long
def test_a_full_disk_is_refused_before_anything_is_changed(faults: Fleet) -> None:
    before = state(faults, HOST)
    faults.ssh(
        HOST,
        "mount -t tmpfs -o size=20m full /usr/local/share && mount -t tmpfs -o size=30m full /var/cache/apt/archives",
    )
    try:
        run = faults.play("--limit", HOST)
        message = run.failures(HOST)
        assert "/var/cache/apt/archives" in message and "free" in message
    finally:
        faults.ssh(HOST, "umount /var/cache/apt/archives /usr/local/share")
    assert "half" not in state(faults, HOST).replace(before, "")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        pytest.param({"status": 404}, ["404"], marks=pytest.mark.long),
        ({"corrupt": True}, ["sign"]),
    ],
)
def test_a_broken_repository_is_named_and_removed(
    faults: Fleet,
    broken_mirror: Callable[[dict[str, dict[str, Any]]], None],
    rule: dict[str, Any],
    words: list[str],
) -> None:
    remove_repository(faults)
    broken_mirror({"*/cuda/repos/*/InRelease": rule, "*/cuda/repos/*/Release": rule})
    run = faults.play("--limit", OTHER, extra=NEWER)
    message = run.failures(OTHER)
    assert "cuda/repos" in message
    for word in words:
        assert word in message.lower()
    assert faults.ssh(OTHER, "ls /etc/apt/sources.list.d | grep gpu-ready-cuda || true") == ""


def test_a_wrong_key_fingerprint_stops_before_anything_is_changed(faults: Fleet) -> None:
    remove_repository(faults)
    key = "0123456789ABCDEF0123456789ABCDEF01234567"
    run = faults.play("--limit", OTHER, extra=NEWER | {"gpu_ready_mirror_keys": {"cuda-debian12": key}})
    assert key in run.failures(OTHER).replace(" ", "")
    assert faults.ssh(OTHER, "ls /etc/apt/sources.list.d | grep gpu-ready-cuda || true") == ""


def remove_repository(fleet: Fleet) -> None:
    """Remove NVIDIA's repository from the host that has a driver.

    Its lists too: apt uses those that it verified before, and those of a removed repository stay until the next update.
    """
    names = "/etc/apt/sources.list.d/gpu-ready-cuda* /etc/apt/keyrings/gpu-ready-cuda* /var/lib/apt/lists/*cuda_repos*"
    fleet.ssh(OTHER, f"rm -f {names}")


@pytest.mark.long
@pytest.mark.parametrize(("rule", "words"), [({"truncate": 1000}, ["1000"]), ({"corrupt": True}, ["sha256"])])
def test_a_damaged_cudnn_archive_is_reported_and_nothing_of_it_is_placed(
    faults: Fleet,
    broken_mirror: Callable[[dict[str, dict[str, Any]]], None],
    rule: dict[str, Any],
    words: list[str],
) -> None:
    broken_mirror({"*/cudnn-linux-*": rule})
    run = faults.play("--limit", OTHER)
    message = run.failures(OTHER)
    assert "cudnn-linux-" in message
    for word in words:
        assert word in message
    assert faults.ssh(OTHER, "find / -xdev -name 'libcudnn*' -o -xdev -name '*.gpu-ready'") == ""


@pytest.mark.long
@pytest.mark.parametrize("point", KILL_POINTS)
def test_a_killed_run_is_repaired_by_the_next(faults: Fleet, point: str) -> None:
    killed_and_repaired(faults, point)
    assert faults.play("--limit", HOST, playbook="playbooks/uninstall.yml").rc == 0
