"""Ubuntu with default variables: an update installs a newer kernel, nobody attends it, and the GPU works after the reboot."""

import base64

import pytest

from tests.integration.fleet import ROOT, Fleet
from tests.integration.guests import reboot

pytestmark = pytest.mark.lab
HOST = "follows"
UPDATE = ROOT / "tests/integration/kernel_update.sh"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("ubuntu_kernel")
    fleet.up()
    install = "apt-get -q update && apt-get -q -y --no-install-recommends install linux-image-generic"
    fleet.ssh(HOST, install)
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    return fleet


def versions(fleet: Fleet) -> dict[str, str]:
    """Return the versions of the driver's packages."""
    lines = fleet.ssh(HOST, "dpkg-query -W -f '${Package} ${Version}\\n' '*nvidia*'").splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def test_the_headers_follow_the_kernels(fleet: Fleet) -> None:
    fleet.ssh(HOST, "dpkg-query -W linux-headers-generic")
    assert fleet.ssh(HOST, "ls /var/lib/dkms").split() == ["nvidia-srv"]


@pytest.mark.long
def test_the_audit_of_a_host_whose_headers_follow_its_kernels_is_quiet(fleet: Fleet) -> None:
    run = fleet.play(playbook="playbooks/audit.yml")
    assert run.rc == 0 and "next_kernel" not in run.screen


def test_a_kernel_update_and_a_reboot_do_not_cost_the_gpu(fleet: Fleet) -> None:
    old, before = fleet.ssh(HOST, "uname -r").strip(), versions(fleet)
    script = base64.b64encode(UPDATE.read_bytes()).decode()
    printed = fleet.ssh(HOST, f"echo {script} | base64 -d >/root/update && sh /root/update")
    new = printed.split()[-1]
    assert new != old and f"linux-image-{new}" in printed
    assert versions(fleet) == before
    # The programs on the running kernel are not disturbed.
    assert "580." in fleet.ssh(HOST, "nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    # The boot loader's choice, which a lab host reads from a file.
    fleet.ssh(HOST, f"echo {new} >/etc/gpu-ready-lab/kernel-release")
    reboot(fleet, HOST)
    assert fleet.ssh(HOST, "uname -r").strip() == new
    assert "580." in fleet.ssh(HOST, "nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    run = fleet.play()
    assert run.rc == 0 and run.steps(HOST) == ["gpu_verify.verify"]
