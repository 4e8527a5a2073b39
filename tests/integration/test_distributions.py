"""The life of a driver on a host of every distribution that the lab can dress, through the real playbooks.

All hosts run each phase together. `make test` takes one RPM host through installation, second run and removal; upgrade, downgrade,
change of the flavour and the refusal of another source are phases of the campaign, as are the other hosts and the other source.
"""

from typing import Any

import pytest

from tests.grid import CAMPAIGN
from tests.integration import matrix
from tests.integration.fleet import Fleet, Run, hosts_of, lab, requests
from tests.integration.matrix import Case

pytestmark = pytest.mark.lab

CASES = [case for case in matrix.cases() if case.host in hosts_of("matrix")]
OTHERS = [case for case in CASES if case.other]
UPGRADED = [case for case in CASES if case.newer != case.older]
"""Where a repository has another version to go to and back from."""
OTHER_SOURCE = {"nvidia_driver_source": "{{ matrix_other }}", "nvidia_driver_version": "{{ matrix_other_version }}"}


def each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.host)


def driver(fleet: Fleet, host: str) -> str:
    """Version and licence of the loaded module, and the versions of libcuda's files, as read on the host."""
    loaded = fleet.ssh(
        host,
        "cat /sys/module/nvidia/version /proc/driver/nvidia/version 2>/dev/null; find / -xdev -name 'libcuda.so.*.*' | sort",
    )
    lines = loaded.splitlines() or ["no module is loaded"]
    flavour = "open" if "Open Kernel Module" in loaded else "proprietary"
    libraries = {line.rpartition("libcuda.so.")[2] for line in lines if "libcuda.so." in line}
    assert libraries == {lines[0]}, f"module {lines[0]}, libraries {libraries}"
    return f"{lines[0]} {flavour}"


def clean(run: Run, host: str) -> None:
    """Check that a run did not fail on a host."""
    recap = run.recap(host)
    assert (recap["failed"], recap["unreachable"]) == (0, 0), run.failures(host) or run.screen[-2000:]


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    lab("down", "matrix")
    found = Fleet("matrix")
    found.up()
    return found


@pytest.fixture(scope="module")
def checked(fleet: Fleet) -> Run:
    return fleet.play("--check")


@pytest.fixture(scope="module")
def first(fleet: Fleet, checked: Run) -> tuple[Run, dict[str, str]]:
    run = fleet.play(
        holds=[
            "kernel_headers.repository",
            "kernel_headers.install",
            "nvidia_driver.repository",
            "nvidia_driver.install",
            "nvidia_driver.hold",
            "nvidia_driver.persistenced",
            "docker_engine.repository",
            "docker_engine.install",
            "nvidia_container_runtime.repository",
        ]
    )
    return with_state(fleet, run)


def asked(fleet: Fleet) -> int:
    """How many requests the hosts sent to mirror or proxy, the only servers outside that a lab host can reach."""
    return len(requests(fleet).splitlines())


def with_state(fleet: Fleet, run: Run, cases: list[Case] = CASES) -> tuple[Run, dict[str, str]]:
    """A run with the driver of each host after it; the error message if a host has none."""
    found = {}
    for case in cases:
        try:
            found[case.host] = driver(fleet, case.host)
        except AssertionError as error:
            found[case.host] = str(error)
    return run, found


@pytest.fixture(scope="module")
def second(fleet: Fleet, first: Any) -> tuple[Run, int]:
    before = asked(fleet)
    run = fleet.play()
    return run, asked(fleet) - before


@pytest.fixture(scope="module")
def upgraded(fleet: Fleet, second: Any) -> tuple[Run, dict[str, str]]:
    return with_state(fleet, fleet.play(extra={"nvidia_driver_version": "{{ matrix_newer }}"}))


@pytest.fixture(scope="module")
def downgraded(fleet: Fleet, upgraded: Any) -> tuple[Run, dict[str, str]]:
    return with_state(fleet, fleet.play())


@pytest.fixture(scope="module")
def changed(fleet: Fleet, downgraded: Any) -> tuple[Run, dict[str, str]]:
    return with_state(fleet, fleet.play(extra={"nvidia_driver_flavour": "{{ matrix_flavours[-1] }}"}))


@pytest.fixture(scope="module")
def conflict(fleet: Fleet, changed: Any) -> Run:
    """The other source is requested while the driver of the first is installed."""
    return fleet.play(*limit(OTHERS), extra=OTHER_SOURCE)


@pytest.fixture(scope="module")
def removed(fleet: Fleet, second: Any, request: pytest.FixtureRequest) -> Run:
    if CAMPAIGN:
        request.getfixturevalue("conflict")
    return fleet.play(playbook="playbooks/uninstall.yml")


@pytest.fixture(scope="module")
def other_checked(fleet: Fleet, removed: Any) -> Run:
    return fleet.play("--check", *limit(OTHERS), extra=OTHER_SOURCE)


@pytest.fixture(scope="module")
def other_first(fleet: Fleet, other_checked: Any) -> tuple[Run, dict[str, str]]:
    return with_state(fleet, fleet.play(*limit(OTHERS), extra=OTHER_SOURCE), OTHERS)


@pytest.fixture(scope="module")
def other_second(fleet: Fleet, other_first: Any) -> tuple[Run, int]:
    before = asked(fleet)
    run = fleet.play(*limit(OTHERS), extra=OTHER_SOURCE)
    return run, asked(fleet) - before


@pytest.fixture(scope="module")
def other_conflict(fleet: Fleet, other_second: Any) -> Run:
    """The first source is requested while the driver of the other is installed."""
    return fleet.play(*limit(OTHERS))


@pytest.fixture(scope="module")
def other_removed(fleet: Fleet, other_conflict: Any) -> Run:
    return fleet.play(*limit(OTHERS), playbook="playbooks/uninstall.yml")


def limit(cases: list[Case]) -> tuple[str, str]:
    return "--limit", ",".join(case.host for case in cases)


@each(CASES)
def test_install(checked: Run, first: Any, case: Case) -> None:
    run, state = first
    clean(checked, case.host)
    clean(run, case.host)
    assert state[case.host] == f"{case.older} {case.flavours[0]}"
    assert [step for step in run.changed_steps(case.host) if step != "gpu_plan.collect_facts"] == checked.steps(
        case.host
    )


@each(CASES)
def test_second_run_changes_nothing_and_uses_no_network(second: Any, case: Case) -> None:
    run, fetched = second
    clean(run, case.host)
    assert run.steps(case.host) == []
    assert run.recap(case.host)["changed"] == 0
    assert run.calls[case.host] == 1
    assert fetched == 0


@pytest.mark.long
@each(UPGRADED)
def test_upgrade(upgraded: Any, case: Case) -> None:
    run, state = upgraded
    clean(run, case.host)
    assert "nvidia_driver.install" in run.changed_steps(case.host)
    assert state[case.host] == f"{case.newer} {case.flavours[0]}"


@pytest.mark.long
@each(UPGRADED)
def test_downgrade(downgraded: Any, case: Case) -> None:
    run, state = downgraded
    clean(run, case.host)
    assert "nvidia_driver.install" in run.changed_steps(case.host)
    assert state[case.host] == f"{case.older} {case.flavours[0]}"


@pytest.mark.long
@each([case for case in CASES if len(case.flavours) > 1])
def test_flavour_change(changed: Any, case: Case) -> None:
    run, state = changed
    clean(run, case.host)
    assert "nvidia_driver.install" in run.changed_steps(case.host)
    assert state[case.host] == f"{case.older} {case.flavours[-1]}"


@pytest.mark.long
@each(OTHERS)
def test_another_source_over_the_first_is_refused(conflict: Run, case: Case) -> None:
    refused(conflict, case, str(case.other))


def refused(run: Run, case: Case, asked: str) -> None:
    """Check that a host was refused because of the driver of another source, and left unchanged."""
    message = run.failures(case.host)
    assert "two drivers of different origin" in message and asked in message, run.screen[-2000:]
    assert run.changed(case.host) == []


@each(CASES)
def test_remove(removed: Run, fleet: Fleet, case: Case) -> None:
    clean(removed, case.host)
    check_removed(fleet, case)


def check_removed(fleet: Fleet, case: Case) -> None:
    """Check that no part of a driver and no file of gpu-ready is left on a host."""
    left = fleet.ssh(
        case.host,
        "find /lib/modules /usr/lib /usr/lib64 /usr/bin /usr/src /var/lib/dkms /etc -xdev"
        r" \( -name 'nvidia*.ko*' -o -name 'libcuda.so*' -o -name 'libnvidia-ml.so*' -o -name 'nvidia-uninstall' -o -name 'gpu-ready-*'"
        r" -o -path '/usr/src/nvidia-*' -o -path '/var/lib/dkms/nvidia*' \) -not -path '*/gpu-ready-lab*' | sort;"
        " ls -d /var/lib/gpu-ready 2>/dev/null || true",
    ).splitlines()
    assert [path for path in left if "gpu-ready-lab" not in path] == []


@pytest.mark.long
@each(OTHERS)
def test_install_from_the_other_source(other_checked: Run, other_first: Any, case: Case) -> None:
    run, state = other_first
    clean(other_checked, case.host)
    clean(run, case.host)
    assert [step for step in run.changed_steps(case.host) if step != "gpu_plan.collect_facts"] == other_checked.steps(
        case.host
    )
    assert state[case.host].split()[0].count(".") >= 1


@pytest.mark.long
@each(OTHERS)
def test_second_run_with_the_other_source(other_second: Any, case: Case) -> None:
    run, fetched = other_second
    clean(run, case.host)
    assert run.steps(case.host) == []
    assert run.recap(case.host)["changed"] == 0
    assert fetched == 0


@pytest.mark.long
@each(OTHERS)
def test_the_first_source_over_the_other_is_refused(other_conflict: Run, case: Case) -> None:
    refused(other_conflict, case, case.source)


@pytest.mark.long
@each(OTHERS)
def test_remove_the_other_source(other_removed: Run, fleet: Fleet, case: Case) -> None:
    clean(other_removed, case.host)
    check_removed(fleet, case)
