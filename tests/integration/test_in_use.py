"""Hosts with running work: nothing is stopped without permission, and the message names what would be."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.fleet import Fleet, Run, hosts_of, lab

pytestmark = pytest.mark.lab

NAME, NODE, DOCKER = "in_use", "iu-node", "iu-docker"
NEW_MTU: dict[str, Any] = {"docker_engine_daemon_options": {"mtu": 1400}}
"""Docker reads it only when it starts."""
OTHER_DRIVER: dict[str, Any] = {"nvidia_driver_branch": 595}
UNINSTALL = "playbooks/uninstall.yml"
IN_DOCKER = {
    "container": "container work-container",
    "container-gpus": "container work-container-gpus (GPU)",
    "container-process": "container work-container-process (GPU)",
    "container-cdi": "container work-container-cdi (GPU)",
    "container-privileged": "container work-container-privileged (privileged)",
    "container-dev": "container work-container-dev (/dev)",
}
HELD = {
    "container-process": IN_DOCKER["container-process"],
    "gpu-process": r"process \d+ (hold)",
    "pod": "pod ml/train-0 (GPU)",
}
"""Work that has a GPU open."""
WITH_GPU = IN_DOCKER | HELD | {"slurm-job": r"Slurm job \d+"}
del WITH_GPU["container"]
RUNS = """
docker ps --no-trunc --format '{{.Names}}' | sort | while read -r name; do
  docker inspect --format '{{.Name}} {{.State.StartedAt}}' "$name"
done
ctr -n k8s.io tasks ls | sort
systemctl show --property MainPID work-gpu-process
[ ! -e /proc/driver/nvidia/version ] || cat /proc/driver/nvidia/version
"""
STOP = """
docker ps --quiet | xargs --no-run-if-empty docker rm --force
ctr -n k8s.io tasks ls --quiet | xargs --no-run-if-empty -n 1 ctr -n k8s.io tasks rm --force
ctr -n k8s.io containers ls --quiet | xargs --no-run-if-empty ctr -n k8s.io containers rm
systemctl stop work-gpu-process
! command -v scancel || scancel --user root
! command -v squeue || timeout 300 sh -c 'while squeue --noheader | grep -q .; do sleep 0.5; done'
/usr/lib/gpu-ready-lab/kernel refresh
"""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet(NAME)
    fleet.up()
    return fleet


@pytest.fixture
def alone(fleet: Fleet) -> Iterator[Fleet]:
    """The node without work."""
    fleet.ssh(NODE, STOP)
    yield fleet
    fleet.ssh(NODE, STOP)


def work(fleet: Fleet, host: str, *names: str) -> None:
    lab("work", f"{fleet.name}/{host}", *names)


def play(fleet: Fleet, *arguments: str, extra: dict[str, Any], playbook: str = "site.yml", host: str = NODE) -> Run:
    return fleet.play("--limit", host, *arguments, extra=extra, playbook=playbook)


def running(fleet: Fleet, host: str = NODE) -> str:
    """What runs on a host, with what changes when it is started again."""
    return fleet.ssh(host, RUNS)


def refusals(run: Run) -> list[str]:
    """Return the messages of the refusals, which are all about running work."""
    found = run.plan(NODE)["refusals"]
    assert {one["code"] for one in found} == {"host_in_use"}
    return [str(one["message"]) for one in found]


def refusal(run: Run) -> str:
    """Return the message of the only refusal."""
    (found,) = refusals(run)
    return found


def named(message: str) -> tuple[list[str], int]:
    """The names in a message, and the number of all: a few are named, the others are counted."""
    listed = re.split(r"(?:which stops|used by) ", message)[1]
    listed, _, more = listed.partition(" and ")
    names = listed.split(", ")
    return names, len(names) + int((more or "0").split()[0])


def matches(name: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\\d\+", r"\d+"), name) is not None


def test_check_and_run_refuse_with_the_same_messages_and_stop_nothing(fleet: Fleet) -> None:
    reasons = {
        "docker would restart (daemon.json gets mtu), which stops": set(IN_DOCKER),
        "the driver would be replaced": set(WITH_GPU) - {"slurm-job"},
    }
    before = running(fleet)
    checked, run = play(fleet, "--check", extra=NEW_MTU | OTHER_DRIVER), play(fleet, extra=NEW_MTU | OTHER_DRIVER)
    assert checked.rc != 0 and run.rc != 0
    messages = refusals(run)
    assert messages == refusals(checked) and len(messages) == len(reasons)
    for text, expected in reasons.items():
        (message,) = [one for one in messages if one.startswith(text)]
        names, total = named(message)
        patterns = [WITH_GPU.get(one) or IN_DOCKER[one] for one in expected]
        assert [name for name in names if not any(matches(name, pattern) for pattern in patterns)] == []
        assert total == len(expected)
        for each in (checked, run):
            assert message in " ".join(each.failures(NODE).split())
    for each in (checked, run):
        assert each.changed(NODE) == [] and "gpu_ready_disrupt" in each.failures(NODE)
    assert running(fleet) == before


def test_an_uninstallation_lists_what_it_would_stop_and_needs_permission(fleet: Fleet) -> None:
    before = running(fleet)
    unconfirmed = play(fleet, playbook=UNINSTALL, extra={"gpu_ready_uninstall": False})
    confirmed = play(fleet, playbook=UNINSTALL, extra={"gpu_ready_uninstall": True})
    assert unconfirmed.rc != 0 and confirmed.rc != 0
    for text in (
        "nothing was removed",
        "the driver would be removed while it is used by",
        "docker would be removed, which stops",
    ):
        assert text in unconfirmed.failures(NODE)
    assert "set gpu_ready_uninstall=true" in unconfirmed.failures(NODE) and "purge" in unconfirmed.failures(NODE)
    assert "nothing was removed" in confirmed.failures(NODE) and "gpu_ready_disrupt" in confirmed.failures(NODE)
    assert unconfirmed.changed(NODE) == confirmed.changed(NODE) == []
    assert running(fleet) == before


def test_with_permission_docker_restarts_and_the_rest_keeps_running(fleet: Fleet) -> None:
    """The last test of the node with all its work: the containers of docker end here."""
    extra = NEW_MTU | {"gpu_ready_disrupt": ["docker_restart"]}
    before = running(fleet)
    checked, run = play(fleet, "--check", extra=extra), play(fleet, extra=extra)
    assert checked.rc == 0 and run.rc == 0, run.failures(NODE)
    warnings = [[w for w in each.plan(NODE)["warnings"] if w["code"] == "work_stopped"] for each in (checked, run)]
    assert warnings[0] == warnings[1] and named(warnings[0][0]["message"])[1] == len(IN_DOCKER)
    after = running(fleet)
    assert "work-container" in before and "work-container" not in after
    assert [line for line in before.splitlines() if "work-container" not in line] == after.splitlines()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "extra", "expected"),
    [pytest.param(name, NEW_MTU | {"docker_engine_daemon_options": {"mtu": 1390}}, IN_DOCKER[name], id=f"docker-{name}") for name in IN_DOCKER]
    + [pytest.param(name, OTHER_DRIVER, WITH_GPU[name], id=f"driver-{name}") for name in WITH_GPU],
)  # fmt: skip
def test_each_kind_of_work_is_named(alone: Fleet, name: str, extra: dict[str, Any], expected: str) -> None:
    work(alone, NODE, name)
    run = play(alone, "--check", extra=extra)
    (found,) = named(refusal(run))[0]
    assert matches(found, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", ["container-gpus", "slurm-job"])
def test_a_driver_is_replaced_under_idle_users_with_permission(alone: Fleet, name: str) -> None:
    work(alone, NODE, name)
    run = play(alone, "--check", extra=OTHER_DRIVER | {"gpu_ready_disrupt": ["driver_reload"]})
    assert run.rc == 0 and "nvidia_driver.install" in " ".join(run.steps(NODE))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(HELD))
def test_a_held_gpu_keeps_its_driver_also_with_permission_for_a_reload(alone: Fleet, name: str) -> None:
    work(alone, NODE, name)
    run = play(alone, "--check", extra=OTHER_DRIVER | {"gpu_ready_disrupt": ["driver_reload"]})
    assert run.rc != 0 and matches(named(refusal(run))[0][0], HELD[name])
    extra = OTHER_DRIVER | {"gpu_ready_disrupt": ["reboot"], "gpu_ready_reboot_ok": True}
    assert play(alone, "--check", extra=extra).rc == 0


@pytest.mark.long
def test_an_idle_docker_restarts_without_permission(alone: Fleet) -> None:
    work(alone, NODE, "gpu-process", "pod")
    before = running(alone)
    run = play(alone, extra={"docker_engine_daemon_options": {"mtu": 1380}})
    assert run.rc == 0 and run.changed(NODE) != [], run.failures(NODE)
    assert running(alone) == before


@pytest.mark.long
@pytest.mark.skipif(DOCKER not in hosts_of(NAME), reason="make campaign has this host")
def test_a_first_run_beside_a_container_of_somebody_else_stops_nothing(fleet: Fleet) -> None:
    before = running(fleet, DOCKER)
    assert "work-container" in before
    run = play(fleet, extra={}, host=DOCKER)
    assert run.rc == 0, run.failures(DOCKER)
    assert "docker_restart_later" in [warning["code"] for warning in run.plan(DOCKER)["warnings"]]
    assert before.splitlines()[0] in running(fleet, DOCKER)
    assert play(fleet, extra={}, host=DOCKER).changed(DOCKER) == []
