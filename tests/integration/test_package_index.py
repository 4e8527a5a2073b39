"""What the real apt and dnf of lab hosts are asked in a private root, and what plans, upgrades and audits make of it."""

import json
import re
import subprocess
from typing import Any

import pytest

from tests.integration.fleet import ROOT, VENV, Fleet, environment, hosts_of

pytestmark = [pytest.mark.lab, pytest.mark.long]

NAME = "package_index"
APT, DNF = "pi-apt", "pi-dnf"
BOTH = ("--limit", f"{APT},{DNF}")
OLD, NEW = "580.95.05", "580.178.04"
UPGRADE, BACK = "playbooks/upgrade_drivers.yml", "playbooks/rollback_drivers.yml"
LISTS = {APT: "/var/lib/apt/lists", DNF: "/var/cache/dnf", "pi-dnf5": "/var/cache/libdnf5"}
DIGEST = r"""
cd / && find etc opt usr/local var -xdev \( -path var/log/journal -o -path var/lib/systemd -o -path var/tmp -o -path var/lib/rpm \) -prune \
  -o -type f -printf '%p %m %s %T@\n' | sort
"""
"""Path, mode, size and time of the files of a host that a package manager could change."""
THIRD = {
    APT: "echo 'deb http://127.0.0.2:9/x stable main' > /etc/apt/sources.list.d/third.list",
    DNF: r"printf '[third]\nname=x\nbaseurl=http://127.0.0.2:9/x\ngpgcheck=0\n' > /etc/yum.repos.d/third.repo",
}
WITHOUT_THIRD = "rm -f /etc/apt/sources.list.d/third.list /etc/yum.repos.d/third.repo"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet(NAME)
    fleet.up()
    return fleet


def ask(fleet: Fleet, host: str, *names: str) -> dict[str, Any]:
    """Run the module, and check that the host is as before."""
    before = fleet.ssh(host, DIGEST)
    done = subprocess.run(
        [VENV / "ansible", "-i", fleet.inventory, host, "-m", "gpu_ready.nodes.gpu_package_index", "-a",
         json.dumps({"names": names})],
        cwd=ROOT, env=environment() | {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"=> (\{.*\})", done.stdout, re.DOTALL)
    assert done.returncode == 0 and found, done.stdout + done.stderr
    after = fleet.ssh(host, DIGEST)
    assert after == before, "\n".join(sorted(set(after.splitlines()) ^ set(before.splitlines())))
    assert "gpu-ready-index" not in fleet.ssh(host, "ls /var/cache")
    return dict(json.loads(found[1])["offered"])


@pytest.mark.parametrize("host", hosts_of(NAME))
def test_the_index_is_read_where_the_host_has_none_and_where_a_source_of_others_is_broken(
    fleet: Fleet, host: str
) -> None:
    fleet.ssh(host, f"rm -rf {LISTS[host]}/*")
    fleet.ssh(host, THIRD[APT] if host == APT else THIRD[DNF])
    try:
        found = ask(fleet, host, "dkms", "make", "nothing-of-this-name", "gcc*")
    finally:
        fleet.ssh(host, WITHOUT_THIRD)
        if host == DNF:  # the check of package managers asks dnf, whose keys went with its cache
            fleet.ssh(host, "dnf -q -y makecache")
    assert found["state"] == "fresh" and not found["cause"], found
    assert found["versions"]["make"] and found["versions"]["nothing-of-this-name"] == [], found
    assert found["versions"]["gcc"], found
    (failed,) = found["failed"]
    assert "third" in failed and "127.0.0.2" in failed


def test_an_archive_that_does_not_answer_makes_the_index_stale_or_unavailable(fleet: Fleet) -> None:
    fleet.ssh(APT, "apt-get -qq update")
    fleet.ssh(APT, "touch -d '3 days ago' /var/lib/apt/lists")
    fleet.set_mirror_rules({"*ubuntu*": {"status": 404}})
    try:
        stale = ask(fleet, APT, "make")
        fleet.ssh(APT, "rm -rf /var/lib/apt/lists/*")
        missing = ask(fleet, APT, "make")
    finally:
        fleet.set_mirror_rules(None)
    assert stale["state"] == "stale" and stale["age"] > 2 * 86400 and stale["versions"]["make"], stale
    assert missing["state"] == "unavailable" and missing["cause"], missing


def test_pins_holds_and_another_architecture_are_distinguished(fleet: Fleet) -> None:
    pin = r"printf 'Package: make\nPin: version *\nPin-Priority: -1\n' > /etc/apt/preferences.d/site"
    fleet.ssh(APT, f"{pin}; dpkg --add-architecture i386; apt-mark hold bash")
    try:
        found = ask(fleet, APT, "make", "bash", "libc6")
    finally:
        fleet.ssh(APT, "rm /etc/apt/preferences.d/site; dpkg --remove-architecture i386; apt-mark unhold bash")
    assert "/etc/apt/preferences.d/site line 1" in found["hidden"]["make"], found
    assert found["versions"]["bash"] and found["state"] == "fresh"
    fleet.ssh(DNF, "echo excludepkgs=make >> /etc/dnf/dnf.conf")
    try:
        found = ask(fleet, DNF, "make")
    finally:
        fleet.ssh(DNF, "sed -i '/^excludepkgs=make$/d' /etc/dnf/dnf.conf")
    assert found["versions"]["make"] == [] and "/etc/dnf/dnf.conf" in found["hidden"]["make"], found


def test_a_version_that_no_source_has_is_refused_before_any_change(fleet: Fleet) -> None:
    before = {host: fleet.ssh(host, DIGEST) for host in (APT, DNF)}
    run = fleet.play(*BOTH, extra={"nvidia_driver_version": "580.250.01"})
    assert run.rc != 0
    for host in (APT, DNF):
        refusal = run.plan(host)["refusals"][0]
        assert refusal["code"] == "not_offered" and "580.250.01" in refusal["message"], refusal
        assert f"(offered: {NEW}" in refusal["message"], refusal
        changed = set(before[host].splitlines()) ^ set(fleet.ssh(host, DIGEST).splitlines())
        assert not [line for line in changed if "/var/cache" in line or "etc/" in line], changed


def loaded(fleet: Fleet) -> set[str]:
    return {fleet.ssh(host, "cat /sys/module/nvidia/version").strip() for host in (APT, DNF)}


def test_an_upgrade_to_the_branch_moves_hosts_to_its_newest_release_and_the_rollback_restores_theirs(
    fleet: Fleet,
) -> None:
    run = fleet.play(*BOTH, extra={"nvidia_driver_version": OLD})
    assert run.rc == 0, run.screen[-4000:]
    run = fleet.play(*BOTH)
    assert run.rc == 0 and loaded(fleet) == {OLD}, run.screen[-4000:]
    run = fleet.play(*BOTH)
    # A host in the desired state is asked nothing more.
    assert {run.calls[host] for host in (APT, DNF)} == {1}, run.calls
    drain = {"gpu_upgrade_drain": ["none"], "nvidia_driver_branch": 580}
    run = fleet.play(*BOTH, playbook=UPGRADE, extra=drain)
    assert run.rc == 0 and loaded(fleet) == {NEW}, run.screen[-4000:]
    run = fleet.play(*BOTH, playbook=UPGRADE, extra=drain)
    assert run.rc == 0 and "current" in run.row(APT), run.screen[-4000:]
    run = fleet.play(*BOTH)
    assert run.rc == 0 and {run.calls[host] for host in (APT, DNF)} == {1}, run.screen[-4000:]
    run = fleet.play(*BOTH, playbook=BACK, extra=drain)
    assert run.rc == 0 and loaded(fleet) == {OLD}, run.screen[-4000:]
