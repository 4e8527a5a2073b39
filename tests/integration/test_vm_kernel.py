"""A guest whose operator does the reboots: nouveau without permission to reboot, and then a newer kernel under the driver."""

import pytest
from ansible.module_utils.common.yaml import yaml_load

from tests.integration import guests
from tests.integration.fleet import ROOT, Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "vmkernel"
FILE = ROOT / "lab/fleets/vm_kernel.yml"
AUDIT = "playbooks/audit.yml"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    return guests.up("vm_kernel")


@pytest.fixture(scope="module")
def kernels() -> tuple[str, str]:
    """The kernel that the guest begins with, and the kernel that its operator installs."""
    old, new = yaml_load(FILE.read_text())["hosts"][HOST]["kernels"]
    return old, new


def test_without_permission_to_reboot_the_run_reports_that_one_is_required(
    fleet: Fleet, kernels: tuple[str, str]
) -> None:
    assert fleet.ssh(HOST, "lspci -k -d 10de:").count("Kernel driver in use: nouveau") == 2
    before = guests.boot_id(fleet, HOST)
    run = fleet.play()
    assert run.rc != 0
    assert "A reboot is required: nouveau drives the GPU at " in run.failures(HOST), run.failures(HOST)
    assert guests.boot_id(fleet, HOST) == before
    assert fleet.ssh(HOST, "lspci -k -d 10de:").count("Kernel driver in use: nouveau") == 2
    assert fleet.ssh(HOST, "uname -r").strip() == kernels[0]


def test_the_same_command_finishes_after_the_operators_reboot(fleet: Fleet) -> None:
    guests.reboot(fleet, HOST)
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert not {"kernel_headers.install", "nvidia_driver.install"} & set(run.changed_steps(HOST))
    assert "x86_64 Kernel Module  535." in guests.loaded(fleet, HOST)
    assert fleet.ssh(HOST, "lspci -k -d 10de:").count("Kernel driver in use: nvidia") == 2
    assert fleet.play(playbook=AUDIT).rc == 0


def test_the_audit_reports_that_a_new_kernel_would_boot_without_the_driver(
    fleet: Fleet, kernels: tuple[str, str]
) -> None:
    """The kernel is installed without its headers, as by upgrades if the headers were named by their release."""
    install = f"DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install linux-image-{kernels[1]}"
    fleet.ssh(HOST, install, limit=guests.PLAY_LIMIT)
    run = fleet.play(playbook=AUDIT)
    assert run.rc != 0
    output = " ".join(run.screen.split())
    assert f"there is no module for kernel {kernels[1]}; DKMS cannot build 535." in output, run.screen[-3000:]
    assert "without its headers" in output


def test_the_next_run_builds_the_module_for_it_while_the_old_one_runs(fleet: Fleet, kernels: tuple[str, str]) -> None:
    before = guests.boot_id(fleet, HOST)
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert {"kernel_headers.install", "nvidia_driver.next_kernel"} & set(run.changed_steps(HOST))
    assert guests.boot_id(fleet, HOST) == before and fleet.ssh(HOST, "uname -r").strip() == kernels[0]
    assert f"{kernels[1]}, x86_64: installed" in fleet.ssh(HOST, "dkms status")
    assert fleet.play(playbook=AUDIT).rc == 0


def test_the_new_kernel_has_the_driver_from_its_first_boot_on(fleet: Fleet, kernels: tuple[str, str]) -> None:
    guests.reboot(fleet, HOST)
    assert fleet.ssh(HOST, "uname -r").strip() == kernels[1]
    assert "x86_64 Kernel Module  535." in guests.loaded(fleet, HOST)
    run = fleet.play()
    assert run.rc == 0, run.failures(HOST)
    assert set(run.changed_steps(HOST)) <= {"gpu_verify.verify"}
    assert fleet.play(playbook=AUDIT).rc == 0
