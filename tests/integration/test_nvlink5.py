"""A host with NVLink 5 switches: what the fabric manager needs is installed and loaded before it, and removed again.

Only `make campaign` runs it: test_demo.py has a host with the NVSwitches of Hopper and their fabric manager in `make test`.
"""

import pytest

from tests.integration.fleet import Fleet, Run, lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "b200"
FILE = "/etc/modules-load.d/gpu-ready-ib-umad.conf"
STEPS = ["nvidia_driver.umad", "nvidia_driver.fabricmanager"]
LOADED = "ls -d /sys/module/ib_umad /sys/module/mlx5_ib 2>/dev/null | wc -l"
START = "systemctl reset-failed nvidia-fabricmanager; systemctl start nvidia-fabricmanager; systemctl is-active nvidia-fabricmanager"
LOG = "journalctl --sync; journalctl --no-pager --unit nvidia-fabricmanager --output cat"
NO_MODULE = 'Kernel module "ib_umad" has not been loaded, fabric manager cannot be started'


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("nvlink5")
    fleet.up()
    return fleet


@pytest.fixture(scope="module")
def checked(fleet: Fleet) -> Run:
    return fleet.play("--check", "--diff")


@pytest.fixture(scope="module")
def first(fleet: Fleet, checked: Run) -> Run:
    return fleet.play(holds=["nvidia_driver.umad", "nvidia_driver.fabricmanager"])


def test_the_plan_has_the_modules_before_the_fabric_manager(fleet: Fleet, checked: Run) -> None:
    assert checked.rc == 0, checked.screen[-4000:]
    steps = checked.steps(HOST)
    assert [step for step in steps if step in STEPS] == STEPS
    assert f"{FILE}" in checked.screen and "+ib_umad" in checked.screen
    assert fleet.ssh(HOST, LOADED).strip() == "0"


def test_one_run_verifies_the_host_and_loads_the_modules_before_the_fabric_manager(
    fleet: Fleet, checked: Run, first: Run
) -> None:
    assert first.rc == 0, first.screen[-4000:]
    assert [step for step in first.changed_steps(HOST) if step in STEPS] == STEPS
    assert [step for step in first.changed_steps(HOST) if step != "gpu_plan.collect_facts"] == checked.steps(HOST)
    assert fleet.ssh(HOST, LOADED).strip() == "2"
    assert fleet.ssh(HOST, f"grep -v '^#' {FILE}").split() == ["mlx5_ib", "ib_umad"]
    log = fleet.ssh(HOST, LOG)
    assert "Detected NVL5+ system" in log and 'Started "Nvidia NVLink Subnet Manager"' in log
    assert NO_MODULE not in log and "NV_WARN_NOTHING_TO_DO" not in log, (
        log
    )  # not even the start by its package's script


def test_the_second_run_is_one_call_and_changes_nothing(fleet: Fleet, first: Run) -> None:
    second = fleet.play()
    assert (second.rc, second.calls[HOST], second.recap(HOST)["changed"]) == (0, 1, 0)


def test_a_reboot_loads_the_modules_before_the_fabric_manager(fleet: Fleet, first: Run) -> None:
    lab("power-cycle", f"nvlink5/{HOST}")
    assert fleet.ssh(HOST, "systemctl is-system-running || :").strip() in ("running", "degraded")
    assert fleet.ssh(HOST, LOADED).strip() == "2"
    assert fleet.ssh(HOST, "systemctl is-active nvidia-fabricmanager").strip() == "active"


@pytest.mark.parametrize(
    ("taken", "message"),
    [
        ("rmmod ib_umad", NO_MODULE),
        ("rmmod mlx5_ib", "NV_WARN_NOTHING_TO_DO"),
        ("apt-get -y -q remove nvlsm >/dev/null", '"/opt/nvidia/nvlsm/sbin/nvlsm" does not exist'),
        ("apt-get -y -q remove infiniband-diags >/dev/null", "ibstat: command not found"),
    ],
)
def test_without_one_of_its_needs_it_does_not_start_and_the_next_run_restores_it(
    fleet: Fleet, first: Run, taken: str, message: str
) -> None:
    fleet.ssh(HOST, f"systemctl stop nvidia-fabricmanager; {taken}; {START} || :")
    assert message in fleet.ssh(HOST, f"{LOG} --boot --lines 20")
    assert fleet.ssh(HOST, "systemctl is-active nvidia-fabricmanager || :").strip() == "failed"
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    assert fleet.ssh(HOST, "systemctl is-active nvidia-fabricmanager").strip() == "active"


def test_uninstalling_removes_the_file_and_what_was_installed(fleet: Fleet, first: Run) -> None:
    run = fleet.play(playbook="playbooks/uninstall.yml", extra={"gpu_ready_uninstall": True})
    assert run.rc == 0, run.screen[-4000:]
    assert fleet.ssh(HOST, f"test ! -e {FILE} && echo absent").strip() == "absent"
    packages = "nvlsm infiniband-diags nvidia-fabricmanager linux-modules-extra-6.8.0-100-generic"
    assert fleet.ssh(HOST, f"dpkg -l {packages} 2>/dev/null | grep -c ^ii || :").strip() == "0"
