"""Hosts that somebody else set up (lab/pasts), through site.yml and uninstall.yml with default variables.

A few hosts at a time go through all phases; each phase of each host is one test.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
from gpu_ready_lab import footprint, hosts

from tests.grid import CAMPAIGN
from tests.integration import pasts
from tests.integration.fleet import ROOT, Fleet, Run, lab
from tests.integration.pasts import COLUMNS, HEALTHY, PLAN, RUN, RUNNING, SECOND, STEPS, UNINSTALL, Case

pytestmark = pytest.mark.lab

FLEET = "pasts"
CASES = [case for case in pasts.cases() if CAMPAIGN or not case.extra]
BATCH = 4

PAST = "some pasts: the cells of the column compare with before"
WORK = "past-work"
START_WORK = f"""
systemctl is-active --quiet docker.service || exit 0
tar -c --files-from /dev/null | docker import - {WORK} >/dev/null
docker run -d --restart no --name {WORK} -v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro {WORK} /usr/bin/sleep infinity
"""
"""Starts a container without a GPU where docker runs; it has the host's programs, because a lab host pulls no image."""
STOP_WORK = f"if docker inspect {WORK} >/dev/null 2>&1; then docker rm -f {WORK}; docker rmi {WORK}; fi"
RUNNING_SERVICES = """
for unit in $(systemctl list-units --type=service --state=running --no-legend --plain | cut -d ' ' -f 1); do
  echo "$unit $(systemctl show --property=MainPID --value "$unit")"
done
"""
HEALTH = """
if command -v apt-get >/dev/null; then
  shown=$(apt-get update 2>&1); echo "update $?"; echo "$shown" | grep -E '^(E|W|Err):?' | sed 's/^Err:[0-9]*/Err/' | sort -u
  apt-get --simulate install tree 2>&1 | grep -E '^(E|W|Inst)' | sed 's/ (.*//'
else
  shown=$(dnf -q makecache 2>&1); echo "makecache $?"; echo "$shown" | sort -u
  dnf --assumeno install libvdpau 2>&1 | grep -E '^(Error|No match|Operation|Nothing)'
fi
"""
WORKS = "set -- 0 ''\n" + (ROOT / "tests/integration/package_health.sh").read_text(encoding="utf-8")
"""Prints what does not work: what is half configured, and a real installation. Not before the first run: that would itself
configure what a past left half configured."""
SIMULATED = re.compile(r"(?m)^Inst tree|^Operation aborted")
"""What HEALTH prints where the package manager could install something before the first run."""
LEFT_BY_OTHERS = (
    r"/usr/local/bin/\S+: .* link to /usr/lib/gpu-ready-lab/compiler$"
    r"|\S+: absent became 4\d{4} "
    r"|/etc/apparmor\.d/(disable|local): 4\d{4} \S+ became absent$"
)
"""Differences that uninstall.yml leaves: links of the lab's compiler cache, and directories. Services make some when they
start, and the lab's RPMs own none; the files in them are compared for themselves. The purge of a package with an AppArmor
profile (docker.io.postrm, from debhelper's autoscripts/postrm-apparmor) removes these two when they are empty."""
# Short-lived by their nature, or of the login that asks.
PASSING_SERVICES = r"(user@|session-|systemd-|ssh|lab-apt|getty|polkit|dbus|packagekit)"


class Life(NamedTuple):
    """What happened to the hosts of a batch: runs, and by host what was read between them."""

    checked: Run
    worked: Run
    """The first run, beside a container where docker runs."""
    first: Run
    """The first run that nothing hindered: that one, or where it was refused for the container another without."""
    second: Run
    removed: Run
    files: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]
    """Before the first run, and at the end."""
    health: tuple[dict[str, str], dict[str, str], dict[str, str]]
    """Before the first run, after the second, and at the end."""
    broken: tuple[dict[str, str], dict[str, str]]
    """What does not work after the second run and at the end."""
    running: tuple[dict[str, set[str]], dict[str, set[str]]]
    """Before the first run and after it."""


def live(batch: list[Case]) -> Life:
    """Make the hosts of a batch, and take them through all phases."""
    fleet = Fleet(FLEET)
    lab("down", FLEET)
    lab("up", "--hosts", ",".join(case.host for case in batch), str(pasts.FLEET_FILE))
    files = take_files(batch)
    health = on_each(batch, lambda host: fleet.ssh(host, HEALTH, check=False))
    on_each(batch, lambda host: fleet.ssh(host, START_WORK))
    running = on_each(batch, lambda host: services(fleet, host))
    checked = fleet.play("--check", packages_broken_by=PAST)
    worked = fleet.play(packages_broken_by=PAST)
    running_then = on_each(batch, lambda host: services(fleet, host))
    first = worked
    if any("host_in_use" in codes(worked, case.host) for case in batch):
        on_each(batch, lambda host: fleet.ssh(host, STOP_WORK))
        first = fleet.play(packages_broken_by=PAST)
    second = fleet.play(packages_broken_by=PAST)
    on_each(batch, lambda host: fleet.ssh(host, STOP_WORK))
    health_then = on_each(batch, lambda host: fleet.ssh(host, HEALTH, check=False))
    broken_then = on_each(batch, lambda host: fleet.ssh(host, WORKS, check=False))
    removed = fleet.play(
        playbook="playbooks/uninstall.yml", extra={"gpu_ready_uninstall": True}, packages_broken_by=PAST
    )
    health_last = on_each(batch, lambda host: fleet.ssh(host, HEALTH, check=False))
    broken_last = on_each(batch, lambda host: fleet.ssh(host, WORKS, check=False))
    return Life(
        checked, worked, first, second, removed,
        (files, take_files(batch)), (health, health_then, health_last), (broken_then, broken_last),
        (running, running_then),
    )  # fmt: skip


def take_files(batch: list[Case]) -> dict[str, dict[str, str]]:
    return on_each(batch, lambda host: footprint.take(hosts.find(f"{FLEET}/{host}")))


def on_each(batch: list[Case], read: Callable[[str], Any]) -> dict[str, Any]:
    """Read something on all hosts of a batch at once."""
    names = [case.host for case in batch]
    with ThreadPoolExecutor(BATCH) as pool:
        return dict(zip(names, pool.map(read, names), strict=True))


def services(fleet: Fleet, host: str) -> set[str]:
    """Services that run with their process, and the container that this test started."""
    lines = fleet.ssh(host, RUNNING_SERVICES).splitlines()
    lines += fleet.ssh(
        host, f"docker inspect --format 'container {{{{.State.StartedAt}}}}' {WORK} 2>/dev/null", check=False
    ).split("\n")
    return {line for line in lines if line.strip() and not re.match(PASSING_SERVICES, line)}


def codes(run: Run, host: str) -> list[str]:
    return [refusal["code"] for refusal in run.plan(host)["refusals"]]


class Lives:
    """The lives of batches of the given cases, each begun when its first cell is asked for."""

    def __init__(self, cases: list[Case]) -> None:
        self._cases = cases
        self._found: dict[int, Life | Exception] = {}

    def of(self, case: Case) -> Life:
        number = self._cases.index(case) // BATCH
        if number not in self._found:
            try:
                self._found[number] = live(self._cases[number * BATCH : (number + 1) * BATCH])
            except Exception as error:  # the cells of the batch fail with it; those of others are run
                self._found[number] = error
        found = self._found[number]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(scope="module")
def lives(lab_machine: None, request: pytest.FixtureRequest) -> Any:
    calls = [
        item.callspec
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    asked = [call.params["case"] for call in calls if isinstance(call.params.get("case"), Case)]
    yield Lives([case for case in CASES if case in asked])
    lab("down", FLEET)


def check_plan(life: Life, case: Case) -> None:
    plan = life.checked.plan(case.host)
    steps = life.checked.steps(case.host)
    assert codes(life.checked, case.host) == list(case.refusal_codes), plan["refusals"] or "planned, not refused"
    assert case.outcome != "refuse" or steps == []
    unwanted = [step for step in steps for kept in case.keeps if step in STEPS[kept]]
    assert not unwanted, f"planned: {', '.join(unwanted)}"


def check_run(life: Life, case: Case) -> None:
    if case.outcome == "refuse":
        assert codes(life.first, case.host) == list(case.refusal_codes), life.first.failures(case.host)
        assert life.first.changed(case.host) == []
        return
    check_clean(life.first, case.host)
    assert re.search(r" yes( |$)", life.first.row(case.host)), life.first.row(case.host)  # verified
    planned, done = life.checked.steps(case.host), done_steps(life.first, case.host)
    assert [step for step in done if step not in planned] == []


def done_steps(run: Run, host: str) -> list[str]:
    return [step for step in run.changed_steps(host) if step != "gpu_plan.collect_facts"]


def check_clean(run: Run, host: str) -> None:
    recap = run.recap(host)
    assert (recap["failed"], recap["unreachable"]) == (0, 0), run.failures(host) or run.screen[-2000:]


def check_second(life: Life, case: Case) -> None:
    if case.outcome == "refuse":
        assert codes(life.second, case.host) == list(case.refusal_codes)
    else:
        check_clean(life.second, case.host)
        assert life.second.steps(case.host) == [], life.second.steps(case.host)
    assert life.second.recap(case.host)["changed"] == 0, life.second.changed(case.host)


def check_healthy(life: Life, case: Case) -> None:
    before, then, last = (health[case.host] for health in life.health)
    assert then == before, f"{before!r} became {then!r}"
    assert last == before, f"{before!r} became {last!r}"
    if SIMULATED.search(before):
        assert [broken[case.host] for broken in life.broken] == ["", ""]


def check_running(life: Life, case: Case) -> None:
    before, then = (running[case.host] for running in life.running)
    stopped = sorted(before - then)
    assert [line for line in stopped if not line.startswith(case.restarted)] == []
    assert [unit for unit in case.restarted if not any(line.startswith(unit + " ") for line in then)] == []
    assert len(stopped) == len(case.restarted), f"not restarted: {case.restarted}"


def check_uninstall(life: Life, case: Case) -> None:
    check_clean(life.removed, case.host)
    before, last = (files[case.host] for files in life.files)
    left = [line for line in footprint.differences(before, last) if not re.match(LEFT_BY_OTHERS, line)]
    left = [line for line in left if not line.startswith(case.repaired)]
    assert not left, "\n".join(left)


CHECKS = {
    PLAN: check_plan, RUN: check_run, SECOND: check_second, HEALTHY: check_healthy, RUNNING: check_running,
    UNINSTALL: check_uninstall,
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.host)
def test_past(lives: Lives, case: Case, column: str) -> None:
    CHECKS[column](lives.of(case), case)
