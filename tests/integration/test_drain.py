"""Draining with docker's engine and slurm's daemons of Debian. test_kubernetes.py has the cases of Kubernetes.

`make test` drains and undrains all kinds of work once, and a node that somebody else drained; `make campaign` also what interrupts a drain,
its time limits and its refusals.
"""

import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.fleet import ROOT, Fleet, Run

pytestmark = pytest.mark.lab

NODE = "dr-node"
JOURNAL = "/var/lib/gpu-ready/drain.json"
REASON = "gpu-ready: driver upgrade"
HOOKS = ["docker", "slurm", str(ROOT / "tests/integration/drain_hook.yml")]
INSTALL = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update && apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends install docker.io docker-cli slurmctld slurmd \
  slurm-client munge busybox-static >/root/apt.log 2>&1 || tail /root/apt.log
systemctl start slurmctld slurmd
"""
SLURM = """
mkdir -p /etc/slurm
cat >/etc/slurm/slurm.conf <<C
ClusterName=lab
SlurmctldHost=dr-node
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=1
NodeName=dr-node CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
echo CgroupPlugin=disabled >/etc/slurm/cgroup.conf
"""
DOCKER = """
set -e
cd /root; mkdir -p image/bin image/tmp; cp /bin/busybox image/bin; for name in sh sleep; do ln -sf busybox image/bin/$name; done
tar -C image -c . | docker import - gpu-test >/dev/null
test -e /dev/nvidia0 || mknod /dev/nvidia0 c 1 3  # opens like /dev/null, so that a process can hold it
docker rm --force $(docker ps --all --quiet) >/dev/null 2>&1 || true
run="docker run --detach --network none --stop-timeout 1"
$run --name asked --restart always --device /dev/nvidia0 gpu-test sleep 100000
$run --name holds --privileged --volume /dev:/dev gpu-test sh -c 'exec sleep 100000 </dev/nvidia0'
$run --name without gpu-test sleep 100000
docker create --name stopped --device /dev/nvidia0 gpu-test sleep 100000
"""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("drain")
    fleet.up()
    print(fleet.ssh(NODE, SLURM + INSTALL, limit=900))
    return fleet


def slurm(fleet: Fleet) -> tuple[str, str]:
    """Return state and reason of slurm's node."""
    output = fleet.ssh(NODE, f"scontrol show node {NODE}")
    reason = re.search(r"Reason=(.*) \[", output)
    state = re.search(r"State=(\S+)", output)
    assert state
    return state[1], reason[1] if reason else ""


def running(fleet: Fleet) -> list[str]:
    return sorted(fleet.ssh(NODE, "docker ps --format '{{.Names}}'").split())


def journal(fleet: Fleet) -> dict[str, Any]:
    found = dict(json.loads(fleet.ssh(NODE, f"cat {JOURNAL} 2>/dev/null || echo '{{}}'")))
    found.pop("schema", None)
    return found


def call(
    fleet: Fleet,
    entry: str,
    *arguments: str,
    hooks: list[str] | str = "none",
    moments: Sequence[dict[str, Any]] = (),
    **extra: Any,
) -> Run:
    """Run an entry point of the role on the node; moments: callback_plugins/moment.py."""
    values = {
        "entry": entry,
        "gpu_upgrade_drain": hooks,
        "gpu_upgrade_drain_timeout": 240,
        "gpu_undrain_unverified": True,  # the node has no driver
    }
    options = ("--limit", NODE, *arguments)
    return fleet.play(*options, playbook="tests/integration/drain.yml", extra=values | extra, moments=moments)


@pytest.fixture(scope="module")
def busy(fleet: Fleet) -> Fleet:
    """A node with containers and a job."""
    if journal(fleet):  # an interrupted run of these tests left it
        assert call(fleet, "undrain", hooks=HOOKS).rc == 0
    fleet.ssh(NODE, DOCKER)
    fleet.ssh(
        NODE,
        f"for attempt in $(seq 20); do sinfo --noheader | grep -q idle && break; scontrol update nodename={NODE} state=resume; sleep 1; done;"
        " scancel --user root; sbatch --output /dev/null --wrap 'sleep 100000' && "
        "until squeue --noheader | grep -q ' R '; do sleep 1; done",
    )
    return fleet


def test_check_mode_shows_the_drain_and_does_nothing(busy: Fleet) -> None:
    run = call(busy, "drain", "--check", hooks=HOOKS)
    assert run.rc == 0, run.failures(NODE)
    changed = {name.partition(" : ")[2] for name in run.changed(NODE)}
    assert {"turn | Carry out the turn", "scheduler_as_root | Ask the scheduler, or change its node"} <= changed
    assert running(busy) == ["asked", "holds", "without"] and journal(busy) == {}
    assert "DRAIN" not in slurm(busy)[0]


def test_all_work_is_drained_from_the_node(busy: Fleet, tmp_path: Path) -> None:
    """The job ends as soon as the run has waited for it once."""
    cancelled = tmp_path / "cancelled"
    cancel = ["ssh", "-F", str(busy.directory / "ssh_config"), NODE, "scancel --user root"]
    awaited = {"task": "waiting at most", "argv": cancel, "mark": str(cancelled)}
    run = call(busy, "drain", hooks=HOOKS, moments=[awaited])
    assert run.rc == 0 and cancelled.exists(), run.failures(NODE)
    assert running(busy) == ["without"]
    assert slurm(busy) == ("IDLE+DRAIN", REASON)
    text = run.screen.replace("''", "'")  # YAML doubles it
    assert re.search(r"waiting at most \d+ s more for 1 job on slurm's node dr-node: \d+ of root \(running\)", text)
    assert busy.ssh(NODE, "cat /root/balancer") == "drain\n"
    assert sorted(journal(busy)) == ["docker", "slurm", "tasks"]


def test_a_drained_node_is_not_drained_again_and_uninstall_keeps_it_drained(busy: Fleet) -> None:
    second = call(busy, "drain", hooks=HOOKS)
    assert second.rc == 0 and second.changed(NODE) == []
    refused = busy.play("--limit", NODE, playbook="playbooks/uninstall.yml")
    assert refused.rc != 0 and "slurm's node dr-node is drained" in refused.failures(NODE)
    assert "playbooks/undrain.yml" in refused.failures(NODE) and journal(busy)


def test_undrain_restores_only_what_gpu_ready_drained(busy: Fleet) -> None:
    undrain = partial(busy.play, "--limit", NODE, playbook="playbooks/undrain.yml")
    refused = undrain()
    assert refused.rc != 0 and "gpu_upgrade_drain does not name in this run" in refused.failures(NODE)
    unclear = undrain(extra={"gpu_upgrade_drain": HOOKS})
    assert unclear.rc != 0 and "-e gpu_undrain_unverified=true" in unclear.failures(NODE)
    assert running(busy) == ["without"] and slurm(busy)[0] == "IDLE+DRAIN"
    run = undrain(extra={"gpu_upgrade_drain": HOOKS, "gpu_undrain_unverified": True})
    assert run.rc == 0, run.failures(NODE)
    assert running(busy) == ["asked", "holds", "without"]
    assert slurm(busy)[0] == "IDLE"  # slurm forgets the reason later
    assert busy.ssh(NODE, "cat /root/balancer") == "undrain\n" and journal(busy) == {}
    second = call(busy, "undrain", hooks=HOOKS)
    assert second.rc == 0 and second.changed(NODE) == []


def test_a_node_drained_by_somebody_else_stays_drained_with_its_reason(busy: Fleet) -> None:
    busy.ssh(NODE, f"scontrol update nodename={NODE} state=drain reason='bad fan'")
    run = call(busy, "drain", hooks="slurm")
    assert run.rc == 0 and run.changed(NODE) == [] and journal(busy) == {}, run.failures(NODE)
    assert "already drained (bad fan) and stays so" in run.screen
    assert call(busy, "undrain").changed(NODE) == []
    assert slurm(busy) == ("IDLE+DRAIN", "bad fan")
    busy.ssh(NODE, f"scontrol update nodename={NODE} state=resume")


@pytest.mark.long
def test_a_killed_drain_is_finished_and_a_reason_given_since_stays(busy: Fleet) -> None:
    note = {"slurm": {"node": NODE, "controller": NODE, "reason": REASON}, "schema": 1}
    busy.ssh(NODE, f"mkdir -p $(dirname {JOURNAL}) && echo '{json.dumps(note)}' >{JOURNAL}")
    run = call(busy, "drain", hooks="slurm")
    assert run.rc == 0 and slurm(busy) == ("IDLE+DRAIN", REASON), run.failures(NODE)
    busy.ssh(NODE, f"scontrol update nodename={NODE} reason='bad fan'")
    back = call(busy, "undrain")
    assert back.rc == 0 and "has another reason now (bad fan)" in back.screen
    assert slurm(busy) == ("IDLE+DRAIN", "bad fan") and journal(busy) == {}
    busy.ssh(NODE, f"scontrol update nodename={NODE} state=resume")


@pytest.mark.parametrize(
    ("hook", "begin", "message"),
    [
        pytest.param("docker", "docker run --detach --rm --network none --name brief --device /dev/nvidia0 gpu-test sleep 100000",
         "after 1 s it still waits for the end of brief, which docker deletes when stopped", marks=pytest.mark.long),
        pytest.param("slurm", "sbatch --output /dev/null --wrap 'sleep 100000'; until squeue -h | grep -q ' R '; do sleep 1; done",
         r"after 1 s it still waits for 1 job on slurm's node dr-node"),
    ],
    ids=["docker", "slurm"],
)  # fmt: skip
def test_a_wait_has_an_end_and_leaves_the_host_drained(busy: Fleet, hook: str, begin: str, message: str) -> None:
    busy.ssh(NODE, begin, limit=60)
    run = call(busy, "drain", hooks=hook, gpu_upgrade_drain_timeout=1)
    assert run.rc != 0 and re.search(message, run.failures(NODE)), run.failures(NODE)
    assert "raise gpu_upgrade_drain_timeout" in run.failures(NODE) and hook in journal(busy)
    busy.ssh(NODE, "docker rm --force brief >/dev/null 2>&1; scancel --user root")
    back = call(busy, "undrain")
    assert back.rc == 0 and journal(busy) == {}, back.failures(NODE)
    assert running(busy) == ["asked", "holds", "without"] and "DRAIN" not in slurm(busy)[0]


@pytest.mark.parametrize(
    ("hook", "extra", "message"),
    [
        ("slurm", {"gpu_drain_slurm_node": "nobody"}, "slurm: it has no node nobody. Set gpu_drain_slurm_node"),
        ("kubernetes", {"gpu_drain_kubernetes_host": NODE}, "kubectl: it is not on the host where it has to run"),
        ("kubernets", {}, "gpu_upgrade_drain is 'kubernets', but must be none, docker, slurm, kubernetes"),
    ],
)
@pytest.mark.long
def test_undrainable_work_is_named(busy: Fleet, hook: str, extra: dict[str, Any], message: str) -> None:
    run = call(busy, "drain", hooks=hook, **extra)
    assert run.rc != 0 and message in run.failures(NODE) and journal(busy) == {}
